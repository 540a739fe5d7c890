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
      too. If the server refuses the request with the status 400 or 422, or fails because of
      `response_format`, it is repeated without the schema; the server of llama-cpp-python needs
      `:grammar`. Default: `:json_schema`
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

  alias Skillbook.HTTP.{Failure, Service}
  alias Skillbook.Model.{ObjectGrammar, OpenAI.Answer, Schema}
  alias Skillbook.Support.JSON
  alias Skillbook.{ModelError, OptionError}

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
  defstruct Service.fields() ++ [system_role: :system, structured: :json_schema]

  @doc "Builds a model from the options above."
  @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    with {:ok, url} <- Service.validate(options, "a model", schema(), "chat/completions"),
         do: {:ok, struct!(__MODULE__, Keyword.put(options, :url, url))}
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
    case Service.key(model) do
      {:ok, key} -> request(model, key, messages, options, on_text)
      {:error, reason} -> {:error, %ModelError{kind: :key, reason: reason}}
    end
  end

  defp request(model, key, messages, options, on_text) do
    timeout = min(options[:timeout] || model.timeout, model.timeout)
    deadline = System.monotonic_time(:millisecond) + timeout
    body = body(model, messages, options)
    # Compression would delay the words of a stream.
    answer = [accept: "text/event-stream", compressed: false]

    Service.attempt(model, deadline, options[:on_retry] || fn _ -> :ok end, fn ->
      model
      |> Service.post(key, body, deadline, answer, Answer.new(on_text), &Answer.part/2)
      |> Answer.result(model.url)
      |> Failure.hide_key(key)
    end)
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

  @doc false
  @spec endpoint(String.t()) :: URI.t()
  def endpoint(url), do: Service.endpoint(url, "chat/completions")

  defp schema do
    own = [
      system_role: {":system or :user", &(&1 in [:system, :user])},
      structured:
        {":json_schema, :grammar or :prompt", &(&1 in [:json_schema, :grammar, :prompt])}
    ]

    # In the order of the documentation.
    {first, rest} = Enum.split(Service.schema(), 3)
    first ++ own ++ rest
  end
end
