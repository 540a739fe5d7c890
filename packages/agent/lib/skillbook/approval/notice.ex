defmodule Skillbook.Approval.Notice do
  @moduledoc false
  # Tells the subscribers of a book and telemetry that the status of an approval has changed.

  alias Skillbook.Approval
  alias Skillbook.Approval.Table
  alias Skillbook.Catalog.Watcher
  alias Skillbook.{Book, Telemetry}
  alias Skillbook.Run.Worker

  @doc "Subscribes to the changes of one approval, as those do who wait for it alone."
  @spec subscribe(atom(), String.t()) :: :ok
  def subscribe(book, ref), do: Watcher.subscribe(book, {:approval, ref})

  @spec unsubscribe(atom(), String.t()) :: :ok | :not_joined
  def unsubscribe(book, ref), do: Watcher.unsubscribe(book, {:approval, ref})

  @doc "Tells of a change; of a call that waits in a run of an agent as `hold/2`."
  @spec send(Approval.t(), pid() | nil) :: :ok
  def send(%Approval{} = approval, run \\ nil) do
    if run, do: hold(approval, run), else: publish(approval)

    # No words of the call: flags may be secret.
    Telemetry.event(
      [:skillbook, :approval, :changed],
      %{system_time: System.system_time()},
      %{
        book: approval.book,
        profile: approval.profile,
        skill: approval.name,
        ref: approval.ref,
        status: approval.status
      }
    )
  end

  defp publish(%Approval{book: book, ref: ref} = approval) do
    for group <- [:changes, {:approval, ref}],
        do: Watcher.publish(book, {:skillbook_approval, book, approval}, group)

    :ok
  end

  @doc """
  Tells the subscribers of a call that waits in a run of an agent once its conversation is stored:
  when the process of the run calls `let_go/1`, or ends.
  """
  @spec hold(Approval.t(), pid()) :: :ok
  def hold(%Approval{book: book, ref: ref}, run) do
    {:ok, holder} =
      Task.Supervisor.start_child(Worker.supervisor(book), fn ->
        monitor = Process.monitor(run)

        receive do
          :let_go -> :ok
          {:DOWN, ^monitor, :process, _, _} -> :ok
        end

        # Of one that was decided meanwhile, the decision was told.
        with {:ok, %{approval: %{status: :pending} = approval}} <-
               Table.fetch(Book.sql(Book.fetch!(book)), book, ref),
             do: publish(approval)
      end)

    Watcher.subscribe(book, {:held, run}, holder)
  end

  @doc "Tells of the calls that are held for the calling process."
  @spec let_go(atom()) :: :ok
  def let_go(book), do: Watcher.publish(book, :let_go, {:held, self()})
end
