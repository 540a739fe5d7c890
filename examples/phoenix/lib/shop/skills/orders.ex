defmodule Shop.Skills.FindOrder do
  @moduledoc "Shows an order: its items, its total and its status."

  use Skillbook.Skill,
    name: "orders.find",
    description: "Shows an order by its number",
    effects: :read,
    flags: [number: [type: :integer, min: 1, required: true, description: "The order's number"]]

  @impl true
  def execute(%{"number" => number}, _context) do
    case Shop.Orders.fetch(number) do
      nil -> {:error, "there is no order #{number}; ask the customer for the number"}
      order -> {:ok, "Order #{number}: #{order.items}, #{order.total} EUR, #{order.status}"}
    end
  end
end

defmodule Shop.Skills.RefundOrder do
  @moduledoc """
  Refunds an order in full. Look it up first, and tell the customer that a person decides.
  """

  use Skillbook.Skill,
    name: "orders.refund",
    description: "Refunds an order: gives the customer the money back. A person approves it",
    effects: :write,
    approval: :required,
    flags: [
      number: [type: :integer, min: 1, required: true, description: "The order's number"],
      reason: [type: :one_of, values: [:broken, :late, :other], default: :other]
    ]

  @impl true
  def execute(%{"number" => number, "reason" => reason}, _context) do
    case Shop.Orders.fetch(number) do
      %{status: :paid, total: total} ->
        Shop.Orders.refund(number)
        {:ok, "Refunded #{total} EUR (#{reason})."}

      _ ->
        {:error, "there is no paid order #{number}"}
    end
  end
end
