defmodule Skillbook.HTTP.Request do
  @moduledoc """
  An HTTP request.

    * `:method` - `:get` (the default), `:head`, `:post`, `:put`, `:patch`, `:delete`,
      `:options`, or `:propfind` and `:report` of WebDAV
    * `:url` - a text or a `URI`, with the scheme `http` or `https` and without a user name.
      Adapters get a `URI`
    * `:headers` - a list of names and values, or a function that returns it. Adapters get a
      function
    * `:body` - iodata, or `nil`

  Inspecting it shows neither headers, body nor the query of the URL.

  ## Examples

      iex> url = "https://example.com/v1?key=secret"
      iex> fields = [url: url, headers: [{"authorization", "secret"}]]
      iex> {:ok, request} = Skillbook.HTTP.Request.new(fields, true)
      iex> inspect(request)
      "#Skillbook.HTTP.Request<GET https://example.com/v1>"
  """

  alias Skillbook.HTTP.Error
  alias Skillbook.Support.Options

  @methods [:get, :head, :post, :put, :patch, :delete, :options, :propfind, :report]

  @type t :: %__MODULE__{
          method: :get | :head | :post | :put | :patch | :delete | :options | :propfind | :report,
          url: URI.t(),
          headers: (() -> [{String.t(), String.t()}]),
          body: iodata() | nil
        }

  @enforce_keys [:url]
  defstruct [:url, method: :get, headers: [], body: nil]

  @agent "skillbook/#{Mix.Project.config()[:version]}"

  @doc false
  # Validates a request and adds `user-agent` and `accept-encoding` if they are missing.
  @spec new(Skillbook.HTTP.request(), compressed :: boolean()) :: {:ok, t()} | {:error, Error.t()}
  def new(url, compressed) when is_binary(url), do: new([url: url], compressed)
  def new(%URI{} = url, compressed), do: new([url: url], compressed)

  def new(fields, compressed) when is_list(fields) do
    case Keyword.keyword?(fields) && Keyword.keys(fields) -- [:method, :url, :headers, :body] do
      [] ->
        new(struct(__MODULE__, fields), compressed)

      [unknown | _] ->
        error(
          "a request has the fields :method, :url, :headers and :body, got: #{inspect(unknown)}"
        )

      false ->
        error("expected a URL or a keyword list as a request")
    end
  end

  def new(%__MODULE__{} = request, compressed) do
    with {:ok, url} <- url(request.url),
         :ok <- method(request.method),
         {:ok, list} <- headers(request.headers) do
      encoding = if compressed, do: "gzip", else: "identity"
      list = defaults(list, [{"user-agent", @agent}, {"accept-encoding", encoding}])
      {:ok, %{request | url: url, headers: fn -> list end}}
    end
  end

  defp url(text) when is_binary(text) do
    with true <- Options.text?(text) and not String.match?(text, ~r/[\s\x00-\x1f\x7f]/),
         {:ok, url} <- URI.new(text) do
      url(url)
    else
      _ -> wrong_url()
    end
  end

  defp url(%URI{scheme: scheme, host: host, port: port, userinfo: nil} = url)
       when scheme in ["http", "https"] and host not in [nil, ""] and port in 1..65_535,
       do: {:ok, %{url | path: url.path || "/", fragment: nil}}

  defp url(_other), do: wrong_url()

  defp wrong_url,
    do:
      error(
        ~s(expected a URL such as "https://example.com/path", without a user name before its host)
      )

  defp method(method) when method in @methods, do: :ok

  defp method(_method),
    do: error("expected one of the methods #{Enum.map_join(@methods, ", ", &inspect/1)}")

  defp headers(function) when is_function(function, 0), do: headers(function.())

  # Each of them may be a secret, so none is shown.
  defp headers(list) when is_list(list) do
    if Enum.all?(list, &header?/1),
      do: {:ok, list},
      else:
        error(
          "a header is no pair of texts, or has characters that no header has, such as a " <>
            "line break"
        )
  end

  defp headers(_other),
    do:
      error("expected the headers to be a list of names and values, or a function that gives it")

  defp header?({name, value}) when is_binary(name) and is_binary(value),
    do:
      name =~ ~r/\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/ and not (value =~ ~r/[\x00-\x08\x0a-\x1f\x7f]/)

  defp header?(_other), do: false

  defp defaults(list, defaults) do
    names = for {name, _} <- list, do: String.downcase(name)
    Enum.reject(defaults, fn {name, _} -> name in names end) ++ list
  end

  defp error(reason), do: {:error, %Error{kind: :request, reason: reason}}

  @doc "The server's host and port."
  @spec place(t()) :: String.t()
  def place(%{url: %{host: host, port: port}}),
    do: if(String.contains?(host, ":"), do: "[#{host}]:#{port}", else: "#{host}:#{port}")

  # Credentials are for one server.
  @bound_to_host ["authorization", "cookie", "proxy-authorization"]

  @doc false
  @spec redirect(t(), pos_integer(), String.t()) :: {:ok, t()} | {:error, String.t()}
  def redirect(%{url: from} = request, status, location) do
    case location |> relative(from) |> url() do
      {:ok, %{scheme: "http"}} when from.scheme == "https" ->
        {:error, "it redirects to an address without https"}

      {:ok, to} ->
        keeps = {from.scheme, from.host, from.port} == {to.scheme, to.host, to.port}

        {:ok,
         %{request | url: to} |> as_get(status) |> drop(if(keeps, do: [], else: @bound_to_host))}

      {:error, _} ->
        {:error, "it redirects to an address that cannot be used"}
    end
  end

  defp relative(location, from) do
    case URI.new(location) do
      {:ok, to} -> URI.merge(from, to)
      {:error, _} -> nil
    end
  rescue
    ArgumentError -> nil
  end

  defp as_get(%{method: method} = request, status)
       when (status == 303 and method != :head) or (status in [301, 302] and method == :post),
       do:
         drop(%{request | method: :get, body: nil}, [
           "content-type",
           "content-encoding",
           "content-language"
         ])

  defp as_get(request, _status), do: request

  defp drop(request, names) do
    list =
      for {name, value} <- request.headers.(),
          String.downcase(name) not in names,
          do: {name, value}

    %{request | headers: fn -> list end}
  end

  defimpl Inspect do
    def inspect(%{url: %URI{} = url, method: method}, _options) do
      url = %{url | userinfo: nil, query: nil, fragment: nil}
      "#Skillbook.HTTP.Request<#{method |> to_string() |> String.upcase()} #{url}>"
    end

    def inspect(_request, _options), do: "#Skillbook.HTTP.Request<>"
  end
end
