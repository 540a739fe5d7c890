defmodule Skillbook.Store.NodesTest do
  # Two virtual machines share a database, and each reads the writes of the other.
  use ExUnit.Case, async: true

  import Skillbook.Eventually

  alias Skillbook.{Peers, PostgresCase}

  @moduletag timeout: 120_000

  for {title, names} <- [
        {"nodes of a cluster", [:a, :b]},
        {"machines without distribution", [nil, nil]}
      ] do
    @tag names: names
    test "#{title} see each other's writes", context do
      url = PostgresCase.database()
      [a, b] = peers = Enum.map(context.names, &Peers.start(name: &1))

      for peer <- peers,
          do:
            Peers.start_book(peer,
              name: :nodes,
              builtins: false,
              store: {Skillbook.SQL.Postgres, url: url}
            )

      if hd(context.names), do: Peers.connect(a, b)

      for round <- 1..10, [writer, reader] <- [[a, b], [b, a]] do
        name = "note-#{round}"
        text = "written #{round} by #{inspect(writer)}"
        {:ok, _} = Peers.store(writer, :nodes, :put_note, [name, text, []])
        # The writer sees it immediately.
        assert Peers.read(writer, :nodes, name) == text
        assert eventually(fn -> Peers.read(reader, :nodes, name) == text end)
      end

      {:ok, _} = Peers.store(a, :nodes, :delete, ["note-1", []])
      assert eventually(fn -> Peers.read(b, :nodes, "note-1") == nil end)
    end
  end

  @tag timeout: 180_000
  test "writes during an outage are refused, and writes after it are visible" do
    {folder, url} = PostgresCase.server()
    [a, b] = peers = Enum.map([:a, :b], &Peers.start(name: &1))

    for peer <- peers,
        do:
          Peers.start_book(peer,
            name: :nodes,
            builtins: false,
            store: {Skillbook.SQL.Postgres, url: url}
          )

    Peers.connect(a, b)

    {:ok, _} = Peers.store(a, :nodes, :put_note, ["before", "1", []])
    assert eventually(fn -> Peers.read(b, :nodes, "before") == "1" end)

    PostgresCase.stop_server(folder)

    assert {:error, %Skillbook.SQL.Error{}} =
             Peers.store(a, :nodes, :put_note, ["meanwhile", "2", []])

    # Entries read before remain visible.
    assert Peers.read(b, :nodes, "before") == "1"

    ^url = PostgresCase.start_server(folder)

    assert eventually(fn ->
             elem(Peers.store(a, :nodes, :put_note, ["after", "3", []]), 0) == :ok
           end)

    assert eventually(fn -> Peers.read(b, :nodes, "after") == "3" end)
    {:ok, _} = Peers.store(b, :nodes, :delete, ["before", []])
    assert eventually(fn -> Peers.read(a, :nodes, "before") == nil end)
    assert Peers.read(a, :nodes, "meanwhile") == nil
  end
end
