defmodule SupportBot.ConversationTest do
  use ExUnit.Case

  alias SupportBot.ScriptedServer

  defp start(script) do
    start_supervised!(SupportBot.Shop)
    url = ScriptedServer.start(script)
    agent = [model: Skillbook.Model.OpenAI.new!(url: url, model: "scripted"), protocol: :tools]
    options = [name: :conversation, store: ":memory:", agent: agent]
    start_supervised!({Skillbook, SupportBot.book(options)})
    :conversation
  end

  test "a refund waits for a person, and the conversation goes on with their decision" do
    book =
      start([
        [{"orders__find", ~s({"number": 7})}, {"tickets__list", "{}"}],
        [{"orders__refund", ~s({"number": 7, "reason": "broken"})}],
        "I asked for your refund.",
        "You get 40 euros back."
      ])

    {:ok, answer} = SupportBot.answer(book, {"lamps", "ann"}, "Order 7 is broken. My money back!")

    # The model knows the shop, and has the tools of the profile.
    assert_receive {:request, first}
    assert first =~ "Lamps & Light; prices are in EUR."
    assert first =~ ~s("orders__refund") and not (first =~ "reports__daily")

    # Both results of the first reply came back together.
    assert_receive {:request, second}
    assert second =~ "2 lamps, 40.0 EUR" and second =~ "No tickets."

    # The model tells the customer that a person decides.
    assert_receive {:request, _third}
    assert answer.text == "I asked for your refund."
    assert [%{ref: ref, name: "orders.refund", profile: "lamps/ann"}] = answer.pending
    assert SupportBot.Shop.order("lamps", 7).status == :paid

    {:ok, approval} = Skillbook.approve(book, ref, by: "eva@lamps.example", resume: true)
    assert approval.result.content == "Refunded 40.0 EUR (broken)."
    assert approval.run.text == "You get 40 euros back."
    assert SupportBot.Shop.order("lamps", 7).status == :refunded
    assert_receive {:request, fourth}
    assert fourth =~ "Refunded 40.0 EUR (broken)."
  end

  test "a memory of one customer is in no prompt of another" do
    remember = ~s({"content": "Lives in Rose Lane 5"})
    book = start([[{"memory__save", remember}], "I know now.", "Hello.", "Hello.", "Hello."])
    {:ok, _answer} = SupportBot.answer(book, {"lamps", "ann"}, "I live in Rose Lane 5.")
    for _ <- 1..2, do: assert_receive({:request, _request})

    for {customer, knows?} <- [
          {{"lamps", "ann"}, true},
          {{"lamps", "bob"}, false},
          {{"books", "ann"}, false}
        ] do
      {:ok, _answer} = SupportBot.answer(book, customer, "In which lane do I live?")
      assert_receive {:request, request}
      assert request =~ "Rose" == knows?
    end
  end
end
