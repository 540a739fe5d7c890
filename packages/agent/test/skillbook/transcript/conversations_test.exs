defmodule Skillbook.Transcript.ConversationsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Agent.Result
  alias Skillbook.Book.Pruner
  alias Skillbook.Transcript.Conversations
  alias Skillbook.{Agent, Book, Model, OptionError, PostgresCase, Profile, SQL}

  @moduletag :tmp_dir
  @moduletag :capture_log

  defp start(folder, options) do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Text")),
      "x/ask.md" => page("x.ask", handler("Text") ++ [approval: "required"])
    })

    options =
      Keyword.merge(
        [sources: [folder], builtins: false, store: ":memory:", watch: false],
        options
      )

    book(options)
  end

  defp model(reply) do
    Model.Function.new(fn messages, _ ->
      if List.last(messages).role == :user and
           not (List.last(messages).content =~ ~r/^\[1\]|The result of/),
         do: reply,
         else: "All done."
    end)
  end

  @reply "On it.\n\n```cmd\nx.run --to \"a\0b\"\nx.gone\n```"

  defp parts(book, run) do
    {:ok, _conversation, parts} =
      Conversations.fetch(Book.fetch!(book), Profile.unrestricted(), run)

    for part <- parts, do: {part.kind, part.content["kind"] || part.content["status"]}
  end

  test "nothing is stored without the option", %{tmp_dir: folder} do
    book = start(folder, [])
    {:ok, _} = Agent.run(book, "Go", model: model(@reply))
    assert Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10) == {:ok, []}

    assert {:ok, %{rows: [[0]]}} =
             SQL.query(
               Book.sql(Book.fetch!(book)),
               "select count(*) from skillbook_conversation_parts"
             )
  end

  for store <- [:sqlite, :postgres] do
    test "each message and each command of a run is stored in order, in #{store}", context do
      records(context.tmp_dir, store(unquote(store)))
    end

    test "old ones and those beyond the number of a profile are deleted, in #{store}", context do
      deletes(context.tmp_dir, store(unquote(store)))
    end
  end

  defp store(:sqlite), do: ":memory:"
  defp store(:postgres), do: {SQL.Postgres, url: PostgresCase.database()}

  defp records(folder, store) do
    book = start(folder, conversations: [], store: store)
    test = self()

    {:ok, %Result{status: :done}} =
      Agent.run(book, "Go on\nwith it", model: model(@reply), on_event: &send(test, &1))

    # The receiver of the application gets all events as before.
    assert_receive {:message, %{kind: :input}}
    assert_receive {:turn, 1}

    {:ok, [%{run: run} = one]} = Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10)
    assert %{title: "Go on", status: "done", turns: 2, depth: 0, profile: "default"} = one

    assert one.ended_at >= one.started_at

    assert parts(book, run) == [
             {"message", "prompt"},
             {"message", "input"},
             {"message", "reply"},
             {"command", "ok"},
             {"command", "error"},
             {"message", "report"},
             {"message", "reply"}
           ]

    # The page after it, and after one that the profile does not read.
    list = &Conversations.list(Book.fetch!(book), &1, 10, run)
    Agent.run(book, "Later", model: model(@reply))
    assert list.(Profile.unrestricted()) == {:ok, []}

    {:ok, [%{run: later}, %{run: ^run}]} =
      Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10)

    assert {:ok, [%{run: ^run}]} =
             Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10, later)

    {:ok, _, stored} = Conversations.fetch(Book.fetch!(book), Profile.unrestricted(), run)

    assert [
             %{
               "command" => "x.run --to \"a\uFFFDb\"",
               "name" => "x.run",
               "content" => "flags: " <> _
             },
             %{"name" => nil}
           ] = for(%{kind: "command", content: content} <- stored, do: content)

    assert Conversations.fetch(Book.fetch!(book), Profile.unrestricted(), "none") == {:ok, nil}
  end

  test "a run that goes on after an approval is one conversation", %{tmp_dir: folder} do
    model = model("```cmd\nx.ask\n```")
    book = start(folder, conversations: [], agent: [model: model])
    {:ok, %{pending: [%{ref: ref}]}} = Agent.run(book, "Ask", [])
    {:ok, [%{run: run}]} = Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10)
    before = length(parts(book, run))

    {:ok, %{status: :done, run: %Result{status: :done}}} =
      Skillbook.approve(book, ref, by: "Bob", resume: true)

    {:ok, [%{run: ^run, status: "done"}]} =
      Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10)

    assert length(parts(book, run)) > before
  end

  defp deletes(folder, store) do
    book =
      start(folder,
        store: store,
        conversations: [keep: 2, max: 3],
        profiles: [[id: "ann"], [id: "bob"]]
      )

    run = fn id, day ->
      clock = fn -> DateTime.add(~U[2026-03-01 08:00:00Z], day * 86_400) end
      {:ok, _} = Agent.run(book, "day #{day}", model: model("Hi"), profile: id, clock: clock)
    end

    titles = fn ->
      {:ok, all} = Conversations.list(Book.fetch!(book), Profile.unrestricted(), 10)
      for one <- all, do: {one.profile, one.title}
    end

    for _ <- 1..5, do: run.("ann", 1)
    run.("bob", 1)
    assert titles.() == [{"bob", "day 1"} | List.duplicate({"ann", "day 1"}, 3)]
    run.("bob", 4)
    {:ok, %{conversations: 4}} = Pruner.run(Book.fetch!(book), ~U[2026-03-05 08:00:01Z])
    assert titles.() == [{"bob", "day 4"}]

    runs =
      "select count(*) from skillbook_conversation_parts " <>
        "where run not in (select run from skillbook_conversations)"

    assert {:ok, %{rows: [[0]]}} = SQL.query(Book.sql(Book.fetch!(book)), runs)
  end

  test "a database that fails does not stop a run", %{tmp_dir: folder} do
    book = start(folder, conversations: [])
    sql = Book.sql(Book.fetch!(book))
    {:ok, _} = SQL.query(sql, "drop table skillbook_conversation_parts")
    assert {:ok, %Result{status: :done}} = Agent.run(book, "Go", model: model(@reply))
    {:ok, _} = SQL.query(sql, "drop table skillbook_conversations")
    assert {:ok, %Result{status: :done}} = Agent.run(book, "Go", model: model(@reply))
  end

  test "a database that ends does not stop a run", %{tmp_dir: folder} do
    book = start(folder, conversations: [])
    {store, test} = {Module.concat(book, Store), self()}

    model =
      Model.Function.new(fn _messages, _options ->
        # The supervisor of the book restarts it, and what uses it.
        Process.exit(Process.whereis(store), :kill)
        send(test, :killed)
        "Hi"
      end)

    assert {:ok, %Result{status: :done}} = Agent.run(book, "Go", model: model)
    assert_receive :killed
  end

  test "wrong options are refused" do
    for wrong <- [true, [keep: 0], [days: 3], [max: "x"]] do
      assert {:error, %OptionError{option: :conversations} = error} =
               Skillbook.start_link(name: :no_conversations, conversations: wrong)

      assert Exception.message(error) ==
               "expected [keep: days, max: number] or false as the option :conversations of a " <>
                 "book, got: #{inspect(wrong)}"
    end
  end
end
