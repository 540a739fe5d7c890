defmodule Skillbook.Web.MCP do
  @moduledoc false
  # The Model Context Protocol over HTTP ("streamable HTTP"), at `/mcp`. A message is the body of
  # a POST. Its answer is JSON, or a stream of events where the server has something to send
  # before the answer: questions to the user, progress, changes.
  #
  # Requests of the revision without sessions repeat parts of their message in headers, for
  # proxies; both have to agree. In the older revisions a session has an id in a header, DELETE
  # ends it, and GET opens its stream of changes.

  alias Skillbook.MCP.{Call, Context, Error, Protocol, Server, Session, Sessions}
  alias Skillbook.Web.{Caller, Request, Response}

  @session "mcp-session-id"
  @version "mcp-protocol-version"
  # Methods whose answer may take time, or that may ask.
  @streamed ["tools/call", "subscriptions/listen"]

  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{path: [".well-known", "oauth-protected-resource" | rest]} = request, web) do
    if request.method == "GET" and rest in [[], ["mcp"]] and web.authorization_servers != [],
      do: metadata(request, web),
      else: Response.error(request, 404, "Not found.")
  end

  def handle(%Request{method: "POST"} = request, web), do: post(request, web)
  def handle(%Request{method: "GET"} = request, web), do: follow(request, web)
  def handle(%Request{method: "DELETE"} = request, web), do: delete(request, web)

  def handle(request, _web) do
    request
    |> Response.error(405, "Use POST, or GET and DELETE with a session.")
    |> Response.put_header("allow", "POST, GET, DELETE")
  end

  # RFC 9728: where a client gets a token for this server.
  defp metadata(request, web) do
    Response.json(200, %{
      "resource" => Request.url(request, web, ["mcp"]),
      "authorization_servers" => web.authorization_servers,
      "bearer_methods_supported" => ["header"],
      "resource_name" => "Skillbook"
    })
  end

  # Messages

  defp post(request, web) do
    with :ok <- content_type(request),
         :ok <- accepts(request),
         {:ok, message} <- Protocol.read(request.body) do
      message(message, request, web)
    else
      {:error, error, id} -> refused(error, id)
      {:error, error} -> refused(error, nil)
    end
  end

  defp content_type(request) do
    type = request |> Request.header("content-type") |> to_string() |> String.split(";") |> hd()

    if type |> String.trim() |> String.downcase() == "application/json" do
      :ok
    else
      {:error, %{Error.request("expected the content type application/json") | status: 415}}
    end
  end

  # Clients have to take both. One that takes JSON alone gets that, where it is possible.
  defp accepts(request) do
    if accepts?(request, "application/json") do
      :ok
    else
      text = "expected application/json and text/event-stream in the header accept"
      {:error, %{Error.request(text) | status: 406}}
    end
  end

  defp accepts?(request, type) do
    [group, _] = String.split(type, "/")

    case Request.header(request, "accept") do
      nil ->
        type == "application/json"

      accept ->
        accept
        |> String.downcase()
        |> String.split(",")
        |> Enum.map(&(&1 |> String.split(";") |> hd() |> String.trim()))
        |> Enum.any?(&(&1 in [type, group <> "/*", "*/*"]))
    end
  end

  defp message({:request, id, method, params} = message, request, web) do
    cond do
      Server.says_everything?(params) -> stateless(message, request, web)
      method == "initialize" -> initialize(id, params, request, web)
      Request.header(request, @session) != nil -> in_session(message, request, web)
      true -> without_session(id, params)
    end
  end

  # Notifications and answers belong to a session. In the newest revision there is none to send.
  defp message(message, request, web) do
    case session(request, web) do
      {:ok, session, _fields} ->
        told(message, session)
        %Response{status: 202}

      :none ->
        %Response{status: 202}

      {:error, error} ->
        refused(error, nil)
    end
  end

  defp told({:notification, "notifications/cancelled", params}, session),
    do: Session.cancel(session, params["requestId"])

  defp told({:response, id, answer}, session), do: Session.answer(session, id, answer)
  defp told(_notification, _session), do: :ok

  defp without_session(id, params) do
    {:error, error} = Server.fields(params)
    refused(error, id)
  end

  # The revision without sessions

  defp stateless({:request, id, method, params} = message, request, web) do
    with :ok <- check_version(params, request),
         {:ok, fields} <- Server.fields(params),
         :ok <- check_headers(method, params, request) do
      answer(message, context(fields, request, web), request)
    else
      {:error, error} -> refused(error, id)
    end
  end

  # A header and a message that name two versions say nothing about what the client wants.
  defp check_version(params, request) do
    version = params["_meta"][Protocol.meta("protocolVersion")]
    same("MCP-Protocol-Version", header(request, @version), version)
  end

  defp check_headers(method, params, request) do
    with :ok <- same("Mcp-Method", header(request, "mcp-method"), method) do
      case name(method, params) do
        {:ok, name} -> same("Mcp-Name", decoded(header(request, "mcp-name")), name)
        :none -> :ok
      end
    end
  end

  defp name(method, params) when method in ["tools/call", "prompts/get"], do: text(params["name"])
  defp name("resources/read", params), do: text(params["uri"])
  defp name(_method, _params), do: :none

  # A name that is no text is an error of the method.
  defp text(name) when is_binary(name), do: {:ok, name}
  defp text(_name), do: :none

  defp same(header, nil, _value), do: {:error, Error.header("the header #{header} is missing")}

  defp same(header, {:error, got}, _value) do
    {:error, Error.header("the header #{header} cannot be read: #{Error.quoted(got)}")}
  end

  defp same(header, got, value) do
    if got == value do
      :ok
    else
      {:error,
       Error.header(
         "expected the header #{header} to be as in the message, #{Error.quoted(value)}, got: " <>
           Error.quoted(got)
       )}
    end
  end

  # White space around a value is none of it.
  defp header(request, name) do
    with value when value != nil <- Request.header(request, name), do: String.trim(value, " ")
  end

  # A value that is no plain text is in Base64 between these marks.
  defp decoded("=?base64?" <> rest = header) do
    with true <- String.ends_with?(rest, "?="),
         {:ok, value} <- Base.decode64(binary_part(rest, 0, byte_size(rest) - 2)),
         true <- String.valid?(value) do
      value
    else
      _ -> {:error, header}
    end
  end

  defp decoded(nil), do: nil

  defp decoded(header) do
    if header =~ ~r/\A[\x20-\x7e\t]*\z/, do: header, else: {:error, header}
  end

  # Sessions

  defp initialize(id, params, request, web) do
    with {:ok, result, fields} <- Server.initialize(params),
         %Caller{profile: profile} = request.caller,
         {:ok, session, _pid} <- Sessions.begin(web.book, profile.id, fields) do
      Response.json(200, Protocol.result(id, result))
      |> Response.put_header(@session, session)
    else
      {:error, error} -> refused(error, id)
      :full -> refused(%{Error.limit("too many sessions on this server") | status: 503}, id)
    end
  end

  defp session(request, web) do
    case Request.header(request, @session) do
      nil ->
        :none

      id ->
        with {:ok, pid} <- Sessions.find(id, web.book, request.caller.profile.id),
             {:ok, fields} <- Session.fields(pid),
             :ok <- version(request, fields) do
          {:ok, pid, fields}
        else
          {:error, %Error{} = error} -> {:error, error}
          {:error, reason} -> {:error, Error.session(reason)}
        end
    end
  end

  defp version(request, fields) do
    case Request.header(request, @version) do
      # The header is of a later revision than the client may know.
      nil -> :ok
      version when version == fields.revision -> :ok
      version -> {:error, Error.version(version, [fields.revision])}
    end
  end

  defp in_session({:request, id, _method, _params} = message, request, web) do
    with {:ok, session, fields} <- session(request, web) do
      context = %{context(fields, request, web) | session: session}
      answer(message, context, request)
    else
      {:error, error} -> refused(error, id)
    end
  end

  defp delete(request, web) do
    case session(request, web) do
      {:ok, session, _fields} ->
        Session.stop(session)
        %Response{status: 204}

      {:error, error} ->
        refused(error, nil)

      :none ->
        Response.error(request, 400, "The header #{@session} is missing.")
    end
  end

  defp follow(request, web) do
    case accepts?(request, "text/event-stream") && session(request, web) do
      {:ok, session, fields} ->
        case Session.stream(session) do
          :ok ->
            context = %{context(fields, request, web) | session: session}
            events(fn write -> Call.follow(context, write) end)

          :full ->
            refused(Error.limit("too many streams of one session"), nil)

          {:error, reason} ->
            refused(Error.session(reason), nil)
        end

      {:error, error} ->
        refused(error, nil)

      _none ->
        request
        |> Response.error(405, "GET opens the stream of a session as text/event-stream.")
        |> Response.put_header("allow", "POST")
    end
  end

  # Answers

  defp context(fields, request, web) do
    %Caller{profile: profile} = request.caller
    view = Caller.view(request)
    context = %Context{view: view, profile: profile, revision: fields.revision, web: web}
    struct!(context, [options: web.mcp] ++ Map.to_list(fields))
  end

  defp answer({:request, id, method, _params} = message, context, request) do
    if method in @streamed and accepts?(request, "text/event-stream") do
      events(fn write -> run(message, context, write) end)
    else
      case within(context, id, fn -> reply(message, context) end) do
        {:error, error} -> refused(error, id)
        answer -> Response.json(status(answer, context), answer)
      end
    end
  end

  # A stream is the only answer of this method.
  defp reply({:request, id, "subscriptions/listen", _params}, _context) do
    Protocol.error(id, Error.request("expected text/event-stream in the header accept"))
  end

  defp reply(message, context) do
    {:reply, answer} = Server.handle(message, context)
    answer
  end

  defp run({:request, id, _method, _params} = message, context, write) do
    with {:error, error} <- within(context, id, fn -> Call.run(message, context, write) end),
         do: write.(Protocol.error(id, error))
  end

  # A request of a session can be cancelled by its id until it has its answer.
  defp within(%Context{session: nil}, _id, fun), do: fun.()

  defp within(%Context{session: session}, id, fun) do
    case Session.enter(session, id) do
      :ok ->
        try do
          fun.()
        after
          Session.leave(session, id)
        end

      :duplicate ->
        text = "expected an `id` of no other request that still runs"
        {:error, %{Error.request(text) | status: 200}}

      :full ->
        {:error, %{Error.limit("too many requests of one session at once") | status: 200}}

      {:error, reason} ->
        {:error, Error.session(reason)}
    end
  end

  # The older revisions answer a request with 200, whatever the answer says.
  defp status(%{"error" => %{"code" => code}}, context) do
    if Context.stateless?(context), do: Error.status(code), else: 200
  end

  defp status(_answer, _context), do: 200

  defp refused(%Error{} = error, id), do: Response.json(error.status, Protocol.error(id, error))

  # One message is one event. A write to a client that has gone ends the process of the request,
  # and with it the command.
  defp events(run) do
    stream = fn write ->
      gone = make_ref()

      send_message = fn message ->
        data = if message == :beat, do: ": \n\n", else: event(message)
        with {:error, :closed} <- write.(data), do: throw(gone)
      end

      try do
        run.(send_message)
      catch
        ^gone -> :ok
      end
    end

    %Response{
      headers: [{"content-type", "text/event-stream"}, {"x-accel-buffering", "no"}],
      body: {:stream, stream}
    }
  end

  # Line breaks are escaped in JSON.
  defp event(message), do: ["event: message\ndata: ", Protocol.encode(message), "\n\n"]
end
