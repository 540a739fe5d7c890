defmodule Skillbook.MCP.SessionTest do
  use ExUnit.Case, async: true

  alias Skillbook.MCP.Session

  defp session do
    fields = %{revision: "2025-11-25", capabilities: %{}, client: nil}
    options = %{id: nil, book: :no_book, profile: "ann", fields: fields}
    start_supervised!({Session, options}, id: make_ref())
  end

  defp calls do
    [
      fields: &Session.fields/1,
      put_fields: &Session.put_fields(&1, %{}),
      of?: &Session.of?(&1, :no_book, "ann"),
      enter: &Session.enter(&1, 1),
      leave: &Session.leave(&1, 1),
      stream: &Session.stream/1,
      expect: &Session.expect/1,
      subscribe: &Session.subscribe(&1, "x:1", 1),
      unsubscribe: &Session.unsubscribe(&1, "x:1")
    ]
  end

  test "a busy session, an ended one and its limits have different answers" do
    busy = session()
    :ok = :sys.suspend(busy)
    ended = session()
    :ok = Session.stop(ended)

    answers = fn session ->
      calls()
      |> Enum.map(fn {_name, call} -> Task.async(fn -> call.(session) end) end)
      |> Task.await_many(:infinity)
      |> Enum.zip_with(calls(), fn answer, {name, _call} -> {name, answer} end)
    end

    for {name, answer} <- answers.(busy), do: assert({name, answer} == {name, {:error, :busy}})
    for {name, answer} <- answers.(ended), do: assert({name, answer} == {name, {:error, :gone}})
    assert Session.uris(ended) == []

    full = session()
    for id <- 1..Session.max_requests(), do: assert(Session.enter(full, id) == :ok)
    assert Session.enter(full, 1) == :duplicate
    assert Session.enter(full, 65) == :full
    for _ <- 1..4, do: assert(Session.stream(full) == :ok)
    assert Session.stream(full) == :full
    assert Session.subscribe(full, "x:1", 1) == :ok
    assert Session.subscribe(full, "x:2", 1) == :full
    assert Session.leave(full, 1) == :ok
    assert Session.enter(full, 65) == :ok
  end

  test "a caller that gave up leaves nothing in a session that works again" do
    session = session()
    :ok = :sys.suspend(session)
    # The calling process lives on, as that of a connection does.
    assert Session.enter(session, 1) == {:error, :busy}
    assert Session.stream(session) == {:error, :busy}
    assert Session.expect(session) == {:error, :busy}
    :ok = :sys.resume(session)
    assert %{requests: r, streams: s, expecting: e} = :sys.get_state(session)
    assert {r, s, e} == {%{}, %{}, %{}}
    assert Process.info(session, :monitors) == {:monitors, []}
    assert Session.enter(session, 1) == :ok
  end

  test "the subscriptions of a busy session are awaited" do
    session = session()
    :ok = Session.subscribe(session, "x:1", 1)
    :ok = :sys.suspend(session)
    task = Task.async(fn -> Session.uris(session) end)
    # Longer than the other calls wait.
    assert Session.fields(session) == {:error, :busy}
    :ok = :sys.resume(session)
    assert Task.await(task, :infinity) == ["x:1"]
  end
end
