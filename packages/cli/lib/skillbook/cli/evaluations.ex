defmodule Skillbook.CLI.Evaluations do
  @moduledoc false
  # The evaluations of `skillbook test`: their flags, their runs, and the output.

  alias Skillbook.CLI.{ModelFlags, Session, Terminal}
  alias Skillbook.{RecordingError, Test}
  alias Skillbook.Test.{Outcome, Run}

  @enforce_keys [:diagnostics, :outcome, :terminal]
  defstruct [:diagnostics, :outcome, :terminal]

  @type t :: %__MODULE__{}

  # Failing runs that are printed; --json has all.
  @max_shown 100

  @spec switches() :: keyword()
  def switches do
    ModelFlags.switches() ++
      [
        judge_model: :string,
        record: :boolean,
        compare: {:some_of, [:without, :before]},
        before: :string,
        repeat: {:number, 1, 100},
        jobs: {:number, 1, 100},
        prompt_price: :float,
        reply_price: :float
      ]
  end

  @doc """
  Reads the flags as options of `Skillbook.Test.evaluate/2`. The error is a usage error's message.
  """
  @spec read(keyword()) :: {:ok, keyword()} | {:error, String.t()}
  def read(flags) do
    compare = flags |> Keyword.get_values(:compare) |> Enum.uniq()

    with {:ok, models} <- models(flags),
         {:ok, before} <- before(flags[:before]),
         {:ok, prices} <- prices(flags[:prompt_price], flags[:reply_price]) do
      options = [compare: compare, max_concurrency: flags[:jobs] || 4]
      options = if flags[:repeat], do: [repeat: flags[:repeat]] ++ options, else: options
      {:ok, options ++ models ++ before ++ prices}
    end
  end

  defp models(flags) do
    if Enum.any?([:url, :api, :model, :record, :judge_model], &flags[&1]) do
      with {:ok, model} <- ModelFlags.model("test", flags),
           {:ok, judge} <- judge(flags),
           do: {:ok, [model: model, judge: judge || model, record: flags[:record] || false]}
    else
      {:ok, []}
    end
  end

  defp judge(flags) do
    case flags[:judge_model] do
      nil -> {:ok, nil}
      name -> ModelFlags.model("test", Keyword.put(flags, :model, name))
    end
  end

  defp before(nil), do: {:ok, []}

  defp before(folder) do
    if File.dir?(folder),
      do: {:ok, [before: Path.expand(folder)]},
      else: {:error, "--before expects a folder, got: #{folder}"}
  end

  defp prices(nil, nil), do: {:ok, []}

  defp prices(prompt, reply) when is_number(prompt) and is_number(reply) do
    if prompt >= 0 and reply >= 0,
      do: {:ok, [prices: [prompt: prompt, completion: reply]]},
      else: {:error, "--prompt-price and --reply-price expect numbers from 0"}
  end

  defp prices(_prompt, _reply),
    do: {:error, "--prompt-price and --reply-price belong together; got one of them"}

  @doc """
  Runs the evaluations of files and folders; `nil` if there are none.

  `options` are those of the command line, with the folders and the built-in skills of the run;
  `view` shows the stored skills.
  """
  @spec run(Skillbook.CLI.Arguments.t(), Skillbook.View.t(), [Path.t()], keyword()) :: t() | nil
  def run(options, view, targets, evaluate) do
    {evaluations, diagnostics} = Test.read_evaluations(targets)

    if evaluations != [] or diagnostics != [] do
      profile = Session.profile(options)

      # The profiles that files name exist in the books of the application only.
      profiles =
        for id <- Enum.uniq([profile.id | Enum.map(evaluations, & &1.profile)]),
            id != nil,
            do: %{profile | id: id}

      # The view is of a book with these options, so they are right.
      {:ok, book} = Session.book(options)
      counter = :counters.new(1, [])

      progress = fn _run, total ->
        :counters.add(counter, 1, 1)
        Terminal.progress("#{:counters.get(counter, 1)} of #{total} evaluations run")
      end

      options_of_run = [
        book: [profiles: profiles] ++ book,
        profile: profile.id,
        stored: view,
        on_run: progress
      ]

      outcome = Test.evaluate(evaluations, options_of_run ++ evaluate)
      Terminal.clear_progress()
      terminal = Terminal.new(options.color)
      %__MODULE__{diagnostics: diagnostics, outcome: outcome, terminal: terminal}
    end
  end

  @doc "Whether an evaluation failed or cannot be read."
  @spec failed?(t() | nil) :: boolean()
  def failed?(nil), do: false

  def failed?(run) do
    Enum.any?(run.diagnostics, &(&1.severity == :error)) or not Outcome.passed?(run.outcome)
  end

  # JSON

  @doc "The fields for JSON."
  @spec json(t()) :: map()
  def json(%{outcome: outcome, diagnostics: diagnostics}) do
    %{
      runs: Enum.map(outcome.runs, &json_of_run/1),
      summaries: outcome.summaries,
      comparisons: Enum.map(outcome.comparisons, &Map.from_struct/1),
      usage: outcome.usage,
      cost: outcome.cost,
      duration: outcome.duration,
      diagnostics: Enum.map(diagnostics, &Skillbook.Support.JSON.diagnostic/1)
    }
  end

  defp json_of_run(run) do
    run
    |> Map.take([:variant, :number, :status, :checks, :text, :calls, :usage, :judge_usage])
    |> Map.merge(Map.take(run, [:turns, :duration, :recorded, :error]))
    |> Map.merge(%{
      path: run.evaluation.path,
      line: run.evaluation.line,
      name: run.evaluation.name
    })
  end

  # Text

  @doc "The text for a terminal."
  @spec text(t()) :: iodata()
  def text(%{outcome: outcome, diagnostics: diagnostics, terminal: terminal}) do
    {shown, rest} =
      outcome.runs
      |> Enum.filter(&(&1.variant == :with and &1.status in [:failed, :error]))
      |> Enum.split(@max_shown)

    more =
      if rest == [], do: [], else: ["#{length(rest)} more failed; --json has all of them\n\n"]

    [
      Enum.map(diagnostics, &[Terminal.safe(to_string(&1)), "\n"]),
      if(diagnostics == [], do: [], else: "\n"),
      Enum.map(shown, &failure(&1, terminal)),
      more,
      Enum.join(
        [summary(outcome)] ++
          not_run(outcome) ++ stale(outcome) ++ usage(outcome) ++ comparisons(outcome),
        "\n"
      )
    ]
  end

  defp failure(run, terminal) do
    place = "#{Path.relative_to_cwd(run.evaluation.path)}:#{run.evaluation.line}"
    number = if run.number > 1, do: " (run #{run.number})", else: ""
    title = Terminal.line("#{place} #{run.evaluation.name}#{number}")
    status = if run.status == :error, do: "not completed", else: "failed"
    lines = for failure <- Run.failures(run), do: Terminal.foreign(failure)

    [
      [Terminal.style(terminal, :bright, title), "  ", Terminal.style(terminal, :red, status)],
      ["\n", Enum.intersperse(lines, "\n"), "\n\n"]
    ]
  end

  defp summary(outcome) do
    own = Enum.filter(outcome.runs, &(&1.variant == :with))
    count = fn status -> Enum.count(own, &(&1.status == status)) end
    recorded = Enum.count(own, & &1.recorded)
    failed = count.(:failed) + count.(:error)
    evaluations = own |> Enum.uniq_by(&{&1.evaluation.path, &1.evaluation.name}) |> length()
    runs = if length(own) == evaluations, do: "", else: " in #{length(own)} runs"

    "#{count(evaluations, "evaluation")}#{runs}: #{count.(:passed)} passed, #{failed} failed" <>
      if(recorded > 0, do: ", #{recorded} of them from recordings", else: "")
  end

  defp not_run(outcome) do
    case Enum.count(outcome.runs, &(&1.variant == :with and &1.status == :not_run)) do
      0 ->
        []

      number ->
        [
          "#{number} not run, for want of a recording; --url, --model and --record make it"
        ]
    end
  end

  defp stale(outcome) do
    stale? = &(&1.status == :error and is_struct(&1.error, RecordingError))

    case Enum.count(outcome.runs, stale?) do
      0 -> []
      1 -> ["1 recording is not of this version; --url, --model and --record make it anew"]
      n -> ["#{n} recordings are not of this version; --url, --model and --record make them anew"]
    end
  end

  defp usage(%{usage: %{prompt_tokens: 0, completion_tokens: 0}}), do: []

  defp usage(%{usage: usage, cost: cost}) do
    cached = if usage.cached_tokens > 0, do: " (#{usage.cached_tokens} cached)", else: ""
    cost = if cost, do: "; cost: #{decimals(cost, 4)}", else: ""

    [
      "tokens: #{usage.prompt_tokens} in prompts#{cached}, #{usage.completion_tokens} in " <>
        "replies#{cost}"
    ]
  end

  @variants [
    with: "with the skill",
    without: "without the skill",
    before: "with its version before"
  ]

  defp comparisons(%{comparisons: []} = outcome), do: not_compared(outcome)

  defp comparisons(outcome) do
    lines =
      for {variant, title} <- @variants,
          %{runs: runs} = summary when runs > 0 <- [outcome.summaries[variant]],
          do: "  #{String.pad_trailing(title, 25)}#{rate(summary)}"

    [""] ++ lines ++ not_compared(outcome) ++ Enum.map(outcome.comparisons, &verdict(&1, outcome))
  end

  # Each reason once: there may be no version before, of all skills.
  defp not_compared(outcome) do
    for %{variant: variant, status: status} = run when variant != :with <- outcome.runs,
        status in [:not_run, :error],
        failure <- Run.failures(run),
        line = "  #{@variants[variant]}: #{Terminal.line(failure)}",
        uniq: true,
        do: line
  end

  defp rate(summary) do
    percent = &"#{round(&1 * 100)}%"

    "#{summary.passed} of #{summary.runs} passed (#{percent.(summary.rate)}, " <>
      "95% interval #{percent.(summary.low)} to #{percent.(summary.high)}), " <>
      "#{round(summary.tokens)} tokens and #{decimals(summary.turns, 1)} turns a run"
  end

  defp verdict(%{p: nil, variant: variant}, _outcome),
    do: "Nothing to compare: no evaluation ran both with the skill and #{other(variant)}."

  defp verdict(%{verdict: :unclear} = comparison, _outcome) do
    needed =
      if comparison.needed,
        do: " About #{comparison.needed} runs of each would show a difference of this size.",
        else: ""

    "No difference is shown to #{runs(comparison.variant)}: chance alone makes one of this " <>
      "size in #{chance(comparison.p)} of comparisons." <> needed
  end

  defp verdict(%{variant: :without, verdict: verdict, p: p}, _outcome) do
    helps = if verdict == :helps, do: "helps", else: "hurts"
    "The skill #{helps}: chance alone makes such a difference in #{chance(p)} of comparisons."
  end

  defp verdict(%{variant: :before, verdict: verdict, p: p}, _outcome) do
    better = if verdict == :helps, do: "better", else: "worse"

    "The skill is #{better} than before: chance alone makes such a difference in #{chance(p)} " <>
      "of comparisons."
  end

  defp other(:without), do: "without it"
  defp other(:before), do: "with its version before"
  defp runs(:without), do: "runs without the skill"
  defp runs(:before), do: "runs with its version before"

  defp chance(p) when p < 0.001, do: "less than 0.1%"
  defp chance(p), do: "#{decimals(p * 100, 1)}%"

  defp decimals(number, count), do: :erlang.float_to_binary(number / 1, decimals: count)
  defp count(1, word), do: "1 #{word}"
  defp count(number, word), do: "#{number} #{word}s"
end
