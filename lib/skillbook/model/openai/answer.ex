defmodule Skillbook.Model.OpenAI.Answer do
  @moduledoc false
  # Reads the response of a chat server, part by part: events to text, usage and finish reason, or
  # a failure to a `Skillbook.ModelError`.

  alias Skillbook.HTTP.{Failure, Response}
  alias Skillbook.Model.SSE
  alias Skillbook.ModelError
  alias Skillbook.Support.JSON

  # The extractor refuses longer replies.
  @max_text 16 * 1024 * 1024
  # Bytes of an answer that is not streamed: the text with its escapes, and other fields.
  @max_json 2 * @max_text
  @empty "the server sent an empty stream; the conversation is perhaps longer than the " <>
           "model's context: raise the server's context size, or set max_context (chat: " <>
           "--max-context)"

  defstruct [
    # `:stream`, `:json` for a whole answer at once, or `{:other, status}` for anything else.
    :mode,
    :on_text,
    :status,
    :usage,
    :finish_reason,
    :error,
    headers: %{},
    other: "",
    sse: SSE.new(),
    texts: [],
    size: 0,
    done: false
  ]

  @doc "An answer that calls `on_text` with each piece of text."
  def new(on_text), do: %__MODULE__{on_text: on_text}

  @doc "Takes a part of the response, as the function of `Skillbook.HTTP.stream/4`."
  def part({:head, status, headers}, answer) do
    type = String.downcase(Response.header(headers, "content-type") || "")
    ok? = status in 200..299
    stream? = ok? and String.starts_with?(type, "text/event-stream")

    mode =
      cond do
        stream? -> :stream
        ok? and String.starts_with?(type, "application/json") -> :json
        true -> {:other, status}
      end

    answer = %{answer | mode: mode, status: status, headers: headers}

    case String.downcase(Response.header(headers, "content-encoding") || "identity") do
      "identity" -> {:cont, answer}
      other -> {:halt, reject_encoding(answer, stream?, other)}
    end
  end

  def part({:data, data}, %{mode: :stream} = answer) do
    case SSE.feed(answer.sse, data) do
      {:ok, events, sse} -> events(events, %{answer | sse: sse})
      :error -> {:halt, bad_answer(answer, "one of its events is too large")}
    end
  end

  def part({:data, data}, %{mode: :json} = answer) do
    other = answer.other <> data

    if byte_size(other) <= @max_json,
      do: {:cont, %{answer | other: other}},
      else: too_long(answer)
  end

  def part({:data, data}, answer) do
    other = answer.other <> data
    {if(byte_size(other) < Failure.max_body(), do: :cont, else: :halt), %{answer | other: other}}
  end

  # The status of an error response is enough to report it.
  defp reject_encoding(answer, true, encoding),
    do:
      bad_answer(answer, "its encoding is #{Failure.excerpt(encoding)}, which was not requested")

  defp reject_encoding(answer, false, _encoding), do: answer

  defp events([], answer), do: {:cont, answer}

  defp events([%{data: data} | events], answer) do
    case event(data, answer) do
      %{error: nil, done: false} = answer -> events(events, answer)
      answer -> {:halt, answer}
    end
  end

  defp event("[DONE]", answer), do: %{answer | done: true}

  defp event(data, answer) do
    case JSON.decode(data) do
      {:ok, %{"error" => error}} when error != nil ->
        server_error(answer, error)

      {:ok, %{"choices" => [choice | _]} = event} ->
        answer |> usage(event) |> choice(choice)

      {:ok, %{"choices" => []} = event} ->
        usage(answer, event)

      {:ok, %{"usage" => %{}} = event} ->
        usage(answer, event)

      {:ok, _other} ->
        bad_answer(answer, "one of its events has no choices: #{Failure.excerpt(data)}")

      {:error, error} ->
        bad_answer(
          answer,
          "one of its events is not JSON (#{Exception.message(error)}): #{Failure.excerpt(data)}"
        )
    end
  end

  defp choice(answer, %{"delta" => %{} = delta} = choice) do
    answer = finish(answer, choice["finish_reason"])

    case delta["content"] do
      empty when empty in [nil, ""] ->
        answer

      text when is_binary(text) ->
        add_text(answer, text)

      other ->
        bad_answer(
          answer,
          "expected text as the content of an event, got: #{inspect(other, limit: 5)}"
        )
    end
  end

  defp choice(answer, choice),
    do:
      bad_answer(
        answer,
        "one of its events has no delta: " <>
          inspect(choice, limit: 5, printable_limit: 300)
      )

  defp add_text(%{size: size} = answer, text) when size + byte_size(text) > @max_text,
    do: bad_answer(answer, "it is longer than #{div(@max_text, 1024 * 1024)} MiB")

  defp add_text(answer, text) do
    answer.on_text.(text)
    %{answer | texts: [text | answer.texts], size: answer.size + byte_size(text)}
  end

  defp too_long(answer),
    do: {:halt, bad_answer(answer, "it is longer than #{div(@max_text, 1024 * 1024)} MiB")}

  # Some servers do not stream, and answer with the whole text.
  defp whole(%{error: nil} = answer) do
    case JSON.decode(answer.other) do
      {:ok, %{"choices" => [%{"message" => %{} = message} = choice | _]} = body} ->
        answer = answer |> usage(body) |> choice(Map.put(choice, "delta", message))
        %{answer | mode: :stream, done: true}

      _ ->
        %{answer | mode: {:other, answer.status}}
    end
  end

  defp whole(answer), do: %{answer | mode: :stream}

  defp finish(answer, nil), do: answer
  defp finish(answer, "stop"), do: %{answer | finish_reason: :stop}
  defp finish(answer, "length"), do: %{answer | finish_reason: :length}
  defp finish(answer, "content_filter"), do: %{answer | finish_reason: :filtered}
  defp finish(answer, _other), do: %{answer | finish_reason: :other}

  defp usage(answer, %{"usage" => usage}) do
    case usage do
      %{"prompt_tokens" => prompt, "completion_tokens" => completion}
      when is_integer(prompt) and is_integer(completion) and prompt >= 0 and completion >= 0 ->
        %{answer | usage: %{prompt_tokens: prompt, completion_tokens: completion}}

      _ ->
        answer
    end
  end

  defp usage(answer, _event), do: answer

  defp server_error(answer, error), do: %{answer | error: {:server, Failure.error_text(error)}}
  defp bad_answer(answer, reason), do: %{answer | error: {:bad_answer, reason}}

  @doc """
  The result of a request, from the return value of `Skillbook.HTTP.stream/4`.

  `{:retry, error}` is a failure after which the request may be repeated.
  """
  def result({ok_or_halted, %{mode: :json} = answer}, url),
    do: result({ok_or_halted, whole(answer)}, url)

  def result({_ok_or_halted, %{mode: {:other, status}} = answer}, url),
    do: http_error(answer, status, url)

  def result({_ok_or_halted, %{error: {kind, reason}} = answer}, _url),
    do: failed(answer, kind, reason)

  # Servers end an overlong conversation like this. To send it again would not help.
  def result({ok_or_halted, %{texts: [], finish_reason: nil} = answer}, _url)
      when ok_or_halted == :ok or answer.done,
      do: failed(answer, :bad_answer, @empty)

  def result({_ok_or_halted, %{done: done, finish_reason: reason} = answer}, _url)
      when done or reason != nil do
    {:ok, %{text: text(answer), usage: answer.usage, finish_reason: reason || :stop}}
  end

  def result({:ok, answer}, _url),
    do: failed(answer, :cut_off, "the stream ended without a finish reason or [DONE]")

  # After the finish reason only the usage can be missing.
  def result({:error, _reason, %{finish_reason: reason, error: nil} = answer}, url)
      when reason != nil,
      do: result({:ok, answer}, url)

  def result({:error, _reason, %{mode: {:other, status}} = answer}, url),
    do: http_error(answer, status, url)

  def result({:error, %{kind: :closed}, %{mode: :stream} = answer}, _url),
    do: failed(answer, :cut_off, "the connection broke")

  def result({:error, error, answer}, _url) do
    {kind, text} = Failure.kind(error)
    failed(answer, kind, text)
  end

  # Repeating the request cannot help.
  defp failed(answer, :settings, reason),
    do: {:error, %ModelError{kind: :connection, reason: reason, text: text(answer)}}

  defp failed(%{texts: []}, kind, reason) when kind in [:connection, :server, :cut_off],
    do: {:retry, %ModelError{kind: kind, reason: reason}}

  defp failed(answer, kind, reason),
    do: {:error, %ModelError{kind: kind, reason: reason, text: text(answer)}}

  defp http_error(answer, status, _url) when status in 200..299 do
    type = Response.header(answer.headers, "content-type") || "no type"

    reason =
      "expected a stream of events (text/event-stream), got #{type}: " <>
        Failure.explain(answer.other)

    {:error, %ModelError{kind: :bad_answer, status: status, reason: reason}}
  end

  defp http_error(answer, status, url),
    do: Failure.response(ModelError, status, answer.headers, answer.other, url)

  defp text(answer), do: answer.texts |> Enum.reverse() |> IO.iodata_to_binary()
end
