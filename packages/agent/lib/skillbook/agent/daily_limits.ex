defmodule Skillbook.Agent.DailyLimits do
  @moduledoc false
  # The limits of a book's `:budget`: what all of its runs, those of a tenant, of a profile and of
  # a skill may cost in a day, in UTC. They are checked before each turn, against the costs in the
  # database and those that are not stored yet. Other nodes store theirs every few seconds.

  alias Skillbook.Agent.{Prices, State}
  alias Skillbook.{Book, BudgetError, Profile, Usage}

  @doc "The limit that is used up, or `nil`."
  @spec reached(State.t()) :: BudgetError.t() | nil
  def reached(%{limits: []}), do: nil

  def reached(%{limits: limits, book: name} = state) do
    case Book.find(name) do
      nil -> nil
      book -> Enum.find_value(limits, &reached(&1, book, state))
    end
  end

  defp reached({limit, max}, book, state) do
    {whose, scope} = scope(limit, state)

    with max when max != nil <- amount(max, whose),
         {:ok, units} <- Usage.cost_of_day(book, scope),
         true <- units >= Prices.units(max) do
      %BudgetError{limit: limit, whose: whose, max: max, spent: Prices.amount(units)}
    else
      _ -> nil
    end
  end

  defp amount(max, _whose) when is_number(max), do: max
  defp amount(by_name, whose), do: Map.get(by_name, whose, by_name["default"])

  # Whose costs a limit is about, and where they are counted. A conversation has no skill.
  defp scope(:day, _state), do: {nil, []}
  defp scope(:skill_day, %{skill: skill}), do: {skill, [name: skill || ""]}

  defp scope(limit, %{view: %{profile: profile}}) do
    tenant = Profile.home(profile)

    if limit == :tenant_day,
      do: {tenant, [tenant: tenant]},
      else: {profile.id, [tenant: tenant, profile: profile.id]}
  end
end
