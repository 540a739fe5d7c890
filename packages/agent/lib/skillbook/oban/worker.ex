defmodule Skillbook.Oban.Worker do
  @moduledoc false
  # The worker of Oban that runs the jobs of `Skillbook.Oban`. It has the functions that
  # `use Oban.Worker` would define, so it needs no Oban to be compiled.

  alias Skillbook.Agent.{Run, Runs}

  alias Skillbook.{
    Agent,
    AgentError,
    Book,
    BusyError,
    CommandError,
    FlagError,
    HandlerError,
    NotFoundError,
    OptionError,
    OutOfServiceError,
    PlaceholderError,
    PolicyError,
    Profile,
    Result,
    RunError,
    SetupError,
    StoppedError,
    UnknownSkillError,
    View
  }

  require Logger

  # Not dependencies; attributes hide the modules from the compiler's checks.
  @job Oban.Job
  @worker Oban.Worker

  # Seconds.
  @day 86_400
  @snooze 30

  # Another try would fail like this one.
  @final [
    CommandError,
    FlagError,
    NotFoundError,
    PlaceholderError,
    PolicyError,
    SetupError,
    UnknownSkillError
  ]

  @doc false
  def __opts__, do: [worker: __MODULE__, queue: :default, max_attempts: 3]

  @doc "The changeset of a job, as Oban's own plugins make it."
  @spec new(map(), keyword()) :: struct()
  def new(args, options \\ []),
    do: apply(@job, :new, [args, Keyword.merge(__opts__(), options)])

  @spec backoff(struct()) :: pos_integer()
  def backoff(job), do: apply(@worker, :backoff, [job])

  # Commands have limits of their own.
  @spec timeout(struct()) :: :infinity
  def timeout(_job), do: :infinity

  @doc "Runs the command of a job, or its durable run."
  @spec perform(struct()) ::
          {:ok, Result.t() | Agent.Result.t() | Run.t()}
          | {:cancel, String.t()}
          | {:error, String.t()}
          | {:snooze, pos_integer()}
  def perform(%{args: %{"book" => book, "profile" => profile, "command" => command}} = job)
      when is_binary(book) and is_binary(profile) and is_binary(command) do
    with {:ok, book} <- running(book, job),
         {:ok, profile} <- fetch_profile(book, profile) do
      View.of(book.name, profile)
      |> Skillbook.carry_out(command, assigns: %{job: described(job)})
      |> outcome(job)
    end
  end

  def perform(
        %{args: %{"book" => book, "profile" => profile, "run" => ref, "input" => input}} = job
      )
      when is_binary(book) and is_binary(profile) and is_binary(ref) and is_binary(input) do
    with {:ok, book} <- running(book, job),
         {:ok, _profile} <- fetch_profile(book, profile),
         do: book.name |> run(profile, ref, input) |> run_outcome(job)
  end

  def perform(%{args: args}) do
    keys = args |> Map.keys() |> Enum.map_join(", ", &inspect/1)

    {:cancel,
     "expected the texts book, profile and command, or run and input, as arguments of the " <>
       "job, got: #{keys}"}
  end

  # Starts a durable run, or goes on with it.
  defp run(book, profile, ref, input) do
    case Runs.fetch(book, ref) do
      {:error, %RunError{kind: :unknown}} ->
        Agent.run(book, input, profile: profile, durable: ref)

      {:ok, %{status: status}} when status in [:interrupted, :failed, :running] ->
        Runs.continue(book, ref)

      ended_or_error ->
        ended_or_error
    end
  end

  # Only names of running books are atoms already.
  defp running(name, job) do
    book = Book.find(String.to_existing_atom(name))
    if book, do: {:ok, book}, else: not_running(name, job)
  rescue
    ArgumentError -> not_running(name, job)
  end

  defp not_running(name, job),
    do: snooze(job, div(@snooze, 3), "the book #{name} does not run on this node")

  defp fetch_profile(book, id) do
    with :error <- profile(book, id),
         do: {:cancel, "the book #{inspect(book.name)} has no profile #{inspect(id)} any more"}
  end

  @doc "Returns the profile of an id."
  @spec profile(Book.t(), String.t()) :: {:ok, Profile.t()} | :error
  def profile(book, id) do
    {:ok, Book.profile(book, id)}
  rescue
    _error in [ArgumentError, OptionError] -> :error
  end

  defp described(job), do: Map.take(job, [:id, :attempt, :max_attempts, :queue])

  defp outcome(%Result{status: :ok} = result, _job), do: {:ok, result}

  defp outcome(%Result{status: :pending} = result, job) do
    Logger.info(fn -> "job #{job.id}: #{result.content}" end)
    {:ok, result}
  end

  defp outcome(%Result{status: :error, error: error, content: content}, job),
    do: failed(error, content, job)

  defp outcome(%Result{status: :template}, _job),
    do: {:cancel, "its page is instructions for a model, and the book has no option :agent"}

  defp outcome(%Result{}, _job),
    do: {:cancel, "expected a command that runs, got a request for help"}

  # They did not run.
  defp failed(%OutOfServiceError{retry_in: seconds}, content, job),
    do: snooze(job, seconds || @snooze, content)

  defp failed(%BusyError{}, content, job), do: snooze(job, @snooze, content)

  defp failed(%HandlerError{kind: kind}, content, job) when kind in [:stopped, :unrecorded],
    do: snooze(job, @snooze, content)

  defp failed(%HandlerError{kind: kind}, content, _job)
       when kind in [:missing, :bad_return, :in_transaction],
       do: {:cancel, content}

  defp failed(%module{}, content, _job) when module in @final, do: {:cancel, content}
  defp failed(_error, content, _job), do: {:error, content}

  defp run_outcome({:ok, %Run{status: status} = run}, _job) when status in [:stopped, :error],
    do: {:cancel, run.reason || "the run was stopped"}

  defp run_outcome({:ok, %{status: _} = ended}, _job), do: {:ok, ended}

  defp run_outcome({:error, %AgentError{error: %module{} = error}}, job)
       when module in [RunError, StoppedError],
       do: run_outcome({:error, error}, job)

  defp run_outcome({:error, %RunError{kind: kind} = error}, job)
       when kind in [:running, :lost, :ended],
       do: snooze(job, @snooze, Exception.message(error))

  defp run_outcome({:error, %RunError{} = error}, _job), do: {:cancel, Exception.message(error)}

  defp run_outcome({:error, %StoppedError{} = error}, job),
    do: snooze(job, @snooze, Exception.message(error))

  defp run_outcome({:error, error}, _job), do: {:error, Exception.message(error)}

  # A snoozed job uses no attempt, so time is its limit.
  defp snooze(job, seconds, reason) do
    until = until(job)

    if is_integer(until) and System.os_time(:second) + seconds <= until,
      do: {:snooze, seconds},
      else: {:cancel, reason}
  end

  # Jobs that Oban's plugins insert count from their insertion.
  defp until(%{meta: %{"snooze_until" => until}}), do: until
  defp until(%{inserted_at: %DateTime{} = at}), do: DateTime.to_unix(at) + @day
  defp until(_job), do: nil
end
