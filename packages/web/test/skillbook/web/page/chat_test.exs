defmodule Skillbook.Web.Page.ChatTest do
  # Conversations with the book's model: what is shown, who sees them, and their bounds.
  use Skillbook.PageCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Catalog.Watcher
  alias Skillbook.{Model, ModelError}
  alias Skillbook.Test.Requests
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.Chats

  @moduletag :capture_log
  @moduletag :tmp_dir
  @operator [profile: "ann", operator: true]
  @attack "<script>document.title='owned'</script>"

  setup %{tmp_dir: folder} do
    write(folder, %{
      "tea/SKILL.md" => page("tea", [], "Boil water.\n"),
      "x/ask.md" => page("x.ask", handler("Text") ++ [approval: "required"])
    })

    test = self()

    # A text that names a process waits for it.
    model =
      Model.Function.new(fn messages, _options ->
        last = List.last(messages).content

        case last do
          "Brew" <> _rest -> "I look.\n\n```cmd\nget_skill tea\n```"
          "Ask" <> _rest -> "```cmd\nx.ask\n```"
          "Fail" -> {:error, %ModelError{kind: :timeout, reason: "no answer"}}
          "Wait" -> waiting(test)
          "Crash" -> raise "secret"
          _other -> if last =~ "that waited for", do: "After it.", else: "**Done.** #{@attack}"
        end
      end)

    served(
      sources: [folder],
      agent: [model: model, protocol: :blocks],
      profiles: [[id: "ann", writes: :run], [id: "bob", writes: :run]]
    )
  end

  defp waiting(test) do
    send(test, {:waits, self()})

    receive do
      :go -> "Went."
    end
  end

  defp post(web, target, form, as), do: Requests.call(web, "POST", target, as: as, form: form)

  # Begins a conversation and returns its address, when the answer has come.
  defp begin(web, text, as \\ "ann") do
    response = post(web, "/chat", %{"text" => text}, as)
    assert response.status == 303
    path = Requests.header(response, "location")
    assert ended(web, path, as)
    path
  end

  defp ended(web, path, as),
    do: eventually(fn -> json(web, path, as)["status"] != "running" end)

  test "shows the answer, and what the model saw", %{web: web} do
    path = begin(web, "Brew tea")
    data = json(web, path, "ann")
    assert %{"status" => "done", "read" => ["tea"], "error" => nil} = data
    assert %{"prompt" => prompt, "results" => results, "model" => model} = data["tokens"]
    assert prompt > 0 and results > 0 and model > 0
    html = get(web, path, "ann")
    assert html =~ "get_skill tea" and html =~ "<strong>Done.</strong>"
    assert html =~ ~s(href="/skills/tea")
    refute html =~ @attack
    # It goes on, and is listed.
    assert post(web, path, %{"text" => "And now?"}, "ann").status == 303
    assert ended(web, path, "ann")
    assert get(web, path, "ann") =~ "And now?"
    assert get(web, "/chat", "ann") =~ "href=\"#{path}\">Brew tea<"
  end

  test "is that of its owner, and for others does not exist", %{web: web, book: book} do
    path = begin(web, "Brew tea")
    missing = get(web, "/chat/none", "bob")
    other = %{Skillbook.view(book, "ann").profile | writes: :deny}

    for as <- ["bob", [profile: "bob", operator: true], other] do
      assert Requests.call(web, "GET", path, as: as).status == 404
      assert post(web, path, %{"text" => "x"}, as).status == 404
      refute get(web, "/chat", as) =~ "Brew tea"
    end

    assert get(web, path, "bob") == missing
    # As another profile, an operator only reads, and has no conversations of it.
    operator = [profile: "bob", operator: true]
    assert Requests.call(web, "GET", path <> "?as=ann", as: operator).status == 404
    assert post(web, "/chat?as=ann", %{"text" => "x"}, operator).status == 403
  end

  for decision <- ["yes", "no"] do
    test "a call that waits is decided in its place: #{decision}", %{web: web, book: book} do
      path = begin(web, "Ask", @operator)
      assert %{"status" => "pending", "pending" => [ref]} = json(web, path, @operator)
      assert get(web, path, @operator) =~ ~s(name="decision" value="yes")
      form = %{"ref" => ref, "decision" => unquote(decision)}
      assert post(web, path, %{form | "ref" => "none"}, @operator).status == 404
      assert post(web, path, form, @operator).status == 303
      assert ended(web, path, @operator)
      assert %{"status" => "done", "pending" => []} = json(web, path, @operator)
      assert get(web, path, @operator) =~ "After it."
      status = if unquote(decision) == "yes", do: :done, else: :denied
      assert {:ok, [%{ref: ^ref, by: "ann"}]} = Skillbook.approvals(book, status: status)
    end
  end

  test "only operators decide", %{web: web} do
    path = begin(web, "Ask")
    assert %{"pending" => [ref]} = json(web, path, "ann")
    assert get(web, path, "ann") =~ "An operator decides."
    assert post(web, path, %{"ref" => ref, "decision" => "yes"}, "ann").status == 404
  end

  test "an answer is awaited, not doubled, and stopped", %{web: web} do
    path = web |> post("/chat", %{"text" => "Wait"}, "ann") |> Requests.header("location")
    assert_receive {:waits, model}
    html = get(web, path, "ann")
    assert html =~ "The model is answering" and html =~ "Wait"
    # Without script, the page looks again.
    assert html =~ ~s(<noscript><meta http-equiv="refresh")
    refused = post(web, path, %{"text" => "Kept?"}, "ann")
    assert refused.status == 422
    assert refused.body =~ "The model is still answering." and refused.body =~ "Kept?"
    monitor = monitor(model)
    assert post(web, path, %{"action" => "stop"}, "ann").status == 303
    assert_receive {:DOWN, ^monitor, :process, _pid, _killed}
    assert json(web, path, "ann")["status"] == "stopped"
    # No more than two at once.
    for _ <- 1..2, do: post(web, "/chat", %{"text" => "Wait"}, "ann")
    assert post(web, "/chat", %{"text" => "Wait"}, "ann").body =~ "Too many answers are awaited"
    assert post(web, "/chat", %{"text" => "Brew"}, "bob").status == 303
  end

  test "an answer that came before it was stopped stays", %{web: web, book: book} do
    path = web |> post("/chat", %{"text" => "Wait"}, "ann") |> Requests.header("location")
    assert_receive {:waits, model}
    {:ok, caller} = Caller.new(book, "ann", via: :application)
    {:ok, %{status: :running} = awaited} = Chats.fetch(caller, Path.basename(path))
    monitor = monitor(awaited.pid)
    send(model, :go)
    assert_receive {:DOWN, ^monitor, :process, _pid, :normal}
    assert Chats.stop(caller, awaited) == :ok
    assert %{"status" => "done"} = json(web, path, "ann")
    assert get(web, path, "ann") =~ "Went."
  end

  test "open pages hear of an answer whose process has gone", %{web: web, book: book} do
    {:ok, caller} = Caller.new(book, "ann", via: :application)
    :ok = Watcher.subscribe(book, Chats.group(caller))
    path = web |> post("/chat", %{"text" => "Wait"}, "ann") |> Requests.header("location")
    id = Path.basename(path)
    assert_receive {:skillbook_chat, ^book, ^id}
    assert_receive {:waits, _model}
    {:ok, %{status: :running, pid: pid}} = Chats.fetch(caller, id)
    Process.exit(pid, :kill)
    assert_receive {:skillbook_chat, ^book, ^id}
    assert json(web, path, "ann")["status"] == "crashed"
  end

  test "says what was wrong", %{web: web} do
    for {text, expected} <- [
          {" ", "Expected a text, got nothing."},
          {String.duplicate("é", 8_001), "Expected at most 8000 characters, got: 8001."},
          {"a\0", "Expected text in UTF-8 without NUL."}
        ] do
      response = post(web, "/chat", %{"text" => text}, "ann")
      assert {response.status, response.body =~ expected} == {422, true}
    end

    path = begin(web, "Crash")
    assert json(web, path, "ann")["status"] == "crashed"
    assert get(web, path, "ann") =~ "The answer crashed; the log of the book has the reason."
    path = begin(web, "Fail")
    assert json(web, path, "ann")["error"] =~ "no answer"
    assert get(web, path, "ann") =~ "no answer"
    {:ok, without} = served(profiles: [[id: "ann"]])
    assert get(without[:web], "/chat", "ann") =~ "No model is configured"
    assert post(without[:web], "/chat", %{"text" => "x"}, "ann").body =~ "This book has no model"
  end
end
