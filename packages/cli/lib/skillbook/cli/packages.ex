defmodule Skillbook.CLI.Packages do
  @moduledoc false
  # Shared by the subcommands that install, update, remove and import skills: their options, the
  # question whether to accept a skill, and the output of outcomes.

  alias Skillbook.CLI.Terminal
  alias Skillbook.Diagnostic
  alias Skillbook.Package.{Outcome, Question}
  alias Skillbook.Support.JSON

  # Limits of the report. All warnings are shown, so the first is for other findings of one kind.
  @max_findings 8
  @max_diff_lines 60
  @max_diagnostics 5

  @doc """
  Calls a function of `Skillbook.Package` with the flags' options, prints the outcomes, and calls
  `tell` with them.
  """
  def run(options, command, keys, fun, tell \\ fn _outcomes -> :ok end) do
    terminal = Terminal.new(options.color)
    result = fun.(Keyword.take(options.flags, keys) ++ [progress: &progress(terminal, &1)])
    clear_progress(terminal)

    case result do
      {:ok, outcomes} ->
        if options.flags[:json], do: put_json(outcomes), else: put(outcomes, command, terminal)
        tell.(outcomes)
        if Enum.any?(outcomes, &(&1.action == :failed)), do: 1, else: 0

      {:error, error} ->
        complain(error, command)
        1
    end
  end

  @doc "Prints an error and the command that shows help."
  def complain(error, command),
    do: Terminal.complain([Exception.message(error), "\nSee: skillbook #{command} --help"])

  @doc "The switches of commands that read a source."
  def source_switches do
    [
      all: :boolean,
      branch: :string,
      tag: :string,
      commit: :string,
      path: :string,
      yes: :boolean,
      strict: :boolean,
      force: :boolean,
      json: :boolean
    ]
  end

  @doc "The option `:names`, from the arguments and `--all`."
  def chosen(names, options) do
    cond do
      options.flags[:all] -> [names: :all]
      names == [] -> []
      true -> [names: names]
    end
  end

  @doc "The `:accept` function: `--yes` accepts, a terminal asks, anything else refuses."
  def accept(options) do
    terminal = Terminal.new(options.color)

    fn question ->
      clear_progress(terminal)

      unless options.flags[:json], do: Terminal.put(report(question, terminal))

      cond do
        options.flags[:yes] -> true
        options.flags[:json] -> false
        true -> Terminal.person?() and ask(question)
      end
    end
  end

  defp ask(question) do
    verb = if question.new, do: "Install", else: "Update"
    answer = Terminal.ask("#{verb} #{question.name}? y/n")
    answer |> String.trim() |> String.downcase() |> Kernel.in(["y", "yes"])
  end

  # The current step, in one line that the next step replaces. It goes to standard output like the
  # rest, because the order of writes to two devices is not defined.
  defp progress(%{width: nil}, _text), do: :ok

  defp progress(terminal, text) do
    line = text |> Terminal.line() |> String.slice(0, max(terminal.width - 1, 10))
    Terminal.write(["\r\e[K", line])
  end

  defp clear_progress(%{width: nil}), do: :ok
  defp clear_progress(_terminal), do: Terminal.write("\r\e[K")

  # Outcomes

  defp put([], "publish", _terminal), do: Terminal.put("The profile sees no entry.")
  defp put([], _command, _terminal), do: Terminal.put("No skill is installed.")

  defp put(outcomes, _command, terminal) do
    named = outcomes |> Enum.reject(& &1.error) |> widest(& &1.name)
    acted = outcomes |> Enum.filter(& &1.commit) |> widest(& &1.action)
    for outcome <- outcomes, do: put_outcome(outcome, named, acted, terminal)
    :ok
  end

  defp widest(outcomes, field),
    do:
      outcomes
      |> Enum.map(&(&1 |> field.() |> to_string() |> String.length()))
      |> Enum.max(fn -> 0 end)

  defp put_outcome(%Outcome{action: :failed} = outcome, _named, _acted, _terminal),
    do: Terminal.complain(Exception.message(outcome.error))

  defp put_outcome(outcome, named, acted, terminal) do
    action = to_string(outcome.action)

    Terminal.put([
      Terminal.style(terminal, :bright, String.pad_trailing(outcome.name, named)),
      "  ",
      Terminal.style(terminal, color(outcome.action), action),
      if(outcome.commit,
        do: [
          String.duplicate(" ", acted - String.length(action) + 2),
          Terminal.style(terminal, :faint, String.slice(outcome.commit, 0, 12))
        ],
        else: ""
      ),
      for(
        {how, path} <- outcome.changes,
        do: "\n  #{how} by hand: #{Terminal.safe(path)}"
      )
    ])
  end

  defp color(action) when action in [:installed, :imported, :published, :updated, :restored],
    do: :green

  defp color(action) when action in [:outdated, :changed], do: :yellow
  defp color(_), do: :faint

  defp put_json(outcomes) do
    outcomes
    |> Enum.map(fn outcome ->
      error =
        with %{kind: kind} = error <- outcome.error,
             do: %{kind: kind, message: Exception.message(error)}

      question = with %Question{} = question <- outcome.question, do: fields(question)
      changes = for {how, path} <- outcome.changes, do: %{how: how, path: path}

      %{
        name: outcome.name,
        action: outcome.action,
        commit: outcome.commit,
        changes: changes,
        error: error,
        question: question
      }
    end)
    |> Terminal.put_json()
  end

  defp fields(question) do
    findings = for finding <- question.inspection.findings, do: Map.delete(finding, :key)

    %{
      new: question.new,
      source: question.source,
      files: question.inspection.files,
      bytes: question.inspection.bytes,
      findings: findings,
      grown: for(finding <- question.grown, do: Map.delete(finding, :key)),
      diagnostics: Enum.map(question.diagnostics, &JSON.diagnostic/1)
    }
  end

  # The report

  @titles [
    instruction: "instructions against a model's rules",
    hidden: "hidden characters",
    blob: "blobs",
    hook: "run by other programs",
    binary: "programs and unknown files",
    script: "scripts",
    archive: "archives",
    tool: "tools",
    command: "commands in code blocks",
    host: "hosts",
    comment: "hidden comments"
  ]

  @doc "Formats a question: the findings of a new skill, or the new findings of an update."
  def report(%Question{} = question, terminal) do
    safe = &Terminal.line/1
    from = [question.source, question.commit && " at " <> String.slice(question.commit, 0, 12)]

    [
      Terminal.heading(terminal, safe.(question.name)),
      "\n",
      if(question.new, do: [safe.(question.description), "\n"], else: ""),
      Terminal.style(terminal, :faint, [
        "from ",
        safe.(IO.iodata_to_binary(Enum.reject(from, &is_nil/1)))
      ]),
      "\n",
      "#{count(question.inspection.files, "file")}, #{question.inspection.bytes} bytes\n",
      if(question.new, do: "", else: "It can do more than was accepted:\n"),
      findings(question.grown, terminal, safe),
      for({path, lines} <- question.diffs, do: diff(path, lines, terminal, safe)),
      diagnostics(question.diagnostics, safe)
    ]
  end

  defp findings([], _terminal, _safe), do: "No findings.\n"

  defp findings(findings, terminal, safe) do
    for {kind, title} <- @titles,
        of_kind = Enum.filter(findings, &(&1.kind == kind)),
        of_kind != [] do
      warning? = Enum.any?(of_kind, &(&1.level == :warning))
      {first, left} = Enum.split(of_kind, if(warning?, do: length(of_kind), else: @max_findings))

      [
        Terminal.style(terminal, if(warning?, do: :red, else: :cyan), title),
        "\n",
        for(finding <- first, do: ["  ", line(finding, safe), "\n"]),
        if(left == [],
          do: "",
          else: [
            "  and #{length(left)} more: ",
            left |> Enum.map_join(", ", & &1.what) |> safe.() |> String.slice(0, 300),
            "\n"
          ]
        )
      ]
    end
  end

  defp line(finding, safe) do
    place = if finding.line, do: "#{finding.file}:#{finding.line}", else: finding.file
    text = if finding.what == finding.file, do: "", else: ["  ", safe.(finding.what)]
    times = if finding.count > 1, do: " (#{finding.count} times)", else: ""

    reason =
      if finding.kind in [:command, :host, :comment] and finding.level == :notice,
        do: "",
        else: ["  - ", finding.reason]

    [safe.(place), text, times, reason]
  end

  defp diff(path, lines, terminal, safe) do
    {first, left} = Enum.split(lines, @max_diff_lines)

    [
      Terminal.style(terminal, :bright, ["changes in ", safe.(path)]),
      "\n",
      for(
        line <- first,
        do: ["  ", Terminal.style(terminal, line_color(line), safe.(line)), "\n"]
      ),
      if(left == [], do: "", else: "  and #{length(left)} more lines\n")
    ]
  end

  defp line_color("+" <> _), do: :green
  defp line_color("-" <> _), do: :red
  defp line_color("@@" <> _), do: :cyan
  defp line_color(_), do: :faint

  defp diagnostics([], _safe), do: ""

  defp diagnostics(diagnostics, safe) do
    {first, left} = Enum.split(diagnostics, @max_diagnostics)

    [
      "problems found by lint\n",
      for(
        %Diagnostic{} = diagnostic <- first,
        do: ["  ", safe.(diagnostic |> to_string() |> String.split("\n") |> hd()), "\n"]
      ),
      if(left == [], do: "", else: "  and #{length(left)} more\n")
    ]
  end

  defp count(1, word), do: "1 #{word}"
  defp count(n, word), do: "#{n} #{word}s"
end
