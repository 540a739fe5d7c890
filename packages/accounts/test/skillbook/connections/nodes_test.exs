defmodule Skillbook.Connections.NodesTest do
  # One token on two nodes: one renewal, changes that the other node sees, and a node that is
  # killed while it renews.
  use ExUnit.Case, async: true

  import Skillbook.Eventually
  import Skillbook.Test.Connections

  alias Skillbook.{ConnectionError, Connections, Peers, PostgresCase, SQL}
  alias Skillbook.Test.Services

  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  @support Skillbook.Test.Connections

  defp store(folder, :sqlite), do: Path.join(folder, "book.db")

  defp store(_folder, :postgres),
    do: {SQL.Postgres, url: PostgresCase.database(), pool_size: 5}

  defp start(world, store) do
    peer = Peers.start(name: :accounts)
    :ok = Peers.call(peer, @support, :start_node, [world, store])
    peer
  end

  defp two(world, store) do
    first = start(world, store)
    second = start(world, store)
    connect_account(first)
    {first, second}
  end

  defp connect_account(peer) do
    {:ok, %{status: :connected}} =
      Peers.call(peer, @support, :connect, [:accounts, :google, [for: ["email.search"]]])
  end

  defp services(peer), do: Peers.call(peer, Connections, :services, [:accounts, "default"])
  defp calls(peer, count), do: Peers.call(peer, @support, :calls, [:accounts, count, 30_000])
  defp expire_on(peer), do: Peers.call(peer, @support, :expire, [:accounts])
  defp forget_on(peer), do: Peers.call(peer, @support, :forget, [:accounts])

  defp kill(peer) do
    {_, 0} = System.cmd("kill", ["-KILL", Peers.call(peer, System, :pid, [])])
  end

  for database <- [:sqlite, :postgres] do
    test "callers of two nodes get one token by one renewal, in #{database}", context do
      world = world()
      {first, second} = two(world, store(context.tmp_dir, unquote(database)))
      assert eventually(fn -> services(second) == ["mail"] end)

      # The other node takes the stored token.
      assert [token] = calls(first, 1)
      assert calls(second, 1) == [token]
      assert asked(world) == 0

      # The vendor takes its time, so that both ask at once.
      Services.fault(world, method: "oauth.token", delay: 1, applied: true)
      expire_on(first)
      forget_on(second)
      tasks = for peer <- [first, second], do: Task.async(fn -> calls(peer, 100) end)
      assert [[new], [new]] = Task.await_many(tasks, :infinity)
      assert new =~ "ya29." and new != token
      assert asked(world) == 1
    end

    test "a change on one node is seen on the other, in #{database}", context do
      world = world()
      {first, second} = two(world, store(context.tmp_dir, unquote(database)))
      assert services(first) == ["mail"]
      assert eventually(fn -> services(second) == ["mail"] end)
      assert [_token] = calls(second, 1)

      {:ok, %{revoked: true}} = Peers.call(first, Connections, :disconnect, [:accounts, :google])
      assert services(first) == []
      assert eventually(fn -> services(second) == [] end)

      connect_account(second)
      assert services(second) == ["mail"]
      assert eventually(fn -> services(first) == ["mail"] end)

      # A withdrawn connection, too.
      {:ok, _} = revoke(world, hd(calls(first, 1)))
      expire_on(first)
      assert [{:error, %ConnectionError{kind: :revoked}}] = calls(first, 1)

      status = fn ->
        {:ok, [%{status: status}]} = Peers.call(second, Connections, :list, [:accounts])
        status
      end

      assert status.() == :revoked
      assert eventually(fn -> match?([{:error, %{kind: :revoked}}], calls(second, 1)) end)
    end

    test "a node is killed while it renews: the other renews, in #{database}", context do
      world = world()
      {first, second} = two(world, store(context.tmp_dir, unquote(database)))
      assert eventually(fn -> services(second) == ["mail"] end)
      Services.fault(world, method: "oauth.token", silent: true)
      expire_on(first)
      forget_on(second)
      :ok = Peers.call(first, @support, :calls_later, [:accounts, 10, 30_000])
      assert eventually(fn -> asked(world) == 1 end)
      kill(first)

      # They wait for the end of the lease, within their own time.
      assert [token] = calls(second, 100)
      assert token =~ "ya29."
      assert asked(world) == 2
    end
  end

  test "a node is killed with a new refresh token that nobody else has: connect again", context do
    world = world(rotate: true)
    {first, second} = two(world, store(context.tmp_dir, :sqlite))
    assert eventually(fn -> services(second) == ["mail"] end)
    Services.fault(world, method: "oauth.token", silent: true, applied: true)
    expire_on(first)
    forget_on(second)
    :ok = Peers.call(first, @support, :calls_later, [:accounts, 1, 30_000])
    assert eventually(fn -> asked(world) == 1 end)
    kill(first)

    assert [{:error, error}] = calls(second, 10)

    assert Exception.message(error) ==
             "the connection google of the profile default was withdrawn; a person can renew " <>
               "it with `bin/skillbook connect google`"

    connect_account(second)
    assert [token] = calls(second, 1)
    assert token =~ "ya29."
  end

  defp revoke(world, token) do
    headers = [{"content-type", "application/x-www-form-urlencoded"}]
    body = URI.encode_query(token: token)
    request = [method: :post, url: world.url <> "/revoke", headers: headers, body: body]
    Skillbook.HTTP.request(request)
  end
end
