defmodule Skillbook.Model.Responses do
  @moduledoc """
  A client for OpenAI's Responses API.

      {:ok, model} = Skillbook.Model.Responses.new(model: "gpt-5")
      Skillbook.Agent.run(MyApp.Skills, "What is overdue?", model: model)

  It sends `POST /v1/responses` and streams the answer. The server stores nothing (`store:
  false`). The encrypted reasoning of an answer is in `:opaque` of the answer, and is given back
  as it came. If a server does not send it on its own,
  `extra: %{"include" => ["reasoning.encrypted_content"]}` asks for it; models that do not reason
  refuse that.

  ## Options

    * `:url` - the server. Default: `"https://api.openai.com/v1"`
    * `:model` - the name of the model. Required
    * `:key` - as in `Skillbook.Model.OpenAI`. Default: `{:env, "OPENAI_API_KEY"}`
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as the format of its text, or `:prompt`, not at all. Default: `:json_schema`
    * `:cache` - how the server's cache of prompts is used: `true`; `false`, no field is sent for
      it; or `[ttl: "12h", key: "my-app"]`, the least time that an entry stays (`"30m"` or
      `"12h"`) and the key that requests with the same beginning share. The key is made from the
      tools and the system prompt otherwise. Default: `true`
    * `:media` - limits of images, files and audio: `:types`, `:max_bytes`, `:max_total` and
      `:max_parts`, as in `Skillbook.Model.OpenAI`
    * `:extra` - a map of further fields of each request, as in `Skillbook.Model.chat/4`, for
      example `%{"reasoning" => %{"effort" => "low"}}`
    * `:connect_timeout`, `:idle_timeout`, `:timeout`, `:retries`, `:backoff`, `:cacertfile`,
      `:proxy`, `:http`, `:sleep` - as in `Skillbook.Model.OpenAI`, and with the same defaults

  `:stop` and `:grammar` of `Skillbook.Model.chat/4` are refused, since the interface has neither.

  ## Examples

      iex> {:ok, model} = Skillbook.Model.Responses.new(model: "gpt-5")
      iex> to_string(model.url)
      "https://api.openai.com/v1/responses"
      iex> inspect(model) =~ "OPENAI_API_KEY"
      false
  """

  alias Skillbook.Model.{Answer, Client, Content, Media, Messages, OpenAI}

  use Skillbook.Model.Client,
    vendor: "responses",
    provider: "openai",
    home: {"https://api.openai.com/v1", "OPENAI_API_KEY"},
    path: "responses",
    media:
      {~w(image/jpeg image/png image/gif image/webp application/pdf),
       ~w(image/jpeg image/png image/gif image/webp application/pdf)},
    missing: [:grammar, :stop],
    options: [
      structured: [:json_schema, :prompt],
      cache: {boolean() | keyword(), true, Client.cache(["30m", "12h"], [:key])}
    ]

  # The request

  @impl true
  def body(model, messages, options) do
    {system, rest} = Messages.split(messages)
    tools = Client.tools(options, :openai_responses)

    %{
      "model" => model.model,
      "instructions" => system,
      "input" => Enum.flat_map(rest, &items(&1, model)),
      "tools" => tools,
      "tool_choice" => tools && options[:tool_choice],
      "temperature" => options[:temperature],
      "max_output_tokens" => options[:max_tokens],
      "text" => format(Client.schema(model, options, ["maxLength"])),
      "store" => false,
      "stream" => true
    }
    |> Map.merge(OpenAI.cache_fields(model, messages, tools))
  end

  defp format(nil), do: nil

  defp format(schema),
    do: %{"format" => Map.put(OpenAI.format(schema), "type", "json_schema")}

  # The limit of OpenAI for the ids of calls.
  @max_id 64

  defp items(%{role: :tool} = message, _model) do
    [
      %{
        "type" => "function_call_output",
        "call_id" => Messages.call_id(message.id, @max_id),
        "output" => content(message.content)
      }
    ]
  end

  defp items(%{role: :assistant} = message, model),
    do: message |> Messages.parts(vendor(), model.model) |> Enum.map(&item/1)

  defp items(message, _model),
    do: [%{"role" => to_string(message.role), "content" => content(message.content)}]

  defp content(text) when is_binary(text), do: text
  defp content(parts), do: Enum.map(parts, &part/1)

  defp part(text) when is_binary(text), do: %{"type" => "input_text", "text" => text}

  defp part(%Media{type: "image/" <> _} = media),
    do: %{"type" => "input_image", "detail" => "auto", "image_url" => Content.url(media)}

  defp part(%Media{source: {:url, url}}), do: %{"type" => "input_file", "file_url" => url}

  defp part(%Media{} = media) do
    file = %{"filename" => Content.name(media), "file_data" => Content.url(media)}
    Map.put(file, "type", "input_file")
  end

  defp item({:data, data}), do: data

  defp item({:text, text, fields}),
    do: Map.merge(fields, %{"role" => "assistant", "content" => text})

  defp item({:call, call, fields}) do
    Map.merge(fields, %{
      "type" => "function_call",
      "call_id" => Messages.call_id(call.id, @max_id),
      "name" => Messages.tool_name(call.name),
      "arguments" => Messages.arguments_text(call.arguments)
    })
  end

  # The answer

  @impl true
  def event(%{"type" => "response.output_text.delta", "delta" => text} = event, answer),
    do: Answer.add_text(answer, text, phase(answer, event["output_index"]))

  def event(%{"type" => "response.refusal.delta", "delta" => text}, answer),
    do: Answer.refuse(answer, text)

  def event(
        %{"type" => "response.output_item.added", "output_index" => index, "item" => %{} = item},
        answer
      ),
      do: added(answer, index, item)

  def event(
        %{"type" => "response.function_call_arguments.delta", "output_index" => index} = event,
        answer
      ),
      do: Answer.add_arguments(answer, index, event["delta"])

  def event(
        %{"type" => "response.output_item.done", "output_index" => index, "item" => %{} = item},
        answer
      ),
      do: done(answer, index, item)

  def event(%{"type" => "response." <> status, "response" => %{} = response}, answer)
      when status in ["created", "in_progress", "queued"],
      do: Answer.named(answer, response["model"])

  def event(%{"type" => "response." <> status, "response" => %{} = response}, answer)
      when status in ["completed", "incomplete", "failed"],
      do: ended(answer, response)

  def event(%{"type" => "error"} = event, answer), do: Answer.server_error(answer, event)

  # Events of tools that run on the server, of summaries, and of later versions.
  def event(%{"type" => type}, answer) when is_binary(type), do: answer

  def event(event, answer), do: Answer.without(answer, event, "type")

  # The phase of a message (a comment or the answer), which belongs to its text.
  defp phase(answer, index), do: Map.get(answer.open, index, %{})

  defp added(answer, index, %{"type" => "function_call"} = item),
    do: Answer.start_call(answer, index, item["call_id"], item["name"])

  defp added(answer, index, %{"type" => "message", "phase" => phase}) when is_binary(phase),
    do:
      %{answer | open: Map.put(answer.open, index, %{"phase" => phase})}
      |> Answer.grow(byte_size(phase) + 64)

  defp added(answer, _index, _item), do: answer

  defp done(answer, index, %{"type" => "function_call"} = item) do
    answer = if is_map_key(answer.calls, index), do: answer, else: added(answer, index, item)

    if Answer.arguments?(answer, index),
      do: answer,
      else: Answer.add_arguments(answer, index, item["arguments"])
  end

  # Without its encrypted content the server, which stores nothing, could not find it.
  defp done(answer, _index, %{"type" => "reasoning", "encrypted_content" => content} = item)
       when is_binary(content),
       do: Answer.add_data(answer, Map.reject(item, fn {_name, value} -> value == nil end))

  defp done(answer, _index, _item), do: answer

  @incomplete %{"max_output_tokens" => :length, "content_filter" => :filtered}

  defp ended(answer, response) do
    answer = answer |> Answer.named(response["model"]) |> usage(response["usage"])

    case response do
      %{"status" => "failed", "error" => error} when error != nil ->
        Answer.server_error(answer, error)

      %{"status" => "failed"} ->
        Answer.server_error(answer, "no explanation")

      %{"status" => "incomplete"} = response ->
        details = response["incomplete_details"]
        reason = if is_map(details), do: details["reason"]
        %{Answer.finish(answer, Map.get(@incomplete, reason, :other)) | done: true}

      _completed ->
        %{Answer.finish(answer, :stop) | done: true}
    end
  end

  defp usage(answer, usage) do
    Answer.usage(answer, usage,
      prompt_tokens: "input_tokens",
      completion_tokens: "output_tokens",
      cached_tokens: {"input_tokens_details", "cached_tokens"},
      cache_write_tokens: {"input_tokens_details", "cache_write_tokens"}
    )
  end

  @impl true
  def whole(%{"object" => "response", "output" => items} = response, answer)
      when is_list(items) do
    for {%{} = item, index} <- Enum.with_index(items), reduce: answer do
      answer -> answer |> added(index, item) |> content(index, item) |> done(index, item)
    end
    |> ended(response)
  end

  def whole(_body, _answer), do: nil

  defp content(answer, index, %{"type" => "message", "content" => parts}) when is_list(parts) do
    for part <- parts, reduce: answer do
      answer ->
        case part do
          %{"type" => "output_text", "text" => text} ->
            Answer.add_text(answer, text, phase(answer, index))

          %{"type" => "refusal", "refusal" => text} ->
            Answer.refuse(answer, text)

          _ ->
            answer
        end
    end
  end

  defp content(answer, _index, _item), do: answer
end
