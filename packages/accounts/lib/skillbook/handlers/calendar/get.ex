defmodule Skillbook.Handlers.Calendar.Get do
  @moduledoc false
  # `calendar.get`: shows an event with its guests and its description.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Text, Times}
  alias Skillbook.{Calendar, Connections, Result}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, %{time_zone: zone}} <- Times.now(flags, context, account),
         {:ok, event} <- Calendar.get(account, flags["calendar"], flags["id"], zone) do
      {:ok, Result.ok(Text.details(event, zone), data: event, metadata: %{external: true})}
    end
  end
end
