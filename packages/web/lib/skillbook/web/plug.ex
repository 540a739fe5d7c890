defmodule Skillbook.Web.Plug do
  @moduledoc """
  Serves a book in an application with Plug, such as one of Phoenix.

      # In the router, outside of pipelines with `protect_from_forgery`
      scope "/" do
        pipe_through [:fetch_session, :fetch_current_user]

        forward "/skills", Skillbook.Web.Plug,
          book: MyApp.Skills,
          url: "https://example.com",
          authenticate: {MyApp, :skills_profile}
      end

      # In the application
      def skills_profile(conn) do
        case conn.assigns[:current_user] do
          nil -> {:redirect, "/login"}
          user -> {:ok, "user-\#{user.id}", operator: user.admin}
        end
      end

  Options are those of `Skillbook.Web`, with these differences:

    * `:authenticate` - a function gets the connection in place of the request. `:none` is refused
    * `:url` - also a function without arguments that returns it, such as
      `&MyAppWeb.Endpoint.url/0`. Required, or `:hosts` is: requests for other hosts are refused
    * `:max_body` (bytes) - defaults to 32 MiB
    * `:trusted_proxies` is refused: the client is the `remote_ip` of the connection, with its
      `scheme`, `host` and `port`. Behind a proxy, let the application set them, by
      `Plug.RewriteOn` and a plug for `remote_ip`, before this one

  Forms of the page have no token of Phoenix, so `protect_from_forgery` would refuse them.
  Requests of other websites are refused by the headers `origin` and `sec-fetch-site`, and changes
  with a cookie need one of them.

  The body may have been read by `Plug.Parsers`. Its limits count then.

  A stream of events keeps the process of its connection. A client that has gone is noticed at the
  next event, or after 15 seconds.

  Clients look for `/.well-known/agent-skills` and `/.well-known/oauth-protected-resource` at the
  root of the host. To serve them there, mount the plug at the root, for example under a host of
  its own.

  Skillbook does not depend on Plug. Tried with Plug 1.19.2, Bandit 1.11.1 and Phoenix 1.7.24.
  """

  # Not a dependency; an attribute hides the module from the compiler's checks.
  @conn Plug.Conn

  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.Web
  alias Skillbook.Web.{Request, Response, Upload}
  alias Skillbook.OptionError

  @subject "Skillbook.Web.Plug"
  @max_body 32 * 1024 * 1024

  @doc "Checks the options; raises `Skillbook.OptionError` for a wrong or missing one."
  @spec init(keyword()) :: map()
  def init(options) do
    {own, options} = options |> Options.keywords() |> Keyword.split([:max_body, :trusted_proxies])
    url = if is_function(options[:url], 0), do: options[:url]
    # Only to be checked; the function is called for each request.
    options = if url, do: Keyword.put(options, :url, "http://localhost"), else: options

    with :ok <- Options.validate(own, @subject, schema()),
         {:ok, web} <- Web.new(options),
         {:ok, web} <- Web.listen(web, :plug) do
      %{web: web, url: url, max_body: own[:max_body] || @max_body}
    else
      {:error, error} -> raise error
    end
  end

  # Two ways to find the client could find two.
  defp schema do
    none =
      "nothing, since the application sets the remote_ip, host and scheme of its connections,"

    [max_body: {"a number of bytes", &Options.positive?/1}, trusted_proxies: {none, &(&1 == [])}]
  end

  @doc "Handles a request."
  @spec call(struct(), map()) :: struct()
  def call(conn, %{web: web} = options) do
    web = if options.url, do: %{web | url: url!(options.url)}, else: web

    case read(conn, options.max_body) do
      {:ok, request, conn} -> respond(conn, Web.call(request, of_conn(web, conn)))
      {:error, response, conn} -> respond(conn, response)
    end
  end

  defp url!(function) do
    url = function.()

    if Web.Access.url?(url),
      do: url,
      else:
        raise(%OptionError{
          subject: @subject,
          option: :url,
          problem: {:invalid, "a function that returns a URL", url}
        })
  end

  # The function of the application gets the connection.
  defp of_conn(%{authenticate: way} = web, _conn) when is_atom(way), do: web

  defp of_conn(%{authenticate: {module, function}} = web, conn),
    do: %{web | authenticate: fn _request -> apply(module, function, [conn]) end}

  defp of_conn(%{authenticate: function} = web, conn),
    do: %{web | authenticate: fn _request -> function.(conn) end}

  # The request

  defp read(conn, max_body) do
    with {:ok, body, conn} <- apply(@conn, :read_body, [conn, [length: max_body]]) do
      request = %Request{
        method: conn.method,
        scheme: conn.scheme,
        host: authority(conn),
        path: Enum.map(conn.path_info, &URI.decode/1),
        base: Enum.map_join(conn.script_name, "", &("/" <> base_segment(&1))),
        query: conn.query_string,
        headers: conn.req_headers,
        body: body,
        peer: peer(conn.remote_ip)
      }

      {:ok, parsed(request, conn.body_params), conn}
    else
      {:more, _part, conn} -> {:error, Response.text(413, "The body is too large.\n"), conn}
      {:error, _reason} -> {:error, Response.text(400, "The body cannot be read.\n"), conn}
    end
  end

  # As it was sent, which may be a client's in an application that mounts the plug below a
  # variable segment. Browsers take `/\host` for another host, and a browser or proxy may read
  # `;`.
  defp base_segment(segment),
    do: URI.encode(segment, &(&1 == ?% or URI.char_unreserved?(&1)))

  # As the application has it, which knows its proxies.
  defp authority(%{host: host, port: port, scheme: scheme}) do
    host = if String.contains?(host, ":") and host =~ ~r/\A[^\[]/, do: "[#{host}]", else: host
    if {scheme, port} in [http: 80, https: 443], do: host, else: "#{host}:#{port}"
  end

  defp peer(address) when tuple_size(address) in [4, 8], do: address
  defp peer(_local), do: :unix

  # `Plug.Parsers` has read the body.
  defp parsed(%{body: ""} = request, %{} = params)
       when params != %{} and not is_struct(params) do
    if (Request.header(request, "content-type") || "") =~ "json",
      do: %{request | body: params |> Map.get("_json", params) |> JSON.encode()},
      else: %{request | fields: params |> Enum.flat_map(&field/1) |> Map.new()}
  end

  defp parsed(request, _params), do: request

  defp field({name, %{} = nested}) when not is_struct(nested) do
    for {key, value} <- nested, field <- field({"#{name}[#{key}]", value}), do: field
  end

  defp field({name, list}) when is_list(list), do: [{name, Enum.map(list, &value/1)}]
  defp field({name, value}), do: [{name, value(value)}]

  defp value(text) when is_binary(text), do: text

  # A `Plug.Upload`: a temporary file.
  defp value(%{path: path, filename: name, content_type: type}),
    do: %Upload{name: name, type: type || "application/octet-stream", data: File.read!(path)}

  defp value(_other), do: ""

  # The response

  @doc false
  # Sends a response; also for `Skillbook.Connections.Plug`.
  @spec respond(struct(), Response.t()) :: struct()
  def respond(conn, %Response{} = response) do
    conn =
      Enum.reduce(response.headers, conn, fn {name, value}, conn ->
        apply(@conn, :put_resp_header, [conn, name, value])
      end)

    case response.body do
      {:stream, fun} -> stream(apply(@conn, :send_chunked, [conn, response.status]), fun)
      body -> apply(@conn, :send_resp, [conn, response.status, body])
    end
  end

  # The connection changes with each part.
  defp stream(conn, fun) do
    key = {__MODULE__, make_ref()}
    Process.put(key, conn)

    fun.(fn data ->
      case apply(@conn, :chunk, [Process.get(key), data]) do
        {:ok, conn} ->
          Process.put(key, conn)
          :ok

        {:error, _reason} ->
          {:error, :closed}
      end
    end)

    Process.get(key)
  after
    # The process of a connection serves further requests, also after an exception.
    for {{__MODULE__, _reference} = key, _conn} <- Process.get(), do: Process.delete(key)
  end
end
