defmodule Skillbook.House.PatienceTest do
  # A busy machine needs minutes for work that takes seconds on a quiet one. A test that waits
  # ends with what it waits for, so its limit only says when to give up: that of ExUnit, or a
  # minute at least.
  use ExUnit.Case, async: true

  alias Skillbook.Test.Checkout

  @least 60_000

  test "no test gives up within a minute" do
    files = Checkout.wildcard(["test/**/*.{ex,exs}", "packages/*/test/**/*.{ex,exs}"])
    assert length(files) > 400

    hasty = for file <- files, {line, call} <- hasty(Checkout.read!(file)), do: {file, line, call}
    assert hasty == []
  end

  # A process that is killed before it has noted the monitor is told of with another reason.
  test "tests monitor by Skillbook.Eventually.monitor/1" do
    files = Checkout.wildcard(["test/**/*_test.exs", "packages/*/test/**/*_test.exs"])
    found = for file <- files, Checkout.read!(file) =~ ~r/Process\.monitor\(/, do: file
    assert found -- ["packages/cli/test/house/patience_test.exs"] == []
  end

  test "finds hasty calls" do
    for {code, found} <- [
          {"assert_receive :done", []},
          {"assert_receive :done, 60_000", []},
          {"assert_receive :done, 5_000", [{1, :assert_receive}]},
          {"Task.await(task)", [{1, :await}]},
          {"Task.await(task, 5_000)", [{1, :await}]},
          {"task |> Task.await()", [{1, :await}]},
          {"task |> Task.await(5_000)", [{1, :await}]},
          {"tasks |> Task.await_many(:infinity)", []},
          {"Task.await_many(tasks, @timeout)", []}
        ] do
      assert {code, hasty(code)} == {code, found}
    end
  end

  defp hasty(code) do
    {_code, found} =
      code
      |> Code.string_to_quoted!()
      |> Macro.prewalk([], fn
        {:|>, _, [value, call]}, found -> note(Macro.pipe(value, call, 0), found)
        node, found -> note(node, found)
      end)

    Enum.reverse(found)
  end

  defp note({call, meta, arguments} = node, found),
    do: {node, hasty(call, meta, arguments) ++ found}

  defp note(node, found), do: {node, found}

  defp hasty(:assert_receive, meta, [_pattern, limit]) when is_integer(limit) and limit < @least,
    do: [{meta[:line], :assert_receive}]

  defp hasty({:., _, [{:__aliases__, _, [:Task]}, name]}, meta, [_task])
       when name in [:await, :await_many],
       do: [{meta[:line], name}]

  defp hasty({:., _, [{:__aliases__, _, [:Task]}, name]}, meta, [_task, limit])
       when name in [:await, :await_many] and is_integer(limit) and limit < @least,
       do: [{meta[:line], name}]

  defp hasty(_call, _meta, _arguments), do: []
end
