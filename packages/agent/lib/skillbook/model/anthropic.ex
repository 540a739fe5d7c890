defmodule Skillbook.Model.Anthropic do
  @moduledoc """
  A client for Anthropic's Messages API.

      {:ok, model} = Skillbook.Model.Anthropic.new(model: "claude-sonnet-4-5")
      Skillbook.Agent.run(MyApp.Skills, "What is overdue?", model: model)

  It sends `POST /v1/messages` and streams the answer. The thoughts of an answer, which Anthropic
  signs, are in `:opaque` of the answer, and are given back as they came.

  ## Options

    * `:url` - the server. Default: `"https://api.anthropic.com"`
    * `:model` - the name of the model. Required
    * `:key` - as in `Skillbook.Model.OpenAI`. Default: `{:env, "ANTHROPIC_API_KEY"}`; none on
      platforms
    * `:max_tokens` - the limit of tokens of an answer, thoughts included, for calls without one
      of their own; the interface requires it. Default: 16,000
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as its `output_config`, or `:prompt`, not at all. Default: `:json_schema`
    * `:cache` - whether the prompt is marked for the server's cache: `true`, for five minutes
      after its last use; `[ttl: "1h"]`, for an hour; or `false`. Marked are the last tool, the
      system prompt, and the ends of the last two messages of the user. Default: `true`
    * `:platform` - `:vertex` or `:bedrock`, if a cloud serves the model. Default: as the host of
      `:url` says. See [Platforms](#module-platforms)
    * `:credentials` - for Bedrock without a `:key`: a function that returns `:access_key_id`,
      `:secret_access_key` and, if there is one, `:session_token`. Default: `nil`, the variables
      `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`
    * `:media` - limits of images, files and audio: `:types`, `:max_bytes`, `:max_total` and
      `:max_parts`, as in `Skillbook.Model.OpenAI`
    * `:extra` - a map of further fields of each request, as in `Skillbook.Model.chat/4`, for
      example `%{"thinking" => %{"type" => "adaptive"}}`
    * `:connect_timeout`, `:idle_timeout`, `:timeout`, `:retries`, `:backoff`, `:cacertfile`,
      `:proxy`, `:http`, `:sleep` - as in `Skillbook.Model.OpenAI`, and with the same defaults

  `:temperature` of `Skillbook.Model.chat/4` is not sent, since the interface has no such field
  any more; for older models, put it into `:extra`. `:grammar` is refused.

  ## Platforms

  On Google's Vertex AI the URL has the project and the location, and the key is an access token:

      Skillbook.Model.Anthropic.new!(
        url:
          "https://us-east5-aiplatform.googleapis.com/v1/projects/PROJECT/" <>
            "locations/us-east5/publishers/anthropic",
        model: "claude-sonnet-4-5@20250929",
        key: fn -> MyApp.Google.token() end
      )

  On Amazon's Bedrock the key is one of Bedrock. Without a key, requests are signed with
  `:credentials`:

      Skillbook.Model.Anthropic.new!(
        url: "https://bedrock-runtime.eu-central-1.amazonaws.com",
        model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
      )

  Fields that a platform does not take yet can be left out: `structured: :prompt`, `cache: false`.

  ## Examples

      iex> {:ok, model} = Skillbook.Model.Anthropic.new(model: "claude-sonnet-4-5")
      iex> to_string(model.url)
      "https://api.anthropic.com/v1/messages"
      iex> inspect(model) =~ "ANTHROPIC_API_KEY"
      false
  """

  alias Skillbook.HTTP.Service
  alias Skillbook.Model.{Answer, AWS, Client, Media, Messages, Platform}
  alias Skillbook.Support.{JSON, Options}

  use Skillbook.Model.Client,
    vendor: "anthropic",
    home: {"https://api.anthropic.com", "ANTHROPIC_API_KEY"},
    media:
      {~w(image/jpeg image/png image/gif image/webp application/pdf text/plain),
       ~w(image/jpeg image/png image/gif image/webp application/pdf)},
    missing: [:grammar],
    options: [
      max_tokens: {pos_integer(), 16_000, {"a whole number from 1", &Options.positive?/1}},
      structured: [:json_schema, :prompt],
      cache: {boolean() | keyword(), true, Client.cache(["5m", "1h"])},
      platform: {:vertex | :bedrock | nil, nil, Platform.option([:vertex, :bedrock])},
      credentials: {(() -> map() | keyword()) | nil, nil, Platform.credentials()}
    ]

  # The request

  @version "2023-06-01"

  # Platforms have the version in the body.
  @versions %{vertex: "vertex-2023-10-16", bedrock: "bedrock-2023-05-31"}

  @impl true
  def defaults(url) do
    case Platform.of(url) do
      nil -> [url: elem(home(), 0), key: {:env, elem(home(), 1)}]
      platform -> [platform: platform]
    end
  end

  @impl true
  def endpoint(url, %{platform: :vertex, model: model}),
    do: Service.endpoint(url, "models/#{encode(model)}:streamRawPredict")

  def endpoint(url, %{platform: :bedrock, model: model}) do
    url = URI.parse(url)
    path = "/model/#{encode(model)}/invoke-with-response-stream"
    %{url | path: String.trim_trailing(url.path || "", "/") <> path}
  end

  def endpoint(url, _model), do: Service.endpoint(url, "messages")

  defp encode(model), do: URI.encode(model, &(URI.char_unreserved?(&1) or &1 in ':@'))

  @impl true
  def provider(model), do: Platform.provider(model, vendor())

  @impl true
  def secret(model), do: Platform.key(model)

  @impl true
  def headers(%{platform: :bedrock, key: nil, url: url} = model, _key, body) do
    place = {AWS.region(url), "bedrock"}
    AWS.sign(url, body, model.credentials.(), place, DateTime.utc_now())
  end

  def headers(%{platform: platform}, key, _body) when platform != nil, do: Service.bearer(key)
  def headers(_model, nil, _body), do: [{"anthropic-version", @version}]

  def headers(_model, key, _body),
    do: [{"x-api-key", key.()}, {"anthropic-version", @version}]

  # The keywords that its structured output refuses.
  @refused ~w(minimum maximum maxLength minItems maxItems)

  @impl true
  def body(model, messages, options) do
    mark = mark(model.cache)
    {system, messages} = Messages.split(messages)
    tools = Client.tools(options, :anthropic)

    %{
      "model" => model.model,
      "max_tokens" => options[:max_tokens] || model.max_tokens,
      "system" => system(system, mark),
      "messages" => messages |> messages(model) |> mark_turns(mark),
      "tools" => tools && List.update_at(tools, -1, &Map.merge(&1, mark)),
      "tool_choice" => tools && choice(options[:tool_choice]),
      "stop_sequences" => options[:stop],
      "output_config" => output(Client.schema(model, options, @refused)),
      "stream" => true
    }
    |> on_platform(model.platform)
  end

  # The address has the model, and on Bedrock the stream.
  defp on_platform(body, nil), do: body

  defp on_platform(body, platform) do
    named = if platform == :bedrock, do: ["model", "stream"], else: ["model"]
    body |> Map.drop(named) |> Map.put("anthropic_version", @versions[platform])
  end

  defp mark(false), do: %{}
  defp mark(true), do: %{"cache_control" => %{"type" => "ephemeral"}}
  defp mark(ttl: ttl) when ttl != nil, do: put_in(mark(true)["cache_control"]["ttl"], ttl)
  defp mark(_without_ttl), do: mark(true)

  defp choice(nil), do: nil
  defp choice(:required), do: %{"type" => "any"}
  defp choice(choice), do: %{"type" => to_string(choice)}

  defp output(nil), do: nil

  defp output(schema), do: %{"format" => %{"type" => "json_schema", "schema" => schema}}

  # The server refuses texts that are empty or white space.
  defp system(system, mark) do
    if blank?(system), do: nil, else: [Map.merge(text(system), mark)]
  end

  defp blank?(text), do: String.trim(text || "") == ""
  defp text(text), do: %{"type" => "text", "text" => text}

  # Roles have to alternate, and an empty message cannot be sent.
  defp messages(messages, model) do
    messages
    |> Enum.map(&{role(&1), blocks(&1, model)})
    |> Enum.reject(&match?({_role, []}, &1))
    |> Enum.chunk_by(&elem(&1, 0))
    |> Enum.map(fn [{role, _} | _] = group ->
      %{"role" => role, "content" => Enum.flat_map(group, &elem(&1, 1))}
    end)
  end

  defp role(%{role: :assistant}), do: "assistant"
  defp role(_message), do: "user"

  # The limit of Anthropic is larger, but no vendor's ids are longer.
  @max_id 64

  defp blocks(%{role: :tool} = message, _model) do
    result = %{
      "type" => "tool_result",
      "tool_use_id" => Messages.call_id(message.id, @max_id),
      "content" => result(message.content)
    }

    [if(message.error, do: Map.put(result, "is_error", true), else: result)]
  end

  defp blocks(%{role: :assistant} = message, model) do
    for part <- Messages.parts(message, vendor(), model.model), block = block(part), do: block
  end

  defp blocks(message, _model),
    do: for(part <- List.wrap(message.content), block = part(part), do: block)

  defp result(text) when is_binary(text), do: text
  defp result(parts), do: for(part <- parts, block = part(part), do: block)

  defp part(text) when is_binary(text), do: if(blank?(text), do: nil, else: text(text))

  defp part(%Media{type: "image/" <> _} = media),
    do: %{"type" => "image", "source" => source(media)}

  defp part(%Media{name: nil} = media), do: %{"type" => "document", "source" => source(media)}
  defp part(media), do: %{media | name: nil} |> part() |> Map.put("title", media.name)

  defp source(%{source: {:url, url}}), do: %{"type" => "url", "url" => url}

  defp source(%{type: "text/plain" = type, source: {:data, text}}),
    do: %{"type" => "text", "media_type" => type, "data" => text}

  defp source(%{type: type, source: {:data, data}}),
    do: %{"type" => "base64", "media_type" => type, "data" => Base.encode64(data)}

  defp block({:data, data}), do: data
  defp block({:text, text, _fields}), do: if(blank?(text), do: nil, else: text(text))

  defp block({:call, call, _fields}) do
    %{
      "type" => "tool_use",
      "id" => Messages.call_id(call.id, @max_id),
      "name" => Messages.tool_name(call.name),
      "input" => Messages.arguments(call.arguments)
    }
  end

  # The end of the prompt is marked, and its end in the request before: the server looks back only
  # 20 blocks from a mark, and one turn may have more. With the tools and the system prompt these
  # are four marks, as many as there may be.
  defp mark_turns(messages, mark) when mark == %{}, do: messages

  defp mark_turns(messages, mark) do
    places =
      for({%{"role" => "user"}, place} <- Enum.with_index(messages), do: place) |> Enum.take(-2)

    Enum.reduce(places, messages, fn place, messages ->
      List.update_at(messages, place, fn message ->
        Map.update!(message, "content", fn blocks ->
          List.update_at(blocks, -1, &Map.merge(&1, mark))
        end)
      end)
    end)
  end

  # The answer

  @reasons %{
    "end_turn" => :stop,
    "stop_sequence" => :stop,
    "tool_use" => :tool_calls,
    "max_tokens" => :length,
    "model_context_window_exceeded" => :length,
    "refusal" => :filtered
  }

  @impl true
  def event(%{"type" => "message_start", "message" => %{} = message}, answer),
    do: answer |> Answer.named(message["model"]) |> usage(message["usage"])

  def event(
        %{"type" => "content_block_start", "index" => index, "content_block" => %{} = block},
        answer
      ),
      do: start(answer, index, block)

  def event(%{"type" => "content_block_delta", "index" => index, "delta" => %{} = delta}, answer),
    do: delta(answer, index, delta)

  def event(%{"type" => "content_block_stop", "index" => index}, answer), do: stop(answer, index)

  def event(%{"type" => "message_delta", "delta" => %{} = delta} = event, answer) do
    answer
    |> usage(event["usage"])
    |> Answer.finish(delta["stop_reason"], @reasons)
    |> refusal(delta)
  end

  def event(%{"type" => "message_stop"}, answer), do: %{answer | done: true}

  # `ping`, and events of later versions.
  def event(%{"type" => type}, answer) when is_binary(type), do: answer

  def event(event, answer), do: Answer.without(answer, event, "type")

  defp start(answer, _index, %{"type" => "text"} = block),
    do: Answer.add_text(answer, block["text"])

  defp start(answer, index, %{"type" => "tool_use"} = block) do
    answer
    |> Answer.start_call({:block, index}, block["id"], block["name"])
    |> start_block(index, block)
  end

  defp start(answer, index, block), do: start_block(answer, index, block)

  defp start_block(answer, index, block) do
    size = block |> JSON.encode() |> byte_size()
    answer |> open(index, block, "") |> Answer.grow(size)
  end

  defp open(answer, index, block, json),
    do: %{answer | open: Map.put(answer.open, index, {block, json})}

  defp delta(answer, _index, %{"type" => "text_delta"} = delta),
    do: Answer.add_text(answer, delta["text"])

  defp delta(answer, index, %{"type" => "input_json_delta", "partial_json" => json})
       when is_binary(json) do
    case answer.open do
      %{^index => {%{"type" => "tool_use"}, _}} ->
        Answer.add_arguments(answer, {:block, index}, json)

      %{^index => {block, before}} ->
        answer |> open(index, block, [before, json]) |> Answer.grow(byte_size(json))

      _ ->
        answer
    end
  end

  # The thoughts, which come in pieces, and their signature.
  defp delta(answer, index, %{"type" => type} = delta)
       when type in ["thinking_delta", "signature_delta"] do
    field = String.replace_suffix(type, "_delta", "")

    case {answer.open, delta[field]} do
      {%{^index => {block, json}}, piece} when is_binary(piece) ->
        # A list of pieces, since growing a text would copy it each time.
        before = if is_binary(block[field]) or is_list(block[field]), do: block[field], else: ""
        block = Map.put(block, field, [before, piece])
        answer |> open(index, block, json) |> Answer.grow(byte_size(piece))

      _ ->
        answer
    end
  end

  defp delta(answer, _index, _other), do: answer

  defp stop(answer, index) do
    case Map.pop(answer.open, index) do
      {nil, _open} -> answer
      {{block, json}, open} -> close(%{answer | open: open}, index, block, json)
    end
  end

  defp close(answer, index, %{"type" => "tool_use"} = block, _json) do
    if Answer.arguments?(answer, {:block, index}),
      do: answer,
      else: Answer.add_arguments(answer, {:block, index}, input(block["input"]))
  end

  defp close(answer, _index, block, json) do
    block =
      for name <- ["thinking", "signature"], is_list(block[name]), reduce: block do
        block -> Map.update!(block, name, &IO.iodata_to_binary/1)
      end

    block =
      case JSON.decode(IO.iodata_to_binary(json)) do
        {:ok, %{} = input} -> Map.put(block, "input", input)
        _ -> block
      end

    Answer.add_data(answer, block)
  end

  defp input(%{} = input) when input != %{}, do: JSON.encode(input)
  defp input(_empty), do: ""

  # Without any text, the server's explanation is the text.
  defp refusal(%{finish_reason: :filtered, texts: []} = answer, %{
         "stop_details" => %{"explanation" => text}
       }),
       do: Answer.add_text(answer, text)

  defp refusal(answer, _delta), do: answer

  defp usage(answer, usage) do
    Answer.usage(answer, usage,
      prompt_tokens: &prompt/1,
      completion_tokens: "output_tokens",
      cached_tokens: "cache_read_input_tokens",
      cache_write_tokens: "cache_creation_input_tokens"
    )
  end

  # The prompt is counted in three parts: new, read from the cache, and stored there.
  defp prompt(usage) do
    parts = ["cache_read_input_tokens", "cache_creation_input_tokens"]
    counts = [usage["input_tokens"] | Enum.map(parts, &(usage[&1] || 0))]
    if Enum.all?(counts, &is_integer/1), do: Enum.sum(counts)
  end

  @impl true
  def whole(%{"type" => "message", "content" => blocks} = message, answer)
      when is_list(blocks) do
    answer = answer |> Answer.named(message["model"]) |> usage(message["usage"])

    answer =
      for {%{} = block, index} <- Enum.with_index(blocks), reduce: answer do
        answer -> answer |> start(index, block) |> stop(index)
      end

    answer |> Answer.finish(message["stop_reason"], @reasons) |> refusal(message)
  end

  def whole(_body, _answer), do: nil
end
