defmodule Skillbook.Application do
  @moduledoc false
  # Handlers of a catalog that no book holds run here; each book has a supervisor of its own. What knows the followers of
  # databases is one for all books, since several may share a database.

  use Application

  @impl true
  def start(_type, _args) do
    Skillbook.Telemetry.load()
    children = [{Task.Supervisor, name: Skillbook.Tasks}, Skillbook.Store.Follower.nodes()]
    Supervisor.start_link(children, strategy: :one_for_one)
  end
end
