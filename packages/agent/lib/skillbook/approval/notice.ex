defmodule Skillbook.Approval.Notice do
  @moduledoc false
  # Tells the subscribers of a book and telemetry that the status of an approval has changed.

  alias Skillbook.Approval
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Telemetry

  @spec send(Approval.t()) :: :ok
  def send(%Approval{} = approval) do
    Watcher.publish(approval.book, {:skillbook_approval, approval.book, approval})

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
