defmodule Skillbook.Test.Case do
  @moduledoc false
  # The book of a test, and the functions of `use Skillbook.Test`.
  #
  # The state is in the dictionary of the test's process. Questions and runs arrive as messages
  # and are collected there, so that one assertion does not use up the runs of the next.

  alias Skillbook.Model.{Recording, Script}
  alias Skillbook.Reply.{Pipeline, ToolCall}
  alias Skillbook.Scheduler.Local
  alias Skillbook.Support.Options
  alias Skillbook.Test.{EvaluationFile, Match, Run, Stub}
  alias Skillbook.{Book, Context, Executor, PolicyError, Profile, Request, Router, Scheduler}
  alias Skillbook.{BusyError, OutOfServiceError, Result}

  @own [:async, :profile, :ask, :now, :stubs]
  @wait 100
  # Names of processes begin with the name of a book, and an atom has at most 255 characters.
  @max_name 120

  @enforce_keys [:book, :profile, :test, :clock, :ask, :stubs, :options]
  defstruct [:book, :profile, :test, :clock, :ask, :stubs, :options]

  @type t :: %__MODULE__{}

  # Start

  @doc "Starts the book of a test, and returns its name. `context` is that of ExUnit."
  @spec start(map(), keyword()) :: atom()
  def start(context, options) do
    options = Keyword.merge(options, List.wrap(context[:skillbook]))
    {own, book} = Keyword.split(options, @own)
    with {:error, error} <- Options.validate(own, "a test", schema()), do: raise(error)
    clock = clock(own[:now])
    ask = own[:ask] || :allow
    name = book_name(context)

    state = %__MODULE__{
      book: name,
      profile: own[:profile] || first_profile(book[:profiles]),
      test: self(),
      clock: clock,
      ask: ask,
      stubs: own[:stubs] || %{},
      options: book
    }

    Process.put(__MODULE__, state)
    start_book(state, book)
    name
  end

  defp start_book(state, book) do
    test = %{
      stubs: state.stubs,
      handler: Stub,
      observe: observer(state.test),
      clock: fn -> time(state.clock) end
    }

    spec = %{
      id: {Skillbook, state.book},
      start: {Book, :start_link, [book_options(state, book), test]},
      type: :supervisor
    }

    case ExUnit.Callbacks.start_supervised(spec) do
      {:ok, _pid} -> await_schedules(state.book)
      {:error, {error, _child}} when is_exception(error) -> raise error
      {:error, reason} -> raise "the book of the test cannot start: #{inspect(reason)}"
    end
  end

  # Schedules are registered after the start of a book, for times after that moment. The test may
  # move the clock in its first line.
  defp await_schedules(book) do
    if Book.fetch!(book).of_parts.scheduler, do: Scheduler.await(book), else: :ok
  end

  defp book_options(state, book) do
    clock = fn -> time(state.clock) end

    [store: ":memory:", watch: false, ask: asker(state.test, state.ask)]
    |> Keyword.merge(book)
    |> Keyword.put(:name, state.book)
    |> Keyword.update(:schedules, [clock: clock], &Keyword.put_new(&1, :clock, clock))
    |> without_clock()
  end

  # Without a store there are no schedules.
  defp without_clock(options),
    do: if(options[:store], do: options, else: Keyword.delete(options, :schedules))

  defp book_name(%{module: module, test: test}) do
    short = test |> Atom.to_string() |> String.slice(0, @max_name)
    :"#{short} (#{:erlang.phash2({module, test})})"
  end

  defp first_profile([first | _]) when is_list(first), do: first[:id]
  defp first_profile([%{id: id} | _]), do: id
  defp first_profile(_profiles), do: "default"

  # The callback of a book or a run: tells the test, then answers.
  defp asker(test, answer) do
    fn %Request{} = request ->
      send(test, {__MODULE__, :asked, request})
      if is_function(answer, 1), do: answer.(request), else: answer
    end
  end

  defp observer(test) do
    fn routed, context, answer ->
      call = %{
        name: routed.name,
        flags: routed.command.flags,
        args: routed.command.args,
        profile: context.profile.id,
        answer: answer
      }

      if ran?(answer), do: send(test, {__MODULE__, :ran, call})
    end
  end

  @doc "Whether an answer of the executor is that of a run, and not of a check before it."
  @spec ran?(term()) :: boolean()
  def ran?({:error, %error{}}) when error in [PolicyError, BusyError, OutOfServiceError],
    do: false

  def ran?({:ok, %Result{status: :pending}}), do: false
  def ran?(_answer), do: true

  # State

  @doc "The state of the test, from its process or one that it started with `Task`."
  @spec state!() :: t()
  def state! do
    found =
      Enum.find_value([self() | Process.get(:"$callers", [])], fn pid ->
        with {:dictionary, dictionary} <- Process.info(pid, :dictionary),
             {_key, state} <- List.keyfind(dictionary, __MODULE__, 0),
             do: state,
             else: (_ -> nil)
      end)

    found ||
      raise ArgumentError,
            "expected a test of a module with `use Skillbook.Test`, or a `Task` of it"
  end

  @doc "The view of a profile, the test's without one."
  def view(profile \\ nil) do
    state = state!()
    Skillbook.view(state.book, profile || state.profile)
  end

  # Clock

  defp clock(:system), do: {:system, :atomics.new(1, [])}
  defp clock(nil), do: clock(DateTime.truncate(DateTime.utc_now(), :second))

  # Without a precision of microseconds, `DateTime.add/3` would not add any.
  defp clock(%DateTime{microsecond: {fraction, _}} = time),
    do: {%{time | microsecond: {fraction, 6}}, :atomics.new(1, [])}

  defp time({:system, moved}), do: add(DateTime.utc_now(), moved)
  defp time({start, moved}), do: add(start, moved)
  defp add(time, moved), do: DateTime.add(time, :atomics.get(moved, 1), :microsecond)

  def now, do: time(state!().clock)

  def advance(time) do
    state = state!()
    {_start, moved} = state.clock
    :atomics.add(moved, 1, microseconds(time))
    time(state.clock)
  end

  @units [milliseconds: 1_000, seconds: 1_000_000, minutes: 60_000_000] ++
           [hours: 3_600_000_000, days: 86_400_000_000]

  defp microseconds(%DateTime{} = time), do: DateTime.diff(time, now(), :microsecond)
  defp microseconds(milliseconds) when is_integer(milliseconds), do: milliseconds * 1_000

  defp microseconds(units) do
    with {:error, error} <- Options.validate(units, "advance/1", unit_schema()), do: raise(error)
    units |> Enum.map(fn {unit, count} -> count * @units[unit] end) |> Enum.sum()
  end

  defp unit_schema, do: for({unit, _} <- @units, do: {unit, {"an integer", &is_integer/1}})

  def run_schedules do
    state = state!()
    :ok = Local.tick(state.book)
    :ok = Scheduler.await(state.book)
  end

  # Running

  def run_skill(name, flags, options) when is_map(flags) do
    flags = Map.new(flags, fn {name, value} -> {to_string(name), value} end)
    run_line(ToolCall.line(name, flags), [{:json, true} | options])
  end

  def run_skill(line, options), do: run_line(line, options)

  defp run_line(line, options) do
    state = state!()
    {profile, options} = Keyword.pop(options, :profile, state.profile)

    options =
      Keyword.replace_lazy(options, :ask, fn ask ->
        with {:error, error} <- Options.validate([ask: ask], "run_skill", schema()),
             do: raise(error)

        asker(state.test, ask)
      end)

    [result] = state.book |> Skillbook.view(profile) |> Pipeline.commands([line], options)
    result
  end

  def context(options) do
    state = state!()
    {line, options} = Keyword.pop(options, :line)
    {profile, options} = Keyword.pop(options, :profile, state.profile)
    view = Skillbook.view(state.book, profile)
    book = Book.fetch!(state.book)
    {fields, options} = Keyword.split(options, [:write_to, :timeout, :ask])

    context =
      if line do
        view |> route!(line) |> then(&Executor.context(view, &1, options))
      else
        {assigns, options} = Keyword.pop(options, :assigns, %{})

        %Context{
          book: state.book,
          view: view,
          profile: view.profile,
          entry: nil,
          command: Skillbook.Command.parse!("test.call"),
          sql: Book.sql(book),
          write_to: book.write_to,
          now: now()
        }
        |> Context.put_assigns(book, assigns)
        |> struct!(options)
      end

    struct!(context, fields)
  end

  defp route!(view, line) do
    case Router.route(view, line) do
      {:ok, routed} -> routed
      {:help, _text} -> raise ArgumentError, "expected a command, got a call of help: #{line}"
      {:error, error} -> raise error
    end
  end

  # Models

  def script(answers, options) do
    script = Script.new(answers, options)
    ExUnit.Callbacks.on_exit(fn -> Script.verify!(script) end)
    script
  end

  @record "SKILLBOOK_RECORD"

  @doc "Whether recordings are made anew."
  def record?, do: System.get_env(@record, "") not in ["", "0", "false"]

  def recording(path, options) do
    options = [path: path, record: record?()] ++ options
    recording = Recording.new!(options)
    ExUnit.Callbacks.on_exit(fn -> Recording.verify!(recording) end)
    recording
  end

  # Evaluations

  @doc "Runs an evaluation of a file in a test of `evaluations/2`."
  @spec evaluate(Path.t(), String.t(), keyword()) :: :ok
  def evaluate(path, name, options) do
    state = state!()
    {evaluations, _diagnostics} = EvaluationFile.read([path])
    evaluation = Enum.find(evaluations, &(&1.name == name))
    # A model is only asked to record.
    models = if record?(), do: [record: true], else: [model: nil, judge: nil]

    outcome =
      Skillbook.Test.evaluate(
        [evaluation],
        Keyword.merge(
          options,
          [book: state.options, profile: state.profile, stubs: state.stubs] ++ models
        )
      )

    case Enum.reject(outcome.runs, &(&1.status == :passed)) do
      [] -> :ok
      runs -> assertion(Enum.map_join(runs, "\n\n", &unpassed/1))
    end
  end

  defp unpassed(run) do
    calls = for call <- run.calls, do: "  called: " <> Match.show(call)

    text =
      if run.text == "", do: [], else: ["  answer: " <> String.replace(run.text, "\n", "\n    ")]

    hint =
      if run.status == :not_run,
        do: ["  To make the recording, run the test with #{@record}=1 and the option :model."],
        else: []

    Enum.join(Run.failures(run) ++ calls ++ text ++ hint, "\n")
  end

  # Assertions

  def assert_asked(name, flags, options) do
    expected = expected(name, flags)

    find(:asked, options[:timeout] || @wait, &asked?(expected, &1)) ||
      fail("a question about", expected, "asked", collected(:asked), &call/1)
  end

  def refute_asked(name, flags) do
    expected = name && expected(name, flags)

    case Enum.filter(collect(:asked), &(expected == nil or asked?(expected, &1))) do
      [] -> :ok
      found -> refused("no question", expected, found, &call/1)
    end
  end

  def assert_ran(name, flags, options) do
    expected = expected(name, flags)

    find(:ran, options[:timeout] || 0, &Match.call?(expected, &1)) ||
      fail("a run of", expected, "ran", collected(:ran), & &1)
  end

  def refute_ran(name, flags) do
    expected = name && expected(name, flags)

    case Enum.filter(collect(:ran), &(expected == nil or Match.call?(expected, &1))) do
      [] -> :ok
      found -> refused("no run", expected, found, & &1)
    end
  end

  # A line may have flags too.
  defp expected(name, flags) when flags in [nil, [], %{}] do
    case Match.line(name) do
      {:ok, expected} -> Match.resolve(expected, view())
      {:error, text} -> raise ArgumentError, "expected a command, got: #{name} (#{text})"
    end
  end

  defp expected(name, flags), do: name |> Match.named(flags) |> Match.resolve(view())

  defp asked?(expected, request), do: Match.call?(expected, call(request))

  defp call(%Request{entry: entry, command: command}),
    do: %{name: entry.name, flags: command.flags, args: command.args}

  # The messages so far, then those that arrive within the time.
  defp find(kind, timeout, match?) do
    Enum.find(collect(kind), match?) || wait(kind, deadline(timeout), match?)
  end

  defp deadline(timeout), do: System.monotonic_time(:millisecond) + timeout

  defp wait(kind, deadline, match?) do
    left = max(deadline - System.monotonic_time(:millisecond), 0)

    receive do
      {__MODULE__, ^kind, item} ->
        add_item(kind, item)
        if match?.(item), do: item, else: wait(kind, deadline, match?)
    after
      left -> nil
    end
  end

  defp collect(kind) do
    unless state!().test == self(),
      do: raise(ArgumentError, "expected the process of the test, which gets the messages")

    receive do
      {__MODULE__, ^kind, item} ->
        add_item(kind, item)
        collect(kind)
    after
      0 -> collected(kind)
    end
  end

  defp add_item(kind, item), do: Process.put({__MODULE__, kind}, collected(kind) ++ [item])
  defp collected(kind), do: Process.get({__MODULE__, kind}, [])

  @spec fail(String.t(), Match.expected(), String.t(), [term()], (term() -> map())) :: no_return()
  defp fail(text, expected, verb, others, call) do
    got =
      if others == [],
        do: "got none",
        else: "got others. #{String.capitalize(verb)} so far:\n" <> list(others, call)

    assertion("expected #{text} `#{Match.show(expected)}`, #{got}")
  end

  @spec refused(String.t(), Match.expected() | nil, [term()], (term() -> map())) :: no_return()
  defp refused(text, expected, found, call) do
    of = if expected, do: " of `#{Match.show(expected)}`", else: ""
    assertion("expected #{text}#{of}, got:\n" <> list(found, call))
  end

  defp list(items, call), do: Enum.map_join(items, "\n", &("  " <> Match.show(call.(&1))))

  @spec assertion(String.t()) :: no_return()
  defp assertion(text),
    do: raise(ExUnit.AssertionError, message: Skillbook.Support.Hidden.visible(text))

  @doc "The options of a test, besides those of its book."
  def schema do
    [
      async: {"a boolean", &is_boolean/1},
      profile: {"text or a profile", &(Options.text?(&1) or is_struct(&1, Profile))},
      ask:
        {":allow, :deny, {:deny, text}, :pending, {:pending, ref} or a function of one argument",
         &ask?/1},
      now: {"a DateTime or :system", &(&1 == :system or is_struct(&1, DateTime))},
      stubs: Stub.schema()
    ]
  end

  defp ask?({kind, _value}), do: kind in [:deny, :pending]
  defp ask?(answer), do: answer in [:allow, :deny, :pending] or is_function(answer, 1)
end
