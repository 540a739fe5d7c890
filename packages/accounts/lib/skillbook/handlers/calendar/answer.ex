defmodule Skillbook.Handlers.Calendar.Answer do
  @moduledoc false
  # `calendar.answer`: accepts or declines an invitation.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Calendar.{Text, Times, Update}
  alias Skillbook.{Calendar, Connections, Result}

  @responses %{"accept" => "accepted", "decline" => "declined", "tentative" => "tentative"}

  @impl true
  def execute(flags, context) do
    with {:ok, account} <- Connections.account(context, :calendar),
         {:ok, %{time_zone: zone}} <- Times.now(flags, context, account),
         calendar = flags["calendar"],
         {:ok, event} <- Calendar.get(account, calendar, flags["id"], zone),
         answer = %{response: @responses[flags["response"]], comment: flags["comment"]},
         options = Update.options(flags),
         {:ok, changed, told} <- Calendar.answer(account, calendar, event, answer, options) do
      text =
        "Answered #{answer.response}: #{Update.scope(event, options.scope)}" <>
          "#{Text.line(changed, zone, :zone)}\n#{told(told, event, options)}"

      {:ok,
       Result.ok(text, data: changed, effects: [:event_answered], metadata: %{external: true})}
    end
  end

  defp told(true, _event, _options), do: "The organizer is told"
  defp told(false, %{mine: true}, _options), do: "The user organizes the event"
  defp told(false, _event, %{notify: false}), do: "The organizer gets no message"

  defp told(false, _event, _options) do
    "The organizer is not told: this calendar's server sends no answers. Tell them by mail"
  end
end
