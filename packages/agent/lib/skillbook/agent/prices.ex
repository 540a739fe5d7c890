defmodule Skillbook.Agent.Prices do
  @moduledoc false
  # The prices of models that the application gives, and the costs of calls by them. Costs are
  # whole numbers of a billionth of its currency, which add up without rounding.

  alias Skillbook.Model
  alias Skillbook.Support.Options

  @kinds [:input, :output, :cached, :cache_write]
  @unit 1_000_000_000

  @typedoc "By the name of a model: amounts for a million tokens."
  @type t :: %{String.t() => [{:input | :output | :cached | :cache_write, number()}]}

  @doc "Whether a value is a table of prices."
  @spec valid?(term()) :: boolean()
  # Options that are maps arrive as lists, also an empty one.
  def valid?([]), do: true

  def valid?(prices) when is_map(prices) and not is_struct(prices),
    do: Enum.all?(prices, fn {name, price} -> Options.text?(name) and price?(price) end)

  def valid?(_other), do: false

  defp price?(price) do
    Keyword.keyword?(price) and Keyword.has_key?(price, :input) and
      Keyword.has_key?(price, :output) and
      Enum.all?(price, fn {kind, amount} ->
        kind in @kinds and is_number(amount) and amount >= 0
      end)
  end

  @doc "The cost of a call, or `nil` without a price of the model that answered."
  @spec cost(t(), Model.t(), String.t() | nil, Model.usage()) :: non_neg_integer() | nil
  def cost(prices, _model, _answered_by, _usage) when prices == %{}, do: nil

  def cost(prices, model, answered_by, usage) do
    with price when price != nil <- price(prices, [answered_by, Model.describe(model).model]) do
      new = max(usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
      cached = price[:cached] || price[:input]
      written = price[:cache_write] || price[:input]

      million =
        new * price[:input] + usage.cached_tokens * cached + usage.cache_write_tokens * written +
          usage.completion_tokens * price[:output]

      round(million * div(@unit, 1_000_000))
    end
  end

  # Servers answer with the version of a model: `gpt-5-2026-01-31` for `gpt-5`.
  defp price(prices, names) do
    names = Enum.filter(names, &is_binary/1)
    Enum.find_value(names, &(prices[&1] || version(prices, &1))) || prices["default"]
  end

  defp version(prices, name) do
    prices
    |> Enum.filter(fn {known, _price} ->
      String.starts_with?(name, [known <> "-", known <> "@"])
    end)
    |> Enum.max_by(fn {known, _price} -> byte_size(known) end, fn -> {nil, nil} end)
    |> elem(1)
  end

  @doc "The name of a model of which there is no price, or `nil`."
  @spec missing(t(), Model.t()) :: String.t() | nil
  def missing(prices, %{models: models}) when is_list(models),
    do: Enum.find_value(models, &missing(prices, &1))

  def missing(prices, model) do
    name = Model.describe(model).model || Model.describe(model).provider
    if price(prices, [name]) == nil, do: name
  end

  @doc "An amount of the currency as a whole number, and back."
  @spec units(number() | nil) :: non_neg_integer() | nil
  def units(nil), do: nil
  def units(amount), do: round(amount * @unit)

  @spec amount(non_neg_integer()) :: float()
  def amount(units), do: units / @unit
end
