defmodule Skillbook.Connections.Client.QuotaTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Client.Quota

  defp now, do: System.monotonic_time(:millisecond)

  # Published quotas, and others. The bucket's units and those that arrive during a window make up
  # the whole quota.
  test "no window of time has more than the whole quota" do
    for {limit, seconds} = quota <- [
          {15_000, 60},
          {600, 60},
          {12_000, 60},
          {100, 10},
          {190, 10},
          {5, 1},
          {2, 1},
          {1, 7},
          {1_000_000, 86_400}
        ] do
      {burst, per_unit} = Quota.shape(quota)
      arrived = div(seconds * 1_000_000, per_unit)
      assert {quota, burst + arrived} <= {quota, max(limit, 2)}
      assert burst + arrived >= limit * 0.8
    end
  end

  test "concurrent callers share a bucket, in the order of their turns" do
    key = make_ref()
    began = now()

    # Ten at once, then 90 in a second.
    times =
      1..40
      |> Enum.map(fn _ ->
        Task.async(fn ->
          :ok = Quota.take(key, 1, {100, 1}, began + 10_000)
          now() - began
        end)
      end)
      |> Task.await_many(:infinity)
      |> Enum.sort()

    for {time, index} <- Enum.with_index(times),
        do: assert({index, time} >= {index, trunc(max(index - 9, 0) * 1000 / 90) - 1})

    assert List.last(times) < 5_000
  end

  test "what would be after the deadline is refused at once, and takes nothing" do
    key = make_ref()
    assert Quota.take(key, 2, {2, 10}, now()) == :ok
    assert {:error, wait} = Quota.take(key, 1, {2, 10}, now() + 100)
    assert {:error, again} = Quota.take(key, 1, {2, 10}, now() + 100)
    assert wait in 5_000..20_000
    assert again in (wait - 200)..wait
  end

  test "a request of more units than the bucket holds goes through, and the next one waits" do
    key = make_ref()
    assert Quota.take(key, 1_000, {100, 1}, now() + 10) == :ok
    assert {:error, _wait} = Quota.take(key, 1, {100, 1}, now() + 10)
  end

  test "buckets that are empty again are forgotten" do
    [short, long] = [make_ref(), make_ref()]
    assert Quota.take(short, 1, {1000, 1}, now() + 1_000) == :ok
    assert Quota.take(long, 1, {1, 600}, now() + 1_000) == :ok
    Process.sleep(5)
    send(Quota, :sweep)
    _ = :sys.get_state(Quota)
    assert {:ets.lookup(Quota, short), length(:ets.lookup(Quota, long))} == {[], 1}
  end

  test "the option of an account" do
    for good <- [[], [hubspot: {190, 10}], [gmail: :infinity]], do: assert(Quota.option?(good))

    for bad <- [5, [{"hubspot", {1, 1}}], [a: {0, 1}], [a: {1, 0}], [a: {1.5, 1}], [a: 5]],
        do: refute(Quota.option?(bad))
  end
end
