defmodule Shop.Orders do
  @moduledoc "The orders of the shop, in memory instead of a database."
  use Agent

  @orders %{7 => %{items: "2 lamps", total: 40, status: :paid}}

  def start_link(_options), do: Agent.start_link(fn -> @orders end, name: __MODULE__)
  def fetch(number), do: Agent.get(__MODULE__, & &1[number])
  def refund(number), do: Agent.update(__MODULE__, &put_in(&1[number].status, :refunded))
end
