defmodule Skillbook.Test.Outcome do
  @moduledoc """
  The result of `Skillbook.Test.evaluate/2`.

  ## Fields

    * `:runs` - a `Skillbook.Test.Run` for each run, in the order of the evaluations
    * `:summaries` - a `t:Skillbook.Test.Comparison.summary/0` of each variant that ran
    * `:comparisons` - a `Skillbook.Test.Comparison` for each variant other than `:with`
    * `:usage` - the tokens of all runs, with those of the judge
    * `:cost` - their price; `nil` without `:prices`, or if some tokens were not counted
    * `:duration` - milliseconds
  """

  alias Skillbook.Test.{Comparison, Run}

  @type t :: %__MODULE__{
          runs: [Run.t()],
          summaries: %{(:with | :without | :before) => Comparison.summary()},
          comparisons: [Comparison.t()],
          usage: Run.usage(),
          cost: float() | nil,
          duration: non_neg_integer()
        }

  defstruct runs: [], summaries: %{}, comparisons: [], usage: %{}, cost: nil, duration: 0

  @none %{prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0}
  @million 1_000_000

  @doc false
  @spec new([Run.t()], keyword(), non_neg_integer()) :: t()
  def new(runs, options, duration) do
    summaries =
      for {variant, runs} <- Enum.group_by(runs, & &1.variant),
          into: %{},
          do: {variant, Comparison.summary(runs)}

    comparisons =
      for variant <- [:without, :before], other = summaries[variant] do
        # Compared are the evaluations that ran in both ways.
        both =
          for %{variant: ^variant, status: status} = run <- runs, status != :not_run, do: key(run)

        own = Enum.filter(runs, &(&1.variant == :with and key(&1) in both))
        Comparison.new(variant, Comparison.summary(own), other)
      end

    # A recording costs nothing.
    live = Enum.reject(runs, & &1.recorded)

    usage = Enum.reduce(live, @none, &(&2 |> Run.add(&1.usage) |> Run.add(&1.judge_usage)))

    %__MODULE__{
      runs: runs,
      summaries: summaries,
      comparisons: comparisons,
      usage: usage,
      cost: cost(usage, options[:prices]),
      duration: duration
    }
  end

  defp key(run), do: {run.evaluation.path, run.evaluation.name}

  # Prices are of a million tokens. Cached tokens are a part of those of the prompt.
  defp cost(_usage, nil), do: nil

  defp cost(usage, prices) do
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    cached_price = prices[:cached] || prices[:prompt]

    ((usage.prompt_tokens - cached) * prices[:prompt] + cached * cached_price +
       usage.completion_tokens * prices[:completion]) / @million
  end

  @doc """
  Whether all evaluations passed. Runs without the skill, and with its version before, do not
  count, nor do those that were not run.
  """
  @spec passed?(t()) :: boolean()
  def passed?(%__MODULE__{runs: runs}),
    do: Enum.all?(runs, &(&1.variant != :with or &1.status in [:passed, :not_run]))
end
