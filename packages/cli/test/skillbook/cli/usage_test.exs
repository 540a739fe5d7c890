defmodule Skillbook.CLI.UsageTest do
  use ExUnit.Case, async: true

  alias Skillbook.CLI.{Terminal, Usage}

  @pipe %Terminal{color: false, width: nil}
  @plain %Terminal{color: false, width: 60}
  @color %Terminal{color: true, width: 60}

  defp row(key, read, run, failed, duration),
    do: %{
      key: key,
      read: read,
      run: run,
      failed: failed,
      count: read + run + failed,
      duration: duration
    }

  defp report(rows, options \\ []) do
    sum = fn field -> rows |> Enum.map(&Map.get(&1, field)) |> Enum.sum() end

    struct!(
      Skillbook.Usage,
      [
        by: :name,
        since: ~U[2026-03-01 00:00:00Z],
        until: ~U[2026-03-08 00:00:00Z],
        rows: rows,
        total: row(nil, sum.(:read), sum.(:run), sum.(:failed), 3.2),
        unnamed: 0
      ] ++ options
    )
  end

  defp lines(report, terminal), do: report |> Usage.lines(terminal) |> IO.iodata_to_binary()

  test "aligns numbers, and fills the remaining width with bars" do
    report = report([row("tasks.create", 1200, 34, 5, 12.6), row("x", 0, 0, 1, nil)])

    assert lines(report, @plain) == """
           name           read  run  failed  average
           tasks.create  1,200   34       5    13 ms  #################
           x                 0    0       1        -  #
           total         1,200   34       6     3 ms\
           """
  end

  test "a single row has no total" do
    assert lines(report([row("x", 0, 1, 0, 0.4)], by: :time), @plain) == """
           time  read  run  failed  average
           x        0    1       0   < 1 ms  ##########################\
           """
  end

  test "no line is wider than the terminal" do
    rows = [row(String.duplicate("n", 64), 1, 1_000_000, 1, 12_000.0), row("é", 1, 0, 0, nil)]

    for width <- [42, 50, 73, 80, 120, 300],
        terminal <- [%{@plain | width: width}, %{@color | width: width}] do
      text = report(rows) |> lines(terminal) |> String.replace(~r/\e\[\d+m/, "")
      for line <- String.split(text, "\n"), do: assert(String.length(line) <= width)
      assert text =~ "1,000,000"
    end

    assert report(rows) |> lines(%{@color | width: 120}) =~ "█"
    refute report(rows) |> lines(%{@plain | width: 50}) =~ "#"
    assert report(rows) |> lines(@pipe) =~ "#"
  end

  test "bars are relative to the maximum, and never empty" do
    for {count, terminal, bar} <- [
          {8, @color, "████████"},
          {4, @color, "████"},
          {3, @color, "███"},
          {1, @color, "█"},
          {0, @color, "▏"},
          {8, @plain, "########"},
          {4, @plain, "####"},
          {0, @plain, "#"}
        ] do
      assert {count, Usage.bar(count, 8, 8, terminal)} == {count, bar}
    end

    assert Usage.bar(1, 3, 4, @color) == "█▍"
  end

  test "escapes control characters in names" do
    refute report([row("a\e[2J", 1, 0, 0, nil)]) |> lines(@plain) =~ "\e"
  end

  test "counts unnamed rows, and names the unrestricted profile" do
    text = report([row("", 0, 2, 0, 1.0)], unnamed: 1234, by: :profile) |> lines(@plain)
    assert text =~ "(unrestricted)"

    assert text =~
             "\n1,234 more, without names: too many different names at once"
  end

  test "without counts, suggests the next step" do
    assert lines(report([]), @plain) == """
           No skill was used from 2026-03-01 to 2026-03-08.
           Run one with `skillbook shell`, or start earlier with --since 4w.\
           """
  end

  test "parses durations and dates" do
    now = ~U[2026-03-08 12:00:00Z]

    for {flags, times} <- [
          {[], []},
          {[since: "12h"], [since: ~U[2026-03-08 00:00:00Z]]},
          {[since: "7d"], [since: ~U[2026-03-01 12:00:00Z]]},
          {[since: "2w"], [since: ~U[2026-02-22 12:00:00Z]]},
          {[until: "2026-03-01"], [until: ~U[2026-03-01 00:00:00Z]]}
        ] do
      assert {flags, Usage.times(flags, now)} == {flags, {:ok, times}}
    end

    for text <- ["", "7", "d", "0d", "-1d", "7 d", "7m", "123456d", "2026-13-01", "yesterday"] do
      assert Usage.times([since: text], now) ==
               {:error,
                "--since expects hours, days or weeks ago (12h, 7d, 4w) " <>
                  "or a date (2026-03-01), got: #{text}"}
    end
  end
end
