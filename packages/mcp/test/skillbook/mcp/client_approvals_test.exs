for database <- [:sqlite, :postgres] do
  defmodule Module.concat(Skillbook.MCP.ClientApprovalsTest, database) do
    # Approvals of a server's offers in the database of a book: of its nodes, through restarts,
    # changes of the server, and times without the server or the database.
    use ExUnit.Case, async: true

    import ExUnit.CaptureLog
    import Skillbook.Eventually
    import Skillbook.Test.HostileServer, only: [book: 3, set: 3]

    alias Skillbook.{Book, PostgresCase, SQL, View}
    alias Skillbook.MCP.Client
    alias Skillbook.MCP.Client.{Approvals, ApprovalTable}
    alias Skillbook.Support.JSON
    alias Skillbook.Test.HostileServer

    @moduletag :capture_log
    @moduletag :tmp_dir
    @database database

    setup context do
      store =
        case @database do
          :sqlite -> Path.join(context.tmp_dir, "book.db")
          :postgres -> {SQL.Postgres, url: PostgresCase.database(), pool_size: 2}
        end

      %{address: HostileServer.start(), store: store}
    end

    defp start(context, options \\ [], more \\ []),
      do: book(context.address <> "/changing", options, [store: context.store] ++ more)

    defp used(book),
      do: for(e <- View.entries(View.all(book)), e.source == "docs", do: e.name)

    defp offer(book, name), do: Enum.find(Client.offers(book), &(&1.name == name))
    defp status(book, name), do: with(%{status: status} <- offer(book, name), do: status)
    defp sql(book), do: Book.sql(Book.fetch!(book))
    defp settings(book), do: hd(Client.settings(Book.fetch!(book)))

    defp found(book, code),
      do: for(d <- Skillbook.diagnostics(book), d.code == code, do: d.message)

    # The diagnostic that asks about the skill.
    defp asked(book) do
      prefix = "the skill docs/refunds is not used: it "

      for message <- found(book, :server_entry_unapproved),
          String.starts_with?(message, prefix),
          do: String.replace_prefix(message, prefix, "")
    end

    # {a step, the status of the skill, whether it is used, the reason to ask about it}
    @states [
      {:nothing, :new, false, ["was never approved"]},
      {:approve, :approved, true, []},
      {:restart, :approved, true, []},
      {{:server, %{version: 2}}, :changed, false, ["has changed since it was approved"]},
      {{:server, %{version: 1}}, :approved, true, []},
      {{:server, %{version: 2}}, :changed, false, ["has changed since it was approved"]},
      {:approve, :approved, true, []},
      {:revoke, :refused, false, []},
      {:restart, :refused, false, []},
      {{:server, %{version: 3}}, :changed, false, ["has changed since it was refused"]},
      {:restart, :changed, false, ["has changed since it was refused"]},
      {:revoke, :refused, false, []},
      {{:server, %{version: 2}}, :changed, false, ["has changed since it was refused"]},
      # The last good list of an unreachable server stays.
      {{:server, %{down: true}}, :changed, false, ["has changed since it was refused"]},
      {:approve, :approved, true, []},
      {:restart, nil, false, []},
      {{:server, %{down: false}}, :approved, true, []},
      {{:server, %{down: true}}, :approved, true, []},
      {:revoke, :refused, false, []},
      {{:server, %{down: false}}, :refused, false, []}
    ]

    test "the states of an offer", context do
      Enum.reduce(@states, start(context), fn {step, status, used?, reasons} = row, book ->
        book = step(step, book, context)
        skill_used? = "docs/refunds" in used(book)
        assert {row, status(book, "docs/refunds")} == {row, status}
        assert {row, skill_used?, asked(book)} == {row, used?, reasons}
        # The tools were never approved.
        assert used(book) -- ["docs/refunds"] == []
        book
      end)
    end

    defp step(:nothing, book, _context), do: book

    defp step(:approve, book, _context) do
      {:ok, ["docs/refunds"]} = Client.approve(book, "docs", ["docs/refunds"], by: "Ann")
      book
    end

    defp step(:revoke, book, _context) do
      {:ok, ["docs/refunds"]} = Client.revoke(book, "docs", ["docs/refunds"], by: "Bob")
      book
    end

    defp step(:restart, book, context) do
      :ok = Supervisor.stop(book)
      start(context)
    end

    defp step({:server, state}, book, context) do
      set(context.address, "changing", state)
      Client.refresh(book)
      book
    end

    test "a row has the exact digest, the person and the time, and not the place", context do
      book = start(context)
      before = DateTime.truncate(DateTime.utc_now(), :second)
      {:ok, _} = Client.approve(book, "docs", ["docs/refunds", "docs.search"], by: "Ann")
      {:ok, _} = Client.revoke(book, "docs", ["docs.search"])
      skill = offer(book, "docs/refunds")
      tool = offer(book, "docs.search")
      assert {skill.decided_by, tool.decided_by} == {"Ann", "the application"}
      assert DateTime.compare(skill.decided_at, before) in [:eq, :gt]
      assert %{decided_by: nil, decided_at: nil} = offer(book, "docs.delete")

      columns = "server, item, digest, decision, decided_by, decided_at"
      query = "select #{columns} from skillbook_server_approvals order by item"

      assert SQL.query!(sql(book), query).rows == [
               [
                 "docs",
                 "skill:skill://refunds/SKILL.md",
                 skill.digest,
                 "approved",
                 "Ann",
                 DateTime.to_iso8601(skill.decided_at)
               ],
               [
                 "docs",
                 "tool:search",
                 tool.digest,
                 "refused",
                 "the application",
                 DateTime.to_iso8601(tool.decided_at)
               ]
             ]

      rows = SQL.query!(sql(book), "select * from skillbook_server_approvals").rows
      refute inspect(rows) =~ context.address
    end

    test "an approval is for one server at one place", context do
      book = start(context)
      {:ok, _} = Client.approve(book, "docs", ["docs/refunds"])
      one = settings(book)

      for {other, count} <- [
            {one, 1},
            {%{one | label: "other"}, 0},
            {%{one | place: {:url, context.address <> "/honest"}}, 0},
            {%{one | place: {:command, [elem(one.place, 1)]}}, 0}
          ] do
        assert {:ok, decisions} = Approvals.load(other)

        assert {other.label, other.place, map_size(decisions)} ==
                 {other.label, other.place, count}
      end

      # Words that are the same as one text.
      [first, second] = for words <- [["a b", "c"], ["a", "b c"]], do: {:command, words}
      new = %{"tool:x" => decision(:approved, "sha256:0")}
      {:ok, ^new} = Approvals.save(%{one | place: first}, %{}, fn _ -> new end)
      assert Approvals.load(%{one | place: first}) == {:ok, new}
      assert Approvals.load(%{one | place: second}) == {:ok, %{}}
    end

    defp decision(decision, digest),
      do: %{digest: digest, decision: decision, by: "Ann", at: ~U[2026-03-02 08:00:00Z]}

    test "decisions of a later version approve nothing", context do
      book = start(context)
      {:ok, _} = Client.approve(book, "docs", ["docs/refunds"])
      SQL.query!(sql(book), "update skillbook_server_approvals set decision = 'approved-if'")
      SQL.query!(sql(book), "update skillbook_server_approvals set decided_at = 'yesterday'")
      :ok = Supervisor.stop(book)
      book = start(context)
      assert {used(book), status(book, "docs/refunds")} == {[], :refused}
      assert offer(book, "docs/refunds").decided_at == nil
    end

    test "other nodes use an offer at once, and no longer when it is refused", context do
      [first, second] = for _ <- 1..2, do: start(context)
      {:ok, _} = Client.approve(first, "docs", ["docs/refunds"], by: "Ann")
      assert eventually(fn -> used(second) == ["docs/refunds"] end)
      assert offer(second, "docs/refunds").decided_by == "Ann"
      {:ok, _} = Client.revoke(second, "docs", ["docs/refunds"])
      assert used(second) == []
      assert eventually(fn -> used(first) == [] end)
      assert status(first, "docs/refunds") == :refused

      # The second has not listed what is approved at the first.
      set(context.address, "changing", %{version: 2})
      assert Client.refresh(first) == []
      {:ok, _} = Client.approve(first, "docs", ["docs/refunds", "docs.delete"])
      assert eventually(fn -> used(second) == ["docs.delete", "docs/refunds"] end)
    end

    test "an approval is of what somebody has read, on another node too", context do
      [first, second] = for _ <- 1..2, do: start(context)
      %{digest: digest} = offer(first, "docs/refunds")
      set(context.address, "changing", %{version: 2})
      assert Client.refresh(second) == []
      # The first has not seen the change yet; the second has.
      {:ok, _} = Client.approve(first, "docs", [{"docs/refunds", digest}])
      assert eventually(fn -> status(second, "docs/refunds") == :changed end)
      assert used(second) == []
      assert {:error, error} = Client.approve(second, "docs", [{"docs/refunds", digest}])

      assert Exception.message(error) ==
               "the MCP server docs: it has changed docs/refunds since that was read; " <>
                 "read it again"
    end

    test "all approvals are taken back, also of offers that are not listed now", context do
      book = start(context)
      {:ok, _} = Client.approve(book, "docs", :all)
      set(context.address, "changing", %{tools: 1})
      assert Client.refresh(book) == []
      assert used(book) == ["docs.search", "docs/refunds"]
      assert Client.revoke(book, "docs", :all) == {:ok, ["docs.search", "docs/refunds"]}
      set(context.address, "changing", %{tools: 2})
      assert Client.refresh(book) == []
      assert {used(book), status(book, "docs.delete")} == {[], :refused}
    end

    test "a function as :approve replaces no refusal of the same offer", context do
      more = [approve: fn _offer -> true end]
      book = start(context, more)
      assert length(used(book)) == 3
      assert offer(book, "docs/refunds").decided_by == "the option :approve"
      {:ok, _} = Client.revoke(book, "docs", ["docs/refunds"])
      other = start(context, more)

      for node <- [book, other] do
        assert Client.refresh(node) == []
        assert status(node, "docs/refunds") == :refused
      end

      # It decides about the next offer.
      set(context.address, "changing", %{version: 2})
      assert Client.refresh(book) == []
      assert "docs/refunds" in used(book)
    end

    test "a refusal on another node stands while a function decides", context do
      first = start(context)
      test = self()

      # It decides about one offer when it is told to.
      ask = fn offer ->
        if offer.id == "search", do: send(test, {:asked, self()})
        offer.id == "search" and receive(do: (:go -> true))
      end

      second = :"mcp_approvals_#{System.unique_integer([:positive])}"
      source = {:mcp, context.address <> "/changing", label: "docs", approve: ask}
      options = [name: second, sources: [source], store: context.store, watch: false]
      start_supervised!({Skillbook, options})
      assert_receive {:asked, listing}
      {:ok, _} = Client.revoke(first, "docs", ["docs.search"], by: "Ann")
      send(listing, :go)
      :ok = Client.await(second)
      assert {used(second), status(second, "docs.search")} == {[], :refused}
      assert offer(second, "docs.search").decided_by == "Ann"
    end

    test "`approve: :all` leaves nothing to refuse", context do
      book = start(context, approve: :all)
      assert {:error, error} = Client.revoke(book, "docs", ["docs/refunds"])

      assert Exception.message(error) ==
               "the MCP server docs: its option `approve: :all` uses everything; take that " <>
                 "away to refuse anything"

      assert "docs/refunds" in used(book)
    end

    test "the number of approvals is limited, and refusals are not among them", context do
      book = start(context)
      one = %{settings(book) | max_tools: 1, max_skills: 1}
      old = ~U[2025-01-01 00:00:00Z]
      refused = for n <- 1..5, do: {"tool:r#{n}", %{decision(:refused, "sha256:0") | at: old}}
      approved = for n <- 1..10_005, do: {"tool:a#{n}", decision(:approved, "sha256:0")}
      {:ok, _} = Approvals.save(one, %{}, fn _ -> Map.new(refused) end)
      oldest = %{"tool:first" => %{decision(:approved, "sha256:0") | at: old}}
      {:ok, _} = Approvals.save(one, %{}, fn _ -> oldest end)
      {:ok, all} = Approvals.save(one, %{}, fn _ -> Map.new(approved) end)
      assert Enum.frequencies_by(all, &elem(&1, 1).decision) == %{approved: 10_003, refused: 5}
      refute Map.has_key?(all, "tool:first")
      assert ApprovalTable.list(sql(book), one) == {:ok, all}
    end

    # Lock files

    defp lock(context, approved, refused \\ %{}) do
      path = Path.join(context.tmp_dir, "mcp.lock.json")
      place = context.address <> "/changing"
      server = %{"place" => place, "approved" => approved, "refused" => refused}
      File.write!(path, JSON.encode(%{"version" => 1, "servers" => %{"docs" => server}}))
      path
    end

    # Keys and digests of all offers.
    defp digests(context) do
      book = book(context.address <> "/changing", [], [])
      digests = for o <- Client.offers(book), into: %{}, do: {"#{o.kind}:#{o.id}", o.digest}
      :ok = Supervisor.stop(book)
      digests
    end

    test "the approvals of a lock file are taken over once", context do
      digests = digests(context)
      skill = Map.take(digests, ["skill:skill://refunds/SKILL.md"])
      path = lock(context, skill, Map.take(digests, ["tool:delete"]))
      text = File.read!(path)

      {book, log} = with_log(fn -> start(context, lock: path) end)

      assert log =~
               "the book #{inspect(book)} has taken the approvals of the MCP server docs from " <>
                 "#{path} into its database (2)"

      assert used(book) == ["docs/refunds"]
      assert status(book, "docs.delete") == :refused
      assert offer(book, "docs/refunds").decided_by == "a lock file"
      assert %DateTime{} = offer(book, "docs/refunds").decided_at

      # Later decisions are in the database only.
      {:ok, _} = Client.revoke(book, "docs", ["docs/refunds"])
      {:ok, _} = Client.approve(book, "docs", ["docs.search"])
      assert File.read!(path) == text
      :ok = Supervisor.stop(book)

      lock(context, digests)
      {book, log} = with_log(fn -> start(context, lock: path) end)
      refute log =~ "#{inspect(book)} has taken"
      assert used(book) == ["docs.search"]
    end

    test "two nodes that start at once take a lock file over once", context do
      path = lock(context, digests(context))

      {books, log} =
        with_log(fn ->
          names = for n <- 1..2, do: :"mcp_approvals_#{n}_#{System.unique_integer([:positive])}"
          source = {:mcp, context.address <> "/changing", label: "docs", lock: path}
          options = [sources: [source], store: context.store, watch: false]

          # The first one migrates the database.
          start = fn name -> Skillbook.start_link([name: name] ++ options) end
          tasks = for name <- names, do: Task.async(fn -> hold(start, name) end)
          Task.await_many(tasks, :infinity)
          names
        end)

      for book <- books do
        :ok = Client.await(book)
        assert length(used(book)) == 3
      end

      taken = for book <- books, log =~ "the book #{inspect(book)} has taken", do: book
      assert length(taken) == 1
      for book <- books, do: Supervisor.stop(book)
    end

    # A linked book would end with the task.
    defp hold(start, name) do
      {:ok, pid} = start.(name)
      Process.unlink(pid)
    end

    test "a lock file that cannot be read approves nothing; the database does", context do
      path = Path.join(context.tmp_dir, "mcp.lock.json")
      File.write!(path, "{")
      book = start(context, lock: path)
      assert used(book) == []

      assert found(book, :server_unavailable) == [
               "the lock file #{path} cannot be read: line 1, column 1: EOF while parsing an " <>
                 "object"
             ]

      {:ok, _} = Client.approve(book, "docs", ["docs/refunds"])
      assert used(book) == ["docs/refunds"]
      assert found(book, :server_unavailable) == []
      :ok = Supervisor.stop(book)
      book = start(context, lock: path)
      assert {used(book), found(book, :server_unavailable)} == {["docs/refunds"], []}
      assert File.read!(path) == "{"
    end

    test "a lock file that is mended is taken over without a restart", context do
      path = lock(context, %{})
      digests = digests(context)
      File.write!(path, "{")
      book = start(context, lock: path)
      assert [_cannot_be_read] = found(book, :server_unavailable)
      lock(context, digests)
      assert eventually(fn -> length(used(book)) == 3 end)
      assert found(book, :server_unavailable) == []
    end

    test "a folder that cannot be written is no hindrance", context do
      book = start(context, lock: "/proc/none/mcp.lock.json")
      {:ok, _} = Client.approve(book, "docs", ["docs/refunds"])
      assert {used(book), found(book, :server_unavailable)} == {["docs/refunds"], []}
    end

    # Without the database

    if database == :sqlite do
      test "without its database a node keeps what it knows, and decides nothing", context do
        name = :"fake_#{System.unique_integer([:positive])}"
        store = {Skillbook.FakeSQL, name: name, path: context.store}
        book = book(context.address <> "/changing", [], store: store, store_poll: 50)
        {:ok, _} = Client.approve(book, "docs", ["docs/refunds"])
        Skillbook.FakeSQL.away(name, true)
        assert Client.refresh(book) == []
        assert used(book) == ["docs/refunds"]

        for decide <- [&Client.approve/3, &Client.revoke/3] do
          assert {:error, error} = decide.(book, "docs", ["docs.search"])

          assert Exception.message(error) ==
                   "the MCP server docs: its approvals cannot be written: the server is gone"
        end

        assert {used(book), status(book, "docs.search")} == {["docs/refunds"], :new}

        # A client that starts now knows nothing.
        pid = Client.State.client(settings(book))
        monitor = monitor(pid)
        Process.exit(pid, :kill)
        assert_receive {:DOWN, ^monitor, :process, ^pid, :killed}
        assert eventually(fn -> used(book) == [] end)

        assert found(book, :server_unavailable) == [
                 "its approvals cannot be read: the server is gone"
               ]

        Skillbook.FakeSQL.away(name, false)
        assert eventually(fn -> used(book) == ["docs/refunds"] end)
        assert found(book, :server_unavailable) == []
      end

      test "the person is a text without NUL", context do
        book = start(context)

        for by <- ["", "a\0b", <<255>>, :ann, String.duplicate("x", 1_001)] do
          for decide <- [&Client.approve/4, &Client.revoke/4] do
            assert {:error, %Skillbook.OptionError{} = error} =
                     decide.(book, "docs", :all, by: by)

            assert Exception.message(error) =~
                     "expected text of 1 to 1000 characters as the option :by of a decision"
          end
        end

        assert {:ok, _} = Client.approve(book, "docs", :all, by: String.duplicate("é", 1_000))
        assert {:error, %Skillbook.OptionError{}} = Client.approve(book, "docs", :all, who: "Ann")
      end

      test "a book without a database keeps refusals too", context do
        path = lock(context, %{})

        for options <- [[lock: path], []] do
          book = book(context.address <> "/changing", [approve: fn _ -> true end] ++ options, [])
          assert length(used(book)) == 3
          {:ok, _} = Client.revoke(book, "docs", ["docs.delete"], by: "Ann")
          assert Client.refresh(book) == []
          assert used(book) == ["docs.search", "docs/refunds"]
          assert %{status: :refused, decided_by: by} = offer(book, "docs.delete")
          assert by == if(options == [], do: "Ann")
        end

        book = book(context.address <> "/changing", [lock: path], [])
        assert used(book) == ["docs.search", "docs/refunds"]
        {:ok, file} = path |> File.read!() |> JSON.decode()
        server = file["servers"]["docs"]
        assert Map.keys(server["refused"]) == ["tool:delete"]
        assert map_size(server["approved"]) == 2
        {:ok, _} = Client.approve(book, "docs", ["docs.delete"])
        {:ok, file} = path |> File.read!() |> JSON.decode()
        assert Map.keys(file["servers"]["docs"]) == ["approved", "place"]
      end
    end
  end
end
