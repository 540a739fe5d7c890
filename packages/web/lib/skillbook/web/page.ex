defmodule Skillbook.Web.Page do
  @moduledoc false
  # The pages that people look at: one table of routes, to functions of the modules in `page/`.
  #
  # A page function gets the request, and the values of its path with the options of the server as
  # `:web`; it returns a response, or the error of a database, which is answered with 503. It
  # reads only through `Caller.view/1`, so a page shows what its caller's profile sees. With
  # `as=ID` an operator reads as another profile, and changes nothing.
  #
  # A new page needs a row here; a tab in `@pages` of `Skillbook.Web.Page.Report`, or an item in
  # `Skillbook.Web.Page.Layout` if it begins a room; rows in the library's
  # `test/support/web_routes.ex`; and a sentence in `docs/page.md`. `Report.reply/7` answers,
  # `Report.for_operators/2` hides it from others, and tests use `Skillbook.PageCase`. The path
  # `/events` is that of the stream of changes.

  alias Skillbook.Web.{Caller, Request, Response}

  alias Skillbook.Web.Page.{
    Actions,
    Agents,
    Approvals,
    Assets,
    Chat,
    Connections,
    Conversations,
    Diagnostics,
    Edit,
    Entry,
    Events,
    Explain,
    Files,
    Home,
    Import,
    Layout,
    Prompt,
    Routing,
    Runs,
    Servers,
    SignIn,
    Skills,
    Status,
    Tools,
    Try,
    Usage,
    Versions
  }

  @type values :: %{
          :web => Skillbook.Web.t(),
          optional(atom()) => String.t() | [String.t()]
        }

  @routes [
    {"GET", [], Home, :show},
    {"GET", ["skills"], Skills, :index},
    {"GET", ["prompt"], Prompt, :show},
    {"GET", ["chat"], Chat, :index},
    {"POST", ["chat"], Chat, :create},
    {"GET", ["chat", :id], Chat, :show},
    {"POST", ["chat", :id], Chat, :update},
    {"GET", ["tools"], Tools, :show},
    {"GET", ["explain"], Explain, :show},
    {"GET", ["route"], Routing, :show},
    {"GET", ["try"], Try, :index},
    {"GET", ["try", :name], Try, :form},
    {"POST", ["try", :name], Try, :run},
    {"GET", ["usage"], Usage, :show},
    {"GET", ["runs"], Runs, :index},
    {"POST", ["runs"], Runs, :operate},
    {"GET", ["runs", :id], Runs, :show},
    {"GET", ["approvals"], Approvals, :index},
    {"GET", ["approvals", :ref], Approvals, :show},
    {"POST", ["approvals", :ref], Approvals, :decide},
    {"GET", ["agents"], Agents, :index},
    {"GET", ["agents", :ref], Agents, :show},
    {"POST", ["agents", :ref], Agents, :operate},
    {"GET", ["conversations"], Conversations, :index},
    {"GET", ["conversations", :run], Conversations, :show},
    {"GET", ["diagnostics"], Diagnostics, :index},
    {"GET", ["diagnostics", "fix"], Diagnostics, :preview},
    {"POST", ["diagnostics", "fix"], Diagnostics, :fix},
    {"GET", ["status"], Status, :show},
    {"POST", ["status"], Status, :reset},
    {"GET", ["servers"], Servers, :index},
    {"GET", ["servers", "offer"], Servers, :show},
    {"POST", ["servers", "offer"], Servers, :decide},
    {"GET", ["connections"], Connections, :index},
    {"POST", ["connections", :account], Connections, :disconnect},
    {"POST", ["connections", :account, "connect"], SignIn, :begin},
    {"GET", ["connections", :account, "callback"], SignIn, :callback},
    {"GET", ["connections", :account, "finish"], SignIn, :finish},
    {"GET", ["skills", :name], Entry, :show},
    {"GET", ["skills", :name, "files", {:rest, :path}], Entry, :file},
    {"GET", ["skills", :name, "edit"], Edit, :edit},
    {"POST", ["skills", :name, "edit"], Edit, :update},
    {"GET", ["skills", :name, "change"], Edit, :part},
    {"POST", ["skills", :name, "change"], Edit, :update_part},
    {"GET", ["skills", :name, "versions"], Versions, :index},
    {"GET", ["skills", :name, "versions", :number], Versions, :show},
    {"POST", ["skills", :name, "restore"], Versions, :restore},
    {"POST", ["skills", :name, "enable"], Actions, :enable},
    {"POST", ["skills", :name, "disable"], Actions, :disable},
    {"GET", ["skills", :name, "delete"], Actions, :confirm},
    {"POST", ["skills", :name, "delete"], Actions, :delete},
    {"GET", ["skills", :name, "export"], Actions, :export},
    {"GET", ["skills", :name, "source"], Files, :edit},
    {"POST", ["skills", :name, "source"], Files, :update},
    {"GET", ["skills", :name, "history"], Files, :history},
    {"POST", ["skills", :name, "fire"], Runs, :fire},
    {"GET", ["new", "file"], Files, :new},
    {"POST", ["new", "file"], Files, :create},
    {"GET", ["new"], Edit, :new},
    {"POST", ["new"], Edit, :create},
    {"GET", ["import"], Import, :new},
    {"POST", ["import"], Import, :create},
    {"GET", ["assets", :file], Assets, :show},
    {"GET", ["events"], Events, :stream}
  ]

  @doc "The response to a request of a caller, or 404 without a route."
  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{caller: nil} = request, web), do: route(request, web)

  def handle(%Request{} = request, web) do
    with {:ok, request} <- see_as(request) do
      route(request, web)
    end
  end

  @doc "All routes: method, path, module and function."
  def routes, do: @routes

  defp route(request, web) do
    found =
      for {allowed, pattern, module, function} <- @routes,
          values = values(pattern, request.path),
          do: {allowed, module, function, values}

    case List.keyfind(found, request.method, 0) do
      {_method, module, function, values} ->
        with {:error, error} <- apply(module, function, [request, Map.put(values, :web, web)]),
             do: Layout.failed(request, 503, Exception.message(error))

      nil when found == [] ->
        Layout.not_found(request)

      nil ->
        methods = Enum.map_join(found, ", ", &elem(&1, 0))

        request
        |> Layout.failed(405, "This address takes #{methods}, not #{request.method}.")
        |> Response.put_header("allow", methods)
    end
  end

  # The values of a pattern's variables, or nil.
  defp values(pattern, path), do: values(pattern, path, %{})

  defp values([], [], values), do: values
  defp values([{:rest, name}], [_ | _] = path, values), do: Map.put(values, name, path)

  defp values([name | pattern], [part | path], values) when is_atom(name),
    do: values(pattern, path, Map.put(values, name, part))

  defp values([part | pattern], [part | path], values), do: values(pattern, path, values)
  defp values(_pattern, _path, _values), do: nil

  # A caller that may not, and a profile that does not exist, are the same.
  defp see_as(request) do
    case Layout.as(request) do
      nil ->
        {:ok, request}

      id ->
        with {:reading, true} <- {:reading, request.method == "GET"},
             {:ok, caller} <- Caller.seen_as(request.caller, id) do
          {:ok, %{request | caller: caller}}
        else
          {:reading, false} ->
            Layout.failed(
              request,
              403,
              "You see the book as another profile, which only reads. Leave that view first."
            )

          :error ->
            Layout.not_found(%{request | query: ""})
        end
    end
  end
end
