defmodule Skillbook.Run.ConcurrencyLimitTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.BusyError
  alias Skillbook.Reply.Pipeline

  @moduletag :tmp_dir
  @moduletag :capture_log

  doctest Skillbook.BusyError

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/a.md" => page("x.a", handler("Tell")),
      "x/b.md" => page("x.b", handler("Tell")),
      "x/one.md" => page("x.one", handler("Tell") ++ [max_running: 1]),
      "x/call.md" => page("x.call", handler("Call")),
      "x/again.md" => page("x.again", handler("Call")),
      "x/text.md" => page("x.text", handler("Text"))
    })

    :ok
  end

  defp start(folder, options) do
    book = book([sources: [folder], builtins: false] ++ options)
    limiter = GenServer.whereis(Module.concat(book, ConcurrencyLimit))
    :erlang.trace(limiter, true, [:receive])
    :telemetry.listen(book)
    {Skillbook.view(book), limiter}
  end

  # A conversation that runs one command. `name` identifies its handler's message and its result.
  defp conversation(view, name, line) do
    test = self()

    spawn(fn ->
      [result] = Pipeline.commands(view, [line], assigns: %{tell: relay(test, name)})
      send(test, {:result, name, result})
    end)
  end

  # Handlers register with a process that forwards their names to the test.
  defp relay(test, name) do
    spawn(fn ->
      receive do: ({:handler, pid, _context} -> send(test, {:runs, name, pid}))
    end)
  end

  # After this call of the process, all waiting calls are in the queue.
  defp await_enter(limiter) do
    assert_receive {:trace, ^limiter, :receive, {:"$gen_call", _, {:enter, _, _, _, _}}}, 60_000
    :sys.get_state(limiter)
  end

  defp runs(name) do
    assert_receive {:runs, ^name, handler}, 60_000
    handler
  end

  defp finish(name, handler) do
    send(handler, :go_on)
    assert_receive {:result, ^name, %{status: :ok, content: "went on"}}, 60_000
  end

  defp empty(limiter) do
    assert %{running: 0, skills: skills, calls: calls, queues: queues} = :sys.get_state(limiter)
    assert {skills, calls, queues} == {%{}, %{}, %{}}
  end

  test "queues calls over the limit, first in, first out", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 2)

    for name <- 1..5 do
      conversation(view, name, if(rem(name, 2) == 0, do: "x.a", else: "x.b"))
      await_enter(limiter)
    end

    [first, second] = [runs(1), runs(2)]
    refute_received {:runs, _, _}
    finish(2, second)
    third = runs(3)
    refute_received {:runs, _, _}
    finish(1, first)
    fourth = runs(4)
    finish(4, fourth)
    fifth = runs(5)
    finish(3, third)
    finish(5, fifth)
    empty(limiter)
    book = view.book

    for skill <- ["x.b", "x.a", "x.b"] do
      assert_receive {[:skillbook, :queue, :wait], %{duration: duration}, metadata}
      assert duration > 0 and metadata == %{book: book, skill: skill, granted: true}
    end

    refute_received {[:skillbook, :queue, :wait], _, _}
  end

  test "a busy skill does not block another", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 3, max_running_per_skill: 2)
    for name <- 1..3, do: {conversation(view, name, "x.a"), await_enter(limiter)}
    [first, second] = [runs(1), runs(2)]
    conversation(view, 4, "x.b")
    fourth = runs(4)
    # There is no room in the book for the third, though there is of its skill.
    await_enter(limiter)
    conversation(view, 5, "x.b")
    await_enter(limiter)
    finish(4, fourth)
    fifth = runs(5)
    refute_received {:runs, _, _}
    finish(1, first)
    third = runs(3)
    for {name, handler} <- [{2, second}, {3, third}, {5, fifth}], do: finish(name, handler)
    empty(limiter)
  end

  test "the limit of a page takes precedence over the book's", %{tmp_dir: folder} do
    for options <- [[], [max_running_per_skill: 5]] do
      {view, limiter} = start(folder, options)
      for name <- 1..2, do: {conversation(view, name, "x.one"), await_enter(limiter)}
      first = runs(1)
      refute_received {:runs, _, _}
      finish(1, first)
      finish(2, runs(2))
      empty(limiter)
    end
  end

  test "is not used without a limit", %{tmp_dir: folder} do
    {view, limiter} = start(folder, [])
    assert [%{status: :ok}] = Pipeline.commands(view, ["x.text"])
    :sys.get_state(limiter)
    refute_received {:trace, ^limiter, :receive, {:"$gen_call", _, {:enter, _, _, _, _}}}
  end

  test "returns an error after max_wait", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 1, max_wait: 20)
    conversation(view, 1, "x.a")
    first = runs(1)
    [result] = Pipeline.commands(view, ["x.text"])
    assert result.error == %BusyError{name: "x.text", max_wait: 20}

    assert result.content ==
             "`x.text` was not run: too many commands were running, and it was still queued " <>
               "after 20 ms. " <>
               "Try again later, or tell the user."

    assert_receive {[:skillbook, :queue, :wait], %{duration: _},
                    %{skill: "x.text", granted: false}}

    finish(1, first)
    assert [%{status: :ok}] = Pipeline.commands(view, ["x.text"])
    empty(limiter)
  end

  test "releases the slot of a killed caller", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 1)
    caller = conversation(view, 1, "x.a")
    await_enter(limiter)
    handler = runs(1)
    conversation(view, 2, "x.a")
    await_enter(limiter)
    ref = monitor(handler)
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^ref, :process, _, :killed}, 60_000
    second = runs(2)
    # A handler that kills itself takes nothing with it either.
    conversation(view, 3, "x.a")
    await_enter(limiter)
    Process.exit(second, :kill)
    assert_receive {:result, 2, %{error: %{kind: :crash}}}, 60_000
    finish(3, runs(3))
    empty(limiter)
  end

  test "a caller that is killed in the queue never runs", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 1)

    [_, waiting, _] =
      for name <- 1..3, do: {conversation(view, name, "x.a"), await_enter(limiter)} |> elem(0)

    first = runs(1)
    Process.exit(waiting, :kill)
    # The worker ends with its caller, and the limiter hears of it.
    assert_receive {:trace, ^limiter, :receive, {:DOWN, _, :process, _, :killed}}, 60_000
    assert map_size(:sys.get_state(limiter).calls) == 2
    finish(1, first)
    finish(3, runs(3))
    refute_received {:runs, 2, _}
    empty(limiter)
  end

  test "never exceeds the limits", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 4, max_running_per_skill: 3)
    # How many run: in all, and of each skill; and the most there ever were.
    running = :atomics.new(3, [])
    most = :atomics.new(3, [])

    call = fn _, context ->
      places = [1, if(context.entry.name == "x.call", do: 2, else: 3)]

      for place <- places do
        now = :atomics.add_get(running, place, 1)
        raise_to(most, place, now)
      end

      for _ <- 1..50, do: :erlang.yield()
      for place <- places, do: :atomics.sub(running, place, 1)
      {:ok, "fine"}
    end

    results =
      1..40
      |> Enum.map(fn n ->
        lines = for m <- 1..5, do: if(rem(n * m, 3) == 0, do: "x.call", else: "x.again")
        Task.async(fn -> Pipeline.commands(view, lines, assigns: %{call: call}) end)
      end)
      |> Task.await_many(:infinity)
      |> List.flatten()

    assert Enum.frequencies_by(results, & &1.status) == %{ok: 200}
    assert :atomics.get(most, 1) in 1..4
    for place <- [2, 3], do: assert(:atomics.get(most, place) in 1..3)
    empty(limiter)
  end

  defp raise_to(most, place, now) do
    before = :atomics.get(most, place)

    if now > before and :atomics.compare_exchange(most, place, before, now) != :ok,
      do: raise_to(most, place, now)
  end

  test "releases all slots when callers are killed at any point", %{
    tmp_dir: folder
  } do
    {view, limiter} = start(folder, max_running: 3, max_running_per_skill: 2)

    # Half of the handlers come to an end by themselves.
    call = fn _, _ ->
      if :rand.uniform(2) == 1, do: Process.sleep(:infinity), else: {:ok, "fine"}
    end

    callers =
      for n <- 1..200 do
        line = if rem(n, 2) == 0, do: "x.call", else: "x.again"
        spawn(fn -> Pipeline.commands(view, [line], assigns: %{call: call}) end)
      end

    for caller <- Enum.shuffle(callers) do
      ref = monitor(caller)
      Process.exit(caller, :kill)
      assert_receive {:DOWN, ^ref, :process, _, _}, 60_000
    end

    empty_in_the_end(limiter)
    assert [%{status: :ok}, %{status: :ok}] = Pipeline.commands(view, ["x.text", "x.text"])
  end

  # The process gets a message for each worker that ends; this counts them down.
  defp empty_in_the_end(limiter) do
    if :sys.get_state(limiter).calls == %{} do
      empty(limiter)
    else
      assert_receive {:trace, ^limiter, :receive, _}, 60_000
      empty_in_the_end(limiter)
    end
  end

  test "nested calls use the slot of their caller", %{tmp_dir: folder} do
    {view, limiter} = start(folder, max_running: 1, max_running_per_skill: 1, max_wait: 60_000)

    call = fn
      %{"depth" => "0"}, context ->
        {:ok, hd(Pipeline.commands(context.view, ["x.text"])).content}

      %{"depth" => depth}, context ->
        line = "x.call --depth #{String.to_integer(depth) - 1}"
        # From a separate process, like a handler that runs several commands at once.
        run = fn -> Pipeline.commands(context.view, [line], assigns: context.assigns) end
        {:ok, hd(Task.await(Task.async(run), :infinity)).content}
    end

    assert [%{content: "flags: %{}"}] =
             Pipeline.commands(view, ["x.call --depth 2"], assigns: %{call: call})

    empty(limiter)
  end
end
