defmodule Skillbook.Scheduler do
  @moduledoc """
  Runs entries by their schedules.

  A book with a database registers each entry that has a `schedule` and a profile to run as, drops it when it goes, and claims
  each firing in the database, so that of several nodes one runs it. [Schedules](schedules.md) describes it.

  ## Engines

  What tells when a time has come is an engine, a module with this behaviour: `Skillbook.Scheduler.Local` or
  `Skillbook.Scheduler.Quantum`. It gets the book's name, its argument (`nil`, or what stands in the option `:scheduler`), and
  jobs (`Skillbook.Scheduler.Job`); it calls `fire/2` or `fire/4` with a job's `:key`. What is claimed, run and written down is the same for all.

  ## Another queue

  With `schedules: [dispatch: {module, function}]` the book claims a firing, writes it down as `queued` and calls the function
  with a `Skillbook.Firing` instead of running it. The function hands it to a queue and gives `:ok`, or `{:error, text}`. The
  job of that queue calls `run/1`.
  """

  alias Skillbook.Scheduler.{Job, Server}
  alias Skillbook.{Firing, Schedule}

  @typedoc "How an engine knows a job that it was given."
  @type handle :: term()

  @doc "Processes of its own, started with the book."
  @callback children(book :: atom(), argument :: term()) :: [Supervisor.child_spec()]

  @doc "Drops all jobs of the book, which a process before may have left."
  @callback clear(book :: atom(), argument :: term()) :: :ok

  @doc "Begins to fire a job at its times after `now`."
  @callback put(book :: atom(), argument :: term(), Job.t(), now :: DateTime.t()) ::
              {:ok, handle()} | {:error, String.t()}

  @doc "Ends it."
  @callback delete(book :: atom(), argument :: term(), handle()) :: :ok

  @doc """
  Says that an entry's time has come, for engines that know no more; that of its schedule until now is meant.

  If there was none in the last minute, nor is one less than a second away, nothing runs.
  """
  @spec fire(atom(), Job.key()) :: :ok
  def fire(book, key) when is_atom(book), do: Server.fire(book, key)

  @doc "Says that an entry's times have come: the first that nothing was said of yet, and the last until now."
  @spec fire(atom(), Job.key(), DateTime.t(), DateTime.t()) :: :ok
  def fire(book, key, first, last) when is_atom(book), do: Server.due(book, key, first, last)

  @doc """
  Runs a firing that was handed to a queue, and gives what is kept of it: `:status` (`:ok`, `:template` or `:failed`), `:text`
  and `:duration` in microseconds.

  It runs once: `{:error, :taken}` if it has run, runs, or was not handed to a queue. `{:error, :overlap}` if another firing of
  the entry is under way. When the calling process ends it is stopped, and has failed.
  """
  @spec run(Firing.t()) :: {:ok, map()} | {:error, :taken | :overlap | Exception.t()}
  def run(%Firing{} = firing), do: Server.run(firing)

  @doc """
  The keys of the jobs that are registered in a running book, with their schedules; for trusted code.

  The key of a job is the name of its entry, and `{name, record}` for one of the store, where several entries may have a name.
  """
  @spec registered(atom()) :: %{Job.key() => Schedule.t()}
  def registered(book) when is_atom(book), do: Server.registered(book)

  @doc "Returns once all firings of the node that were due have been run or refused."
  @spec await(atom()) :: :ok
  def await(book) when is_atom(book), do: Server.await(book)
end
