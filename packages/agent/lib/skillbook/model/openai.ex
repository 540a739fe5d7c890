defmodule Skillbook.Model.OpenAI do
  @moduledoc """
  A client for servers with the OpenAI chat interface: OpenAI, llama.cpp, vLLM, Ollama, LM Studio
  and many more.

      {:ok, model} =
        Skillbook.Model.OpenAI.new(
          url: "https://api.openai.com/v1",
          model: "gpt-5",
          key: {:env, "OPENAI_API_KEY"}
        )

      Skillbook.Agent.run(MyApp.Skills, "What is overdue?", model: model)

  It sends `POST /v1/chat/completions` and streams the answer.

  ## Options

    * `:url` - the server, for example `"http://localhost:8080"`, or with the path before
      `chat/completions`, for example `"https://api.openai.com/v1"`. Default path: `/v1`. Required
    * `:model` - the name of the model. Required
    * `:key` - `{:env, "OPENAI_API_KEY"}` for an environment variable, or a function that returns
      the key. It is read for each request. The key itself is not accepted, so that no struct, log
      or crash report can contain it. Default: `{:env, "OPENAI_API_KEY"}` for `api.openai.com`,
      else `nil`, no key
    * `:system_role` - `:system`, or `:user` for models without system messages, such as Gemma.
      The system prompt is then put at the start of the first message. Default: `:system`
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as its `response_format`, as OpenAI, llama.cpp, vLLM and Ollama accept it;
      `:grammar`, as a GBNF grammar; or `:prompt`, not at all. The schema is always in the prompt
      too. If the server refuses the request with the status 400 or 422, or fails because of
      `response_format`, it is repeated without the schema; the server of llama-cpp-python needs
      `:grammar`. Default: `:json_schema`
    * `:tools` - whether the server knows tool calls, for the option `protocol: :auto` of
      `Skillbook.Agent.run/3`. Default: true for `api.openai.com`, else false
    * `:strict` - whether arguments of tools have to match their schemas, in OpenAI's strict mode.
      Default: false
    * `:cache` - how the server's cache of prompts is used: `true`; `false`, no field is sent for
      it; or `[ttl: "30m", key: "my-app"]`, the least time that an entry stays and the key that
      requests with the same beginning share. The key is made from the tools and the system prompt
      otherwise. Fields for it are sent to `api.openai.com` and where one of them is set; other
      servers need none. Default: `true`
    * `:media` - limits of the images, files and audio in messages, a list of `:types` (the media
      types that the model takes; default: those of the interface), `:max_bytes` (of one; default:
      10,000,000), `:max_parts` (in a message; default: 20) and `:max_total` (the bytes of all in
      a request; default: 15,000,000). Default: `[]`
    * `:extra` - a map of further fields of each request, as in `Skillbook.Model.chat/4`
    * `:connect_timeout` - milliseconds to open a connection. Default: 10,000
    * `:idle_timeout` - milliseconds to wait for more data, and for the first word. Default:
      120,000
    * `:timeout` - milliseconds for the whole answer, retries included. Default: 600,000
    * `:retries` - how often a failed request is repeated. Default: 2
    * `:backoff` - milliseconds before the first retry, doubled for each further one, up to 30
      seconds. Half of it is random, so that many clients do not retry at once. Default: 500
    * `:cacertfile` - a PEM file of certificate authorities to trust instead of the system's
    * `:proxy` - as in `Skillbook.HTTP`. Default: `:env`, the proxy of the environment
    * `:http` - an adapter of `Skillbook.HTTP`, for example
      `{Skillbook.HTTP.Finch, name: MyApp.Finch}`. Default: `Skillbook.HTTP.Native`
    * `:sleep` - the function that waits before a retry. Default: `&Process.sleep/1`

  ## Retries

  A request is repeated if the connection fails or breaks before the first text, and after the
  statuses 408, 409, 429 and 500 to 599; the header `x-should-retry` takes precedence. The delay
  is the server's `retry-after-ms` or `Retry-After`, if it sends one. If that is more than a
  minute or than the rest of `:timeout`, the error is returned at once. After text was passed on,
  a request is never repeated.

  The server's certificate is always verified. Redirects are not followed, since the key would be
  sent along.

  ## Limit of tokens

  `:max_tokens` of `Skillbook.Model.chat/4` is sent as `max_tokens`. For `api.openai.com` it is
  `max_completion_tokens`, since newer models there refuse the other. To send that to another
  server, use `extra: %{"max_tokens" => nil, "max_completion_tokens" => 500}`.

  ## Examples

      iex> options = [url: "http://localhost:8080", model: "qwen3", key: {:env, "KEY"}]
      iex> {:ok, model} = Skillbook.Model.OpenAI.new(options)
      iex> to_string(model.url)
      "http://localhost:8080/v1/chat/completions"
      iex> inspect(model) =~ "KEY"
      false

      iex> {:error, error} = Skillbook.Model.OpenAI.new(url: "localhost:8080", model: "qwen3")
      iex> Exception.message(error)
      ~s(expected a URL such as "https://api.openai.com/v1" as the option :url of a model, ) <>
        ~s(got: "localhost:8080")
  """

  alias Skillbook.Model.{Answer, Client, Content, Media, Messages, ObjectGrammar}
  alias Skillbook.Model.JSONSchema
  alias Skillbook.Support.JSON

  use Skillbook.Model.Client,
    vendor: "openai",
    home: {"https://api.openai.com/v1", "OPENAI_API_KEY"},
    path: "chat/completions",
    media:
      {~w(image/jpeg image/png image/gif image/webp application/pdf audio/wav audio/mpeg),
       ~w(image/jpeg image/png image/gif image/webp)},
    options: [
      system_role: [:system, :user],
      structured: [:json_schema, :grammar, :prompt],
      tools: false,
      strict: false,
      cache: {boolean() | keyword(), true, Client.cache(["30m"], [:key])}
    ]

  # Other servers have this interface too: no URL is the default, and they do not get the key.
  @impl true
  def defaults(url) do
    own? = is_binary(url) and openai?(URI.parse(url))
    {_url, variable} = home()
    [tools: own?] ++ if(own?, do: [key: {:env, variable}], else: [])
  end

  @impl true
  def tools?(model), do: model.tools

  # The request

  @impl true
  def body(model, messages, options) do
    tools = Client.tools(options, shape(model))

    %{
      "model" => model.model,
      "messages" => messages |> put_system_role(model.system_role) |> messages(),
      "stream" => true,
      "stream_options" => %{"include_usage" => true},
      "stop" => options[:stop],
      "temperature" => options[:temperature],
      limit_field(model.url) => options[:max_tokens],
      "tools" => tools,
      "tool_choice" => tools && options[:tool_choice],
      "grammar" => options[:grammar]
    }
    |> Map.merge(structured(model, options))
    |> Map.merge(cache_fields(model, messages, tools))
  end

  # Servers on their own convert schemas to grammars, and know less of JSON Schema.
  defp shape(%{strict: true}), do: :openai_strict
  defp shape(%{url: url}), do: if(openai?(url), do: :openai, else: :llama)

  # The limit of OpenAI for the ids of calls.
  @max_id 40
  @media_of_results "The images, files and audio of these results, in their order:"

  # A result is text; the media of results are in a message of the user after them.
  defp messages(messages) do
    messages
    |> Enum.chunk_by(&(&1.role == :tool or make_ref()))
    |> Enum.flat_map(fn group -> Enum.map(group, &message/1) ++ media(group) end)
  end

  defp media([%{role: :tool} | _] = results) do
    case Content.media(results) do
      [] -> []
      media -> [message(%{role: :user, content: [@media_of_results | media]})]
    end
  end

  defp media(_other), do: []

  defp message(%{role: :tool} = message) do
    %{
      "role" => "tool",
      "tool_call_id" => Messages.call_id(message.id, @max_id),
      "content" => Content.text(message.content)
    }
  end

  defp message(%{role: :assistant, tool_calls: [_ | _] = calls} = message) do
    calls =
      for call <- calls do
        function = %{
          "name" => Messages.tool_name(call.name),
          "arguments" => Messages.arguments_text(call.arguments)
        }

        id = Messages.call_id(call.id, @max_id)
        %{"id" => id, "type" => "function", "function" => function}
      end

    %{"role" => "assistant", "content" => message.content, "tool_calls" => calls}
  end

  defp message(message),
    do: %{"role" => to_string(message.role), "content" => content(message.content)}

  defp content(text) when is_binary(text), do: text
  defp content(parts), do: Enum.map(parts, &part(&1, is_struct(&1, Media) and Content.kind(&1)))

  defp part(text, false), do: %{"type" => "text", "text" => text}

  defp part(media, :image),
    do: %{"type" => "image_url", "image_url" => %{"url" => Content.url(media)}}

  defp part(media, :file) do
    file = %{"filename" => Content.name(media), "file_data" => Content.url(media)}
    %{"type" => "file", "file" => file}
  end

  defp part(%{type: "audio/" <> format, source: {:data, data}}, :audio) do
    format = if format == "mpeg", do: "mp3", else: format
    audio = %{"data" => Base.encode64(data), "format" => format}
    %{"type" => "input_audio", "input_audio" => audio}
  end

  defp structured(%{structured: :grammar}, options),
    do: if(schema = options[:schema], do: %{"grammar" => ObjectGrammar.gbnf(schema)}, else: %{})

  defp structured(model, options) do
    refused = if openai?(model.url), do: ["maxLength"], else: []

    case Client.schema(model, options, refused) do
      nil ->
        %{}

      schema ->
        %{"response_format" => %{"type" => "json_schema", "json_schema" => format(schema)}}
    end
  end

  @doc false
  @spec format(map()) :: map()
  def format(schema),
    do: %{"name" => "answer", "schema" => schema, "strict" => JSONSchema.all_required?(schema)}

  @doc false
  # Requests with one key reach the same machines, which have the beginning of their prompts.
  @spec cache_fields(struct(), [map()], [map()] | nil) :: map()
  def cache_fields(%{cache: false}, _messages, _tools), do: %{}

  def cache_fields(%{cache: cache, url: url}, messages, tools) do
    cache = if is_list(cache), do: cache, else: []

    if openai?(url) or cache != [] do
      key = cache[:key] || cache_key(messages, tools)
      ttl = if cache[:ttl], do: %{"prompt_cache_options" => %{"ttl" => cache[:ttl]}}, else: %{}
      Map.put(ttl, "prompt_cache_key", key)
    else
      %{}
    end
  end

  defp cache_key(messages, tools) do
    {system, _messages} = Messages.split(messages)
    "skillbook-" <> Messages.hash([system || "", JSON.encode(tools)], 32)
  end

  defp put_system_role([%{role: :system, content: system}, %{role: :user} = first | rest], :user),
    do: [%{first | content: Content.join([system, first.content])} | rest]

  defp put_system_role([%{role: :system} = system | rest], :user),
    do: [%{system | role: :user} | rest]

  defp put_system_role(messages, _role), do: messages

  @doc false
  # OpenAI's newer models refuse the field that all other servers use.
  @spec limit_field(URI.t()) :: String.t()
  def limit_field(%URI{} = url),
    do: if(openai?(url), do: "max_completion_tokens", else: "max_tokens")

  # It also refuses some keywords of schemas.
  defp openai?(%URI{host: host}), do: host == "api.openai.com"

  # The answer

  @impl true
  def event(%{"choices" => [choice | _]} = event, answer),
    do: answer |> Answer.named(event["model"]) |> usage(event) |> choice(choice)

  def event(%{"choices" => []} = event, answer), do: usage(answer, event)
  def event(%{"usage" => %{}} = event, answer), do: usage(answer, event)

  def event(event, answer), do: Answer.without(answer, event, "choices")

  @reasons %{
    "stop" => :stop,
    "length" => :length,
    "tool_calls" => :tool_calls,
    "content_filter" => :filtered
  }

  defp choice(answer, %{"delta" => %{} = delta} = choice) do
    answer
    |> Answer.finish(choice["finish_reason"], @reasons)
    |> Answer.add_text(delta["content"])
    |> refusal(delta["refusal"])
    |> calls(delta["tool_calls"])
  end

  defp choice(answer, choice) do
    choice = inspect(choice, limit: 5, printable_limit: 300)
    Answer.bad_answer(answer, "one of its events has no delta: " <> choice)
  end

  defp refusal(answer, text) when text in [nil, ""], do: answer
  defp refusal(answer, text), do: Answer.refuse(answer, text)

  defp calls(answer, calls) when is_list(calls) and calls != [],
    do: Enum.reduce(calls, answer, &call/2)

  defp calls(answer, _none), do: answer

  defp call(%{"function" => %{} = function} = delta, answer) do
    key = key(answer, delta["index"], delta["id"], function["name"])

    answer =
      if is_map_key(answer.calls, key),
        do: answer,
        else:
          answer |> Answer.start_call(key, delta["id"], function["name"]) |> opened(delta, key)

    Answer.add_arguments(answer, key, arguments(function["arguments"]))
  end

  defp call(_other, answer), do: answer

  # Some servers send all calls with the index 0, or without one. A name with a new id, or without
  # any id or index, is a new call then. Others repeat the id in each piece, and some change it.
  defp key(answer, index, id, name) do
    key = answer.open[{:index, index}]
    id = if is_binary(id) and id != "", do: id
    named? = is_binary(name) and name != ""
    other? = if id, do: key && answer.calls[key].id != id, else: index == nil

    if key == nil or (named? and other?),
      do: {index, id || map_size(answer.calls)},
      else: key
  end

  defp opened(answer, delta, key),
    do: %{answer | open: Map.put(answer.open, {:index, delta["index"]}, key)}

  defp arguments(%{} = arguments), do: JSON.encode(arguments)
  defp arguments(other), do: other

  defp usage(answer, event) do
    Answer.usage(answer, event["usage"],
      prompt_tokens: "prompt_tokens",
      completion_tokens: "completion_tokens",
      cached_tokens: {"prompt_tokens_details", "cached_tokens"},
      cache_write_tokens: {"prompt_tokens_details", "cache_write_tokens"}
    )
  end

  @impl true
  def whole(%{"choices" => [%{"message" => %{} = message} = choice | _]} = body, answer) do
    # Calls of a whole message have no index.
    calls = with [_ | _] = calls <- message["tool_calls"], do: Enum.with_index(calls)

    calls = for {%{} = call, index} <- List.wrap(calls), do: Map.put_new(call, "index", index)

    message = Map.put(message, "tool_calls", calls)

    answer
    |> Answer.named(body["model"])
    |> usage(body)
    |> choice(Map.put(choice, "delta", message))
  end

  def whole(_body, _answer), do: nil
end
