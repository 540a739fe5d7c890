defmodule Skillbook.Approval.Notice do
  @moduledoc false
  # Tells the subscribers of a book and telemetry that the status of an approval has changed.

  alias Skillbook.Approval
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Telemetry

  @doc "Subscribes to the changes of approvals, and to nothing else but the start of the book."
  @spec subscribe(atom()) :: :ok
  def subscribe(book), do: Watcher.subscribe(book, :approvals)

  @doc "Tells the subscribers alone."
  @spec publish(Approval.t()) :: :ok
  def publish(%Approval{book: book} = approval) do
    for group <- [:changes, :approvals],
        do: Watcher.publish(book, {:skillbook_approval, book, approval}, group)

    :ok
  end

  @spec send(Approval.t()) :: :ok
  def send(%Approval{} = approval) do
    publish(approval)

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
end
