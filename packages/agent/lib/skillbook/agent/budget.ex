defmodule Skillbook.Agent.Budget do
  @moduledoc false
  # Counts the turns, tokens and time of a run against its limits. A dispatched agent counts in
  # its own budget and in the parent's at once, so its use counts even if it crashes.

  alias Skillbook.Agent.{Prices, Result}
  alias Skillbook.Model

  @type t :: %__MODULE__{
          used: :atomics.atomics_ref(),
          max_turns: pos_integer(),
          deadline: integer(),
          max_tokens: pos_integer() | nil,
          max_cost: non_neg_integer() | nil,
          parent: t() | nil
        }

  @enforce_keys [:used, :max_turns, :deadline]
  defstruct [:used, :max_turns, :deadline, :max_tokens, :max_cost, :parent]

  @turns 1
  @prompt 2
  @completion 3
  @estimated 4
  @agents 5
  @cached 6
  @cache_write 7
  @cost 8
  @unpriced 9
  @counters 9

  @doc "A budget whose `max_time`, in milliseconds, starts now."
  @spec new(pos_integer(), pos_integer(), keyword(), t() | nil) :: t()
  def new(max_turns, max_time, limits, parent) do
    %__MODULE__{
      used: :atomics.new(@counters, []),
      max_turns: max_turns,
      deadline: now() + max_time,
      max_tokens: limits[:max_tokens],
      max_cost: Prices.units(limits[:max_cost]),
      parent: parent
    }
  end

  @doc "The smallest rest among this budget and its parents, the time in milliseconds."
  @spec left(t()) :: %{
          turns: non_neg_integer(),
          time: non_neg_integer(),
          tokens: non_neg_integer() | nil,
          cost: non_neg_integer() | nil
        }
  def left(%__MODULE__{} = budget) do
    own = %{
      turns: max(budget.max_turns - get(budget, @turns), 0),
      time: max(budget.deadline - now(), 0),
      tokens:
        budget.max_tokens &&
          max(budget.max_tokens - get(budget, @prompt) - get(budget, @completion), 0),
      cost: budget.max_cost && max(budget.max_cost - get(budget, @cost), 0)
    }

    # Numbers sort before nil, so `min/2` takes the limit that exists.
    if budget.parent,
      do: Map.merge(own, left(budget.parent), fn _, one, other -> min(one, other) end),
      else: own
  end

  @spec use_turn(t()) :: :ok
  def use_turn(budget), do: add(budget, @turns, 1)

  @doc "Counts the tokens of a call, and its cost, which is `nil` if it is unknown."
  @spec use_tokens(t(), Model.usage(), boolean(), non_neg_integer() | nil) :: :ok
  def use_tokens(budget, usage, estimated, cost) do
    add(budget, @prompt, usage.prompt_tokens)
    add(budget, @completion, usage.completion_tokens)
    add(budget, @cached, usage.cached_tokens)
    add(budget, @cache_write, usage.cache_write_tokens)
    if cost, do: add(budget, @cost, cost), else: add(budget, @unpriced, 1)
    if estimated, do: add(budget, @estimated, 1), else: :ok
  end

  @spec usage(t()) :: Result.usage()
  def usage(budget) do
    %{
      prompt_tokens: get(budget, @prompt),
      completion_tokens: get(budget, @completion),
      cached_tokens: get(budget, @cached),
      cache_write_tokens: get(budget, @cache_write),
      estimated: get(budget, @estimated) > 0
    }
  end

  @doc "What the calls have cost; `nil` if the price of one is unknown."
  @spec cost(t()) :: float() | nil
  def cost(budget), do: if(get(budget, @unpriced) == 0, do: Prices.amount(get(budget, @cost)))

  @doc "Its counts, and the milliseconds that it has taken of `max_time`, for a journal."
  @spec counters(t(), pos_integer()) :: [non_neg_integer()]
  def counters(budget, max_time),
    do: [max_time - max(budget.deadline - now(), 0) | Enum.map(1..@counters, &get(budget, &1))]

  @doc "The budget of a run that goes on with these counts."
  @spec restore(t(), [non_neg_integer()]) :: t()
  def restore(budget, [taken | counts]) do
    for {count, counter} <- Enum.with_index(Enum.take(counts, @counters), 1),
        do: :atomics.put(budget.used, counter, count)

    %{budget | deadline: budget.deadline - taken}
  end

  @doc "The number of the next agent that the run dispatches, from 1."
  @spec next_agent(t()) :: pos_integer()
  def next_agent(budget), do: :atomics.add_get(budget.used, @agents, 1)

  defp add(nil, _counter, _by), do: :ok

  defp add(budget, counter, by) do
    :atomics.add(budget.used, counter, by)
    add(budget.parent, counter, by)
  end

  defp get(budget, counter), do: :atomics.get(budget.used, counter)
  defp now, do: System.monotonic_time(:millisecond)
end
