defmodule Skillbook.ExecutorTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Executor, HandlerError, NotFoundError, Result, Router}

  @moduletag :tmp_dir

  doctest Skillbook.Executor
  doctest Skillbook.HandlerError

  defp execute(folder, handler, line \\ "x.run --day Friday", options \\ []) do
    write(folder, %{"x/run.md" => page("x.run", handler: handler)})
    view = view(folder)
    {:ok, routed} = Router.route(view, line)

    Executor.execute(
      routed,
      Executor.context(view, routed, Keyword.take(options, [:assigns])),
      Keyword.take(options, [:timeout])
    )
  end

  test "a skill without a handler gives its body as a template", %{tmp_dir: folder} do
    write(folder, %{"x/run.md" => page("x.run", [], "Do this.\n")})
    view = view(folder)
    {:ok, routed} = Router.route(view, "x.run --a b")

    assert {:ok, %Result{status: :template, content: "Do this."}} =
             Executor.execute(routed, Executor.context(view, routed))
  end

  test "answers of handlers", %{tmp_dir: folder} do
    assert {:ok, %Result{status: :ok, content: "flags: %{\"day\" => \"Friday\"}"}} =
             execute(folder, "Skillbook.TestHandlers.Text")

    assert {:ok, %Result{status: :ok}} = execute(folder, "Elixir.Skillbook.TestHandlers.Text")

    assert {:error, %RuntimeError{message: "no room on Friday"}} =
             execute(folder, "Skillbook.TestHandlers.ErrorText")

    assert {:error, %NotFoundError{id: "R-1"}} = execute(folder, "Skillbook.TestHandlers.ErrorStruct")
  end

  test "a crash is an error that names the skill and hides the rest", %{tmp_dir: folder} do
    for handler <- ~w(Raise Throw Exit Kill) do
      log =
        capture_log(fn ->
          assert {:error, %HandlerError{kind: :crash} = error} =
                   execute(folder, "Skillbook.TestHandlers.#{handler}")

          assert Exception.message(error) ==
                   "`x.run` failed: its handler crashed. It may have done part of its work: " <>
                     "check before you try again, or tell the user."
        end)

      assert log =~ "skill x.run crashed"
    end
  end

  test "what is no answer is an error", %{tmp_dir: folder} do
    for handler <- ~w(Nonsense NotText NotUtf8 Broken) do
      log =
        capture_log(fn ->
          assert {:error, %HandlerError{kind: :bad_return} = error} =
                   execute(folder, "Skillbook.TestHandlers.#{handler}", "x.run")

          assert Exception.message(error) =~ "`x.run` failed: its handler gave an answer that cannot be read."
        end)

      assert log =~ "skill x.run: expected {:ok, text}"
    end
  end

  test "a handler that takes too long is stopped", %{tmp_dir: folder} do
    capture_log(fn ->
      assert {:error, %HandlerError{kind: :timeout, timeout: 50} = error} =
               execute(folder, "Skillbook.TestHandlers.Hang", "x.run", timeout: 50)

      assert Exception.message(error) =~ "`x.run` was stopped: it took longer than 50 ms."
    end)
  end

  test "only modules with execute/2 are handlers, and nothing becomes an atom", %{tmp_dir: folder} do
    name = "Nowhere.Atom#{System.unique_integer([:positive])}"

    for handler <- [name, "String", "Skillbook", "erlang", "\"not a module\"", String.duplicate("A", 300)] do
      capture_log(fn ->
        assert {:error, %HandlerError{kind: :missing} = error} = execute(folder, handler)
        assert Exception.message(error) =~ "`x.run` cannot run: its handler"
      end)
    end

    assert_raise ArgumentError, fn -> String.to_existing_atom("Elixir." <> name) end
  end

  test "a handler ends with its caller", %{tmp_dir: folder} do
    test = self()

    caller = spawn(fn -> execute(folder, "Skillbook.TestHandlers.Tell", "x.run", assigns: %{tell: test}) end)

    assert_receive {:handler, handler, _context}, 60_000
    ref = Process.monitor(handler)
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^ref, :process, ^handler, :killed}, 60_000
  end
end
