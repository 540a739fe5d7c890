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
      or crash report can contain it. Default: `nil`, no key
    * `:system_role` - `:system`, or `:user` for models without system messages, such as Gemma.
      The system prompt is then put at the start of the first message. Default: `:system`
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as its `response_format`, as OpenAI, llama.cpp, vLLM and Ollama accept it;
      `:grammar`, as a GBNF grammar; or `:prompt`, not at all. The schema is always in the prompt
      too. If the server refuses the request with the status 400 or 422, it is repeated without
      the schema. Default: `:json_schema`
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
  statuses 429 and 500 to 599. The delay is the server's `Retry-After`, if it sends one. If that
  is more than a minute or than the rest of `:timeout`, the error is returned at once. After text
  was passed on, a request is never repeated.

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

  @behaviour Skillbook.Model

  alias Skillbook.Model.{ObjectGrammar, OpenAI.Answer, Schema}
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{HTTP, ModelError, OptionError}

  @type t :: %__MODULE__{
          url: URI.t(),
          model: String.t(),
          key: {:env, String.t()} | (() -> String.t() | nil) | nil,
          connect_timeout: pos_integer(),
          idle_timeout: pos_integer(),
          timeout: pos_integer(),
          retries: non_neg_integer(),
          backoff: non_neg_integer(),
          cacertfile: Path.t() | nil,
          proxy: :env | nil | String.t() | (() -> String.t() | nil),
          http: module() | {module(), keyword()},
          system_role: :system | :user,
          structured: :json_schema | :grammar | :prompt,
          sleep: (non_neg_integer() -> any())
        }

  @derive {Inspect, except: [:key, :proxy]}
  @enforce_keys [:url, :model]
  defstruct [
    :url,
    :model,
    :key,
    :cacertfile,
    proxy: :env,
    http: HTTP.Native,
    system_role: :system,
    structured: :json_schema,
    connect_timeout: 10_000,
    idle_timeout: 120_000,
    timeout: 600_000,
    retries: 2,
    backoff: 500,
    sleep: &Process.sleep/1
  ]

  # Milliseconds.
  @max_backoff 30_000
  @max_retry_after 60_000

  @doc "Builds a model from the options above."
  @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    with :ok <- options |> hide_key() |> Options.validate("a model", schema()) |> hide_login(),
         {:ok, url} <- fetch_required(options, :url),
         {:ok, _name} <- fetch_required(options, :model) do
      {:ok, struct!(__MODULE__, Keyword.put(options, :url, endpoint(url)))}
    end
  end

  @doc "Like `new/1`, but raises the error."
  @spec new!(keyword()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, model} -> model
      {:error, error} -> raise error
    end
  end

  @impl true
  def chat(%__MODULE__{} = model, messages, options, on_text) do
    with {:ok, key} <- key(model.key) do
      timeout = min(options[:timeout] || model.timeout, model.timeout)

      attempt(1, %{
        model: model,
        key: key,
        body: body(model, messages, options),
        deadline: System.monotonic_time(:millisecond) + timeout,
        on_text: on_text,
        on_retry: options[:on_retry] || fn _ -> :ok end
      })
    end
  end

  # The key stays in a closure, which crash reports do not show.
  defp key(nil), do: {:ok, nil}

  defp key({:env, name}) do
    case String.trim(System.get_env(name, "")) do
      "" -> no_key("the environment variable #{name} is not set, or empty")
      key -> check_key(fn -> key end, "the environment variable #{name}")
    end
  end

  defp key(function) when is_function(function, 0) do
    case function.() do
      nil ->
        no_key("the function in the option :key returned nil")

      key when is_binary(key) ->
        check_key(fn -> key end, "the result of the function in the option :key")

      _ ->
        no_key("the function in the option :key did not return text")
    end
  end

  defp check_key(key, origin) do
    if key.() =~ ~r/\A[\x21-\x7e]+\z/,
      do: {:ok, key},
      else: no_key("#{origin} has invalid characters for a key, such as a space or line break")
  end

  defp no_key(reason), do: {:error, %ModelError{kind: :key, reason: reason}}

  # Requests

  defp attempt(number, call) do
    with {:retry, error} <- request(call) do
      delay = error.retry_after || backoff(call.model.backoff, number)
      left = call.deadline - System.monotonic_time(:millisecond)

      if number <= call.model.retries and delay < min(left, @max_retry_after) do
        call.on_retry.(%{attempt: number + 1, delay: delay, error: error})
        call.model.sleep.(delay)
        attempt(number + 1, call)
      else
        {:error, error}
      end
    end
  end

  defp backoff(first, number) do
    max = min(first * Integer.pow(2, number - 1), @max_backoff)
    div(max, 2) + :rand.uniform(div(max, 2) + 1) - 1
  end

  defp request(%{model: model} = call) do
    options = [
      adapter: model.http,
      connect_timeout: model.connect_timeout,
      idle_timeout: model.idle_timeout,
      timeout: max(call.deadline - System.monotonic_time(:millisecond), 1),
      cacertfile: model.cacertfile,
      proxy: model.proxy,
      # Compression would delay the words of a stream.
      compressed: false
    ]

    [method: :post, url: model.url, headers: fn -> headers(call.key) end, body: call.body]
    |> HTTP.stream(options, Answer.new(call.on_text), &Answer.part/2)
    |> Answer.result(model.url)
    |> Answer.hide_key(call.key)
  end

  defp headers(key) do
    authorization = if key, do: [{"authorization", "Bearer " <> key.()}], else: []
    [{"content-type", "application/json"}, {"accept", "text/event-stream"} | authorization]
  end

  defp body(model, messages, options) do
    fields = %{
      "model" => model.model,
      "messages" =>
        messages
        |> Enum.map(&Map.take(&1, [:role, :content]))
        |> put_system_role(model.system_role),
      "stream" => true,
      "stream_options" => %{"include_usage" => true},
      "stop" => options[:stop],
      "temperature" => options[:temperature],
      limit_field(model.url) => options[:max_tokens],
      "grammar" => options[:grammar]
    }

    fields
    |> Map.merge(structured(model, options[:schema]))
    |> Map.merge(options[:extra] || %{})
    |> Map.reject(fn {_name, value} -> value == nil end)
    |> JSON.encode()
  end

  defp structured(_model, nil), do: %{}
  defp structured(%{structured: :prompt}, _schema), do: %{}

  defp structured(%{structured: :grammar}, schema),
    do: %{"grammar" => ObjectGrammar.gbnf(schema)}

  defp structured(%{structured: :json_schema, url: url}, schema) do
    schema = if strict_server?(url), do: Schema.without(schema, "maxLength"), else: schema
    format = %{"name" => "answer", "schema" => schema, "strict" => Schema.all_required?(schema)}
    %{"response_format" => %{"type" => "json_schema", "json_schema" => format}}
  end

  defp put_system_role([%{role: :system, content: system}, %{role: :user} = first | rest], :user),
    do: [%{first | content: system <> "\n\n" <> first.content} | rest]

  defp put_system_role([%{role: :system} = system | rest], :user),
    do: [%{system | role: :user} | rest]

  defp put_system_role(messages, _role), do: messages

  @doc false
  # OpenAI's newer models refuse the field that all other servers use.
  @spec limit_field(URI.t()) :: String.t()
  def limit_field(%URI{} = url),
    do: if(strict_server?(url), do: "max_completion_tokens", else: "max_tokens")

  # It also refuses some keywords of schemas.
  defp strict_server?(%URI{host: host}), do: host == "api.openai.com"

  # Options

  # Errors show invalid options, so a key given as text is replaced first.
  defp hide_key([{:key, key} | options]) when is_binary(key), do: [{:key, :hidden} | options]
  defp hide_key([option | options]), do: [option | hide_key(options)]
  defp hide_key(options), do: options

  # Text before the host is a secret, even in an invalid URL.
  defp hide_login({:error, %OptionError{option: :url} = error}) do
    case error.problem do
      {:invalid, expected, url} when is_binary(url) ->
        url = String.replace(url, ~r{\A(\w+://)?.*@}s, "\\1[hidden]@")
        {:error, %{error | problem: {:invalid, expected, url}}}

      _ ->
        {:error, error}
    end
  end

  defp hide_login(other), do: other

  defp fetch_required(options, option) do
    with :error <- Keyword.fetch(options, option),
         do: {:error, %OptionError{subject: "a model", option: option, problem: :missing}}
  end

  @doc false
  @spec endpoint(String.t()) :: URI.t()
  def endpoint(url) do
    url = URI.parse(url)
    path = String.trim_trailing(url.path || "", "/")

    cond do
      String.ends_with?(path, "/chat/completions") -> %{url | path: path}
      path == "" -> %{url | path: "/v1/chat/completions"}
      true -> %{url | path: path <> "/chat/completions"}
    end
  end

  defp schema do
    milliseconds = {"a number of milliseconds", &Options.milliseconds?/1}
    number = {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}

    [
      url: {~s(a URL such as "https://api.openai.com/v1"), &url?/1},
      model: {"text", &Options.text?/1},
      key: {"{:env, name}, a function without arguments, or nil", &key?/1},
      system_role: {":system or :user", &(&1 in [:system, :user])},
      structured:
        {":json_schema, :grammar or :prompt", &(&1 in [:json_schema, :grammar, :prompt])},
      connect_timeout: milliseconds,
      idle_timeout: milliseconds,
      timeout: milliseconds,
      retries: number,
      backoff: number,
      cacertfile: {"a path or nil", &(is_nil(&1) or Options.text?(&1))},
      proxy: {":env, nil, a URL or a function that returns one", &HTTP.proxy?/1},
      http: {HTTP.adapter_expected(), &HTTP.adapter?/1},
      sleep: {"a function of one argument", &is_function(&1, 1)}
    ]
  end

  defp url?(url) do
    Options.text?(url) and not String.match?(url, ~r/[\s\x00-\x1f]/) and
      match?(
        {:ok, %URI{scheme: scheme, host: host, port: port, userinfo: nil}}
        when scheme in ["http", "https"] and host not in [nil, ""] and port in 1..65_535,
        URI.new(url)
      )
  end

  defp key?({:env, name}), do: Options.text?(name)
  defp key?(key), do: is_nil(key) or is_function(key, 0)
end
