defmodule Skillbook.Handlers.Calendar.Delete do
  @moduledoc false
  # `calendar.delete`: deletes an event, or events of a series.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Text, Times, Update}
  alias Skillbook.{Calendar, Connections, Result}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, %{time_zone: zone}} <- Times.now(flags, context, account),
         calendar = flags["calendar"],
         {:ok, event} <- Calendar.get(account, calendar, flags["id"], zone),
         options = Update.options(flags),
         :ok <- Calendar.delete(account, calendar, event, options) do
      text =
        "Deleted #{Update.scope(event, options.scope)}" <>
          "#{Text.span(event.start, event.end, zone)} (#{zone}) #{Text.title(event)}"

      {:ok, Result.ok(text, data: event, effects: [:event_deleted], metadata: %{external: true})}
    end
  end
end
