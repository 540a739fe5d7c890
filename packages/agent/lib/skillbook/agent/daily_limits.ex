defmodule Skillbook.Agent.DailyLimits do
  @moduledoc false
  # The limits of a book's `:budget`: what all of its runs, those of a tenant and those of a
  # profile may cost in a day, in UTC. They are checked before each turn, against the costs in the
  # database and those that are not stored yet. Other nodes store theirs every few seconds.

  alias Skillbook.Agent.{Prices, State}
  alias Skillbook.{Book, BudgetError, Profile, Usage}

  @doc "The limit that is used up, or `nil`."
  @spec reached(State.t()) :: BudgetError.t() | nil
  def reached(%{limits: []}), do: nil

  def reached(%{limits: limits, book: name, view: view}) do
    case Book.find(name) do
      nil -> nil
      book -> Enum.find_value(limits, &reached(&1, book, view.profile))
    end
  end

  defp reached({limit, max}, book, profile) do
    with {:ok, units} <- Usage.cost_of_day(book, scope(limit, profile)),
         true <- units >= Prices.units(max) do
      who = %{day: nil, tenant_day: Profile.home(profile), profile_day: profile.id}[limit]
      %BudgetError{limit: limit, whose: who, max: max, spent: Prices.amount(units)}
    else
      _ -> nil
    end
  end

  defp scope(:day, _profile), do: []
  defp scope(:tenant_day, profile), do: [tenant: Profile.home(profile)]

  defp scope(:profile_day, profile),
    do: [tenant: Profile.home(profile), profile: profile.id]
end
