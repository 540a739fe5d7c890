defmodule SupportBot.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    # Each test starts its own.
    start? = Application.get_env(:support_bot, :start, true)
    children = if start?, do: [SupportBot.Shop, {Skillbook, SupportBot.book()}], else: []
    Supervisor.start_link(children, strategy: :one_for_one)
  end
end
