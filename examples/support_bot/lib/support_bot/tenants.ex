defmodule SupportBot.Tenants do
  @moduledoc """
  The shops and their customers.

  A shop is a tenant: what its customers' assistants write stays in the shop. Each customer is a
  profile, so the assistant remembers for one customer only.
  """

  # An application has them in its database.
  @shops %{
    "lamps" => %{name: "Lamps & Light", currency: "EUR", plan: "basic"},
    "books" => %{name: "Book Corner", currency: "USD", plan: "premium"}
  }

  @doc "The id of the profile of a customer."
  def id(shop, customer), do: "#{shop}/#{customer}"

  @doc "The profile of an id, for the book's `:profiles`."
  def fetch(id) do
    with [tenant, <<_, _::binary>>] <- String.split(id, "/", parts: 2),
         %{} = shop <- @shops[tenant] do
      shop = Map.put(shop, :id, tenant)
      {:ok, tenant: tenant, role: "customer", grants: [shop.plan], assigns: %{shop: shop}}
    else
      _unknown -> nil
    end
  end

  @doc "The section of the prompt about a shop."
  def describe(%{assigns: %{shop: shop}}), do: "#{shop.name}; prices are in #{shop.currency}."
  def describe(_context), do: nil
end
