defmodule Skillbook.Test.Faults do
  @moduledoc false
  # Each command of a vendor, with each fault of its server at each method that the command calls.

  import ExUnit.Assertions

  alias Skillbook.Test.Services

  # Milliseconds of a command, with a fault that ends and with one that it waits for.
  @limit 30_000
  @short 3_000

  @typedoc """
  A command, its lines, and the change that the first of them makes: `{judge, its query, a text}`.
  The line changes the number of things with this text by one, as the vendor's own client reads
  them. It is `nil` for a command that only reads, or whose change is the same however often it is
  made.
  """
  @type row :: {String.t(), [String.t()], {String.t(), keyword(), String.t()} | nil}

  @typedoc "A name, a fault, the result of a command that reads, and of one that writes."
  @type fault :: {String.t(), keyword(), result(), result()}
  @type result :: :ok | :error | :any

  @doc "Fails unless each fault of a table is named in the docs."
  def named!(faults, docs) do
    docs = String.replace(docs, ~r/\s+/, " ")
    for {name, _, _, _} <- faults, do: assert(String.contains?(docs, name), name)
  end

  @doc """
  The entries of the log for the methods that lines call, each once. `run` is given a line, and
  returns the world and the result.
  """
  def methods(lines, run) do
    lines
    |> Enum.flat_map(fn line ->
      {world, result} = run.(line)
      assert {line, result.status, result.content} == {line, :ok, result.content}
      Services.check(world)
      Services.log(world)
    end)
    |> Enum.uniq_by(& &1["method"])
  end

  @doc "A list of names in a table of the docs."
  def names(names), do: Enum.map_join(names, ", ", &"`#{&1}`")

  @doc """
  Each fault at each method of each line. `methods` is given a command and its line, and returns
  entries of the log; `expected` is given a run and the result of the table.
  """
  def runs(rows, faults, methods, expected) do
    for {command, lines, change} <- rows,
        {line, index} <- Enum.with_index(lines),
        entry <- methods.(command, [line]),
        {name, fault, reads, writes} <- faults,
        # A part of a batch has no connection of its own.
        !entry["batch"] or not Enum.any?([:cut, :silent], &Keyword.has_key?(fault, &1)) do
      run = %{command: command, line: line, method: entry["method"], name: name, fault: fault}
      usual = if writes?(command), do: writes, else: reads
      Map.merge(run, %{change: if(index == 0, do: change), expected: expected.(run, usual)})
    end
  end

  defp writes?(command) do
    [domain, action] = String.split(command, ".")
    File.read!("priv/connections/#{domain}/#{action}.md") =~ "\neffects: write\n"
  end

  @doc """
  Fails if a run hangs, crashes, makes a change twice, says nothing, or has another result than
  expected.

  All of them take minutes of a processor, so a third runs, chosen by the seed of the tests;
  SKILLBOOK_FAULTS=all runs all.

    * `:world` - makes a world
    * `:run` - runs a line with its fault: a world, the run, and the milliseconds it may take
    * `:short` - the milliseconds for a fault without an end that a command waits for (3,000)
    * `:wrong` - what else is wrong with a result: `{whether, text}`, for a run and its result
  """
  def check(runs, options) do
    seed = ExUnit.configuration()[:seed]
    all? = System.get_env("SKILLBOOK_FAULTS") == "all"

    wrong =
      runs
      |> Enum.filter(&(all? or :erlang.phash2({&1.line, &1.method, &1.name, seed}, 3) == 0))
      |> Task.async_stream(&problems(&1, options), max_concurrency: 30, timeout: 300_000)
      |> Enum.flat_map(fn {:ok, problems} -> problems end)

    assert wrong == [], Enum.join(wrong, "\n")
  end

  defp problems(%{change: change} = run, options) do
    world = options[:world].()
    before = count(world, change)
    began = System.monotonic_time(:millisecond)
    endless? = Keyword.has_key?(run.fault, :times) and run.fault[:status] in [nil, 429, 503]
    limit = if endless?, do: Keyword.get(options, :short, @short), else: @limit
    result = options[:run].(world, run, limit)
    took = System.monotonic_time(:millisecond) - began
    made = count(world, change) - before
    %{"broken" => broken, "log" => log} = Services.state(world)
    violations = for %{"violation" => reason} <- log, do: reason
    # A busy machine may stop a command at its limit, which says that it may have done its work.
    unclear = result.content =~ ~r/not known|made all the same|are set, but|may have/

    problems = [
      {run.expected != :any and result.status != run.expected, "#{result.status}"},
      {result.status not in [:ok, :error], "#{result.status}"},
      {result.content =~ "crashed", "crashed"},
      {String.trim(result.content) == "", "no text"},
      {took > limit + 60_000, "took #{took} ms"},
      {change != nil and result.status == :ok and made != 1, "ok, and #{made} changes"},
      {made > 1, "#{made} changes"},
      {result.status == :error and made == 1 and not unclear, "made, and not said"},
      {violations != [], "#{inspect(violations)}"},
      {broken != [], "#{broken}"}
      | Keyword.get(options, :wrong, fn _run, _result -> [] end).(run, result)
    ]

    for {true, problem} <- problems,
        do: "#{run.line} | #{run.method} | #{run.name} | #{problem} | #{result.content}"
  end

  defp count(_world, nil), do: 0

  defp count(world, {judge, query, text}) do
    world
    |> Services.judge(judge, query)
    |> Enum.count(&(inspect(&1, limit: :infinity) =~ text))
  end
end
