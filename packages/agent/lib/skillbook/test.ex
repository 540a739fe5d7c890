defmodule Skillbook.Test do
  @moduledoc ~S"""
  Tests of skills: a book for each test, and tests of descriptions without a model.

  ## Tests of an application

      defmodule MyApp.OrdersTest do
        use Skillbook.Test,
          sources: [{:priv, :my_app, "skills"}],
          profiles: [[id: "support", writes: :ask]]

        test "a refund asks first" do
          assert run_skill("orders.refund --id 7").status == :ok
          assert_asked("orders.refund", id: 7)
        end

        test "a refund that nobody allows" do
          assert run_skill("orders.refund", %{id: 7}, ask: :deny).status == :error
          refute_ran("orders.refund")
        end

        test "requests for a refund" do
          assert_routes("I want my money back", "orders.refund")
        end
      end

  Each test has a book of its own, which stops at its end. Nothing is global, so the tests are
  `async: true`; see `__using__/1` for the options. [Testing](docs/testing.md) shows models,
  approvals, schedules and evaluations.

  ## Tests of descriptions

  `run/2` tests the [`examples`](finding.md#test-descriptions) in the frontmatter of all skills,
  as `bin/skillbook test` does. `assert_routes/4` and `refute_routes/3` test single requests, in
  ExUnit or any other program:

      test "requests for mail" do
        view = Skillbook.view(MyApp.Skills, "support")
        Skillbook.Test.assert_routes(view, "Tell Bob that I am late", "email.send")
        Skillbook.Test.assert_routes(view, "Any news from Ann?", "email.search", first: 3)
        Skillbook.Test.refute_routes(view, "Thank you!")
      end

  A request leads to the entries that search finds for it, in their order. Search is by words, and
  also by meaning if the view is of a book with an embedder; then the functions wait until the
  book has embedded its entries, and raise `Skillbook.EmbedderError` if it cannot. Search goes
  through the view: entries that the profile does not see neither compete nor appear.

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skills-#{System.unique_integer([:positive])}")
      iex> write = fn name, about, request ->
      ...>   page = "---\nname: #{name}\ndescription: #{about}\nexamples: [#{request}]\n---\n"
      ...>   {:ok, _} = Skillbook.Document.create(folder, name <> ".md", page <> "Text.\n")
      ...> end
      iex> write.("rain", "Forecasts of rain and wind", "Will there be rain?")
      iex> write.("poem", "Writes a poem about anything", "A poem for my sister")
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> File.rm_rf!(folder)
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Test.assert_routes(view, "Is there wind in Rome?", "rain")
      :ok
      iex> test = Skillbook.Test.run(view)
      iex> {length(test.results), test.hit1, test.hit3}
      {2, 1.0, 1.0}

  ## Fields

    * `:results` - a `t:result/0` for each example, sorted by name, in the order of the page
    * `:hit1`, `:hit3` - the share of requests whose entry comes first, and of those whose entry
      is among the first three, from 0.0 to 1.0; `nil` without requests. Those after `not:` do not
      count
    * `:picked` - the share of requests whose entry [the router](docs/routing.md) picks
    * `:router` - whether the router is on, so that its picks decide which examples pass
    * `:pairs` - the pairs of entries that compete most: a `t:pair/0` each
    * `:entries` - how many entries could have examples
    * `:unlisted` - the names of entries with examples to which no request leads, because models
      do not see them (`disable-model-invocation`)
    * `:vectors` - whether search was by meaning too
  """

  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.Test.{Case, Evaluation, EvaluationFile, Evaluator, Examples, Outcome, Ranking}
  alias Skillbook.Test.Stub
  alias Skillbook.{Context, Diagnostic, MisroutedError, Model, Profile, Request, Result, View}

  @typedoc """
  The result of an example.

    * `:name`, `:request` - the entry, and what somebody asks for
    * `:not` - whether the request should not lead to the entry
    * `:passed` - whether the entry is among the first three or, if the router is on, picked; with
      `:not`, whether it is not picked
    * `:picked` - whether the router picks the entry for the request
    * `:rank` - the place of the entry, from 1; `nil` if it is not among the first ten
    * `:ranking` - the entries up to its own, at most the first three, and its own. Empty if it is
      first and should be
  """
  @type result :: %{
          name: String.t(),
          request: String.t(),
          not: boolean(),
          passed: boolean(),
          picked: boolean(),
          rank: pos_integer() | nil,
          ranking: [ranked()]
        }

  @typedoc """
  An entry that search finds for a request.

    * `:rank`, `:name`, `:score` - its place and its relevance
    * `:words` - the words of the request that find it, the strongest first: `%{word:, part:}`.
      The part is what the score by words would lose without that word
    * `:similarity` - how similar the request is to the entry's description, from -1.0 to 1.0;
      `nil` without vectors
    * `:sentence` - the sentence of the description that is most similar to the request; `nil`
      without vectors
  """
  @type ranked :: %{
          rank: pos_integer(),
          name: String.t(),
          score: float(),
          words: [%{word: String.t(), part: float()}],
          similarity: float() | nil,
          sentence: String.t() | nil
        }

  @typedoc """
  Two entries that compete.

    * `:names` - their names, sorted
    * `:similarity` - how alike their descriptions are, from 0.0 to 1.0, by the words that both
      have. A rare word counts more than a common one
    * `:words` - these words, the rarest first
    * `:meaning` - how similar their descriptions are in meaning, from 0.6 to 1.0; `nil` if they
      are less similar, or without vectors
    * `:taken` - how many examples of the first entry have the second one before it, and the
      reverse
  """
  @type pair :: %{
          names: [String.t()],
          similarity: float(),
          words: [String.t()],
          meaning: float() | nil,
          taken: [non_neg_integer()]
        }

  @type t :: %__MODULE__{
          results: [result()],
          hit1: float() | nil,
          hit3: float() | nil,
          picked: float() | nil,
          router: boolean(),
          pairs: [pair()],
          entries: non_neg_integer(),
          unlisted: [String.t()],
          vectors: boolean()
        }

  defstruct [:hit1, :hit3, :picked, router: false, results: [], pairs: []] ++
              [entries: 0, unlisted: [], vectors: false]

  @doc """
  Starts a book for each test of a module, and imports the functions of this module that use it.

  The module becomes an `ExUnit.Case` with `async: true`, unless it is one already. The name of
  the book is in the context of each test, as `:book`.

  ## Options

  Those of a book (`Skillbook`), except `:name`. `:store` defaults to `":memory:"`, and `:watch`
  to `false`. And:

    * `:profile` (id or `Skillbook.Profile`) - on whose behalf the functions read and run.
      Defaults to the first of `:profiles`, or `"default"`
    * `:ask` - the answer to questions about commands with side effects: `:allow`, `:deny`,
      `{:deny, text}`, `:pending`, or a function of the `Skillbook.Request`. Defaults to `:allow`
    * `:now` (`DateTime` or `:system`) - the time of calls and schedules. It stands still, and
      `advance/1` moves it; with `:system` it runs. Defaults to the start of the test, in whole
      seconds
    * `:stubs` (map) - answers instead of handlers, by the names of their entries: a text,
      `{:error, reason}`, or a function of the flags, or of the flags and the
      `Skillbook.Context`, that returns what a handler returns. Flags and rights are checked as
      always. Defaults to `%{}`
    * `:async` (boolean) - Defaults to `true`

  A tag changes the options of one test:

      @tag skillbook: [ask: :deny]
      test "a refund that nobody allows" do

  `@tag skillbook: false` starts no book.
  """
  defmacro __using__(options) do
    # A case of the application may have used it before, with its own `:async`.
    ex_unit =
      unless Module.has_attribute?(__CALLER__.module, :ex_unit_tests) do
        quote do
          use ExUnit.Case, async: Keyword.get(unquote(options), :async, true)
        end
      end

    quote do
      unquote(ex_unit)

      import Skillbook.Test,
        only: [
          view: 0,
          view: 1,
          run_skill: 1,
          run_skill: 2,
          run_skill: 3,
          context: 0,
          context: 1,
          now: 0,
          advance: 1,
          run_schedules: 0,
          evaluations: 1,
          evaluations: 2,
          script: 1,
          script: 2,
          recording: 1,
          recording: 2,
          assert_asked: 1,
          assert_asked: 2,
          assert_asked: 3,
          refute_asked: 0,
          refute_asked: 1,
          refute_asked: 2,
          assert_ran: 1,
          assert_ran: 2,
          assert_ran: 3,
          refute_ran: 0,
          refute_ran: 1,
          refute_ran: 2,
          assert_routes: 2,
          assert_routes: 3,
          assert_routes: 4,
          refute_routes: 1,
          refute_routes: 2,
          refute_routes: 3
        ]

      setup context do
        if context[:skillbook] == false,
          do: :ok,
          else: {:ok, book: Skillbook.Test.Case.start(context, unquote(options))}
      end
    end
  end

  @doc """
  Returns the view of a profile of the test's book; without one, of the profile of the test.
  """
  @spec view(String.t() | Profile.t() | nil) :: View.t()
  def view(profile \\ nil), do: Case.view(profile)

  @doc """
  Runs one command in the test's book and returns its result.

  The command is a line, or a name with a map of flags, which are passed on as a tool call passes
  them.

  Takes the options of `Skillbook.run/3` except `:unclosed`, and:

    * `:profile` (id or `Skillbook.Profile`) - on whose behalf. Defaults to the test's
    * `:ask` - the answer to a question, as in `use Skillbook.Test`

  ## Examples

      test "a refund" do
        assert %{status: :ok, content: "Refunded order 7."} = run_skill("orders.refund --id 7")
        assert run_skill("orders.refund", %{id: -1}).content =~ "--id"
      end
  """
  @spec run_skill(String.t(), map() | keyword()) :: Result.t()
  def run_skill(line, flags_or_options \\ [])
  def run_skill(line, options) when is_list(options), do: Case.run_skill(line, options)
  def run_skill(name, flags) when is_map(flags), do: Case.run_skill(name, flags, [])

  @doc "Runs a command with a map of flags; see `run_skill/2`."
  @spec run_skill(String.t(), map(), keyword()) :: Result.t()
  def run_skill(name, flags, options) when is_map(flags) and is_list(options),
    do: Case.run_skill(name, flags, options)

  @doc """
  Returns a `Skillbook.Context` of the test's book, to call a handler directly.

  It has the view and the profile of the test, its database and its time, and no entry.

  ## Options

    * `:line` (text) - a command: the context has its entry and its flags as written
    * `:profile` (id or `Skillbook.Profile`) - Defaults to the test's
    * `:assigns`, `:by`, `:now`, `:agent`, `:workflow`, `:write_to`, `:timeout`, `:ask` - fields
      of the context

  ## Examples

      test "a refund of an order that does not exist" do
        context = context(assigns: %{user: 1})
        assert {:error, "no order 8"} = MyApp.Refund.execute(%{"id" => 8}, context)
      end
  """
  @spec context(keyword()) :: Context.t()
  def context(options \\ []) when is_list(options), do: Case.context(options)

  @doc "Returns the time of the test."
  @spec now() :: DateTime.t()
  def now, do: Case.now()

  @doc """
  Moves the time of the test, and returns it.

  Takes milliseconds, a keyword list of `:days`, `:hours`, `:minutes`, `:seconds` and
  `:milliseconds`, or a `DateTime`. Time moves backwards too. Timeouts do not follow it.
  """
  @spec advance(integer() | keyword(integer()) | DateTime.t()) :: DateTime.t()
  def advance(time), do: Case.advance(time)

  @doc """
  Runs the scheduled entries of the test's book that are due at its time, and returns when they
  have ended.

  ## Examples

      @tag skillbook: [now: ~U[2026-03-02 07:59:00Z], schedules: [run_as: "default"]]
      test "the report at eight" do
        advance(minutes: 1)
        run_schedules()
        assert_ran("reports.daily")
      end
  """
  @spec run_schedules() :: :ok
  def run_schedules, do: Case.run_schedules()

  @doc """
  Makes a `Skillbook.Model.Script`, all of whose answers must be used when the test ends.

  Takes the options of `Skillbook.Model.Script.new/2`.
  """
  @spec script([Model.Script.item()], keyword()) :: Model.Script.t()
  def script(answers, options \\ []), do: Case.script(answers, options)

  @doc """
  Makes a `Skillbook.Model.Recording`, all of whose answers must be used when the test ends.

  With the environment variable `SKILLBOOK_RECORD=1` it records. Takes the options of
  `Skillbook.Model.Recording.new/1`, of which `:model` is only used to record.
  """
  @spec recording(Path.t(), keyword()) :: Model.Recording.t()
  def recording(path, options \\ []), do: Case.recording(path, options)

  @doc """
  Checks that somebody was asked about a command, and returns the `Skillbook.Request`.

  The command is a line, or a name with flags as a map or a keyword list. The call may have more
  flags. Values are compared as texts, so `7` is `"7"`; a regular expression is searched in the
  value. Questions of the whole test count, whatever was asked about them before.

  ## Options

    * `:timeout` (milliseconds) - how long to wait for a question of another process. Defaults to
      `100`
  """
  @spec assert_asked(String.t(), map() | keyword(), keyword()) :: Request.t()
  def assert_asked(name, flags \\ [], options \\ []), do: Case.assert_asked(name, flags, options)

  @doc """
  Checks that nobody was asked about a command so far; without a name, about any.
  """
  @spec refute_asked(String.t() | nil, map() | keyword()) :: :ok
  def refute_asked(name \\ nil, flags \\ []), do: Case.refute_asked(name, flags)

  @doc """
  Checks that a command ran, in a reply, a workflow, a schedule or an agent, and returns the call.

  The arguments are those of `assert_asked/3`; flags have the values that the handler got. The
  call is a map with the `:name`, `:flags`, `:args`, the id of the `:profile`, and the `:answer`
  of the run: `{:ok, result}` or `{:error, exception}`. A command that was refused, or waits for
  an approval, did not run. The default `:timeout` is 0.
  """
  @spec assert_ran(String.t(), map() | keyword(), keyword()) :: map()
  def assert_ran(name, flags \\ [], options \\ []), do: Case.assert_ran(name, flags, options)

  @doc "Checks that a command did not run so far; without a name, that none did."
  @spec refute_ran(String.t() | nil, map() | keyword()) :: :ok
  def refute_ran(name \\ nil, flags \\ []), do: Case.refute_ran(name, flags)

  @doc """
  Runs the examples of the entries that a view shows.

  ## Options

    * `:only` (list of names or `nil`) - test only the examples of these entries, and show only
      their pairs. All entries compete. Defaults to `nil`, all
    * `:pairs` (0 to 1,000) - the maximum number of pairs. Defaults to `10`
    * `:preflight` (keyword list, `false` or `nil`) - the router, as in `Skillbook.Agent.run/3`:
      if it is on, an example passes if the router picks its entry. Defaults to `nil`, as the book
      and the profile say. Its `:model` is asked; without a router that is on, none is
  """
  @spec run(View.t(), keyword()) :: t()
  def run(view, options \\ [])

  def run(%View{} = view, options) when is_list(options) do
    with {:error, error} <- Options.validate(options, "a test of examples", run_schema()),
         do: raise(error)

    Examples.run(view, options[:only], Keyword.get(options, :pairs, 10), options[:preflight])
  end

  def run(view, options) do
    Arguments.check!("Skillbook.Test.run/2", view: {:view, view}, options: {:keyword, options})
  end

  @doc """
  Checks that a request leads to an entry, and returns `:ok`: that it comes first or, if the
  router is on for the view, that the router picks it.

  Raises `Skillbook.MisroutedError` otherwise, which shows the entries that come first and the
  words that find them. Raises `Skillbook.UnknownSkillError` if the view has no entry of this name
  or alias.

  A view shows what its profile sees. The name of a book stands for all its entries. In a module
  with `use Skillbook.Test` the view may be left out, and is that of the test.

  ## Options

    * `:first` (1 to #{Ranking.max()}) - how many entries may come up to it, itself included.
      Defaults to `1`: it comes first
    * `:preflight` (keyword list, `false` or `nil`) - the router, as in `run/2`. If it is on, it
      must pick the entry; the order counts only with `:first`
  """
  @spec assert_routes(View.t() | atom(), String.t(), String.t(), keyword()) :: :ok
  def assert_routes(view_or_book, request, name, options)

  def assert_routes(%View{} = view, request, name, options)
      when is_binary(request) and is_binary(name) and is_list(options) do
    with {:error, error} <- Options.validate(options, "assert_routes/4", assert_schema()),
         do: raise(error)

    name = View.fetch!(view, name).name
    ranking = Ranking.new(view, [request])
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)
    router? = Ranking.router?(view, options[:preflight])
    first = options[:first] || if(not router?, do: 1)

    cond do
      first != nil and (rank == nil or rank > first) ->
        misrouted(ranking, request, name, rank, expected: {:first, first})

      router? ->
        picks = Ranking.picked(ranking, request, options[:preflight])

        if name in picks,
          do: :ok,
          else: misrouted(ranking, request, name, rank, expected: :picked, picks: picks)

      true ->
        :ok
    end
  end

  def assert_routes(book, request, name, options)
      when is_atom(book) and not is_nil(book) and not is_boolean(book),
      do: assert_routes(View.all(book), request, name, options)

  def assert_routes(view, request, name, options) do
    Arguments.check!("Skillbook.Test.assert_routes/4",
      view_or_book: {:view, view},
      request: {:text, request},
      name: {:text, name},
      options: {:keyword, options}
    )
  end

  @doc "Checks that a request leads to an entry; see `assert_routes/4`."
  @spec assert_routes(View.t() | atom() | String.t(), String.t(), String.t() | keyword()) :: :ok
  def assert_routes(request, name, options) when is_binary(request) and is_list(options),
    do: assert_routes(Case.view(), request, name, options)

  def assert_routes(view_or_book, request, name),
    do: assert_routes(view_or_book, request, name, [])

  @doc "Checks that a request leads to an entry of the test's book; see `assert_routes/4`."
  @spec assert_routes(String.t(), String.t()) :: :ok
  def assert_routes(request, name), do: assert_routes(Case.view(), request, name, [])

  @doc """
  Checks that the router picks neither this entry for a request, nor any without a name, and
  returns `:ok`.

  Raises `Skillbook.MisroutedError` otherwise. An entry that does not exist is not picked. In a
  module with `use Skillbook.Test` the view may be left out.
  """
  @spec refute_routes(View.t() | atom(), String.t(), String.t() | nil) :: :ok
  def refute_routes(view_or_book, request, name)

  def refute_routes(%View{} = view, request, name)
      when is_binary(request) and (is_binary(name) or is_nil(name)) do
    own =
      with name when is_binary(name) <- name,
           {:ok, entry} <- View.fetch(view, name),
           do: entry.name,
           else: (other -> other)

    ranking = Ranking.new(view, [request])

    with picked when is_binary(picked) <-
           Enum.find(Ranking.picked(ranking, request, nil), &(own in [nil, &1])) do
      rank = ranking |> Ranking.find(request) |> Ranking.rank(picked)
      misrouted(ranking, request, picked, rank, expected: :not_picked)
    else
      nil -> :ok
    end
  end

  def refute_routes(book, request, name)
      when is_atom(book) and not is_nil(book) and not is_boolean(book),
      do: refute_routes(View.all(book), request, name)

  def refute_routes(view, request, name) do
    Arguments.check!("Skillbook.Test.refute_routes/3",
      view_or_book: {:view, view},
      request: {:text, request},
      name: {{:or_nil, :text}, name}
    )
  end

  @doc "Checks that the router does not pick an entry for a request; see `refute_routes/3`."
  @spec refute_routes(View.t() | atom() | String.t(), String.t()) :: :ok
  def refute_routes(request, name) when is_binary(request),
    do: refute_routes(Case.view(), request, name)

  def refute_routes(view_or_book, request), do: refute_routes(view_or_book, request, nil)

  @doc "Checks that the router picks no entry for a request; see `refute_routes/3`."
  @spec refute_routes(String.t()) :: :ok
  def refute_routes(request), do: refute_routes(Case.view(), request, nil)

  @doc """
  Reads the evaluations of files, and of the files in folders.

  Returns them with the diagnostics of the files. An evaluation with an error is left out. A page
  of a skill stands for the evaluations beside it.

  [Testing](docs/testing.md#evaluations) describes the files. `Skillbook.Test.Evaluation` is one
  evaluation.
  """
  @spec read_evaluations(Path.t() | [Path.t()]) :: {[Evaluation.t()], [Diagnostic.t()]}
  def read_evaluations(paths),
    do: paths |> List.wrap() |> EvaluationFile.find() |> EvaluationFile.read()

  @doc """
  Runs evaluations, each in a book of its own with a database in memory.

  Without a `:model` the recordings beside the evaluations are replayed. `bin/skillbook test` and
  `evaluations/2` call this function. The runs end with the process that calls it.

  ## Options

    * `:book` (keyword list) - the options of the books, such as `:sources` and `:profiles`. Their
      `:store`, `:ask`, `:watch` and `:scheduler` are those of evaluations. Defaults to `[]`
    * `:profile` (id or `Skillbook.Profile`) - on whose behalf, unless the evaluation says so.
      Defaults to `"default"`
    * `:stubs` (map) - answers instead of handlers, as in `use Skillbook.Test`. Those of an
      evaluation take precedence. Defaults to `%{}`
    * `:model` - the model. Defaults to `nil`, recordings
    * `:judge` - the model that judges rubrics. Defaults to `:model`
    * `:record` (boolean) - whether to record the answers of the models. Defaults to `false`
    * `:redact` (list of texts and regular expressions) - secrets, as in
      `Skillbook.Model.Recording.new/1`
    * `:compare` (list of `:without` and `:before`) - also runs them without the skill under test,
      and with its version before. Defaults to `[]`
    * `:before` (`:git` or a folder) - the version before: that of the last commit, or a copy of
      the skill. Defaults to `:git`
    * `:stored` (`Skillbook.View` or `nil`) - a view of a running book, whose stored skills the
      evaluations may name (`skill: NAME`). Each run gets a copy; the version before is the last
      one with another text. Defaults to `nil`
    * `:repeat` (1 to 100) - how often each runs. Defaults to the `repeat` of the evaluation
    * `:max_concurrency` (1 to 100) - how many run at a time. Defaults to `4`
    * `:prices` (keyword list) - the prices of a million tokens, `:prompt`, `:completion` and
      optionally `:cached`, for `:cost`
    * `:on_run` (function of two arguments) - called with each `Skillbook.Test.Run` in the order
      of the evaluations, and the number of all runs

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "evaluate-#{System.unique_integer([:positive])}")
      iex> {:ok, _} = Skillbook.Document.create(folder, "tea.md", \"""
      ...> ---
      ...> name: tea
      ...> description: How to brew tea
      ...> ---
      ...> Boil water.
      ...> \""")
      iex> {:ok, _} = Skillbook.Document.create(folder, "tea.evals.yaml", \"""
      ...> evaluations:
      ...>   - {name: reads, request: Tea please, reads: [tea], answer: boil}
      ...> \""")
      iex> {evaluations, []} = Skillbook.Test.read_evaluations(folder)
      iex> model = Skillbook.Model.Function.new(fn messages, _options ->
      ...>   if List.last(messages).content =~ "Boil water",
      ...>     do: "Boil some water.",
      ...>     else: "```cmd\\nget_skill tea\\n```"
      ...> end)
      iex> outcome =
      ...>   Skillbook.Test.evaluate(evaluations,
      ...>     book: [sources: [folder], builtins: false],
      ...>     model: model
      ...>   )
      iex> File.rm_rf!(folder)
      iex> [run] = outcome.runs
      iex> {run.status, run.text, run.turns}
      {:passed, "Boil some water.", 2}
  """
  @spec evaluate([Evaluation.t()], keyword()) :: Outcome.t()
  def evaluate(evaluations, options \\ []) do
    Arguments.check!("Skillbook.Test.evaluate/2",
      evaluations: {:list, evaluations},
      options: {:keyword, options}
    )

    with {:error, error} <- Options.validate(options, "evaluate/2", evaluate_schema()),
         do: raise(error)

    defaults = [book: [], profile: "default", before: :git, max_concurrency: 4]
    options = Keyword.merge([redact: [], stubs: %{}] ++ defaults, options)
    options = Keyword.put(options, :variants, [:with | options[:compare] || []])
    began = System.monotonic_time(:millisecond)
    on_run = options[:on_run] || fn _run, _total -> :ok end
    runs = Evaluator.run(evaluations, options, on_run)
    Outcome.new(runs, options, System.monotonic_time(:millisecond) - began)
  end

  @doc """
  Defines a test for each evaluation of files or folders, in a module with `use Skillbook.Test`.

      defmodule MyApp.SkillsTest do
        use Skillbook.Test, sources: ["priv/skills"]

        evaluations "priv/skills", model: MyApp.model()
      end

  The tests have the tag `:evaluation`. They replay recordings; with the environment variable
  `SKILLBOOK_RECORD=1` they ask the `:model` and record it. A test without a recording fails. The
  books have the options of `use Skillbook.Test`, and its stubs.

  Takes the options `:model`, `:judge`, `:redact` and `:repeat` of `evaluate/2`, as expressions
  for each test. A file with an error is a test that fails.
  """
  defmacro evaluations(paths, options \\ []) do
    quote bind_quoted: [paths: paths, options: Macro.escape(options, unquote: true)] do
      {evaluations, diagnostics} = Skillbook.Test.read_evaluations(paths)

      for evaluation <- evaluations,
          evaluation.path not in List.wrap(Module.get_attribute(__MODULE__, :external_resource)),
          do: @external_resource(evaluation.path)

      for {evaluation, index} <- Enum.with_index(evaluations) do
        @tag :evaluation
        @tag evaluation: {evaluation.path, evaluation.name}
        test "#{Path.relative_to_cwd(evaluation.path)}:#{evaluation.line} #{evaluation.name}" do
          Skillbook.Test.Case.evaluate(
            unquote(evaluation.path),
            unquote(evaluation.name),
            unquote(options)
          )
        end
      end

      for diagnostic <- diagnostics, diagnostic.severity == :error do
        @tag :evaluation
        test "#{Path.relative_to_cwd(diagnostic.path)}:#{diagnostic.line} is valid" do
          raise ExUnit.AssertionError, message: unquote(to_string(diagnostic))
        end
      end
    end
  end

  @spec misrouted(Ranking.t(), String.t(), String.t(), pos_integer() | nil, keyword()) ::
          no_return()
  defp misrouted(ranking, request, name, rank, fields) do
    first = with {:first, first} <- fields[:expected], do: first, else: (_ -> 0)
    ranking = explained(ranking, request, name, max(first, Ranking.shown()))
    given = [request: request, name: name, rank: rank, ranking: ranking]
    raise MisroutedError, given ++ fields
  end

  defp explained(ranking, request, name, count) do
    entries = Ranking.explained(ranking, request, name, count)
    [entries] = Ranking.explain_sentences(ranking, [{request, entries}])
    entries
  end

  defp run_schema do
    [
      only: {"a list of names or nil", &(is_nil(&1) or Options.texts?(&1))},
      pairs: {"an integer from 0 to 1000", &(is_integer(&1) and &1 in 0..1000)},
      preflight: preflight()
    ]
  end

  defp evaluate_schema do
    prices? = fn prices ->
      Keyword.keyword?(prices) and
        Keyword.keys(prices) -- [:prompt, :completion, :cached] == [] and
        Enum.all?([:prompt, :completion], &Keyword.has_key?(prices, &1)) and
        Enum.all?(prices, fn {_name, price} -> is_number(price) and price >= 0 end)
    end

    [
      book: {"a keyword list", &Keyword.keyword?/1},
      profile: {"text or a profile", &(Options.text?(&1) or is_struct(&1, Profile))},
      model: {"a model or nil", &(is_nil(&1) or Model.model?(&1))},
      judge: {"a model or nil", &(is_nil(&1) or Model.model?(&1))},
      record: {"a boolean", &is_boolean/1},
      redact: {"a list", &is_list/1},
      compare:
        {"a list of :without and :before", &(is_list(&1) and &1 -- [:without, :before] == [])},
      stubs: Stub.schema(),
      stored: {"a view or nil", &(is_nil(&1) or is_struct(&1, View))},
      before: {":git or a path", &(&1 == :git or Options.path?(&1))},
      repeat: {"an integer from 1 to 100", &(is_integer(&1) and &1 in 1..100)},
      max_concurrency: {"an integer from 1 to 100", &(is_integer(&1) and &1 in 1..100)},
      prices: {"the prices :prompt, :completion and optionally :cached", prices?},
      on_run: {"a function of two arguments", &is_function(&1, 2)}
    ]
  end

  defp assert_schema do
    max = Ranking.max()

    [
      first: {"an integer from 1 to #{max}", &(is_integer(&1) and &1 in 1..max)},
      preflight: preflight()
    ]
  end

  defp preflight,
    do: {"a keyword list, false or nil", &(&1 in [nil, false] or Keyword.keyword?(&1))}
end
