defmodule SupportBot.Tenants do
  @moduledoc "The shops, with the rights of their assistants."

  # An application has them in its database.
  @shops %{
    "lamps" => %{name: "Lamps & Light", currency: "EUR", plan: "basic"},
    "books" => %{name: "Book Corner", currency: "USD", plan: "premium"}
  }

  @doc "The profile of a shop, for the book's `:profiles`."
  def fetch(id) do
    with %{} = shop <- @shops[id],
         do: {:ok, role: "shop", grants: [shop.plan], assigns: %{shop: Map.put(shop, :id, id)}}
  end

  @doc "The section of the prompt about a shop."
  def describe(%{assigns: %{shop: shop}}), do: "#{shop.name}; prices are in #{shop.currency}."
  def describe(_context), do: nil
end
