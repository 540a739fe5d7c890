defmodule Skillbook.MCP.Part do
  @moduledoc false
  # MCP servers as sources of a book, and the sessions of its own server.

  use Skillbook.Part

  alias Skillbook.MCP.Client.{Auth, Call, Reader, Settings, State, Tools}
  alias Skillbook.MCP.{Client, Sessions}
  alias Skillbook.Source

  @impl true
  defdelegate diagnostics(book), to: Client

  @impl true
  def shared, do: Sessions.children()

  @impl true
  def init(book), do: if(Client.settings(book) != [], do: Client.State.new(book.name))

  @impl true
  defdelegate children(book), to: Client

  @impl true
  def sign_ins(book) do
    with [_ | _] = servers <- Client.settings(book), do: Auth.sign_ins(servers)
  end

  @impl true
  def settings, do: ["server_approvals", "connections"]

  @impl true
  def changed(book, "server_approvals"), do: Client.follow(book.sources)
  def changed(book, "connections"), do: Client.signed_in(book.sources)

  @impl true
  def source({:mcp, place}), do: source({:mcp, place, []})

  def source({:mcp, place, options}) do
    with {:ok, settings} <- Settings.new(place, options), do: {:ok, [of_server(settings)]}
  end

  def source(_item), do: :other

  defp of_server(settings) do
    %Source{
      path: "mcp:#{settings.label}",
      name: settings.label,
      kind: :mcp,
      code: {:mcp, settings},
      labels: settings.labels,
      tenant: settings.tenant,
      optional: settings.optional,
      trust: settings.trust
    }
  end

  @impl true
  # Those that its client has now. They have one handler.
  def pages(%Source{code: {:mcp, settings}}) do
    run = fn flags, context -> Call.run(settings, flags, context) end
    {State.entries(settings).pages, %{Tools.handler(settings) => run}}
  end

  def pages(_source), do: :other

  @impl true
  defdelegate text(view, path), to: Reader, as: :answer
end
