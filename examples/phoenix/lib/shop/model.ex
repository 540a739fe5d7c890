defmodule Shop.Model do
  @moduledoc """
  The model of the chat: that of a server with OpenAI's API, or, without OPENAI_API_KEY, a
  function that plays one answer for a broken order, so that the page can be tried and tested.
  """

  alias Skillbook.Model

  def new do
    if System.get_env("OPENAI_API_KEY") do
      key = {:env, "OPENAI_API_KEY"}
      Model.OpenAI.new!(url: "https://api.openai.com/v1", model: "gpt-5", key: key)
    else
      Model.Function.new(fn messages, _options, on_text ->
        {text, calls} = play(List.last(messages))
        for word <- String.split(text, ~r/(?<= )/), do: pause() && on_text.(word)
        %{text: text, tool_calls: calls}
      end)
    end
  end

  defp pause, do: Process.sleep(Application.fetch_env!(:shop, :pace))

  defp play(%{role: :tool, content: result}) do
    cond do
      result =~ "Order 7" -> {"I ask for your refund.", [refund(7)]}
      result =~ "waits" -> {"I asked for your refund. Somebody of the shop decides.", []}
      true -> {"That did not work.", []}
    end
  end

  defp play(%{content: text}) do
    cond do
      text =~ "Refunded 40 EUR" -> {"You get your 40 EUR back.", []}
      text =~ "declined" -> {"I am sorry: the shop does not refund it.", []}
      text =~ "order 7" -> {"Let me look.", [find(7)]}
      true -> {"Tell me the number of your order, for example: My order 7 is broken.", []}
    end
  end

  defp find(number), do: %{name: "orders__find", arguments: %{number: number}}

  defp refund(number),
    do: %{name: "orders__refund", arguments: %{number: number, reason: "broken"}}
end
