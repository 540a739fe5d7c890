defmodule SupportBot.Shop do
  @moduledoc "Orders and tickets of all shops, in memory instead of a database."
  use Agent

  @orders %{
    {"lamps", 7} => %{items: "2 lamps", total: 40.0, status: :paid},
    {"books", 7} => %{items: "Moby-Dick", total: 12.5, status: :paid}
  }

  def start_link(_options), do: Agent.start_link(fn -> {@orders, []} end, name: __MODULE__)

  def order(shop, number), do: Agent.get(__MODULE__, fn {orders, _} -> orders[{shop, number}] end)

  def refund(shop, number) do
    Agent.update(__MODULE__, fn {orders, tickets} ->
      {put_in(orders[{shop, number}].status, :refunded), tickets}
    end)
  end

  def open_ticket(ticket) do
    Agent.get_and_update(__MODULE__, fn {orders, tickets} ->
      ticket = Map.put(ticket, :number, length(tickets) + 1)
      {ticket.number, {orders, [ticket | tickets]}}
    end)
  end

  def tickets, do: Agent.get(__MODULE__, fn {_, tickets} -> Enum.reverse(tickets) end)
end
