defmodule Skillbook.Hostile.SchedulersTest do
  # No public function that takes text stays on a normal scheduler for long: the scheduler would
  # run no other process of the application meanwhile. Longer work runs on dirty schedulers.
  use ExUnit.Case, async: false

  alias Skillbook.{Cost, HostileTexts, TextFunctions}

  @moduletag :guard
  @moduletag :capture_log
  @moduletag :tmp_dir

  # The lengths up to which texts are parsed and copied on normal schedulers, in bytes: see
  # native/skillbook_bridge/src/twin.rs.
  @sizes [8_000, 64_000]
  # Milliseconds, for a machine that splits a text of 64,000 commas in a third of them: a slower
  # one has more.
  @longest 5
  @attempts 5

  test "no call stays on a normal scheduler for long", %{tmp_dir: folder} do
    start = &start_supervised!({Skillbook, &1})
    rows = folder |> TextFunctions.world(start) |> TextFunctions.rows()
    texts = for {name, text} <- HostileTexts.all(), size <- @sizes, do: {name, text.(size)}

    stayed =
      for {{module, function}, what, call} <- rows,
          most = longest_text(call),
          {name, text} <- texts,
          byte_size(text) <= most,
          call = fn -> call.(text) end,
          time = measured(call),
          time > 0,
          do: {time, "#{inspect(module)}.#{function} #{what}, #{name}", call}

    # Most of these times are those of other programs, so the longest are measured again.
    limit = limit()
    {again, short} = stayed |> Enum.sort(:desc) |> Enum.split_while(&(elem(&1, 0) > limit))
    again = again ++ Enum.take(short, 10)
    slow = for {time, place, call} <- again, do: {stays(call, time, @attempts), place}

    {longest, place} = Enum.max(slow, fn -> {0, "none takes a millisecond"} end)
    IO.puts("\nThe longest call on a normal scheduler takes #{longest} of #{limit} ms: #{place}")
    assert for({time, place} <- slow, time > limit, do: {time, place}) == []
  end

  test "notices a call that stays for long" do
    # The virtual machine fills a tuple without a break.
    fill = fn -> :erlang.make_tuple(16_000_000, 0) end
    assert stays(fill, measured(fill), @attempts) > 1
  end

  defp limit do
    commas = String.duplicate(",", List.last(@sizes))
    split = Cost.time(fn -> :binary.split(commas, ",", [:global]) end, 5)
    max(@longest, round(3 * split / 1000))
  end

  # Work that takes long for each byte is done piece by piece, whatever the length of the text.
  defp longest_text(call) do
    [text, short] = for size <- [16_000, 10], do: String.duplicate("word\n", div(size, 5))
    [long, least] = for text <- [text, short], do: Cost.time(fn -> call.(text) end, 3)
    if long > least + 1_000, do: hd(@sizes), else: List.last(@sizes)
  end

  # The longest time in milliseconds that a call occupies a normal scheduler at once: the shortest
  # of some attempts, and at most its processor time, since a busy machine stops a scheduler, too.
  defp stays(call, time, 0), do: min(time, round(Cost.cpu(call) / 1000))
  defp stays(_call, 0, _attempts), do: 0
  defp stays(call, time, attempts), do: stays(call, min(time, measured(call)), attempts - 1)

  defp measured(call) do
    monitor = :erlang.system_monitor(self(), [{:long_schedule, 1}])

    # A time is reported when the process is scheduled out, which yielding does. The result stays
    # there: copying it to this process at once would be no work of the call.
    stays = fn ->
      call.()
      :erlang.yield()
    end

    try do
      Task.await(Task.async(stays), :infinity)
    after
      :erlang.system_monitor(monitor)
    end

    longest(0)
  end

  defp longest(most) do
    receive do
      {:monitor, pid, :long_schedule, info} when is_pid(pid) -> longest(max(most, info[:timeout]))
      {:monitor, _port, :long_schedule, _info} -> longest(most)
    after
      0 -> most
    end
  end
end
