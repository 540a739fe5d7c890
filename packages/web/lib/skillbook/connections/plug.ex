defmodule Skillbook.Connections.Plug do
  @moduledoc """
  Signs the users of an application in to their accounts, in an application with Plug.

      forward "/connections", Skillbook.Connections.Plug,
        book: MyApp.Skills,
        url: "https://example.com/connections",
        profile: &MyApp.profile_id/1,
        return_to: "/settings"

  | request | what happens |
  |---|---|
  | `GET /google` | the browser is sent to the sign-in of the account `google` |
  | `GET /google?for=email.send` | the same, for this command; repeatable as `for[]=` |
  | `GET /google/callback` | the vendor's answer is taken; the browser is sent to `:return_to` |

  The address of `:return_to` gets the parameter `connected=google`, or `connection_error=` with
  the kind of a `Skillbook.ConnectionError`. Register `:url`, the account and `/callback` with the
  vendor, such as `https://example.com/connections/google/callback`. Each account has its own, so
  that no answer of one vendor is sent to another (RFC 9700, 4.4).

  It needs the parameters of the query (`Plug.Conn.fetch_query_params/1` is called), and no body.
  To disconnect, call `Skillbook.Connections.disconnect/3` in a request that the application
  protects from forgery.

  Skillbook does not depend on Plug. Tried with Plug 1.16.1.

  ## Options

    * `:book` (name) - the book. Required
    * `:url` (URL) - the address of this plug as browsers see it. The header `host` is not used,
      since a client can set it. Required
    * `:profile` (function of the connection) - returns the id of the signed-in user's profile, or
      `nil` if nobody is signed in, which is answered by 403. Required
    * `:return_to` (path) - a path of the application. Defaults to `"/"`
  """

  # Not a dependency; an attribute hides the module from the compiler's checks.
  @conn Plug.Conn

  alias Skillbook.Connections
  alias Skillbook.Support.Options
  alias Skillbook.{ConnectionError, OptionError, Web}
  alias Skillbook.Web.Response

  @subject "Skillbook.Connections.Plug"
  @most_commands 100

  @doc "Checks the options; raises `Skillbook.OptionError` for a wrong or missing one."
  @spec init(keyword()) :: map()
  def init(options) do
    options = Options.keywords(options)

    with :ok <- Options.validate(options, @subject, schema()),
         :ok <- required(options, [:book, :url, :profile]) do
      options = Map.merge(%{return_to: "/"}, Map.new(options))
      %{options | url: String.trim_trailing(options.url, "/")}
    else
      {:error, error} -> raise error
    end
  end

  defp schema do
    [
      book: {"the name of a book", &(is_atom(&1) and &1 not in [nil, true, false])},
      url: {~s(a URL such as "https://example.com/connections"), &Connections.Account.url?/1},
      profile: {"a function of the connection", &is_function(&1, 1)},
      return_to: {~s(a path such as "/settings"), &path?/1}
    ]
  end

  # `//host` and `/\\host` lead browsers elsewhere.
  defp path?(path), do: Options.text?(path) and path =~ ~r{\A/(?![/\\])[^\s#\\]*\z}

  defp required(options, names) do
    Enum.find_value(names, :ok, fn name ->
      unless Keyword.has_key?(options, name),
        do: {:error, %OptionError{subject: @subject, option: name, problem: :missing}}
    end)
  end

  @doc "Handles a request."
  @spec call(struct(), map()) :: struct()
  def call(conn, options) do
    case {conn.method, conn.path_info, options.profile.(conn)} do
      {"GET", [_name | rest], nil} when rest in [[], ["callback"]] ->
        respond(conn, 403, "Sign in to the application first.")

      {"GET", [account, "callback"], profile} ->
        conn = apply(@conn, :fetch_query_params, [conn])
        complete(conn, account, profile, options)

      {"GET", [account], profile} ->
        conn = apply(@conn, :fetch_query_params, [conn])
        begin(conn, account, profile, options)

      _other ->
        respond(conn, 404, "Not found.")
    end
  end

  defp begin(conn, account, profile, options) do
    given =
      [profile: profile, redirect: callback(account, options)] ++ commands(conn.query_params)

    case Connections.authorize(options.book, account, given) do
      {:ok, %{url: url}} -> redirect(conn, url)
      {:error, error} -> failed(conn, error, options)
    end
  end

  defp commands(%{"for" => command}) when is_binary(command) and command != "",
    do: [for: [command]]

  defp commands(%{"for" => [_ | _] = commands}) do
    commands = Enum.take(commands, @most_commands)
    if Options.texts?(commands), do: [for: commands], else: []
  end

  defp commands(_parameters), do: []

  defp callback(account, options),
    do: options.url <> "/" <> URI.encode(account, &URI.char_unreserved?/1) <> "/callback"

  defp complete(conn, account, profile, options) do
    given = [profile: profile, redirect: callback(account, options)]

    case Connections.complete(options.book, conn.query_params, given) do
      {:ok, connection} -> back(conn, %{connected: connection.account}, options)
      {:error, error} -> failed(conn, error, options)
    end
  end

  # An address is kept by the browser and in logs, so it has the kind alone.
  defp failed(conn, error, options) do
    kind = with %ConnectionError{kind: kind} <- error, do: kind, else: (_ -> :error)
    back(conn, %{connection_error: kind}, options)
  end

  defp back(conn, parameters, options) do
    mark = if String.contains?(options.return_to, "?"), do: "&", else: "?"
    redirect(conn, options.return_to <> mark <> URI.encode_query(parameters))
  end

  defp redirect(conn, location),
    do: Web.Plug.respond(conn, with_headers(Response.redirect(302, location)))

  defp respond(conn, status, text),
    do: Web.Plug.respond(conn, with_headers(Response.text(status, text)))

  defp with_headers(response) do
    response
    |> Response.put_header("cache-control", "no-store")
    |> Response.put_header("referrer-policy", "no-referrer")
  end
end
