defmodule Skillbook.Test.Run do
  @moduledoc """
  One run of an evaluation.

  ## Fields

    * `:evaluation` - the `Skillbook.Test.Evaluation`
    * `:variant` - `:with` the skill, `:without` it, or with its version `:before`
    * `:number` - the number of the repetition, from 1
    * `:status` - `:passed` or `:failed`, by the checks; `:error`, something else failed, and the
      field `:error` says what; `:not_run`, there is neither a model nor a recording
    * `:checks` - a `t:check/0` for each thing that was checked
    * `:text` - the last answer of the model
    * `:calls` - the commands that it called, each with its `:name`, `:flags` and `:args`
    * `:usage` - the tokens of the model, as in `Skillbook.Agent.Result`
    * `:judge_usage` - the tokens of the judging model
    * `:turns` - how often the model was called
    * `:duration` - milliseconds
    * `:recorded` - whether it was replayed from a recording
    * `:error` - an exception, or `nil`
    * `:transcript` - the `Skillbook.Transcript`, or `nil`
  """

  alias Skillbook.Test.Evaluation

  @typedoc """
  A check.

    * `:kind` - `:ended`, `:call`, `:no_call`, `:read`, `:contains`, `:not_contains`, `:matches`
      or `:rubric`
    * `:expected` - as text
    * `:passed` - whether it is so
    * `:got` - the calls or the part of the answer, if it is not; of a rubric the reason of the
      judge
  """
  @type check :: %{kind: atom(), expected: String.t(), passed: boolean(), got: String.t() | nil}

  @type usage :: %{
          prompt_tokens: non_neg_integer(),
          completion_tokens: non_neg_integer(),
          cached_tokens: non_neg_integer()
        }

  @type t :: %__MODULE__{
          evaluation: Evaluation.t(),
          variant: :with | :without | :before,
          number: pos_integer(),
          status: :passed | :failed | :error | :not_run,
          checks: [check()],
          text: String.t(),
          calls: [%{name: String.t(), flags: map(), args: [String.t()]}],
          usage: usage(),
          judge_usage: usage(),
          turns: non_neg_integer(),
          duration: non_neg_integer(),
          recorded: boolean(),
          error: Exception.t() | nil,
          transcript: Skillbook.Transcript.t() | nil
        }

  @none %{prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0}

  @enforce_keys [:evaluation, :variant, :number, :status]
  defstruct [
    :evaluation,
    :variant,
    :number,
    :status,
    :error,
    :transcript,
    checks: [],
    text: "",
    calls: [],
    usage: @none,
    judge_usage: @none,
    turns: 0,
    duration: 0,
    recorded: false
  ]

  @doc false
  @spec add(usage(), map() | nil) :: usage()
  def add(usage, nil), do: usage
  def add(usage, more), do: Map.new(usage, fn {name, n} -> {name, n + (more[name] || 0)} end)

  @doc """
  Returns the lines that say why a run did not pass; none if it did.

      iex> check = %{kind: :contains, expected: "40 EUR", passed: false, got: "It is paid."}
      iex> evaluation = %Skillbook.Test.Evaluation{path: "evals.yaml", line: 2, name: "late"}
      iex> run = %Skillbook.Test.Run{evaluation: evaluation, variant: :with, number: 1,
      ...>   status: :failed, checks: [check]}
      iex> Skillbook.Test.Run.failures(run)
      ["expected an answer with \\"40 EUR\\", got: It is paid."]
  """
  @spec failures(t()) :: [String.t()]
  def failures(%__MODULE__{status: status} = run) do
    own = for %{passed: false} = check <- run.checks, do: failure(check)

    error =
      if status in [:error, :not_run] and run.error, do: [Exception.message(run.error)], else: []

    error ++ own
  end

  defp failure(%{kind: kind, expected: expected, got: got}),
    do: expected(kind, expected) <> got(got)

  defp expected(:ended, text), do: "expected the run to end by itself within #{text}"
  defp expected(:call, line), do: "expected a call of `#{line}`"
  defp expected(:no_call, line), do: "expected no call of `#{line}`"
  defp expected(:read, name), do: "expected the model to read `#{name}`"
  defp expected(:contains, text), do: "expected an answer with #{inspect(text)}"
  defp expected(:not_contains, text), do: "expected an answer without #{inspect(text)}"
  defp expected(:matches, source), do: "expected an answer that matches /#{source}/"
  defp expected(:rubric, text), do: "expected: #{text}"

  defp got(nil), do: ", got none"
  defp got(got), do: ", got: #{got}"
end
