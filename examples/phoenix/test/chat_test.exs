defmodule ShopWeb.ChatTest do
  use ExUnit.Case

  import Phoenix.ConnTest
  import Phoenix.LiveViewTest

  alias Skillbook.Conversation

  @endpoint ShopWeb.Endpoint

  # A browser with a conversation of its own. The test gets its events too.
  setup do
    :ok = Supervisor.terminate_child(Shop.Supervisor, Shop.Orders)
    {:ok, _orders} = Supervisor.restart_child(Shop.Supervisor, Shop.Orders)
    conn = get(build_conn(), "/")
    id = Plug.Conn.get_session(conn, "chat")
    chat = Shop.Chats.open(id)
    {:ok, view, _html} = live(recycle(conn), "/")
    %{conn: conn, id: id, chat: chat, view: view}
  end

  # The page has had what the test has had.
  defp ended(%{id: id, chat: chat}) do
    assert_receive {:skillbook_conversation, ^id, {:ended, _turn, {:ok, _outcome}}}, 5_000
    _info = Conversation.info(chat)
  end

  defp say(view, text), do: view |> form("#say", %{text: text}) |> render_submit()

  test "a refund waits for its approval, and the conversation goes on", context do
    say(context.view, "My order 7 is broken.")
    ended(context)
    page = render(context.view)

    for text <- [
          "My order 7 is broken.",
          "Let me look.",
          "orders__find: ok",
          "I asked for your refund. Somebody of the shop decides.",
          "orders.refund {&quot;number&quot;:7"
        ],
        do: assert(page =~ text)

    assert Shop.Orders.fetch(7).status == :paid

    context.view |> element("button", "Approve") |> render_click()
    ended(context)
    page = render(context.view)
    assert page =~ "You get your 40 EUR back."
    refute page =~ "Approve"
    assert Shop.Orders.fetch(7).status == :refunded

    # A reload shows the same conversation.
    {:ok, again, _html} = live(recycle(context.conn), "/")
    assert messages(render(again)) == messages(page)
  end

  test "what is denied is not refunded", context do
    say(context.view, "My order 7 is broken.")
    ended(context)
    context.view |> element("button", "Deny") |> render_click()
    ended(context)
    assert render(context.view) =~ "I am sorry: the shop does not refund it."
    assert Shop.Orders.fetch(7).status == :paid
  end

  test "a turn is stopped, and the conversation continues", context do
    Application.put_env(:shop, :pace, 60_000)
    on_exit(fn -> Application.put_env(:shop, :pace, 0) end)
    say(context.view, "My order 7 is broken.")
    say(context.view, "Hello?")
    assert render(context.view) =~ "The assistant is at work."
    context.view |> element("button", "Stop") |> render_click()
    page = render(context.view)
    assert page =~ "Stopped." and page =~ "Hello?"

    Application.put_env(:shop, :pace, 0)
    context.view |> element("button", "Continue") |> render_click()
    ended(context)
    assert render(context.view) =~ "Tell me the number of your order"
  end

  test "another browser has another conversation", context do
    say(context.view, "My order 7 is broken.")
    ended(context)
    {:ok, _view, page} = live(build_conn(), "/")
    refute page =~ "order 7"
  end

  defp messages(page) do
    for [_, text] <- Regex.scan(~r/<li[^>]*>(.*?)<\/li>/s, page), do: text
  end
end
