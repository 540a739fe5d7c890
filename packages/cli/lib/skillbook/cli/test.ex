defmodule Skillbook.CLI.Test do
  @moduledoc false
  # `skillbook test`: runs `Skillbook.Test` over the examples of skills, and prints those that
  # lead elsewhere and the pairs of skills that compete.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, Evaluations, Session, Targets, Terminal}
  alias Skillbook.{EmbedderError, Native, Source, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Examples

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
        if(test, do: [text(test, options)], else: []) ++
          if run, do: [Evaluations.text(run)], else: []

      parts = if parts == [], do: ["There are no evaluations."], else: parts
      parts |> Enum.intersperse("\n\n") |> Terminal.put()
    end
  end

  defp text(test, options) do
    test
    |> Map.from_struct()
    |> JSON.encode()
    |> Native.report_examples(Terminal.new(options.color))
  end
end
