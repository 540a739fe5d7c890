defmodule Skillbook.Application do
  @moduledoc false
  # Handlers of a catalog that no book holds run here; each book has a supervisor of its own.

  use Application

  @impl true
  def start(_type, _args) do
    Skillbook.Telemetry.load()
    Supervisor.start_link([{Task.Supervisor, name: Skillbook.Tasks}], strategy: :one_for_one)
  end
end
