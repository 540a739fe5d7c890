defmodule Skillbook.Application do
  @moduledoc false
  # Starts the processes that are shared by all books: the supervisor of handlers for catalogs
  # without a book, the group of processes that follow a database, since several books may share
  # one, and the subscribers of books.

  use Application

  @impl true
  def start(_type, _args) do
    Skillbook.Telemetry.load()

    children = [
      {Task.Supervisor, name: Skillbook.Tasks},
      Skillbook.Store.Follower.nodes(),
      Skillbook.Catalog.Watcher.subscribers()
    ]

    Supervisor.start_link(children, strategy: :one_for_one)
  end
end
