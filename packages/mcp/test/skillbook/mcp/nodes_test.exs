defmodule Skillbook.MCP.NodesTest do
  # Several nodes of one application behind a balancer.
  use ExUnit.Case, async: false

  import Skillbook.Eventually

  alias Skillbook.MCP.{Client, Session, Sessions}
  alias Skillbook.{Peers, PostgresCase, SQL}
  alias Skillbook.Test.{HostileServer, MCPBook}

  @moduletag :tmp_dir

  test "a session is found on connected nodes, and on no other one" do
    [a, b, c] = for name <- [:a, :b, :c], do: Peers.start(name: name)
    true = Peers.call(a, Node, :connect, [Peers.call(b, Node, :self, [])])
    fields = %{revision: "2025-11-25", capabilities: %{}, client: nil}
    {:ok, id, session} = Peers.call(a, Sessions, :begin, [:book, "ann", fields])

    find = fn peer, profile -> Peers.call(peer, Sessions, :find, [id, :book, profile]) end
    assert eventually(fn -> match?({:ok, _}, find.(b, "ann")) end)

    for peer <- [a, b] do
      assert {:ok, found} = find.(peer, "ann")
      assert Peers.call(peer, Session, :fields, [found]) == {:ok, fields}
      assert find.(peer, "bob") == {:error, :gone}
      assert Peers.call(peer, Sessions, :find, [id, :other, "ann"]) == {:error, :gone}
    end

    assert find.(c, "ann") == {:error, :gone}
    assert Peers.call(b, Session, :stop, [session]) == :ok
    gone = {:error, :gone}
    assert eventually(fn -> find.(a, "ann") == gone and find.(b, "ann") == gone end)
  end

  test "an answer to a question is good on every node of the database, once",
       %{tmp_dir: folder} do
    peers =
      for _ <- 1..2 do
        peer = Peers.start()

        Peers.start_book(peer,
          name: :book,
          sources: MCPBook.commands(),
          builtins: false,
          store: Path.join(folder, "book.db"),
          profiles: [[id: "ann", writes: :ask, skills: :all]]
        )

        peer
      end

    call = %{"name" => "test_input_required_result_request_state", "arguments" => %{}}

    ask = fn peer, params ->
      Peers.call(peer, MCPBook, :ask, [:book, "ann", "tools/call", params])
    end

    [a, b] = peers
    assert %{"result" => %{"requestState" => state}} = ask.(a, call)

    answer = %{
      "requestState" => state,
      "inputResponses" => %{"approval" => %{"action" => "accept"}}
    }

    answered = Map.merge(call, answer)

    assert %{"result" => %{"isError" => false, "content" => [%{"text" => "Done."}]}} =
             ask.(b, answered)

    for peer <- peers, do: assert(%{"result" => %{"isError" => true}} = ask.(peer, answered))
  end

  for database <- [:sqlite, :postgres] do
    test "an approval on one node is used on the other without a restart, in #{database}",
         %{tmp_dir: folder} do
      store =
        case unquote(database) do
          :sqlite -> Path.join(folder, "book.db")
          :postgres -> {SQL.Postgres, url: PostgresCase.database(), pool_size: 2}
        end

      address = HostileServer.start()
      source = {:mcp, address <> "/changing", label: "docs"}

      # They know nothing of each other but the database.
      [a, b] =
        for _ <- 1..2 do
          peer = Peers.start()
          Peers.start_book(peer, name: :book, sources: [source], store: store, watch: false)
          :ok = Peers.call(peer, Client, :await, [:book])
          peer
        end

      used? = fn peer -> Peers.read(peer, :book, "docs/refunds") != nil end
      names = ["docs/refunds"]
      assert {used?.(a), used?.(b)} == {false, false}
      {:ok, ^names} = Peers.call(a, Client, :approve, [:book, "docs", names, [by: "Ann"]])
      assert used?.(a)
      assert eventually(fn -> used?.(b) end)
      offer = fn peer -> List.last(Peers.call(peer, Client, :offers, [:book])) end
      assert %{name: "docs/refunds", decided_by: "Ann", decided_at: at} = offer.(b)
      assert %{decided_at: ^at} = offer.(a)

      {:ok, ^names} = Peers.call(b, Client, :revoke, [:book, "docs", names, [by: "Bob"]])
      refute used?.(b)
      assert eventually(fn -> not used?.(a) end)
      assert %{status: :refused, decided_by: "Bob"} = offer.(a)
    end
  end
end
