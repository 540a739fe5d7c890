defmodule Skillbook.Model.Answer do
  @moduledoc false
  # Reads the response of a model's server, part by part: events to text, tool calls, usage and
  # finish reason, or a failure to a `Skillbook.ModelError`. The model's module reads the events
  # (see `Skillbook.Model.Client`), with the functions here.

  alias Skillbook.HTTP.{Failure, Response}
  alias Skillbook.Model.{EventStream, Messages, SSE}
  alias Skillbook.ModelError
  alias Skillbook.Support.JSON

  # Bytes of texts, calls and data. The extractor refuses longer replies.
  @max_size 16 * 1024 * 1024
  # Bytes of an answer that is not streamed: its texts with their escapes, and other fields.
  @max_json 2 * @max_size
  # The size of a call or of data beside its texts, so that their number is limited too.
  @entry 256
  @empty "the server sent an empty stream; the conversation is perhaps longer than the " <>
           "model's context: raise the server's context size, or set max_context (chat: " <>
           "--max-context)"

  defstruct [
    :asked,
    :on_text,
    :on_tool_call,
    # `:stream`, `:json` for a whole answer at once, or `{:other, status}` for anything else.
    :mode,
    :status,
    :usage,
    :finish_reason,
    :error,
    # The name of the model, as the server says.
    :model,
    headers: %{},
    other: "",
    # The parser of the stream.
    stream: nil,
    texts: [],
    # By the key that the server uses: the index, id, name and arguments of each call.
    calls: %{},
    # The parts of the answer, the last first: `{:text, size, fields}`, `{:call, key, fields}` and
    # `{:data, map}`.
    parts: [],
    # A place for the model's module.
    open: %{},
    refused: false,
    size: 0,
    done: false
  ]

  @type t :: %__MODULE__{}

  @doc "An answer of the model that was asked."
  @spec new(struct(), (String.t() -> any()), (map() -> any()) | nil) :: t()
  def new(asked, on_text, on_tool_call),
    do: %__MODULE__{asked: asked, on_text: on_text, on_tool_call: on_tool_call}

  @doc "Takes a part of the response, as the function of `Skillbook.HTTP.stream/4`."
  def part({:head, status, headers}, answer) do
    type = String.downcase(Response.header(headers, "content-type") || "")
    ok? = status in 200..299
    stream = if ok?, do: stream(type)
    stream? = stream != nil

    mode =
      cond do
        stream? -> :stream
        ok? and String.starts_with?(type, "application/json") -> :json
        true -> {:other, status}
      end

    answer = %{answer | mode: mode, stream: stream, status: status, headers: headers}

    case String.downcase(Response.header(headers, "content-encoding") || "identity") do
      "identity" -> {:cont, answer}
      other -> {:halt, reject_encoding(answer, stream?, other)}
    end
  end

  def part({:data, data}, %{mode: :stream, stream: %parser{} = stream} = answer) do
    case parser.feed(stream, data) do
      {:ok, events, stream} -> events(events, %{answer | stream: stream})
      :error -> {:halt, bad_answer(answer, "one of its events is too large")}
      :damaged -> {:halt, bad_answer(answer, "one of its events is damaged")}
    end
  end

  def part({:data, data}, %{mode: :json} = answer) do
    other = answer.other <> data

    if byte_size(other) <= @max_json,
      do: {:cont, %{answer | other: other}},
      else: {:halt, oversized(answer)}
  end

  def part({:data, data}, answer) do
    other = answer.other <> data
    {if(byte_size(other) < Failure.max_body(), do: :cont, else: :halt), %{answer | other: other}}
  end

  defp stream("text/event-stream" <> _), do: SSE.new()
  defp stream("application/vnd.amazon.eventstream" <> _), do: EventStream.new()
  defp stream(_other), do: nil

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

  # The end of a stream in OpenAI's chat interface.
  defp event("[DONE]", answer), do: %{answer | done: true}

  defp event(data, %{asked: %module{}} = answer) do
    case JSON.decode(data) do
      {:ok, %{"error" => error}} when error != nil ->
        server_error(answer, error)

      {:ok, %{} = event} ->
        module.event(event, answer)

      {:ok, _other} ->
        bad_answer(answer, "one of its events is not an object: #{Failure.excerpt(data)}")

      {:error, error} ->
        bad_answer(
          answer,
          "one of its events is not JSON (#{Exception.message(error)}): #{Failure.excerpt(data)}"
        )
    end
  end

  # For the model's module

  @doc "Adds text. `fields` are those that the vendor adds to it."
  @spec add_text(t(), term(), map()) :: t()
  def add_text(answer, text, fields \\ %{})
  def add_text(%{error: error} = answer, _text, _fields) when error != nil, do: answer
  def add_text(answer, empty, fields) when empty in [nil, ""] and fields == %{}, do: answer

  def add_text(answer, text, fields) when is_binary(text) do
    answer = grow(answer, byte_size(text) + if(fields == %{}, do: 0, else: @entry))

    if answer.error == nil do
      if text != "", do: answer.on_text.(text)
      texts = if text == "", do: answer.texts, else: [text | answer.texts]
      %{answer | texts: texts, parts: text_part(answer.parts, byte_size(text), fields)}
    else
      answer
    end
  end

  def add_text(answer, other, _fields) do
    got = inspect(other, limit: 5, printable_limit: 300)
    bad_answer(answer, "expected text as the content of an event, got: #{got}")
  end

  defp text_part([{:text, before, fields} | parts], size, fields),
    do: [{:text, before + size, fields} | parts]

  defp text_part(parts, size, fields), do: [{:text, size, fields} | parts]

  @doc "Starts a call, which the server calls `key`. Without an id it gets one."
  @spec start_call(t(), term(), term(), term(), map()) :: t()
  def start_call(answer, key, id, name, fields \\ %{}) do
    id = if is_binary(id) and id != "", do: id, else: "call_" <> Messages.random()
    name = if is_binary(name), do: name, else: ""
    answer = grow(answer, @entry + byte_size(id) + byte_size(name))
    call = %{index: map_size(answer.calls), id: id, name: name, arguments: []}

    %{
      answer
      | calls: Map.put(answer.calls, key, call),
        parts: [{:call, key, fields} | answer.parts]
    }
    |> call_piece(call, "")
  end

  @doc "Adds to the text of a call's arguments. A call that was not started is ignored."
  @spec add_arguments(t(), term(), term()) :: t()
  def add_arguments(%{error: nil, calls: calls} = answer, key, piece)
      when is_map_key(calls, key) and is_binary(piece) and piece != "" do
    call = calls[key]
    call = %{call | arguments: [call.arguments, piece]}

    %{answer | calls: Map.put(calls, key, call)}
    |> grow(byte_size(piece))
    |> call_piece(call, piece)
  end

  def add_arguments(answer, _key, _piece), do: answer

  @doc "Whether a call has arguments so far."
  @spec arguments?(t(), term()) :: boolean()
  def arguments?(answer, key), do: match?(%{arguments: [_ | _]}, answer.calls[key])

  defp call_piece(%{error: nil, on_tool_call: on_tool_call} = answer, call, piece)
       when on_tool_call != nil do
    on_tool_call.(%{index: call.index, id: call.id, name: call.name, arguments: piece})
    answer
  end

  defp call_piece(answer, _call, _piece), do: answer

  @doc "Adds data of the vendor that the next request gives back."
  @spec add_data(t(), map()) :: t()
  def add_data(answer, data) do
    answer = grow(answer, @entry + byte_size(JSON.encode(data)))
    %{answer | parts: [{:data, data} | answer.parts]}
  end

  @doc "Counts bytes of an answer, which ends with an error above the limit."
  @spec grow(t(), non_neg_integer()) :: t()
  def grow(%{error: nil, size: size} = answer, more) when size + more > @max_size,
    do: oversized(answer)

  def grow(answer, more), do: %{answer | size: answer.size + more}

  @doc "Adds the text of a refusal."
  @spec refuse(t(), term()) :: t()
  def refuse(answer, text), do: add_text(%{answer | refused: true}, text)

  @doc "Sets the finish reason; `nil` keeps the one before."
  @spec finish(t(), atom() | nil) :: t()
  def finish(answer, nil), do: answer
  def finish(answer, reason), do: %{answer | finish_reason: reason}

  @doc "Sets the finish reason by the vendor's name. One that is not in `names` is `:other`."
  @spec finish(t(), term(), %{String.t() => atom()}) :: t()
  def finish(answer, nil, _names), do: answer
  def finish(answer, name, names), do: finish(answer, Map.get(names, name, :other))

  @doc "Sets the name of the model."
  @spec named(t(), term()) :: t()
  def named(answer, name) when is_binary(name) and name != "", do: %{answer | model: name}
  def named(answer, _name), do: answer

  @doc """
  Sets counts of tokens from those of the vendor. `fields` are the names of counts in it, a name
  within a map as `{map, name}`, or a function of it. Values that are no counts, and all without
  the first two, are ignored.
  """
  @spec usage(t(), term(), keyword()) :: t()
  def usage(answer, %{} = usage, fields) do
    before =
      answer.usage ||
        %{prompt_tokens: nil, completion_tokens: nil, cached_tokens: 0, cache_write_tokens: 0}

    counts =
      for {name, field} <- fields,
          count = count(usage, field),
          is_integer(count) and count >= 0,
          do: {name, count}

    %{answer | usage: Map.merge(before, Map.new(counts))}
  end

  def usage(answer, _none, _fields), do: answer

  defp count(usage, function) when is_function(function), do: function.(usage)
  defp count(usage, {map, name}), do: if(is_map(usage[map]), do: usage[map][name])
  defp count(usage, name), do: usage[name]

  @doc "Ends the answer with an error that the server reported in it."
  @spec server_error(t(), term()) :: t()
  def server_error(answer, error), do: %{answer | error: Failure.reported(error)}

  @doc "Ends the answer with an error, since it cannot be read."
  @spec bad_answer(t(), String.t()) :: t()
  def bad_answer(answer, reason), do: %{answer | error: {:bad_answer, reason, nil}}

  @doc "Ends the answer at an event that has not the field which all events have."
  @spec without(t(), map(), String.t()) :: t()
  def without(answer, event, field) do
    event = Failure.excerpt(JSON.encode(event))
    bad_answer(answer, "one of its events has no #{field}: #{event}")
  end

  defp oversized(answer),
    do: bad_answer(answer, "it is longer than #{div(@max_size, 1024 * 1024)} MiB")

  # The result

  @doc """
  The result of a request, from the return value of `Skillbook.HTTP.stream/4`.

  `{:retry, error}` is a failure after which the request may be repeated.
  """
  def result({ok_or_halted, %{mode: :json} = answer}, url),
    do: result({ok_or_halted, whole(answer)}, url)

  def result({_ok_or_halted, %{mode: {:other, status}} = answer}, url),
    do: http_error(answer, status, url)

  def result({_ok_or_halted, %{error: {kind, reason, retry_after}} = answer}, _url),
    do: failed(answer, kind, reason, retry_after)

  # Servers end an overlong conversation like this. To send it again would not help.
  def result({ok_or_halted, %{parts: [], finish_reason: nil} = answer}, _url)
      when ok_or_halted == :ok or answer.done,
      do: failed(answer, :bad_answer, @empty)

  def result({_ok_or_halted, %{done: done, finish_reason: reason} = answer}, _url)
      when done or reason != nil,
      do: {:ok, complete(answer)}

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

  # Some servers do not stream, and answer with the whole text.
  defp whole(%{error: nil, asked: %module{}} = answer) do
    with {:ok, body} <- JSON.decode(answer.other),
         %__MODULE__{} = answer <- module.whole(body, answer) do
      %{answer | mode: :stream, done: true}
    else
      _ -> %{answer | mode: {:other, answer.status}}
    end
  end

  defp whole(answer), do: %{answer | mode: :stream}

  defp complete(answer) do
    calls = answer.calls |> Map.values() |> Enum.sort_by(& &1.index) |> Enum.map(&call/1)

    %{
      text: text(answer),
      tool_calls: calls,
      usage: whole_usage(answer.usage),
      finish_reason: finish_reason(answer, calls),
      opaque: opaque(answer),
      model: answer.model
    }
  end

  defp call(call) do
    arguments = IO.iodata_to_binary(call.arguments)
    arguments = if String.trim(arguments) == "", do: "{}", else: arguments
    %{id: call.id, name: call.name, arguments: arguments}
  end

  defp whole_usage(%{prompt_tokens: prompt, completion_tokens: completion} = usage)
       when prompt != nil and completion != nil,
       do: usage

  defp whole_usage(_usage), do: nil

  defp finish_reason(%{refused: true}, _calls), do: :filtered

  # Some servers end calls with the reason of a text.
  defp finish_reason(%{finish_reason: reason}, [_ | _])
       when reason in [nil, :stop, :other, :tool_calls],
       do: :tool_calls

  defp finish_reason(%{finish_reason: :tool_calls}, []), do: :other
  defp finish_reason(%{finish_reason: reason}, _calls), do: reason || :stop

  # Only an answer with data of the vendor needs the order of its parts.
  defp opaque(%{parts: parts, asked: %module{} = asked} = answer) do
    if Enum.any?(parts, &data?/1) do
      parts = parts |> Enum.reverse() |> Enum.map(&opaque_part(&1, answer))
      %{"vendor" => module.vendor(), "model" => asked.model, "parts" => parts}
    end
  end

  defp data?({:data, _data}), do: true
  defp data?({_kind, _value, fields}), do: fields != %{}

  defp opaque_part({:data, data}, _answer), do: %{"data" => data}
  defp opaque_part({:text, size, fields}, _answer), do: with_fields(%{"text" => size}, fields)

  defp opaque_part({:call, key, fields}, answer),
    do: with_fields(%{"call" => answer.calls[key].index}, fields)

  defp with_fields(part, fields) when fields == %{}, do: part
  defp with_fields(part, fields), do: Map.put(part, "fields", fields)

  # After text was passed on, no request is repeated.
  defp failed(answer, kind, reason, retry_after \\ nil) do
    case {answer.texts, too_long(Failure.result(ModelError, kind, reason, retry_after))} do
      {[], result} -> result
      {_texts, {_how, error}} -> {:error, %{error | text: text(answer)}}
    end
  end

  defp http_error(answer, status, _url) when status in 200..299 do
    type = Response.header(answer.headers, "content-type") || "no type"

    reason =
      "expected a stream of events (text/event-stream), got #{type}: " <>
        Failure.explain(answer.other)

    {:error, %ModelError{kind: :bad_answer, status: status, reason: reason}}
  end

  defp http_error(answer, status, url),
    do: too_long(Failure.response(ModelError, status, answer.headers, answer.other, url))

  # Vendors have no common code for it, and OpenAI's is in a field beside the message.
  @too_long ~r/context[\s_-]?(length|window|size)|maximum\scontext|reduce\sthe\slength|
    (prompt|input|request)\sis\stoo\s(long|large)|too\smany\s(input\s|prompt\s)?tokens|
    input\stoken\scount|too\slarge\sfor\s(the\s)?model/xi

  defp too_long(
         {_how, %ModelError{kind: :refused, status: status, reason: reason} = error} = result
       )
       when status in [nil, 400, 413, 422] do
    if status == 413 or reason =~ @too_long,
      do: {:error, %{error | kind: :too_long}},
      else: result
  end

  defp too_long(result), do: result

  defp text(answer), do: answer.texts |> Enum.reverse() |> IO.iodata_to_binary()
end
