defmodule Skillbook.Telemetry.EventsTest do
  use ExUnit.Case, async: true

  alias Skillbook.Telemetry
  alias Skillbook.Telemetry.Events

  doctest Skillbook.Telemetry
  doctest Skillbook.TelemetryError

  test "docs/telemetry.md has the table of events" do
    assert File.read!("docs/telemetry.md") =~ "\n\n" <> Events.table() <> "\n"
  end

  # The `:telemetry` of the tests raises for an event that is not as listed.
  test "an event that is not as listed is told" do
    rows = [
      {[:skillbook, :queue, :wait], [:duration], [:book, :skill, :granted], :ok},
      {[:skillbook, :command, :start], [:system_time, :monotonic_time],
       [:book, :profile, :tenant, :generation, :skill, :effect, :flags], :ok},
      {[:skillbook, :queue, :waited], [:duration], [:book],
       {:error,
        "expected an event of Skillbook.Telemetry.events/0, got: [:skillbook, :queue, :waited]"}},
      {[:skillbook, :queue, :wait], [], [:book, :skill, :granted],
       {:error, "expected the measurements [:duration] of [:skillbook, :queue, :wait], got: []"}},
      {[:skillbook, :queue, :wait], [:duration], [:book, :skill, :granted, :flags],
       {:error,
        "expected the metadata [:book, :granted, :skill] of [:skillbook, :queue, :wait], " <>
          "got: [:book, :flags, :granted, :skill]"}}
    ]

    for {name, measurements, metadata, expected} <- rows do
      values = fn keys -> Map.new(keys, &{&1, 1}) end
      assert :telemetry.check(name, values.(measurements), values.(metadata)) == expected
    end

    assert_raise ArgumentError, fn ->
      Telemetry.event([:skillbook, :queue, :wait], %{}, %{})
    end
  end

  test "wrong arguments raise" do
    options = "a keyword list or a map with atoms as keys"

    rows = [
      {:attach_default_logger, [[1]], "options", options, "[1]"},
      {:attach_open_telemetry, [%{"a" => 1}], "options", options, ~s(%{"a" => 1})},
      {:gen_ai, ["a", %{}], "name", "a list", ~s("a")},
      {:gen_ai, [[], []], "metadata", "a map", "[]"}
    ]

    for {name, arguments, argument, expected, got} <- rows do
      error = assert_raise ArgumentError, fn -> apply(Telemetry, name, arguments) end

      assert Exception.message(error) ==
               "expected #{expected} as the argument `#{argument}` of " <>
                 "Skillbook.Telemetry.#{name}/#{length(arguments)}, got: #{got}"
    end
  end
end
