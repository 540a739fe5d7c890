defmodule Skillbook.Handlers.Calendar.Calendars do
  @moduledoc false
  # `calendar.calendars`: lists the calendars of the user.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.External
  alias Skillbook.{Calendar, Connections, Result}

  @impl true
  def execute(_flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, calendars} <- Calendar.calendars(account) do
      {:ok, Result.ok(text(calendars), data: calendars, metadata: %{external: true})}
    end
  end

  defp text([]), do: "No calendars"

  defp text(calendars),
    do: Enum.join(Enum.map(calendars, &line/1) ++ [External.note("Names")], "\n")

  # Others name the calendars that they share.
  defp line(calendar) do
    facts =
      [
        calendar.primary && "the user's own",
        calendar.zone,
        if(calendar.writable, do: "may be changed", else: "read only")
      ]
      |> Enum.filter(& &1)
      |> Enum.join("; ")

    "#{External.line(calendar.name, 80)} (#{facts}); id #{calendar.id}"
  end
end
