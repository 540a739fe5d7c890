defmodule Skillbook.HTTP.Service do
  @moduledoc false
  # A client of a model's server, such as `Skillbook.Embedder.OpenAI`: its options and its struct,
  # the key, and its requests. `attempt/4` also repeats the requests of connections.
  #
  #     use Skillbook.HTTP.Service,
  #       subject: "an embedder",
  #       path: "embeddings",
  #       options: [
  #         encoding: [:float, :base64],
  #         max_text: {pos_integer(), 8192, {"a whole number from 1", &Options.positive?/1}}
  #       ]
  #
  # makes the struct of a client with its type, `new/1`, `new!/1`, and the callbacks below, which
  # the module may define anew:
  #
  #   * `:subject` - what errors call it
  #   * `:path` - the path of requests on a server
  #   * `:options` - its own options: `{type, default, {expected, check}}`; a list of atoms, of
  #     which the first is the default; or a boolean, which is the default
  #   * `:timeout` - the default of that option. Default: 600,000
  #   * `:nested` - the own options whose value is a list of options

  alias Skillbook.{HTTP, OptionError}
  alias Skillbook.HTTP.Failure
  alias Skillbook.Support.Options

  @type t :: struct()

  @typedoc "How often and after how many milliseconds a request is repeated."
  @type pace :: %{
          :retries => non_neg_integer(),
          :backoff => non_neg_integer(),
          :sleep => (non_neg_integer() -> any()),
          optional(atom()) => term()
        }

  @typedoc "The key in a closure, which crash reports do not show."
  @type key :: (() -> String.t()) | nil

  @doc "Defaults that depend on the server, whose URL is not checked yet."
  @callback defaults(url :: term()) :: keyword()

  @doc "The URL of requests to a server."
  @callback endpoint(url :: String.t(), t()) :: URI.t()

  @doc "The headers of a request, which may sign its body."
  @callback headers(t(), key(), body :: iodata()) :: [{String.t(), String.t()}]

  # Milliseconds.
  @max_backoff 30_000
  @max_retry_after 60_000

  # The declaration

  # The types and defaults of the options that all clients have, in the order of the
  # documentation, where own options follow the key.
  @first (quote do
            [
              url: {URI.t(), nil},
              model: {String.t(), nil},
              key: {{:env, String.t()} | (() -> String.t() | nil) | nil, nil}
            ]
          end)
  @rest (quote do
           [
             connect_timeout: {pos_integer(), 10_000},
             idle_timeout: {pos_integer(), 120_000},
             timeout: {pos_integer(), 600_000},
             retries: {non_neg_integer(), 2},
             backoff: {non_neg_integer(), 500},
             cacertfile: {Path.t() | nil, nil},
             proxy: {:env | nil | String.t() | (() -> String.t() | nil), :env},
             http: {module() | {module(), keyword()}, unquote(HTTP.Native)},
             sleep: {(non_neg_integer() -> any()), &Process.sleep/1}
           ]
         end)

  @doc false
  defmacro __using__(frame) do
    subject = Keyword.fetch!(frame, :subject)

    rest =
      if time = frame[:timeout],
        do: put_in(@rest[:timeout], {quote(do: pos_integer()), time}),
        else: @rest

    options = Enum.map(@first ++ frame[:options] ++ rest, &declared/1)
    types = for {name, type, _default, _check} <- options, do: {name, type}
    fields = for {name, _type, default, _check} <- options, do: {name, default}
    checks = for {name, _type, _default, check} <- options, do: {name, check}

    quote do
      @behaviour unquote(__MODULE__)

      @type t :: %__MODULE__{unquote_splicing(types)}

      @derive {Inspect, except: [:key, :proxy]}
      @enforce_keys [:url, :model]
      defstruct unquote(fields)

      @doc unquote("Builds #{subject} from the options above.")
      @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t()}
      def new(options) do
        unquote(__MODULE__).new(
          __MODULE__,
          unquote(subject),
          unquote(checks),
          Options.keywords(options, unquote(frame[:nested] || []))
        )
      end

      @doc "Like `new/1`, but raises the error."
      @spec new!(keyword()) :: t()
      def new!(options), do: unquote(__MODULE__).new!(new(options))

      @impl unquote(__MODULE__)
      def defaults(_url), do: []

      @impl unquote(__MODULE__)
      def endpoint(url, _service),
        do: unquote(__MODULE__).endpoint(url, unquote(frame[:path]), "v1")

      @impl unquote(__MODULE__)
      def headers(_service, key, _body), do: unquote(__MODULE__).bearer(key)

      defoverridable defaults: 1, endpoint: 2, headers: 3
    end
  end

  defp declared({name, {type, default}}),
    do: {name, type, default, quote(do: unquote(__MODULE__).check(unquote(name)))}

  defp declared({name, {:{}, _, [type, default, check]}}), do: {name, type, default, check}

  defp declared({name, [default | _] = atoms}) do
    type = atoms |> Enum.reverse() |> Enum.reduce(&{:|, [], [&1, &2]})
    {name, type, default, quote(do: Options.one_of(unquote(atoms)))}
  end

  defp declared({name, default}) when is_boolean(default),
    do: {name, quote(do: boolean()), default, quote(do: {"true or false", &is_boolean/1})}

  @doc "The check of an option that all clients have, for `Skillbook.Support.Options`."
  @spec check(atom()) :: {String.t(), (term() -> boolean())}
  def check(:url), do: {~s(a URL such as "https://api.openai.com/v1"), &url?/1}
  def check(:model), do: {"text", &Options.text?/1}
  def check(:key), do: {"{:env, name}, a function without arguments, or nil", &key?/1}

  def check(time) when time in [:connect_timeout, :idle_timeout, :timeout],
    do: {"a number of milliseconds", &Options.milliseconds?/1}

  def check(number) when number in [:retries, :backoff],
    do: {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}

  def check(:cacertfile), do: {"a path or nil", &(is_nil(&1) or Options.text?(&1))}
  def check(:proxy), do: {":env, nil, a URL or a function that returns one", &HTTP.proxy?/1}
  def check(:http), do: {HTTP.adapter_expected(), &HTTP.adapter?/1}
  def check(:sleep), do: {"a function of one argument", &is_function(&1, 1)}

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

  # Options

  @doc "Checks options and makes the struct of a client."
  @spec new(module(), String.t(), keyword(), keyword() | term()) ::
          {:ok, t()} | {:error, OptionError.t()}
  def new(module, subject, schema, options) do
    options =
      if Keyword.keyword?(options),
        do: Keyword.merge(module.defaults(options[:url]), options),
        else: options

    with :ok <- options |> hide_key() |> Options.validate(subject, schema) |> hide_login(),
         {:ok, url} <- fetch_required(options, subject, :url),
         {:ok, _name} <- fetch_required(options, subject, :model) do
      service = struct!(module, options)
      {:ok, %{service | url: module.endpoint(url, service)}}
    end
  end

  @doc "The client of such a result, or raises its error."
  @spec new!({:ok, t()} | {:error, OptionError.t()}) :: t()
  def new!({:ok, service}), do: service
  def new!({:error, error}), do: raise(error)

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
  Posts a body of JSON and reads the response with `part`, as `Skillbook.HTTP.stream/4` does, from
  the value of `start`. `result` makes a result of that, as `attempt/4` takes it; no error has the
  key.

  ## Options

    * `:deadline` - in milliseconds of monotonic time
    * `:accept` - the header
    * `:compressed` - whether to ask for gzip, which would delay the words of a stream
    * `:on_retry` - as for `attempt/4`
  """
  @spec request(t(), key(), iodata(), keyword(), {(() -> acc), function(), function()}) ::
          {:ok, term()} | {:error, Exception.t()}
        when acc: term()
  def request(%module{} = service, key, body, options, {start, part, result}) do
    deadline = options[:deadline]

    # A function, so that crash reports do not show the key.
    headers = fn ->
      [{"content-type", "application/json"}, {"accept", options[:accept]}] ++
        module.headers(service, key, body)
    end

    request = [method: :post, url: service.url, headers: headers, body: body]

    attempt(service, deadline, options[:on_retry] || fn _ -> :ok end, fn ->
      http = [
        adapter: service.http,
        connect_timeout: service.connect_timeout,
        idle_timeout: service.idle_timeout,
        timeout: max(deadline - System.monotonic_time(:millisecond), 1),
        cacertfile: service.cacertfile,
        proxy: service.proxy,
        compressed: options[:compressed]
      ]

      request |> HTTP.stream(http, start.(), part) |> result.() |> Failure.hide_key(key)
    end)
  end

  @doc "The deadline of a call with a time limit of its own, in milliseconds of monotonic time."
  @spec deadline(t(), pos_integer() | nil) :: integer()
  def deadline(%{timeout: timeout}, own),
    do: System.monotonic_time(:millisecond) + min(own || timeout, timeout)

  @doc "The header with a key, as most servers take it."
  @spec bearer(key()) :: [{String.t(), String.t()}]
  def bearer(nil), do: []
  def bearer(key), do: [{"authorization", "Bearer " <> key.()}]
end
