defmodule Skillbook.Application do
  @moduledoc false
  # Starts the processes that are shared by all books: the supervisor of handlers for catalogs
  # without a book, the group of processes that follow a database, since several books may share
  # one, and those of parts, such as the quotas of connections, which are counted per node.

  use Application

  @impl true
  def start(_type, _args) do
    Skillbook.Telemetry.load()

    children = [{Task.Supervisor, name: Skillbook.Tasks}, Skillbook.Store.Follower.nodes()]
    shared = Skillbook.Part.flat(Skillbook.Part.refresh(), :shared)
    Supervisor.start_link(children ++ shared, strategy: :one_for_one)
  end
end
