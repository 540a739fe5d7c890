defmodule Skillbook.Web.ExampleTest do
  # examples/chat.exs: a page that follows a conversation by server-sent events.
  use ExUnit.Case, async: false

  import Skillbook.Eventually

  alias Skillbook.Test.{Checkout, Requests}
  alias Skillbook.Web.Server

  # The script runs until its process ends, and its own processes with it.
  setup_all do
    System.put_env("PORT", "0")
    on_exit(fn -> System.delete_env("PORT") end)
    {:ok, printed} = StringIO.open("")

    script =
      spawn_link(fn ->
        Process.group_leader(self(), printed)
        Code.eval_file(Checkout.path("examples/chat.exs"))
      end)

    assert eventually(fn -> elem(StringIO.contents(printed), 1) =~ "\n" end)
    url = Server.info(ChatExample.Server).url
    assert elem(StringIO.contents(printed), 1) == "Open #{url}\n"
    assert Process.alive?(script)
    %{handle: &apply(ChatExample, :handle, [&1])}
  end

  defp read(pid, until, read \\ "") do
    if read =~ until do
      read
    else
      assert_receive {:part, ^pid, part}
      read(pid, until, read <> part)
    end
  end

  test "the events of a conversation reach its page", %{handle: handle} do
    assert handle.(Requests.request("GET", "/")).body =~ "new EventSource"

    {_response, pid} = Requests.stream(handle.(Requests.request("GET", "/chats/c-1/events")))
    assert read(pid, "event: ready") =~ "event: ready\ndata: \"idle\"\n\n"

    say = fn target, body -> handle.(Requests.request("POST", target, body: body)) end
    assert say.("/chats/c-1", "Tea is out.").status == 202
    events = read(pid, "event: ended")

    for event <- [
          "event: input\ndata: {\"text\":\"Tea is out.\"}\n\n",
          "event: text\ndata: {\"text\":\"Let\"}\n\n",
          "event: result\ndata: {\"command\":\"memory.save --content \\\"Tea is out.\\\"\"," <>
            "\"status\":\"ok\"}\n\n",
          "event: ended\ndata: {\"status\":\"done\"}\n\n"
        ],
        do: assert(events =~ event)

    # Another conversation has other readers.
    assert say.("/chats/c-2", "Milk is out.").status == 202
    assert say.("/chats/c-1", "Sugar is out.").status == 202
    refute read(pid, "event: ended") =~ "Milk"
    Requests.close(pid)
  end

  test "what is no conversation or no text is refused", %{handle: handle} do
    for {method, target, options, status} <- [
          {"POST", "/chats/c-1", [body: " "], 422},
          {"POST", "/chats/c-1", [body: String.duplicate("x", 8_001)], 422},
          {"POST", "/chats/c-1", [body: "x", headers: [{"sec-fetch-site", "cross-site"}]], 422},
          {"POST", "/chats/c%201", [body: "x"], 404},
          {"POST", "/chats/" <> String.duplicate("x", 41), [body: "x"], 404},
          {"GET", "/chats/c-1", [], 404},
          {"GET", "/other", [], 404}
        ] do
      response = handle.(Requests.request(method, target, options))
      assert {method, target, response.status} == {method, target, status}
    end
  end
end
