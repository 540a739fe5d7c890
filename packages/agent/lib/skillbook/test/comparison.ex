defmodule Skillbook.Test.Comparison do
  @moduledoc """
  How runs with a skill compare with runs without it, or with its version before.

  ## Fields

    * `:variant` - `:without` or `:before`
    * `:verdict` - `:helps` or `:hurts`, if chance alone would show such a difference in fewer
      than 5 of 100 comparisons; else `:unclear`
    * `:p` - how often chance alone shows at least this difference, from 0.0 to 1.0: Fisher's
      exact test over all runs. `nil` without runs of both
    * `:needed` - about how many runs of each would show a difference of this size in 4 of 5
      comparisons; `nil` if there is no difference

  Runs of one evaluation are more alike than runs of different ones, so many runs of few
  evaluations show less than their number says.
  """

  alias Skillbook.Test.Run

  @type verdict :: :helps | :hurts | :unclear
  @type t :: %__MODULE__{
          variant: :without | :before,
          verdict: verdict(),
          p: float() | nil,
          needed: pos_integer() | nil
        }

  @enforce_keys [:variant, :verdict]
  defstruct [:variant, :verdict, :p, :needed]

  @typedoc """
  The runs of a variant.

    * `:runs`, `:passed` - their numbers, without those that were not run
    * `:rate` - the share that passed; `:low` and `:high` are the bounds of its 95% confidence
      interval (Wilson); all `nil` without runs
    * `:tokens`, `:turns` - the means of a run; `nil` without runs
  """
  @type summary :: %{
          runs: non_neg_integer(),
          passed: non_neg_integer(),
          rate: float() | nil,
          low: float() | nil,
          high: float() | nil,
          tokens: float() | nil,
          turns: float() | nil
        }

  @significant 0.05
  # The quantiles of the normal distribution for 95% confidence and 80% power.
  @z 1.959964
  @power 0.841621

  @doc false
  @spec summary([Run.t()]) :: summary()
  def summary(runs) do
    runs = Enum.reject(runs, &(&1.status == :not_run))
    count = length(runs)
    passed = Enum.count(runs, &(&1.status == :passed))
    {low, high} = interval(passed, count)

    %{
      runs: count,
      passed: passed,
      rate: share(passed, count),
      low: low,
      high: high,
      tokens: mean(runs, &(&1.usage.prompt_tokens + &1.usage.completion_tokens)),
      turns: mean(runs, & &1.turns)
    }
  end

  @doc false
  @spec new(:without | :before, summary(), summary()) :: t()
  def new(variant, %{runs: n} = own, %{runs: m} = other) when n > 0 and m > 0 do
    p = fisher(own.passed, n - own.passed, other.passed, m - other.passed)

    verdict =
      cond do
        p >= @significant -> :unclear
        own.rate > other.rate -> :helps
        true -> :hurts
      end

    %__MODULE__{variant: variant, verdict: verdict, p: p, needed: needed(own.rate, other.rate)}
  end

  def new(variant, _own, _other), do: %__MODULE__{variant: variant, verdict: :unclear}

  defp share(_part, 0), do: nil
  defp share(part, count), do: part / count

  defp mean([], _fun), do: nil
  defp mean(runs, fun), do: (runs |> Enum.map(fun) |> Enum.sum()) / length(runs)

  # Wilson's interval is right for small numbers too, and for 0 and all of them.
  defp interval(_passed, 0), do: {nil, nil}

  defp interval(passed, n) do
    rate = passed / n
    z2 = @z * @z
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = @z * :math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    {max(middle - half, 0.0), min(middle + half, 1.0)}
  end

  # The sum of the probabilities of all tables with the same margins that are at most as likely.
  defp fisher(a, b, c, d) do
    logs = log_factorials(a + b + c + d)
    likely = fn a, b, c, d -> probability(a, b, c, d, logs) end
    seen = likely.(a, b, c, d)

    sum =
      for x <- max(0, a - d)..min(a + b, a + c)//1,
          p = likely.(x, a + b - x, a + c - x, d - a + x),
          p <= seen * (1 + 1.0e-9),
          reduce: 0.0,
          do: (sum -> sum + p)

    min(sum, 1.0)
  end

  defp probability(a, b, c, d, logs) do
    f = &elem(logs, &1)

    :math.exp(
      f.(a + b) + f.(c + d) + f.(a + c) + f.(b + d) -
        (f.(a) + f.(b) + f.(c) + f.(d) + f.(a + b + c + d))
    )
  end

  defp log_factorials(n) do
    1..n//1
    |> Enum.scan(0.0, &(:math.log(&1) + &2))
    |> then(&List.to_tuple([0.0 | &1]))
  end

  defp needed(same, same), do: nil

  defp needed(one, other) do
    variance = one * (1 - one) + other * (1 - other)
    # All against none needs some runs too.
    runs = :math.pow(@z + @power, 2) * variance / :math.pow(one - other, 2)
    max(ceil(runs), 4)
  end
end
