defmodule Skillbook.MCP.ElicitationTest do
  use ExUnit.Case, async: true

  import Skillbook.MCPCase, only: [letters: 1]
  import Skillbook.SkillsCase, only: [write: 2]

  alias Skillbook.MCP.{Context, Server}

  @forms %{"elicitation" => %{}}

  @workflow """
  ---
  name: letters.each
  description: Sends all letters
  ---
  ## Behavior

  ```cmd
  letters.send --to bob
  ```
  """

  setup tags do
    profiles =
      for {id, writes} <- [ann: :ask, bob: :ask, eve: :deny], do: [id: "#{id}", writes: writes]

    options = [sources: pages(tags), profiles: profiles] ++ Map.get(tags, :book, [])
    %{book: letters(options)}
  end

  defp pages(%{tmp_dir: folder}), do: [write(folder, %{"letters/each.md" => @workflow})]
  defp pages(_tags), do: []

  defp context(book, options \\ []) do
    {id, options} = Keyword.pop(options, :as, "ann")
    view = Skillbook.view(book, id)

    struct!(
      %Context{view: view, profile: view.profile, revision: "2026-07-28", capabilities: @forms},
      options
    )
  end

  @call %{"name" => "letters__send", "arguments" => %{"to" => "bob"}}

  defp call(context, params) do
    case Server.handle({:request, 1, "tools/call", params}, context) do
      {:reply, %{"result" => result}} -> Map.delete(result, "_meta")
      {:reply, %{"error" => error}} -> {error["code"], error["message"]}
    end
  end

  defp answered(action, state, call \\ @call) do
    Map.merge(call, %{
      "requestState" => state,
      "inputResponses" => %{"approval" => %{"action" => action}}
    })
  end

  defp asked!(context, call \\ @call) do
    assert %{"resultType" => "input_required", "requestState" => state} =
             result = call(context, call)

    assert [{"approval", request}] = Map.to_list(result["inputRequests"])
    assert request["method"] == "elicitation/create"
    {state, request["params"]}
  end

  @refused {-32_602,
            "expected the `requestState` of this call, within 10 minutes of its question; " <>
              "call the tool again without it"}

  describe "without sessions" do
    test "a call ends with the question, and runs when it comes back with a yes", %{book: book} do
      {state, question} = asked!(context(book))

      assert question == %{
               "message" => "Run \"letters.send\"?\nto: \"bob\"",
               "requestedSchema" => %{"type" => "object", "properties" => %{}}
             }

      refute_received {:sent, _}

      result = call(context(book, client: "an editor"), answered("accept", state))
      assert result["content"] == [%{"type" => "text", "text" => "Sent to bob."}]
      assert result["isError"] == false
      assert_receive {:sent, "bob"}

      assert {:ok, [approval]} = Skillbook.approvals(book, status: :done)
      assert approval.by == "ann, by the MCP client an editor"
    end

    test "a no is an error for the model", %{book: book} do
      for {action, text} <- [
            {"decline",
             "`letters.send` was not run: it changes something, and the user declined. Do not " <>
               "try again unless the user asks for it."},
            {"cancel",
             "`letters.send` was not run: it changes something, and the user declined: The " <>
               "question was closed without an answer."}
          ] do
        {state, _question} = asked!(context(book))
        result = call(context(book), answered(action, state))
        assert [%{"text" => ^text}] = result["content"]
        assert result["isError"]
        # It is decided.
        assert %{"isError" => true} = call(context(book), answered("accept", state))
      end

      refute_received {:sent, _}
    end

    test "an answer that is missing or none is asked for again", %{book: book} do
      {state, question} = asked!(context(book))

      for answers <-
            [nil, %{}, %{"other" => %{"action" => "accept"}}, [], "accept"] ++
              [%{"approval" => nil}, %{"approval" => %{"action" => "yes"}}] do
        call = Map.merge(@call, %{"requestState" => state, "inputResponses" => answers})
        assert {^state, ^question} = asked!(context(book), call)
      end

      refute_received {:sent, _}
      call(context(book), answered("accept", state))
      assert_receive {:sent, "bob"}
    end

    test "a state runs its call once", %{book: book} do
      {state, _question} = asked!(context(book))
      call(context(book), answered("accept", state))
      assert_receive {:sent, "bob"}

      for action <- ["accept", "decline"] do
        assert %{"isError" => true, "content" => [%{"text" => text}]} =
                 call(context(book), answered(action, state))

        assert text =~ "was approved by ann"
      end

      refute_received {:sent, _}
    end

    test "a state runs its call once, also for callers at the same time", %{book: book} do
      {state, _question} = asked!(context(book))
      context = context(book)

      1..8
      |> Enum.map(fn _ -> Task.async(fn -> call(context, answered("accept", state)) end) end)
      |> Task.await_many(:infinity)

      assert_receive {:sent, "bob"}
      refute_received {:sent, _}
    end

    test "a state that is forged, or of another call or caller, runs nothing", %{book: book} do
      {state, _question} = asked!(context(book))
      {:ok, [approval]} = Skillbook.approvals(book)
      nonce_and_end = Base.url_decode64!(state, padding: false)
      <<nonce::binary-size(24), ends::64>> = nonce_and_end
      encode = &Base.url_encode64(&1, padding: false)

      # Another call that waits, for a person of the application to decide.
      view = Skillbook.view(book, "ann")
      reply = "```cmd\nletters.send --to bob\n```"
      %{results: [%{data: other}]} = Skillbook.run(view, reply, ask: fn _ -> :pending end)

      for {what, as, call} <- [
            {"no text", "ann", answered("accept", 1)},
            {"empty", "ann", answered("accept", "")},
            {"other bytes", "ann", answered("accept", "x")},
            {"too long", "ann", answered("accept", String.duplicate("A", 10_000))},
            {"the reference", "ann", answered("accept", approval.ref)},
            {"the reference of another call", "ann", answered("accept", other.ref)},
            {"another secret", "ann", answered("accept", encode.(<<0::192, ends::64>>))},
            {"a later end", "ann", answered("accept", encode.(nonce <> <<ends + 600::64>>))},
            {"an end that is over", "ann", answered("accept", encode.(nonce <> <<1::64>>))},
            {"more bytes", "ann", answered("accept", encode.(nonce_and_end <> "x"))},
            {"another caller", "bob", answered("accept", state)},
            {"a caller who may not write", "eve", answered("accept", state)},
            {"other arguments", "ann",
             answered("accept", state, put_in(@call["arguments"]["to"], "eve"))},
            {"more arguments", "ann",
             answered("accept", state, put_in(@call["arguments"]["x"], 1))},
            {"no arguments", "ann", answered("accept", state, %{@call | "arguments" => %{}})},
            {"another tool", "ann", answered("accept", state, %{@call | "name" => "get_skill"})},
            {"another name of the tool", "ann",
             answered("accept", state, %{@call | "name" => "letters.send"})}
          ] do
        assert call(context(book, as: as), call) == @refused, what
        refute_received {:sent, _}
      end

      # None of them has used it up.
      call(context(book), answered("accept", state))
      assert_receive {:sent, "bob"}
      assert {:ok, [waiting]} = Skillbook.approvals(book)
      assert waiting.ref == other.ref
    end

    test "a state means nothing to the older revisions", %{book: book} do
      {state, _question} = asked!(context(book))
      context = context(book, revision: "2025-11-25")
      result = call(context, answered("accept", state))
      assert [%{"text" => "`letters.send` has not run yet" <> _}] = result["content"]
      refute_received {:sent, _}
    end

    @tag :tmp_dir
    test "a step that asks leaves its workflow waiting for the application", %{book: book} do
      result = call(context(book), %{"name" => "letters__each", "arguments" => %{}})
      assert result["resultType"] == "complete"
      assert [%{"text" => text}] = result["content"]
      assert text =~ "waits for the approval"
      refute_received {:sent, _}
    end
  end

  describe "a client that cannot ask" do
    test "reads that the call waits", %{book: book} do
      for capabilities <- [%{}, %{"elicitation" => %{"url" => %{}}}, %{"elicitation" => true}] do
        result = call(context(book, capabilities: capabilities), @call)
        assert [%{"text" => text}] = result["content"]

        assert text =~
                 ~r/\A`letters.send` has not run yet: it waits for the approval A-\w+, until /

        assert result["isError"] == false
      end

      refute_received {:sent, _}
      {:ok, approvals} = Skillbook.approvals(book)
      assert length(approvals) == 3
    end

    @tag book: [store: nil]
    test "of a book without a database reads that nobody answered", %{book: book} do
      ExUnit.CaptureLog.capture_log(fn ->
        for capabilities <- [%{}, @forms] do
          result = call(context(book, capabilities: capabilities), @call)
          assert result["isError"]
        end
      end)

      refute_received {:sent, _}
    end
  end

  describe "a book with a callback" do
    @tag book: [ask: {__MODULE__, :allow}]
    test "decides itself", %{book: book} do
      assert %{"content" => [%{"text" => "Sent to bob."}]} = call(context(book), @call)
    end

    @tag book: [ask: {__MODULE__, :pending}]
    test "may let it wait, which no client can change", %{book: book} do
      result = call(context(book), @call)
      assert [%{"text" => "`letters.send` has not run yet" <> _}] = result["content"]
      {:ok, [approval]} = Skillbook.approvals(book)
      assert call(context(book), answered("accept", approval.ref)) == @refused
      refute_received {:sent, _}
    end
  end

  def allow(_request), do: :allow
  def pending(_request), do: :pending

  test "a profile that may not write is not asked", %{book: book} do
    result = call(context(book, as: "eve"), @call)
    assert result["isError"]
    assert {:ok, []} = Skillbook.approvals(book)
  end

  test "a question shows every value on a line of its own, and never too much", %{book: book} do
    to = "bob\nto: \"eve\"\u202e" <> String.duplicate("x", 2_000)
    call = put_in(@call["arguments"]["to"], to)
    {_state, question} = asked!(context(book), call)
    assert ["Run \"letters.send\"?", line] = String.split(question["message"], "\n")
    assert line =~ ~S(to: "bob\nto: \"eve\"\u{202E}xxx)
    assert line =~ ~r/x … \(\d+ more characters\)\z/
    assert String.length(line) < 1_100
  end
end
