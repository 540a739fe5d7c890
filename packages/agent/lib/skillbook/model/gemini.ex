defmodule Skillbook.Model.Gemini do
  @moduledoc """
  A client for Google's Gemini API.

      {:ok, model} = Skillbook.Model.Gemini.new(model: "gemini-2.5-flash")
      Skillbook.Agent.run(MyApp.Skills, "What is overdue?", model: model)

  It sends `POST /v1beta/models/MODEL:streamGenerateContent`. The signatures of thoughts are in
  `:opaque` of the answer, and are given back as they came. Calls of other models in a
  conversation have none, and are marked so that Gemini 3 and later accept them.

  The server caches the beginning of a prompt on its own. The system prompt and the tools come
  first in it and stay the same for a conversation.

  ## Options

    * `:url` - the server. Default: `"https://generativelanguage.googleapis.com"`
    * `:model` - the name of the model. Required
    * `:key` - as in `Skillbook.Model.OpenAI`. Default: `{:env, "GEMINI_API_KEY"}`; none on
      Vertex AI
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as its `responseJsonSchema`, or `:prompt`, not at all. Default:
      `:json_schema`
    * `:cache` - `true` or `false`; no field is sent for the cache in either case
    * `:platform` - `:vertex`, if Google's Vertex AI serves the model. Default: as the host of
      `:url` says. The URL then ends with the project and the location, as in [Google's Vertex
      AI](models.md#clouds), and the key is an access token
    * `:media` - limits of images, files and audio: `:types`, `:max_bytes`, `:max_total` and
      `:max_parts`, as in `Skillbook.Model.OpenAI`
    * `:extra` - a map of further fields of each request, as in `Skillbook.Model.chat/4`, for
      example `%{"generationConfig" => %{"thinkingConfig" => %{"thinkingLevel" => "LOW"}}}`
    * `:connect_timeout`, `:idle_timeout`, `:timeout`, `:retries`, `:backoff`, `:cacertfile`,
      `:proxy`, `:http`, `:sleep` - as in `Skillbook.Model.OpenAI`, and with the same defaults

  `:grammar` of `Skillbook.Model.chat/4` is refused, since the interface has none.

  ## Examples

      iex> {:ok, model} = Skillbook.Model.Gemini.new(model: "gemini-2.5-flash")
      iex> model.url.path
      "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
      iex> inspect(model) =~ "GEMINI_API_KEY"
      false
  """

  alias Skillbook.HTTP.Service
  alias Skillbook.Model.{Answer, Client, Content, Media, Messages, Platform}
  alias Skillbook.Support.JSON

  @media ~w(image/jpeg image/png image/webp image/heic image/heif application/pdf text/plain
    audio/wav audio/mpeg audio/aiff audio/aac audio/ogg audio/flac)

  use Skillbook.Model.Client,
    vendor: "gemini",
    provider: "gcp.gemini",
    home: {"https://generativelanguage.googleapis.com", "GEMINI_API_KEY"},
    missing: [:grammar],
    media: {@media, @media},
    options: [
      structured: [:json_schema, :prompt],
      cache: true,
      platform: {:vertex | nil, nil, Platform.option([:vertex])}
    ]

  # The request

  @impl true
  def defaults(url) do
    case Platform.of(url) do
      :vertex -> [platform: :vertex]
      _own -> [url: elem(home(), 0), key: {:env, elem(home(), 1)}]
    end
  end

  @impl true
  def provider(model), do: Platform.provider(model, "gcp.gemini")

  # A tuned model has a path of its own.
  @impl true
  def endpoint(url, model) do
    name = URI.encode(model.model, &(URI.char_unreserved?(&1) or &1 == ?/))
    name = if String.contains?(name, "/"), do: name, else: "models/" <> name
    url = Service.endpoint(url, name <> ":streamGenerateContent", "v1beta")
    # Events instead of one list of JSON objects.
    %{url | query: if(url.query, do: url.query <> "&alt=sse", else: "alt=sse")}
  end

  @impl true
  def headers(%{platform: :vertex}, key, _body), do: Service.bearer(key)
  def headers(_model, nil, _body), do: []
  def headers(_model, key, _body), do: [{"x-goog-api-key", key.()}]

  @impl true
  def body(model, messages, options) do
    {system, messages} = Messages.split(messages)
    tools = Client.tools(options, :gemini)

    %{
      "systemInstruction" => system && %{"parts" => [%{"text" => system}]},
      "contents" => contents(messages, model),
      "tools" => tools && [%{"functionDeclarations" => tools}],
      "toolConfig" => tools && choice(options[:tool_choice]),
      "generationConfig" => config(model, options)
    }
  end

  @modes %{auto: "AUTO", none: "NONE", required: "ANY"}

  defp choice(nil), do: nil
  defp choice(choice), do: %{"functionCallingConfig" => %{"mode" => @modes[choice]}}

  defp config(model, options) do
    schema = Client.schema(model, options, ["maxLength"])

    config = %{
      "temperature" => options[:temperature],
      "maxOutputTokens" => options[:max_tokens],
      "stopSequences" => options[:stop],
      "responseMimeType" => schema && "application/json",
      "responseJsonSchema" => schema
    }

    config = Map.reject(config, fn {_name, value} -> value == nil end)
    if config != %{}, do: config
  end

  # The results of the calls of one answer are one content. Their media follow them for models
  # that know none in a result.
  defp contents(messages, model) do
    messages
    |> Enum.chunk_by(&(&1.role == :tool or make_ref()))
    |> Enum.map(fn [message | _] = group ->
      parts = Enum.flat_map(group, &parts(&1, model))
      parts = if message.role == :tool, do: Enum.sort_by(parts, &later?/1), else: parts
      %{"role" => if(message.role == :assistant, do: "model", else: "user"), "parts" => parts}
    end)
    |> Enum.reject(&(&1["parts"] == []))
  end

  defp parts(%{role: :tool} = message, model) do
    {texts, media} = message.content |> List.wrap() |> Enum.split_with(&is_binary/1)
    media = Enum.map(media, &user_part/1)
    field = if(message.error, do: "error", else: "output")
    text = if before_3?(model.model), do: Content.text(message.content), else: Enum.join(texts)

    response = %{
      "name" => Messages.tool_name(message.name),
      "response" => %{field => text}
    }

    response = with_id(response, message.id)

    cond do
      media == [] -> [%{"functionResponse" => response}]
      before_3?(model.model) -> [%{"functionResponse" => response} | media]
      true -> [%{"functionResponse" => Map.put(response, "parts", media)}]
    end
  end

  defp parts(%{role: :assistant} = message, model) do
    message |> Messages.parts(vendor(), model.model) |> Enum.map(&part/1) |> sign(model.model)
  end

  defp parts(message, _model),
    do: for(content when content != "" <- List.wrap(message.content), do: user_part(content))

  defp later?(%{"inlineData" => _}), do: true
  defp later?(_part), do: false

  defp before_3?(model), do: model =~ ~r/\Agemini-[12](\D|\z)/

  defp user_part(text) when is_binary(text), do: %{"text" => text}

  defp user_part(%Media{source: {:url, url}} = media),
    do: %{"fileData" => %{"mimeType" => mime(media), "fileUri" => url}}

  defp user_part(%Media{source: {:data, data}} = media),
    do: %{"inlineData" => %{"mimeType" => mime(media), "data" => Base.encode64(data)}}

  # The name of Gemini.
  defp mime(%{type: "audio/mpeg"}), do: "audio/mp3"
  defp mime(%{type: type}), do: type

  defp part({:data, data}), do: data
  defp part({:text, text, fields}), do: Map.put(fields, "text", text)

  defp part({:call, call, fields}) do
    name = Messages.tool_name(call.name)
    function = %{"name" => name, "args" => Messages.arguments(call.arguments)}
    Map.put(fields, "functionCall", with_id(function, call.id))
  end

  # Gemini leaves the ids of most calls out. Those that were made here are not sent.
  @made "gemini-call-"

  defp with_id(map, @made <> _), do: map
  defp with_id(map, id), do: Map.put(map, "id", id)

  # From Gemini 3 on the first call of an answer has a signature. Without one the request is
  # refused, unless it has this text, which the documentation names for calls of other models.
  @unsigned "skip_thought_signature_validator"

  defp sign(parts, model) do
    signed? =
      before_3?(model) or
        Enum.any?(parts, &is_map_key(&1, "thoughtSignature"))

    place = Enum.find_index(parts, &is_map_key(&1, "functionCall"))

    if signed? or place == nil,
      do: parts,
      else: List.update_at(parts, place, &Map.put(&1, "thoughtSignature", @unsigned))
  end

  # The answer

  @impl true
  def event(%{"candidates" => [%{} = candidate | _]} = event, answer) do
    content = if is_map(candidate["content"]), do: candidate["content"], else: %{}
    parts = if is_list(content["parts"]), do: content["parts"], else: []
    answer = answer |> Answer.named(event["modelVersion"]) |> usage(event["usageMetadata"])
    parts |> Enum.reduce(answer, &read/2) |> finish(candidate)
  end

  # The prompt was blocked.
  def event(%{"promptFeedback" => %{"blockReason" => reason} = feedback} = event, answer)
      when is_binary(reason) do
    text = feedback["blockReasonMessage"] || "The request was blocked (#{reason})."

    answer
    |> usage(event["usageMetadata"])
    |> Answer.add_text(text)
    |> Answer.finish(:filtered)
  end

  def event(event, answer) when is_map_key(event, "usageMetadata"),
    do: usage(answer, event["usageMetadata"])

  def event(event, answer), do: Answer.without(answer, event, "candidates")

  defp read(%{"thought" => true} = part, answer), do: Answer.add_data(answer, part)
  defp read(%{"text" => text} = part, answer), do: Answer.add_text(answer, text, signature(part))

  defp read(%{"functionCall" => %{} = call} = part, answer) do
    key = map_size(answer.calls)
    id = call["id"] || @made <> Messages.random()
    arguments = if is_map(call["args"]), do: JSON.encode(call["args"]), else: "{}"

    answer
    |> Answer.start_call(key, id, call["name"], signature(part))
    |> Answer.add_arguments(key, arguments)
  end

  # Parts of tools that run on the server.
  defp read(%{} = part, answer) when part != %{}, do: Answer.add_data(answer, part)
  defp read(_other, answer), do: answer

  defp signature(part), do: Map.take(part, ["thoughtSignature"])

  @filtered ~w(SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY
    IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR ESCALATION PUP_LIMITED_DISABLED)
  @reasons @filtered
           |> Map.new(&{&1, :filtered})
           |> Map.merge(%{
             "FINISH_REASON_UNSPECIFIED" => nil,
             "STOP" => :stop,
             "MAX_TOKENS" => :length
           })

  # The model failed, and may succeed the next time; or the request is wrong.
  @failed %{
    "MALFORMED_FUNCTION_CALL" => "api_error",
    "UNEXPECTED_TOOL_CALL" => "api_error",
    "MALFORMED_RESPONSE" => "api_error",
    "MISSING_THOUGHT_SIGNATURE" => "invalid_request_error"
  }

  defp finish(answer, %{"finishReason" => reason} = candidate) when is_map_key(@failed, reason) do
    message = candidate["finishMessage"]
    message = if is_binary(message), do: ": " <> message, else: ""
    error = %{"type" => @failed[reason], "message" => "it ended with #{reason}" <> message}
    Answer.server_error(answer, error)
  end

  defp finish(answer, candidate),
    do: Answer.finish(answer, candidate["finishReason"], @reasons)

  # Thoughts and the results of tools on the server are counted apart.
  defp usage(answer, usage) do
    Answer.usage(answer, usage,
      prompt_tokens: &sum(&1, ["promptTokenCount", "toolUsePromptTokenCount"]),
      completion_tokens: &sum(&1, ["candidatesTokenCount", "thoughtsTokenCount"]),
      cached_tokens: "cachedContentTokenCount"
    )
  end

  defp sum(usage, names),
    do: for(name <- names, count = usage[name], is_integer(count), do: count) |> Enum.sum()

  @impl true
  def whole([_ | _] = events, answer) do
    Enum.reduce_while(events, answer, fn
      %{} = event, answer -> {:cont, event(event, answer)}
      _other, _answer -> {:halt, nil}
    end)
  end

  def whole(%{"candidates" => _} = body, answer), do: event(body, answer)
  def whole(%{"promptFeedback" => _} = body, answer), do: event(body, answer)
  def whole(_body, _answer), do: nil
end
