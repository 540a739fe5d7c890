defmodule Skillbook.Scheduler do
  @moduledoc """
  Runs the entries of a book on their schedules.

  A book with a database registers each entry that has a `schedule` and a profile to run as. Every
  firing is claimed in the database, so it runs on one node only. [Schedules](schedules.md) has
  the details.

      {Skillbook,
       name: MyApp.Skills,
       sources: [{:priv, :my_app, "skills"}],
       store: "skills.db",
       schedules: [run_as: "default"]}

      Skillbook.Scheduler.registered(MyApp.Skills)
      #=> %{"workflows.digest" => %Skillbook.Schedule{expression: "0 8 * * *", ...}}

  ## Engines

  An engine decides when a time has come. It is a module with this behaviour:
  `Skillbook.Scheduler.Local`, the default, or `Skillbook.Scheduler.Quantum`. Its callbacks get
  the book's name, the argument given in the option `:scheduler` (or `nil`), and jobs
  (`Skillbook.Scheduler.Job`). At a job's times it calls `fire/2` or `fire/4` with the job's
  `:key`. Claiming, running and storing results are the same for all engines.

  An engine needs no persistent state. When the book's scheduler starts or is restarted, it clears
  the engine and registers all jobs again. It finds missed times from the stored firings.

  ## Using another job queue

  With `schedules: [dispatch: {module, function}]`, the book claims a firing, stores it as
  `queued` and calls the function with a `Skillbook.Firing`. The function adds a job to a queue
  and returns `:ok` or `{:error, text}`. That job calls `run/1`.
  """

  alias Skillbook.Scheduler.{Job, Server}
  alias Skillbook.{Firing, Schedule}

  @typedoc "The engine's own reference to a job."
  @type handle :: term()

  @doc "Returns the engine's processes, to be started with the book."
  @callback children(book :: atom(), argument :: term()) :: [Supervisor.child_spec()]

  @doc "Deletes all jobs of the book, which a crashed process may have left."
  @callback clear(book :: atom(), argument :: term()) :: :ok

  @doc "Adds a job, to fire at its times after `now`."
  @callback put(book :: atom(), argument :: term(), Job.t(), now :: DateTime.t()) ::
              {:ok, handle()} | {:error, String.t()}

  @doc "Deletes a job."
  @callback delete(book :: atom(), argument :: term(), handle()) :: :ok

  @doc """
  Fires a job, for engines that do not know for which time.

  It runs for the last time of its schedule. If that is more than a minute ago, and the next one
  is not less than a second away, nothing runs.
  """
  @spec fire(atom(), Job.key()) :: :ok
  def fire(book, key) when is_atom(book), do: Server.fire(book, key)

  @doc "Fires a job for its times from `first`, the first not fired yet, to `last`, the latest."
  @spec fire(atom(), Job.key(), DateTime.t(), DateTime.t()) :: :ok
  def fire(book, key, first, last) when is_atom(book), do: Server.fire(book, key, first, last)

  @doc """
  Runs a firing that was dispatched to a queue.

  Returns `{:ok, result}` with its `:status` (`:ok`, `:template` or `:failed`), `:text`, and
  `:duration` in microseconds. A firing runs once: `{:error, :taken}` means that it ran, is
  running, or was not dispatched to a queue. `{:error, :overlap}` means that another firing of the
  entry is running. If the calling process exits, the firing is stopped and has failed.
  """
  @spec run(Firing.t()) :: {:ok, map()} | {:error, :taken | :overlap | Exception.t()}
  def run(%Firing{} = firing), do: Server.run(firing)

  @doc """
  Returns the schedules of all registered jobs by their keys, without access checks.

  The key is the name of the entry. For an entry of the store it is `{name, record}`, since
  several may share a name.
  """
  @spec registered(atom()) :: %{Job.key() => Schedule.t()}
  def registered(book) when is_atom(book), do: Server.registered(book)

  @doc "Waits until all firings that are due on this node have run or were refused."
  @spec await(atom()) :: :ok
  def await(book) when is_atom(book), do: Server.await(book)
end
