defmodule Skillbook.ClockTest do
  # Clocks that jump. The system's clock may, in both directions; the monotonic one does not.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Approval, Book, Connections, OutOfServiceError, Result, View}

  @moduletag :tmp_dir
  @now ~U[2026-03-01 09:30:00Z]
  @day 86_400

  defp sql(book), do: Book.sql(Book.fetch!(book))

  test "a lease on a token of a clock that was ahead is over" do
    sql = sql(book(store: ":memory:"))
    key = {"ann", "google"}

    row = %{
      status: :connected,
      tenant: nil,
      identity: "a",
      scopes: [],
      key_id: "k",
      secret: "s",
      expires_at: 1
    }

    {:ok, %{version: version}} = Connections.Table.put(sql, key, @now, fn nil -> {:ok, row} end)
    lease = 15_000
    take = &Connections.Table.take_lease(sql, key, version, &1, &2, lease)
    now = DateTime.to_unix(@now, :millisecond)

    assert take.("ahead by a day", now + @day * 1000) == {:ok, true}
    assert take.("b", now) == {:ok, true}
    # Clocks of nodes may differ by seconds.
    assert take.("c", now - 5_000) == {:ok, false}
    assert take.("c", now + 5_000) == {:ok, false}
    assert take.("back by a day", now - @day * 1000) == {:ok, true}
  end

  test "the wait for a skill out of service is at most its cooldown", %{tmp_dir: folder} do
    write(folder, %{"x/run.md" => page("x.run", handler: "Skillbook.TestHandlers.Raise")})
    book = book(sources: [folder], breaker: [failures: 1, cooldown: 600_000], watch: false)
    view = View.all(book)
    ExUnit.CaptureLog.capture_log(fn -> Skillbook.carry_out(view, "x.run") end)
    breaker = Module.concat(book, CircuitBreaker)

    for {jump, expected} <- [{@day, 600}, {-@day, 1}] do
      :sys.replace_state(breaker, fn state ->
        [{key, _, _, _, _, _}] = :ets.tab2list(breaker)
        :ets.update_element(breaker, key, {6, DateTime.add(DateTime.utc_now(), jump)})
        state
      end)

      assert %OutOfServiceError{retry_in: ^expected} = Skillbook.carry_out(view, "x.run").error
    end
  end

  test "an approved call whose lease passed while it ran keeps its result, and runs once" do
    sql = sql(book(store: ":memory:"))

    call = %{
      ref: "AP-1",
      profile: "ann",
      tenant: nil,
      skill: "x.run",
      hash: "",
      words: ~s({"command": "x.run", "flags": {}}),
      rights: "{}",
      assigns: "{}",
      made_by: :agent,
      asked_at: @now,
      expires_at: DateTime.add(@now, @day)
    }

    decision = %{by: "Bob", reason: nil}
    :ok = Approval.Table.insert(sql, call, 10)
    # The lease goes by the system's clock, which is years ahead of the one that set it.
    :ok = Approval.Table.claim(sql, "AP-1", "me", @now, @now, decision)
    sweep = fn now -> Approval.Table.sweep(sql, :book, now, 15_000) end
    assert {:ok, [%{status: :interrupted}]} = sweep.(@now)
    claim = &Approval.Table.claim(sql, "AP-1", &1, @now, @now, decision)
    assert claim.("another") == {:error, :taken}

    result = %Result{status: :ok, content: "Ran.", name: "x.run"}
    {:ok, %{approval: approval}} = Approval.Table.fetch(sql, :book, "AP-1")
    finish = &Approval.Table.finish(sql, approval, &1, @now, :done, result)
    assert finish.("another") == {:ok, false}
    assert finish.("me") == {:ok, true}
    # After a lost answer.
    assert finish.("me") == {:ok, true}
    assert {:ok, %{approval: %{status: :done}}} = Approval.Table.fetch(sql, :book, "AP-1")
    assert {:ok, []} = sweep.(DateTime.add(@now, -@day))
    assert claim.("another") == {:error, :taken}

    # A node whose clock was ahead has died.
    :ok = Approval.Table.insert(sql, %{call | ref: "AP-2"}, 10)
    until = &DateTime.add(DateTime.utc_now(), &1)
    :ok = Approval.Table.claim(sql, "AP-2", "me", until.(25), @now, decision)
    assert {:ok, []} = sweep.(@now)
    {:ok, true} = Approval.Table.renew(sql, "AP-2", "me", until.(@day))
    assert {:ok, [%{ref: "AP-2", status: :interrupted}]} = sweep.(@now)
  end
end
