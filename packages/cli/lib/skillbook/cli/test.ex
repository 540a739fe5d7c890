defmodule Skillbook.CLI.Test do
  @moduledoc false
  # `skillbook test`: runs `Skillbook.Test` over the examples of skills, and prints those that
  # lead elsewhere and the pairs of skills that compete.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, Evaluations, Session, Targets, Terminal}
  alias Skillbook.Test.{Examples, Ranking}
  alias Skillbook.{EmbedderError, Source, View}

  # Failing examples that are printed; --json has all.
  @max_shown 100

  @impl true
  def switches do
    EmbedderFlags.switches() ++
      [
        min_hit1: {:number, 0, 100},
        min_hit3: {:number, 0, 100},
        min_picked: {:number, 0, 100},
        preflight: :boolean,
        pairs: {:number, 0, 1_000},
        only: {:one_of, [:examples, :evaluations]},
        json: :boolean
      ] ++ Evaluations.switches()
  end

  @impl true
  def args(paths), do: Targets.check("test", paths)

  @impl true
  def run(options) do
    with {:ok, options} <- EmbedderFlags.read(options),
         {:ok, evaluate} <- Evaluations.read(options.flags) do
      test(options, evaluate)
    else
      {:error, message} -> Terminal.usage_error(message, "test --help")
    end
  end

  defp test(options, evaluate) do
    {targets, sources} = Targets.of(options)
    dirs = Enum.map(options.dirs, &Path.expand/1)
    book_options = %{options | dirs: Enum.uniq(dirs ++ sources), tested: sources}

    only = options.flags[:only]

    Session.with_book(book_options, :read, fn book ->
      test = if only != :evaluations, do: examples(book, options, targets)

      run =
        if only != :examples,
          do: Evaluations.run(book_options, Session.view(book, options), targets, evaluate)

      put(test, run, options)
      if Evaluations.failed?(run), do: 1, else: status(test, run, options)
    end)
  rescue
    error in EmbedderError ->
      Terminal.clear_progress()
      Terminal.complain(["the requests cannot be embedded: ", Exception.message(error)])
      3
  end

  defp examples(book, options, targets) do
    view = Session.given_view(book, options)
    only = only(view, options.args, targets)
    test = Examples.run(view, only, options.flags[:pairs] || 10, nil, &progress/2)
    Terminal.clear_progress()
    test
  end

  defp progress(:requests, count), do: Session.progress("requests embedded", count)
  defp progress(:entries, count), do: Session.progress("skills embedded", count)

  # The names below the targets. Without any, all but the built-in skills, if there are others.
  defp only(view, [], _targets) do
    builtin = Source.builtin().name
    own = for entry <- View.entries(view), entry.source != builtin, do: entry.name
    if own == [], do: nil, else: own
  end

  defp only(view, _paths, targets) do
    for entry <- View.entries(view),
        Targets.below?(Path.expand(entry.path), targets),
        do: entry.name
  end

  # A test that tests nothing does not pass.
  defp status(test, nil, options) when test == nil or test.results == [] do
    wanted =
      case options.flags[:only] do
        :examples -> "`examples` in the frontmatter of skills"
        :evaluations -> "evaluations beside skills, such as evals.yaml"
        nil -> "`examples` in the frontmatter of skills, or evaluations beside them"
      end

    Terminal.usage_error("nothing was tested: expected #{wanted}", "test --help")
  end

  defp status(nil, _run, _options), do: 0

  defp status(test, _run, %{flags: flags}) do
    picked? = Enum.any?(test.results, &(&1.not and not &1.passed))

    limits = [
      {test.hit1, flags[:min_hit1]},
      {test.hit3, flags[:min_hit3]},
      {test.picked, flags[:min_picked]}
    ]

    failed? =
      if Enum.all?(limits, &(elem(&1, 1) == nil)),
        do: Enum.any?(test.results, &(not &1.passed)),
        else: Enum.any?(limits, &below?/1)

    if picked? or failed?, do: 1, else: 0
  end

  # Without a request, none leads anywhere.
  defp below?({_share, nil}), do: false
  defp below?({share, least}), do: (share || 0.0) * 100 < least

  defp put(test, run, options) do
    if options.flags[:json] do
      examples = if test, do: Map.from_struct(test), else: %{}
      evaluations = if run, do: %{evaluations: Evaluations.json(run)}, else: %{}
      examples |> Map.merge(evaluations) |> Terminal.put_json()
    else
      parts =
        if(test, do: [text(test, Terminal.new(options.color))], else: []) ++
          if run, do: [Evaluations.text(run)], else: []

      parts = if parts == [], do: ["There are no evaluations."], else: parts
      parts |> Enum.intersperse("\n\n") |> Terminal.put()
    end
  end

  defp text(test, terminal) do
    lost = Enum.filter(test.results, &(not &1.passed or (not &1.not and &1.rank != 1)))
    {shown, rest} = Enum.split(lost, @max_shown)

    more =
      if rest == [],
        do: [],
        else: ["#{length(rest)} more requests lead elsewhere; --json has all of them\n\n"]

    [
      for({name, results} <- by_name(shown), do: skill(name, results, test.router, terminal)),
      more,
      pairs(test.pairs, terminal),
      summary(test)
    ]
  end

  defp by_name(results),
    do: results |> Enum.chunk_by(& &1.name) |> Enum.map(&{hd(&1).name, &1})

  defp skill(name, results, router?, terminal) do
    [
      [Terminal.style(terminal, :bright, Terminal.line(name)), "\n"],
      for(result <- results, do: request(result, router?, terminal)),
      "\n"
    ]
  end

  defp request(result, router?, terminal) do
    {color, got} =
      case result do
        %{not: true} ->
          {:red, "picked"}

        %{rank: nil, picked: false} ->
          {:red, "not found"}

        %{rank: nil} ->
          {:yellow, "picked, not found"}

        %{passed: false, rank: 1} ->
          {:red, "first, not picked"}

        %{passed: false, rank: rank, picked: false} when router? ->
          {:red, "in place #{rank}, not picked"}

        %{passed: false, rank: rank} ->
          {:red, "in place #{rank}"}

        %{rank: rank} ->
          {:yellow, "in place #{rank}"}
      end

    request = [if(result.not, do: "not: ", else: ""), Terminal.line(result.request)]
    lines = for line <- Ranking.lines(result.ranking), do: ["  ", Terminal.line(line), "\n"]
    ["  ", request, "  ", Terminal.style(terminal, color, got), "\n" | lines]
  end

  defp pairs([], _terminal), do: []

  defp pairs(pairs, terminal) do
    [
      [Terminal.style(terminal, :bright, "Skills that compete"), "\n"],
      for(pair <- pairs, do: pair(pair)),
      "\n"
    ]
  end

  defp pair(%{names: [one, other], taken: [by_other, by_one]} = pair) do
    words =
      if pair.words == [],
        do: [],
        else: [
          ["    alike by ", decimals(pair.similarity), ": "],
          [pair.words |> Enum.join(", ") |> Terminal.line(), "\n"]
        ]

    meaning =
      if pair.meaning, do: ["    alike in meaning by ", decimals(pair.meaning), "\n"], else: []

    [
      ["  ", Terminal.line("#{one} and #{other}"), "\n"],
      [words, meaning],
      taken(one, other, by_other),
      taken(other, one, by_one)
    ]
  end

  defp decimals(number), do: :erlang.float_to_binary(number, decimals: 2)

  defp taken(_name, _other, 0), do: []

  defp taken(name, other, count) do
    line = "#{count(count, "example")} of #{name} #{verb(count)} to #{other} before it"
    ["    ", Terminal.line(line), "\n"]
  end

  defp verb(1), do: "leads"
  defp verb(_count), do: "lead"

  defp summary(%{results: []} = test) do
    "None of #{count(test.entries, "skill")} has examples." <> unlisted(test)
  end

  defp summary(test) do
    {unwanted, wanted} = Enum.split_with(test.results, & &1.not)
    skills = test.results |> Enum.map(& &1.name) |> Enum.uniq() |> length()
    first = Enum.count(wanted, &(&1.rank == 1))
    third = Enum.count(wanted, &(&1.rank != nil and &1.rank <= 3))
    picked = Enum.count(wanted, & &1.picked)

    parts =
      if(wanted == [],
        do: [],
        else: [
          "#{count(length(wanted), "request")}: first #{percent(first, length(wanted))} " <>
            "(#{first}), among the first three #{percent(third, length(wanted))} (#{third}), " <>
            "picked #{percent(picked, length(wanted))} (#{picked})"
        ]
      ) ++
        if unwanted == [],
          do: [],
          else: [
            "#{count(length(unwanted), "request")} after `not`: " <>
              "#{Enum.count(unwanted, &(not &1.passed))} picked"
          ]

    "#{skills} of #{count(test.entries, "skill")} with examples\n" <>
      Enum.join(parts, "\n") <> unlisted(test)
  end

  defp unlisted(%{unlisted: []}), do: ""

  defp unlisted(%{unlisted: names}) do
    "\nNot tested, since models do not see them: " <> Terminal.line(Enum.join(names, ", "))
  end

  defp percent(part, all), do: "#{round(part / all * 100)}%"

  defp count(1, word), do: "1 #{word}"
  defp count(number, word), do: "#{number} #{word}s"
end
