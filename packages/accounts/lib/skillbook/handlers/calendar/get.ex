defmodule Skillbook.Handlers.Calendar.Get do
  @moduledoc false
  # `calendar.get`: shows an event with its guests and its description, or an attachment of it.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Text, Times}
  alias Skillbook.Handlers.Email.Show
  alias Skillbook.{Calendar, Connections, Result}

  @impl true
  def execute(%{"attachment" => part, "id" => id} = flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, file} <- Calendar.attachment(account, flags["calendar"], id, part),
         do: Show.file(file, "the event #{id}", account)
  end

  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, %{time_zone: zone}} <- Times.now(flags, context, account),
         {:ok, event} <- Calendar.get(account, flags["calendar"], flags["id"], zone) do
      {:ok, Result.ok(Text.details(event, zone), data: event, metadata: %{external: true})}
    end
  end
end
