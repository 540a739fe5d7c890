defmodule Skillbook.HTTP.Service do
  @moduledoc false
  # Shared by the clients of servers of models: their options, the key, repeated requests. A
  # client is a struct with the fields of `fields/0`. `attempt/4` also repeats the requests of
  # connections.

  alias Skillbook.{HTTP, OptionError}
  alias Skillbook.Support.Options

  @type t :: %{
          :url => URI.t(),
          :model => String.t(),
          :key => {:env, String.t()} | (() -> String.t() | nil) | nil,
          :connect_timeout => pos_integer(),
          :idle_timeout => pos_integer(),
          :timeout => pos_integer(),
          :retries => non_neg_integer(),
          :backoff => non_neg_integer(),
          :cacertfile => Path.t() | nil,
          :proxy => :env | nil | String.t() | (() -> String.t() | nil),
          :http => module() | {module(), keyword()},
          :sleep => (non_neg_integer() -> any()),
          optional(atom()) => term()
        }

  @typedoc "How often and after how many milliseconds a request is repeated."
  @type pace :: %{
          :retries => non_neg_integer(),
          :backoff => non_neg_integer(),
          :sleep => (non_neg_integer() -> any()),
          optional(atom()) => term()
        }

  # Milliseconds.
  @max_backoff 30_000
  @max_retry_after 60_000

  @doc "The fields of a client's struct, with their defaults."
  @spec fields() :: [atom() | {atom(), term()}]
  def fields do
    [
      :url,
      :model,
      :key,
      :cacertfile,
      proxy: :env,
      http: HTTP.Native,
      connect_timeout: 10_000,
      idle_timeout: 120_000,
      timeout: 600_000,
      retries: 2,
      backoff: 500,
      sleep: &Process.sleep/1
    ]
  end

  # Options

  @doc """
  Checks the options of a client, which is called `subject` in errors. `schema` has its own
  options. Returns the URL of the server and the name of the model.
  """
  @spec validate(keyword() | term(), String.t(), keyword()) ::
          {:ok, String.t(), String.t()} | {:error, OptionError.t()}
  def validate(options, subject, schema) do
    with :ok <- options |> hide_key() |> Options.validate(subject, schema) |> hide_login(),
         {:ok, url} <- fetch_required(options, subject, :url),
         {:ok, name} <- fetch_required(options, subject, :model),
         do: {:ok, url, name}
  end

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

  defp fetch_required(options, subject, option) do
    with :error <- Keyword.fetch(options, option),
         do: {:error, %OptionError{subject: subject, option: option, problem: :missing}}
  end

  @doc """
  The URL of `path` on a server, whose URL may or may not have a path already; if it has none, it
  is below `version`.
  """
  @spec endpoint(String.t(), String.t(), String.t()) :: URI.t()
  def endpoint(url, path, version \\ "v1") do
    url = URI.parse(url)
    own = String.trim_trailing(url.path || "", "/")

    cond do
      String.ends_with?(own, "/" <> path) -> %{url | path: own}
      own == "" -> %{url | path: "/#{version}/#{path}"}
      true -> %{url | path: own <> "/" <> path}
    end
  end

  @doc "The options that all clients have, as a schema of `Skillbook.Support.Options`."
  @spec schema() :: keyword()
  def schema do
    milliseconds = {"a number of milliseconds", &Options.milliseconds?/1}
    number = {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}

    [
      url: {~s(a URL such as "https://api.openai.com/v1"), &url?/1},
      model: {"text", &Options.text?/1},
      key: {"{:env, name}, a function without arguments, or nil", &key?/1},
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

  # The key

  @doc "The key as a closure, which crash reports do not show; or why there is none."
  @spec key(t()) :: {:ok, (() -> String.t()) | nil} | {:error, String.t()}
  def key(%{key: nil}), do: {:ok, nil}

  def key(%{key: {:env, name}}) do
    case String.trim(System.get_env(name, "")) do
      "" -> {:error, "the environment variable #{name} is not set, or empty"}
      key -> check_key(fn -> key end, "the environment variable #{name}")
    end
  end

  def key(%{key: function}) when is_function(function, 0) do
    case function.() do
      nil ->
        {:error, "the function in the option :key returned nil"}

      key when is_binary(key) ->
        check_key(fn -> key end, "the result of the function in the option :key")

      _ ->
        {:error, "the function in the option :key did not return text"}
    end
  end

  defp check_key(key, origin) do
    if key.() =~ ~r/\A[\x21-\x7e]+\z/,
      do: {:ok, key},
      else: {:error, "#{origin} has invalid characters for a key, such as a space or line break"}
  end

  # Requests

  @doc """
  Calls `request` until it returns another result than `{:retry, error}`, or there is no attempt
  or time left. `deadline` is in milliseconds of monotonic time. Before each further attempt
  `on_retry` is called.
  """
  @spec attempt(t() | pace(), integer(), (map() -> any()), (() -> result)) :: result
        when result: {:ok, term()} | {:error, Exception.t()} | {:retry, Exception.t()}
  def attempt(service, deadline, on_retry, request),
    do: attempt(service, deadline, on_retry, request, 1)

  defp attempt(service, deadline, on_retry, request, number) do
    with {:retry, error} <- request.() do
      delay = error.retry_after || backoff(service.backoff, number)
      left = deadline - System.monotonic_time(:millisecond)

      if number <= service.retries and delay < min(left, @max_retry_after) do
        on_retry.(%{attempt: number + 1, delay: delay, error: error})
        service.sleep.(delay)
        attempt(service, deadline, on_retry, request, number + 1)
      else
        {:error, error}
      end
    end
  end

  defp backoff(first, number) do
    max = min(first * Integer.pow(2, number - 1), @max_backoff)
    div(max, 2) + :rand.uniform(div(max, 2) + 1) - 1
  end

  @doc """
  Posts a body of JSON and reads the response as `Skillbook.HTTP.stream/4` does. `headers` is a
  function, so that crash reports do not show the key. Compression would delay the words of a
  stream, so it is an option.
  """
  @spec post(t(), (() -> list()), iodata(), integer(), boolean(), acc, fun()) ::
          {:ok, acc} | {:halted, acc} | {:error, HTTP.Error.t(), acc}
        when acc: term()
  def post(service, headers, body, deadline, compressed, acc, part) do
    options = [
      adapter: service.http,
      connect_timeout: service.connect_timeout,
      idle_timeout: service.idle_timeout,
      timeout: max(deadline - System.monotonic_time(:millisecond), 1),
      cacertfile: service.cacertfile,
      proxy: service.proxy,
      compressed: compressed
    ]

    headers = fn -> [{"content-type", "application/json"} | headers.()] end
    request = [method: :post, url: service.url, headers: headers, body: body]
    HTTP.stream(request, options, acc, part)
  end

  @doc "The header with a key, as most servers take it."
  @spec bearer((() -> String.t()) | nil) :: [{String.t(), String.t()}]
  def bearer(nil), do: []
  def bearer(key), do: [{"authorization", "Bearer " <> key.()}]
end
