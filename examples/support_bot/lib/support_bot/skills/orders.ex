defmodule SupportBot.Skills.FindOrder do
  @moduledoc "Shows an order: its items, its total and its status."

  use Skillbook.Skill,
    name: "orders.find",
    description: "Shows an order by its number",
    effects: :read,
    examples: ["Where is my order 7?", "What did I buy?"],
    flags: [number: [type: :integer, min: 1, required: true, description: "The order's number"]]

  @impl true
  def execute(%{"number" => number}, %{assigns: %{shop: shop}}) do
    case SupportBot.Shop.order(shop.id, number) do
      nil ->
        {:error, "there is no order #{number}; ask the customer for the number"}

      order ->
        {:ok, "Order #{number}: #{order.items}, #{order.total} #{shop.currency}, #{order.status}"}
    end
  end
end

defmodule SupportBot.Skills.RefundOrder do
  @moduledoc """
  Refunds an order in full. Look it up first, and tell the customer that a person decides.
  """

  use Skillbook.Skill,
    name: "orders.refund",
    description: "Refunds an order: gives the customer the money back. A person approves it",
    effects: :write,
    approval: :required,
    examples: ["I want my money back", {:not, "Where is my order 7?"}],
    flags: [
      number: [type: :integer, min: 1, required: true, description: "The order's number"],
      reason: [type: :one_of, values: [:broken, :late, :other], default: :other]
    ]

  @impl true
  def execute(%{"number" => number, "reason" => reason}, %{assigns: %{shop: shop}}) do
    case SupportBot.Shop.order(shop.id, number) do
      %{status: :paid, total: total} ->
        SupportBot.Shop.refund(shop.id, number)
        {:ok, "Refunded #{total} #{shop.currency} (#{reason})."}

      _ ->
        {:error, "there is no paid order #{number}"}
    end
  end
end
