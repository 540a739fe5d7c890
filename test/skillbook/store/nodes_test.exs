defmodule Skillbook.Store.NodesTest do
  # Two virtual machines with one database: what is written on one is read on the other.
  use ExUnit.Case, async: true

  alias Skillbook.{Peers, PostgresCase}

  @moduletag timeout: 120_000

  for {title, names} <- [
        {"nodes of a cluster", [:a, :b]},
        {"machines without distribution", [nil, nil]}
      ] do
    @tag names: names
    test "#{title} see each other's writes", context do
      url = PostgresCase.database!(context)
      [a, b] = peers = Enum.map(context.names, &Peers.start(name: &1))

      for peer <- peers,
          do: Peers.start_book(peer, name: :nodes, builtins: false, store: {Skillbook.SQL.Postgres, url: url})

      if hd(context.names), do: Peers.connect(a, b)

      for round <- 1..10, [writer, reader] <- [[a, b], [b, a]] do
        name = "note-#{round}"
        text = "written #{round} by #{inspect(writer)}"
        {:ok, _, _} = Peers.store(writer, :nodes, :put_note, [name, text, []])
        # The writer itself sees it at once.
        assert Peers.read(writer, :nodes, name) == text
        assert eventually(fn -> Peers.read(reader, :nodes, name) end, text)
      end

      {:ok, _} = Peers.store(a, :nodes, :delete, ["note-1", []])
      assert eventually(fn -> Peers.read(b, :nodes, "note-1") end, nil)
    end
  end

  defp eventually(fun, wanted, left \\ 500) do
    case fun.() do
      ^wanted -> true
      _other when left > 0 -> Process.sleep(10) && eventually(fun, wanted, left - 1)
      other -> flunk("expected #{inspect(wanted)} within five seconds, got #{inspect(other)}")
    end
  end
end
