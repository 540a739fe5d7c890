defmodule Skillbook.Scheduler.RunSchedulesTest do
  # The application's configuration is shared by all books.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureIO

  alias Skillbook.Scheduler

  @moduletag :tmp_dir

  setup do
    on_exit(fn -> Application.delete_env(:skillbook, :run_schedules) end)
  end

  defp runs?(folder) do
    book = book(sources: [folder], store: ":memory:", builtins: false)
    runs? = Process.whereis(Module.concat(book, "Scheduler")) != nil
    if runs?, do: assert(Map.keys(Scheduler.registered(book)) == ["a"])
    # Only the running is off: the agenda shows the schedule.
    assert {:ok, %{next: [%{name: "a"}]}} = Skillbook.schedule(Skillbook.view(book))
    runs?
  end

  test "the configuration keeps all books, or all but some, from running", %{tmp_dir: folder} do
    write(folder, %{"a/SKILL.md" => page("a", schedule: "'@daily'", run_as: "default")})

    for {value, expected} <- [{true, true}, {false, false}, {nil, false}, {[:other], false}] do
      Application.put_env(:skillbook, :run_schedules, value)
      assert runs?(folder) == expected, inspect(value)
    end

    Application.delete_env(:skillbook, :run_schedules)
    assert runs?(folder)
    Application.put_env(:skillbook, :run_schedules, [:named])

    {:ok, pid} =
      Skillbook.start_link(name: :named, sources: [folder], store: ":memory:", builtins: false)

    assert Map.keys(Scheduler.registered(:named)) == ["a"]
    Supervisor.stop(pid)
  end

  defmodule Daily do
    @moduledoc false
    use Skillbook.Test, async: false, builtins: false

    def run(folder, test) do
      context = %{module: __MODULE__, test: test, skillbook: [now: ~U[2026-03-01 23:59:30Z]]}
      Skillbook.Test.Case.start(context, sources: [folder], builtins: false)
      advance(minutes: 1)
      run_schedules()
      assert_ran("a.run")
    end
  end

  test "and not the book of `Skillbook.Test`, which runs them when it is told", context do
    fields = handler("Text") ++ [schedule: "'@daily'", run_as: "default"]
    write(context.tmp_dir, %{"a/run.md" => page("a.run", fields)})
    Application.put_env(:skillbook, :run_schedules, false)
    Daily.run(context.tmp_dir, context.test)
  end

  test "mix skillbook runs only those of its own book", %{tmp_dir: folder} do
    write(folder, %{"a/SKILL.md" => page("a", schedule: "'@daily'", run_as: "default")})
    on_exit(fn -> Application.delete_env(:skillbook, :modules, persistent: true) end)

    output =
      capture_io(fn ->
        Mix.Task.rerun("skillbook", ["--no-builtins", "--dir", folder, "list"])
      end)

    assert output =~ "a  skill"
    refute runs?(folder)
    assert Application.get_env(:skillbook, :run_schedules) == [:skillbook_cli]
  end
end
