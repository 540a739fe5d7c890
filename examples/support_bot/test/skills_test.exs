defmodule SupportBot.SkillsTest do
  use Skillbook.Test,
      SupportBot.book(store: ":memory:", profile: "lamps/ann", ask: :allow, async: false)

  setup do
    start_supervised!(SupportBot.Shop)
    :ok
  end

  test "each shop has its own orders" do
    assert run_skill("orders.find 7").content == "Order 7: 2 lamps, 40.0 EUR, paid"
    assert run_skill("orders.find 7", profile: "books/ann").content =~ "Moby-Dick, 12.5 USD"
    assert run_skill("orders.find", %{number: 8}).content =~ "there is no order 8"
  end

  test "flags are cast and checked before a handler sees them" do
    assert run_skill("orders.find --number seven").content =~ "number"

    assert run_skill("orders.refund --number 7 --reason ugly").content =~
             "one of broken, late, other"

    refute_ran("orders.refund")
  end

  test "a refund asks first" do
    assert run_skill("orders.refund --number 7").content == "Refunded 40.0 EUR (other)."
    assert_asked("orders.refund", number: 7)
    assert run_skill("orders.find 7").content =~ "refunded"
  end

  test "requests lead to the right skill" do
    assert_routes("I want my money back", "orders.refund")
    assert_routes("Open a ticket, please", "tickets.open")
  end

  test "only shops with the premium plan know about returns" do
    assert {:error, _} = Skillbook.get(view("lamps/ann"), "returns")
    assert {:ok, "A return is free" <> _} = Skillbook.get(view("books/ann"), "returns")
    assert_raise ArgumentError, fn -> view("shoes") end
  end

  @tag skillbook: [now: ~U[2026-03-02 17:59:30Z]]
  test "the report runs every evening" do
    run_skill("tickets.open --subject Broken")
    run_skill("tickets.open --subject Late --priority high", profile: "books/ann")
    assert run_skill("tickets.list").content == "1: Broken"
    advance(minutes: 1)
    run_schedules()
    assert {:ok, %{content: "books: 1, lamps: 1"}} = assert_ran("reports.daily").answer
  end
end
