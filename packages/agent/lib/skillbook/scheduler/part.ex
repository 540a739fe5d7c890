defmodule Skillbook.Scheduler.Part do
  @moduledoc false
  # The schedules of a book: its engine, its firings, and jobs of Oban.

  use Skillbook.Part

  alias Skillbook.Scheduler.{Firings, Local, Operations, Server}
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Native, Oban, OptionError}

  # Beside the rules that the store keeps.
  @schedules [
    builtins: [],
    timeout: 300_000,
    max_running: 10,
    lease: 60_000,
    missed: :skip,
    interrupted: :fail,
    dispatch: nil
  ]

  @impl true
  def options do
    [
      scheduler: {"a module, {module, argument} or false", &scheduler?/1},
      schedules: {"a keyword list", &Keyword.keyword?/1}
    ]
  end

  @impl true
  def read(book, options) do
    schedules = options[:schedules] || []

    with :ok <- Options.validate(schedules, "a book's :schedules", schedules()),
         {:ok, scheduler} <- scheduler(options[:scheduler], options[:store]) do
      scheduler = if run_schedules?(book), do: scheduler, else: false
      schedules = book.schedules |> Keyword.merge(@schedules) |> Keyword.merge(schedules)
      {:ok, Book.put(%{book | schedules: schedules}, scheduler: scheduler)}
    end
  end

  # Schedules need the database: each firing is claimed in it.
  defp scheduler(scheduler, nil) when scheduler in [nil, false], do: {:ok, false}
  defp scheduler(false, _store), do: {:ok, false}
  defp scheduler(nil, _store), do: {:ok, {Local, nil}}

  defp scheduler(scheduler, nil) do
    problem = {:invalid, "false, for the book has no :store to claim firings in,", scheduler}
    {:error, %OptionError{subject: "a book", option: :scheduler, problem: problem}}
  end

  defp scheduler(module, _store) when is_atom(module), do: {:ok, {module, nil}}
  defp scheduler(scheduler, _store), do: {:ok, scheduler}

  # `config :skillbook, run_schedules: false`, or the names of the only books that run theirs.
  # Those of a test run by its clock, which stands still.
  defp run_schedules?(%{test: test}) when test != nil, do: true

  defp run_schedules?(%{name: name}) do
    case Application.get_env(:skillbook, :run_schedules, true) do
      names when is_list(names) -> name in names
      run? -> run? == true
    end
  end

  defp scheduler?({module, _argument}), do: is_atom(module)
  defp scheduler?(module), do: is_atom(module) and module not in [nil, true]

  defp schedules do
    [
      run_as: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))},
      builtins: {"a list of globs", &globs?/1},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      max_running: {"a whole number from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1},
      missed: {":skip or :run_once", &(&1 in [:skip, :run_once])},
      interrupted: {":fail or :run", &(&1 in [:fail, :run])},
      keep: {"a number of days from 1", &Options.positive?/1},
      min_interval: {"a number of seconds from 1", &Options.positive?/1},
      max_per_profile: {"a whole number from 1", &Options.positive?/1},
      dispatch: {"{module, function} or nil", &callback?/1},
      clock:
        {"a function without arguments, {module, function} or nil",
         &(is_function(&1, 0) or callback?(&1))}
    ]
  end

  defp globs?(globs), do: Options.texts?(globs) and Native.globs_check(globs) == :ok

  defp callback?({module, function}), do: is_atom(module) and is_atom(function)
  defp callback?(value), do: is_nil(value)

  @impl true
  def ages(book), do: [{:firings, book.schedules[:keep], &Firings.prune/3}]

  @impl true
  def children(%{of_parts: %{scheduler: false}}), do: []
  def children(book), do: Server.children(book)

  @impl true
  defdelegate schedules_changed(book), to: Server, as: :follow

  @impl true
  defdelegate operations, to: Operations

  @impl true
  def check_page(entry), do: with({:ok, _options} <- Oban.of_page(entry), do: :ok)
end
