defmodule Skillbook.ApprovalTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.{Approval, ApprovalError, Book, Executor, OptionError, PolicyError, Result}
  alias Skillbook.{Router, SetupError, SQL}
  alias Skillbook.Book.Pruner

  @moduletag :tmp_dir

  doctest Skillbook.Approval
  doctest Skillbook.ApprovalError

  # Sends what it got to the process of the test, which the book's assigns name.
  defmodule Send do
    @behaviour Skillbook.Handler
    @impl true
    def execute(flags, context) do
      send(:persistent_term.get({__MODULE__, context.book}), {:ran, flags, context})
      {:ok, "Sent to #{flags["to"]}."}
    end
  end

  @flags """
  # x.send

  ## Flags

  - `--to` (optional): the address
  - `--due` (optional): YYYY-MM-DD, today or tomorrow
  - `--count` (optional): how often, from 1 to 9
  """

  defp pages do
    send = [handler: inspect(Send)]

    %{
      "x/send.md" => page("x.send", send, @flags),
      "x/pay.md" => page("x.pay", send ++ [approval: "required"], @flags),
      "x/pick.md" => page("x.pick", send ++ [approval: "required", effects: "read"]),
      "x/look.md" => page("x.look", send ++ [effects: "read"]),
      "x/both.md" => page("x.both", [], "## Behavior\n\n```cmd\nx.send --to a\nx.look\n```\n"),
      "x/on.md" =>
        page(
          "x.on",
          [on_error: "continue"],
          "## Behavior\n\n```cmd\nx.send --to a\nx.look\n```\n"
        )
    }
  end

  setup context do
    write(context.tmp_dir, pages())

    options = [
      sources: [context.tmp_dir],
      store: ":memory:",
      watch: false,
      profiles: [
        [id: "ann", writes: :ask],
        [id: "bob"],
        [id: "dan", writes: :deny],
        [id: "eve", writes: :ask, skills: ["x.look"]]
      ],
      ask: fn _request -> :pending end
    ]

    name = book(Keyword.merge(options, context[:options] || []))
    :persistent_term.put({Send, name}, self())
    %{book: name}
  end

  defp run(book, profile, line, options \\ []) do
    [result] =
      Skillbook.run(Skillbook.view(book, profile), "```cmd\n#{line}\n```", options).results

    result
  end

  defp waiting(book, profile, line, options \\ []) do
    %Result{status: :pending, data: %Approval{} = approval} = run(book, profile, line, options)
    approval
  end

  describe "a call that waits" do
    test "is stored with its words, and told to the model", %{book: book} do
      line = "x.send --to bob --due tomorrow"
      result = run(book, "ann", line)
      assert result.status == :pending
      approval = result.data
      until = Calendar.strftime(approval.expires_at, "%Y-%m-%d %H:%M UTC")

      assert result.content ==
               "`x.send` has not run yet: it waits for the approval #{approval.ref}, until " <>
                 "#{until}. Do not call it again; tell the user that it waits."

      assert result.metadata == %{pending: [approval]}
      assert approval.ref =~ ~r/\AA-[a-z2-9]{12}\z/

      assert %Approval{profile: "ann", name: "x.send", command: ^line, status: :pending} =
               approval

      due = approval.asked_at |> DateTime.to_date() |> Date.add(1)
      assert approval.flags == %{"to" => "bob", "due" => "#{due}"}
      assert DateTime.diff(approval.expires_at, approval.asked_at) == 604_800
      assert Skillbook.approvals(book) == {:ok, [approval]}
      refute_received {:ran, _, _}
    end

    test "is pending in a report, and the commands after it follow :on_error", %{book: book} do
      reply = "```cmd\nx.send --to a\nx.look\nx.send {1}\n```"
      view = Skillbook.view(book, "ann")
      report = Skillbook.run(view, reply)
      assert Enum.map(report.results, & &1.status) == [:pending, :ok, :error]

      assert to_string(report) =~
               "[1] x.send --to a\npending\n  `x.send` has not run yet: it waits"

      assert List.last(report.results).content ==
               "`{1}` has no value: command 1 waits for an approval. Write this one " <>
                 "again when " <>
                 "that command has run"

      report = Skillbook.run(view, reply, on_error: :halt)
      assert Enum.map(report.results, & &1.status) == [:pending, :skipped, :skipped]
    end

    test "has the reference of the callback's answer", %{book: book} do
      assert waiting(book, "ann", "x.send", ask: fn _ -> {:pending, "T-1:a.b_c"} end).ref ==
               "T-1:a.b_c"

      assert waiting(book, "ann", "x.send", ask: fn request -> {:pending, request.ref} end).ref =~
               "A-"

      assert run(book, "ann", "x.send", ask: fn _ -> {:pending, "T-1:a.b_c"} end).content ==
               "`x.send` was not run: it needs an approval, and the call cannot be " <>
                 "stored until " <>
                 "then: its reference T-1:a.b_c is in use already. You cannot fix this: tell " <>
                 "the user."

      for wrong <- ["", "a b", "a\n", String.duplicate("a", 129), 1, nil, "é"] do
        log =
          capture_log(fn ->
            result = run(book, "ann", "x.send", ask: fn _ -> {:pending, wrong} end)
            assert {wrong, result.error.kind} == {wrong, :unanswered}
          end)

        assert log =~
                 "expected :allow, :deny, {:deny, text}, :pending or {:pending, ref} of the " <>
                   ":ask callback, got: {:pending, "
      end
    end

    @tag options: [store: nil]
    test "needs a database", %{book: book} do
      for {profile, line} <- [{"ann", "x.send"}, {"ann", "x.pay"}, {"bob", "x.pay"}] do
        result = run(book, profile, line)
        assert %SetupError{option: :store} = result.error

        assert result.content ==
                 "`#{line}` needs a database, and this book has none. To enable it, set the " <>
                   "option `store:`, for example store: \"skillbook.db\""
      end

      for call <- [
            fn -> Skillbook.approvals(book) end,
            fn -> Skillbook.approve(book, "A-1", by: "Bob") end,
            fn -> Skillbook.deny(book, "A-1", by: "Bob") end
          ] do
        assert {:error, %ApprovalError{kind: :store} = error} = call.()

        assert Exception.message(error) ==
                 "expected a book with a database, which stores approvals; set the option " <>
                   "`store`, for example store: \"skillbook.db\""
      end
    end

    @tag options: [approvals: [max_waiting: 2]]
    test "has a limit for each profile", %{book: book} do
      for _ <- 1..2, do: waiting(book, "ann", "x.send")

      assert run(book, "ann", "x.send").content ==
               "`x.send` was not run: it changes something, and 2 calls wait for an approval " <>
                 "already, which is the limit. Do not try again; tell the user."

      assert run(book, "bob", "x.pick").status == :pending
      {:ok, [first | _]} = Skillbook.approvals(book, profile: "ann")
      {:ok, _} = Skillbook.deny(book, first.ref, by: "Bob")
      assert run(book, "ann", "x.send").status == :pending
    end

    test "keeps assigns that have a stored form, and refuses others", %{book: book} do
      assigns = %{
        :user => %{id: 7, name: "Ann", tags: ["a", nil], rate: 1.5, admin: true},
        "text" => %{"key" => :atom, at: ~U[2026-03-01 08:00:00.123456Z]},
        empty: [%{}, []]
      }

      approval = waiting(book, "ann", "x.send --to a", assigns: assigns)
      {:ok, _} = Skillbook.approve(book, approval.ref, by: "Bob")
      assert_receive {:ran, _, context}
      assert context.assigns == assigns

      expected = "expected assigns of texts, numbers, booleans, nil, atoms, times, lists and maps"

      for {value, got} <- [
            {self(), "a process"},
            {fn -> 1 end, "a function"},
            {make_ref(), "a reference"},
            {{1, 2}, "a tuple"},
            {~D[2026-03-01], "a struct Date"},
            {%URI{}, "a struct URI"},
            {<<255>>, "bytes that are not UTF-8"},
            {<<1::3>>, "another term"},
            {[1 | 2], "an improper list"}
          ] do
        result = run(book, "ann", "x.send", assigns: %{user: [%{secret: value}]})

        assert result.content ==
                 "`x.send` was not run: it needs an approval, and the call cannot be stored " <>
                   "until then: #{expected}, got #{got} as `user.0.secret`. You cannot fix " <>
                   "this: tell the user."
      end

      assert run(book, "ann", "x.send", assigns: %{a: %{1 => 2}}).content =~
               "got a number as `a.a key`"

      assert run(book, "ann", "x.send", assigns: %{a: String.duplicate("x", 100_000)}).content =~
               "expected assigns of at most 100000 bytes, got 100"
    end

    test "stores only the assigns of the call; those of book and profile are of now", context do
      options = [
        sources: [context.tmp_dir],
        store: ":memory:",
        assigns: %{repo: self(), a: 1, b: 1, c: 1},
        profiles: [[id: "ann", writes: :ask, assigns: %{b: 2, c: 2}]],
        ask: fn _request -> :pending end
      ]

      name = book(options)
      :persistent_term.put({Send, name}, self())
      approval = waiting(name, "ann", "x.send", assigns: %{c: 3})
      sql = Book.sql(Book.fetch!(name))
      stored = SQL.query!(sql, "select assigns from skillbook_approvals").rows
      assert stored == [[~S({"map":[[{"atom":"c"},3]]})]]
      {:ok, _} = Skillbook.approve(name, approval.ref, by: "Bob")
      assert_receive {:ran, _, context}
      assert context.assigns == %{repo: self(), a: 1, b: 2, c: 3}
    end

    test "keeps words with placeholders, quotes and NUL as they were filled in", %{book: book} do
      for {line, to} <- [
            {~S(x.send --to "a \"b\" {1}"), ~S(a "b" {1})},
            {~S(x.send {"to": "a\u0000b"}), "a\0b"},
            {"x.send --to <<E\nl1\nl2\nE", "l1\nl2"}
          ] do
        approval = waiting(book, "ann", line)
        assert {:ok, %{status: :done}} = Skillbook.approve(book, approval.ref, by: "Bob")
        assert_receive {:ran, %{"to" => ^to}, _}
      end

      reply = "```cmd\nx.look\nx.send --to {1} --count 2\n```"
      %{results: [_, result]} = Skillbook.run(Skillbook.view(book, "ann"), reply)
      assert_receive {:ran, _, _}
      assert result.data.flags["to"] == "Sent to ."
      assert {:ok, _} = Skillbook.approve(book, result.data.ref, by: "Bob")
      assert_receive {:ran, %{"to" => "Sent to .", "count" => 2}, _}
    end

    test "is refused in a transaction, and for a profile that the book does not have",
         %{book: book} do
      sql = Book.sql(Book.fetch!(book))
      approval = waiting(book, "ann", "x.send")

      {:ok, _} =
        SQL.transaction(sql, fn _ ->
          assert {:error, %ApprovalError{kind: :in_transaction}} =
                   Skillbook.approve(book, approval.ref, by: "Bob")

          assert {:error, %ApprovalError{kind: :in_transaction} = error} =
                   Skillbook.deny(book, approval.ref, by: "Bob")

          assert Exception.message(error) ==
                   "#{approval.ref} was not decided: the calling process is in a transaction " <>
                     "of the book's database; decide after the transaction"

          {:ok, nil}
        end)

      {:ok, stranger} = Skillbook.Profile.new(id: "stranger", writes: :ask)

      assert run(book, stranger, "x.send").content ==
               "`x.send` was not run: it needs an approval, and the call cannot be " <>
                 "stored until " <>
                 "then: its profile is not one of the book's, so nobody could approve it " <>
                 "later. You cannot fix this: tell the user."
    end
  end

  describe "approve" do
    test "runs the call as its profile, once, and records the decision", %{book: book} do
      approval = waiting(book, "ann", "x.send --to a --count 3", by: :user)
      :ok = Skillbook.subscribe(book)
      {:ok, done} = Skillbook.approve(book, approval.ref, by: "Bob", reason: "It is fine.")
      assert_receive {:ran, %{"to" => "a", "count" => 3}, context}
      assert {context.profile.id, context.by, context.assigns} == {"ann", :user, %{}}

      assert %Approval{status: :done, by: "Bob", reason: "It is fine.", run: nil} = done

      assert %Result{status: :ok, content: "Sent to a.", command: "x.send --to a --count 3"} =
               done.result

      assert DateTime.diff(DateTime.utc_now(), done.decided_at) < 60
      assert_receive {:skillbook_approval, ^book, %Approval{status: :done} = noticed}
      assert {noticed.ref, noticed.result.content} == {approval.ref, "Sent to a."}

      assert {:error, %ApprovalError{kind: :decided, status: :done} = error} =
               Skillbook.approve(book, approval.ref, by: "Carl")

      at = Calendar.strftime(done.decided_at, "%Y-%m-%d %H:%M:%S UTC")
      message = "#{approval.ref} was approved by Bob on #{at}, and has run"
      assert Exception.message(error) == message
      assert {:error, ^error} = Skillbook.deny(book, approval.ref, by: "Carl")
      refute_received {:ran, _, _}
      assert Skillbook.approvals(book) == {:ok, []}
      assert {:ok, [%Approval{status: :done}]} = Skillbook.approvals(book, status: :done)
    end

    test "reads relative days as those of the call", %{book: book} do
      approval = waiting(book, "ann", "x.send --due tomorrow")
      sql = Book.sql(Book.fetch!(book))
      update = "update skillbook_approvals set asked_at = $1"
      SQL.query!(sql, update, [~U[2026-02-27 09:00:00Z]])
      {:ok, _} = Skillbook.approve(book, approval.ref, by: "Bob")
      assert_receive {:ran, %{"due" => ~D[2026-02-28]}, _}
    end

    test "a page that has changed runs only with force:", %{book: book, tmp_dir: folder} do
      approval = waiting(book, "ann", "x.send --to a")

      write(folder, %{
        "x/send.md" => page("x.send", [handler: inspect(Send)], @flags <> "\nNew.\n")
      })

      Skillbook.reload(book)
      {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob")

      assert Exception.message(error) ==
               "`x.send` was not run: its page has changed since the call of #{approval.ref}; " <>
                 "look at it again, and approve with force: true"

      assert {:ok, [%{status: :pending}]} = Skillbook.approvals(book)

      assert {:ok, %{status: :done}} =
               Skillbook.approve(book, approval.ref, by: "Bob", force: true)

      assert_receive {:ran, _, _}
    end

    test "changed frontmatter is a change, and flags are checked again", context do
      %{book: book, tmp_dir: folder} = context
      approval = waiting(book, "ann", "x.send --to a --count 3")
      fields = [handler: inspect(Send), timeout: "5s"]

      write(folder, %{
        "x/send.md" => page("x.send", fields, String.replace(@flags, "count", "size"))
      })

      Skillbook.reload(book)
      assert {:error, %{kind: :changed}} = Skillbook.approve(book, approval.ref, by: "Bob")

      assert {:error, %Skillbook.FlagError{kind: :unknown}} =
               Skillbook.approve(book, approval.ref, by: "Bob", force: true)

      # It has not run, so it waits again.
      assert {:ok, [%{status: :pending, by: nil, decided_at: nil}]} = Skillbook.approvals(book)
      refute_received {:ran, _, _}
    end

    test "an entry or a profile that is gone is told", %{book: book, tmp_dir: folder} do
      approval = waiting(book, "ann", "x.send --to a")
      File.rm!(Path.join(folder, "x/send.md"))
      Skillbook.reload(book)
      {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob", force: true)

      assert Exception.message(error) ==
               "`x.send` was not run: the profile \"ann\" of #{approval.ref} does not " <>
                 "see it any " <>
                 "more"

      sql = Book.sql(Book.fetch!(book))
      SQL.query!(sql, "update skillbook_approvals set profile = 'gone'")
      {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob", force: true)

      assert Exception.message(error) ==
               "`x.send` was not run: the profile \"gone\" of #{approval.ref} does not " <>
                 "exist any " <>
                 "more, or lacks rights that the call had"
    end

    test "unknown references and wrong options are errors", %{book: book} do
      {:error, error} = Skillbook.approve(book, "A-1", by: "Bob")
      assert Exception.message(error) == ~s(expected the reference of an approval, got: "A-1")
      assert {:error, ^error} = Skillbook.deny(book, "A-1", by: "Bob")
      {:error, error} = Skillbook.approve(book, "A-1", [])
      assert %OptionError{option: :by, problem: :missing} = error

      for {option, value} <-
            [by: "", by: nil, by: :bob, by: String.duplicate("x", 1001)] ++
              [reason: "", force: 1, resume: 1, now: "today", more: 1] do
        options = Keyword.merge([by: "Bob"], [{option, value}])
        assert {:error, %OptionError{option: ^option}} = Skillbook.approve(book, "A-1", options)
      end

      assert {:error, %OptionError{option: :force}} =
               Skillbook.deny(book, "A-1", by: "Bob", force: true)

      view = Skillbook.view(book, "ann")

      assert_raise ArgumentError,
                   ~r/expected the name of a book as the argument `book` of Skillbook.approve\/3/,
                   fn -> Skillbook.approve(view, "A-1", by: "Bob") end
    end

    test "a command that fails has the status :failed", %{book: book, tmp_dir: folder} do
      write(folder, %{"x/fail.md" => page("x.fail", handler("ErrorText"))})
      Skillbook.reload(book)
      approval = waiting(book, "ann", "x.fail")
      assert {:ok, %{status: :failed} = failed} = Skillbook.approve(book, approval.ref, by: "Bob")
      assert %Result{status: :error, content: "no room on Monday"} = failed.result
      {:ok, [stored]} = Skillbook.approvals(book, status: :failed)
      assert {stored.result.status, stored.result.content} == {:error, "no room on Monday"}
    end
  end

  describe "deny" do
    test "ends the call and records the decision", %{book: book} do
      approval = waiting(book, "ann", "x.send --to a")
      assert {:ok, denied} = Skillbook.deny(book, approval.ref, by: "Bob", reason: "Not today.")
      assert %Approval{status: :denied, by: "Bob", reason: "Not today.", result: nil} = denied
      {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob")
      at = Calendar.strftime(denied.decided_at, "%Y-%m-%d %H:%M:%S UTC")
      assert Exception.message(error) == "#{approval.ref} was denied by Bob on #{at}"
      refute_received {:ran, _, _}
    end
  end

  describe "time" do
    test "an expired call does not run", %{book: book} do
      :ok = Skillbook.subscribe(book)
      approval = waiting(book, "ann", "x.send")
      late = DateTime.add(approval.expires_at, 0)
      {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob", now: late)
      assert %ApprovalError{kind: :decided, status: :expired} = error
      at = Calendar.strftime(approval.expires_at, "%Y-%m-%d %H:%M:%S UTC")
      message = "#{approval.ref} expired on #{at}; the command must be called again"
      assert Exception.message(error) == message
      assert_receive {:skillbook_approval, ^book, %Approval{status: :pending}}
      assert_receive {:skillbook_approval, ^book, %Approval{status: :expired}}
      assert {:ok, [%{status: :expired}]} = Skillbook.approvals(book, status: [:expired])
      refute_received {:ran, _, _}
    end

    test "a call runs until its last second", %{book: book} do
      approval = waiting(book, "ann", "x.send")
      last = DateTime.add(approval.expires_at, -1)
      assert {:ok, %{status: :done}} = Skillbook.approve(book, approval.ref, by: "B", now: last)
    end

    @tag options: [approvals: [keep: 2, expire: 60]]
    test "decided calls are deleted :keep days after their time", %{book: book} do
      decided = waiting(book, "ann", "x.send")
      assert DateTime.diff(decided.expires_at, decided.asked_at) == 60
      {:ok, _} = Skillbook.deny(book, decided.ref, by: "Bob")
      sql = Book.sql(Book.fetch!(book))
      update = "update skillbook_approvals set expires_at = $1 where ref = $2"

      for {hours, left} <- [{-47, [:denied]}, {-49, []}] do
        SQL.query!(sql, update, [DateTime.add(DateTime.utc_now(), hours, :hour), decided.ref])
        {:ok, _} = Pruner.run(Book.fetch!(book), DateTime.utc_now())
        {:ok, list} = Skillbook.approvals(book, status: :denied)
        assert {hours, Enum.map(list, & &1.status)} == {hours, left}
      end
    end
  end

  describe "approval: required" do
    test "asks for every profile that may run it", %{book: book} do
      for {profile, line, expected} <- [
            {"bob", "x.pay", :pending},
            {"ann", "x.pay", :pending},
            {"bob", "x.pick", :pending},
            {"dan", "x.pick", :pending},
            {"dan", "x.pay", :deny},
            {"bob", "x.send", :ok},
            {"dan", "x.look", :ok}
          ] do
        result = run(book, profile, line)
        got = if result.error, do: result.error.kind, else: result.status
        assert {profile, line, got} == {profile, line, expected}
      end

      for {answer, expected} <- [allow: :ok, deny: :error] do
        assert run(book, "bob", "x.pay", ask: fn _ -> answer end).status == expected
      end

      assert run(book, "bob", "x.pick", ask: fn _ -> {:deny, "no"} end).content ==
               "`x.pick` was not run: it needs an approval, and the user declined: no"

      # Its page can be read.
      assert run(book, "bob", "get_skill: x.pay").status == :help
      assert run(book, "bob", "x.pay --help").status == :help
    end

    @tag options: [
           profiles: [
             [id: "bob", approved: ["x.pay"]],
             [id: "dan", writes: :deny, approved: ["*"]],
             [id: "eve", role: "paying"],
             [id: "nat", approved: ["x.pa"]]
           ],
           roles: [[id: "paying", approved: ["x.p*"]]]
         ]
    test "does not ask for the commands that a profile has in :approved", %{book: book} do
      for {profile, line, expected} <- [
            {"bob", "x.pay", :ok},
            {"bob", "x.pick", :pending},
            {"dan", "x.pay", :deny},
            {"dan", "x.pick", :ok},
            {"eve", "x.pay", :ok},
            {"eve", "x.pick", :ok},
            {"nat", "x.pay", :pending}
          ] do
        result = run(book, profile, line)
        got = if result.error, do: result.error.kind, else: result.status
        assert {profile, line, got} == {profile, line, expected}
      end

      [bob, eve] = for id <- ["bob", "eve"], do: Skillbook.view(book, id).profile
      {:ok, both} = Skillbook.Profile.meet(bob, eve)
      assert both.approved == []
      refute Skillbook.Profile.within?(bob, %{bob | approved: []})
    end

    @tag options: [ask: nil]
    test "waits in a book without a callback", %{book: book} do
      approval = waiting(book, "bob", "x.pay --to a")
      assert {:ok, %{status: :done}} = Skillbook.approve(book, approval.ref, by: "Ann")
      assert_receive {:ran, %{"to" => "a"}, _}

      log =
        capture_log(fn ->
          assert %PolicyError{kind: :unanswered} = run(book, "ann", "x.send").error
        end)

      assert log =~ "expected the option :ask"
    end

    test "holds for the executor itself", %{book: book} do
      view = Skillbook.view(book, "bob")
      {:ok, routed} = Router.route(view, "x.pay --to a")
      {:ok, result} = Executor.execute(routed, Executor.context(view, routed))
      assert result.status == :pending
    end

    test "an approval of now that the profile may not run any more is refused", context do
      %{book: book} = context
      approval = waiting(book, "ann", "x.send --to a")
      sql = Book.sql(Book.fetch!(book))
      # The rights of the call were those of `dan`, who may not write.
      SQL.query!(sql, "update skillbook_approvals set profile = 'dan'")

      assert {:error, %PolicyError{kind: :deny}} =
               Skillbook.approve(book, approval.ref, by: "Bob")

      SQL.query!(sql, "update skillbook_approvals set profile = 'eve'")

      assert {:error, %ApprovalError{kind: :entry}} =
               Skillbook.approve(book, approval.ref, by: "B")

      refute_received {:ran, _, _}
    end

    test "workflows stop at the step, or go on, as their on_error says", %{book: book} do
      result = run(book, "ann", "x.both")
      assert result.status == :pending
      [approval] = result.metadata.pending

      assert result.content =~
               "x.both stopped at step 1 of 2, which waits for an approval. An approval runs " <>
                 "this step alone.\n\n[1] x.send --to a\npending\n"

      assert approval.command == "x.send --to a"
      refute_received {:ran, _, _}

      result = run(book, "ann", "x.on")
      assert result.status == :pending
      assert result.content =~ "x.on ran its 2 steps; step 1 waits for an approval."
      assert_receive {:ran, _, _}
    end
  end

  describe "ask_timeout" do
    @tag options: [ask_timeout: 50, ask: &__MODULE__.never/1]
    test "a callback that does not answer is a refusal", %{book: book} do
      assert run(book, "ann", "x.send").content ==
               "`x.send` was not run: it changes something, and nobody answered the " <>
                 "request for " <>
                 "permission within 50 ms. Do not try again; tell the user."

      assert run(book, "bob", "x.pick", ask_timeout: 20).content ==
               "`x.pick` was not run: it needs an approval, and nobody answered the " <>
                 "request for " <>
                 "permission within 20 ms. Do not try again; tell the user."

      assert run(book, "ann", "x.both").error.kind == :stopped
    end

    test "has its own option of a book and of a run" do
      assert %Book{ask_timeout: 600_000} = %Book{name: :a}

      for wrong <- [0, -1, "1", nil, 1.5] do
        assert {:error, %OptionError{option: :ask_timeout}} =
                 Skillbook.start_link(name: :ask_timeout, ask_timeout: wrong)
      end
    end
  end

  @doc false
  def never(_request), do: Process.sleep(:infinity)

  describe "a run of an approved call" do
    test "happens once, whatever is decided at the same moment", %{book: book} do
      for _ <- 1..20 do
        approval = waiting(book, "ann", "x.send")

        decisions =
          for n <- 1..10 do
            decide = if rem(n, 2) == 0, do: &Skillbook.approve/3, else: &Skillbook.deny/3
            Task.async(fn -> decide.(book, approval.ref, by: "B#{n}") end)
          end

        {[{:ok, decided}], others} =
          decisions |> Task.await_many(:infinity) |> Enum.split_with(&match?({:ok, _}, &1))

        assert Enum.all?(others, &match?({:error, %ApprovalError{kind: :decided}}, &1))

        if decided.status == :done,
          do: assert_receive({:ran, _, _}),
          else: assert(decided.status == :denied)

        refute_received {:ran, _, _}
      end
    end

    @tag options: [approvals: [lease: 2_000]]
    test "is interrupted if its caller is killed", %{book: book, tmp_dir: folder} do
      write(folder, %{"x/hang.md" => page("x.hang", handler("Hang"))})
      Skillbook.reload(book)
      approval = waiting(book, "ann", "x.hang")
      :ok = Skillbook.subscribe(book)
      pid = spawn(fn -> Skillbook.approve(book, approval.ref, by: "Bob") end)
      running = fn -> Skillbook.approvals(book, status: :running) end
      assert eventually(fn -> match?({:ok, [%{by: "Bob"}]}, running.()) end)
      # Longer than the lease.
      Process.sleep(4_000)
      assert {:ok, [_]} = running.()
      Process.exit(pid, :kill)
      assert eventually(fn -> running.() == {:ok, []} end)
      assert_receive {:skillbook_approval, ^book, %Approval{status: :interrupted}}
      assert {:error, error} = Skillbook.approve(book, approval.ref, by: "Bob")
      assert error.status == :interrupted
    end

    test "that raises is interrupted", %{book: book, tmp_dir: folder} do
      model = Skillbook.Model.Function.new(fn _, _ -> exit(:the_model) end)
      write(folder, %{"x/prose.md" => page("x.prose", [approval: "required"], "Look around.\n")})
      agent = [model: model]
      other = book(sources: [folder], store: ":memory:", agent: agent)
      approval = waiting(other, "default", "x.prose")
      assert catch_exit(Skillbook.approve(other, approval.ref, by: "Bob")) == :the_model
      assert {:ok, [_]} = Skillbook.approvals(other, status: :interrupted)
      _ = book
    end

    test "that is refused before its handler waits again", context do
      %{book: book, tmp_dir: folder} = context
      approval = waiting(book, "ann", "x.send --to a")
      gone = page("x.send", [handler: "No.Such.Handler"], @flags)
      write(folder, %{"x/send.md" => gone})
      Skillbook.reload(book)
      options = [by: "Bob", force: true]

      capture_log(fn ->
        assert {:error, %Skillbook.HandlerError{kind: :missing}} =
                 Skillbook.approve(book, approval.ref, options)
      end)

      assert {:ok, [%{status: :pending}]} = Skillbook.approvals(book)
      write(folder, pages())
      Skillbook.reload(book)
      assert {:ok, %{status: :done}} = Skillbook.approve(book, approval.ref, by: "Bob")
    end

    test "leaves no values of flags in logs and events", %{book: book} do
      test = self()

      log =
        capture_log([level: :debug], fn ->
          approval = waiting(book, "ann", "x.send --to sesame", assigns: %{key: "sesame"})
          {:ok, _} = Skillbook.approve(book, approval.ref, by: "Bob")
          denied = waiting(book, "ann", "x.send --to sesame")
          {:ok, _} = Skillbook.deny(book, denied.ref, by: "Bob")
          send(test, :ended)
        end)

      assert_receive :ended
      refute log =~ "sesame"
      inspected = inspect(Skillbook.Telemetry.describe_events(), limit: :infinity)
      assert inspected =~ "[:skillbook, :approval, :changed]"

      name = [:skillbook, :approval, :changed]
      event = Enum.find(Skillbook.Telemetry.describe_events(), &(&1.name == name))

      assert event.metadata == [:book, :profile, :skill, :ref, :status]
    end
  end

  test "a tool call that waits is no error", %{book: book} do
    view = Skillbook.view(book, "ann")
    call = %{"type" => "tool_use", "id" => "t1", "name" => "x__send", "input" => %{"count" => 3}}
    {result, answer} = Skillbook.Tools.call(view, call)
    assert {result.status, answer["is_error"], answer["tool_use_id"]} == {:pending, false, "t1"}
    assert answer["content"] == result.content
    {:ok, _} = Skillbook.approve(book, result.data.ref, by: "Bob")
    assert_receive {:ran, %{"count" => 3}, _}
  end

  test "records of the store and sources of low trust do not switch it off", context do
    %{book: book, tmp_dir: folder} = context
    low = Path.join(folder, "low")
    write(low, %{"x/pay.md" => page("x.pay", handler: inspect(Send))})
    trusted = Path.join(folder, "trusted")
    write(trusted, Map.take(pages(), ["x/pay.md"]))
    sources = [trusted, [path: low, trust: :low]]
    other = book(sources: sources, store: ":memory:", profiles: [[id: "ann"]])
    :persistent_term.put({Send, other}, self())
    view = Skillbook.view(other, "ann")
    fields = %{title: "x.pay", content: "---\nhandler: #{inspect(Send)}\n---\nText."}
    # It gets another name, since a command keeps its own.
    assert {:ok, %{name: "x-pay"}} = Skillbook.Store.create(view, Map.put(fields, :kind, :note))
    view = Skillbook.view(other, "ann")
    assert run(other, "ann", "x.pay").status == :pending
    {:ok, entry} = Skillbook.View.fetch(view, "x.pay")
    assert {entry.limits, entry.trust} == {%{approval: :required}, :medium}
    _ = book
  end

  describe "a list" do
    test "through a view has only its own calls, of skills that it shows", context do
      %{book: book, tmp_dir: folder} = context
      ann = waiting(book, "ann", "x.send --to a")
      bob = waiting(book, "bob", "x.pay --to b")
      assert Skillbook.approvals(book) == {:ok, [bob, ann]}
      assert Skillbook.approvals(Skillbook.view(book, "ann")) == {:ok, [ann]}
      assert Skillbook.approvals(book, profile: "bob") == {:ok, [bob]}
      assert Skillbook.approvals(Skillbook.view(book, "eve")) == {:ok, []}
      assert Skillbook.approvals(book, limit: 1) == {:ok, [bob]}
      assert Skillbook.approvals(book, limit: 1, after: bob.ref) == {:ok, [ann]}
      assert Skillbook.approvals(book, after: ann.ref) == {:ok, []}
      assert Skillbook.approvals(Skillbook.view(book, "ann"), after: ann.ref) == {:ok, []}

      # Calls of others are no place in its list.
      for {ref, profile} <- [{bob.ref, "ann"}, {"A-none", "ann"}, {ann.ref, "eve"}] do
        view = Skillbook.view(book, profile)
        assert {:error, error} = Skillbook.approvals(view, after: ref)
        assert error == %ApprovalError{kind: :unknown, ref: ref}
      end

      assert Skillbook.approvals(book, %{status: [:done, :denied]}) == {:ok, []}
      # A skill that the view shows no more is missing, as everywhere.
      page = page("x.send", handler: inspect(Send), labels: "[secret]")
      write(folder, %{"x/send.md" => page})
      Skillbook.reload(book)
      assert Skillbook.approvals(Skillbook.view(book, "ann")) == {:ok, []}
      assert Skillbook.approvals(book) == {:ok, [bob, ann]}

      for {option, value} <- [status: :gone, status: [], limit: 0, limit: 1001, more: 1] do
        assert {:error, %OptionError{option: ^option}} =
                 Skillbook.approvals(book, [{option, value}])
      end
    end
  end
end
