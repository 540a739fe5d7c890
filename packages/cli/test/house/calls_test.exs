defmodule Skillbook.House.CallsTest do
  # Functions that no package calls, for a reason that is beside them.
  use ExUnit.Case, async: true

  alias Skillbook.Test.Checkout

  # Erlang corrects its own system time by one percent after a jump. So for days it would differ
  # from the time of other nodes and of the database, as after a sleep of the machine.
  test "only measurements of events read Erlang's system time" do
    read =
      for path <- Checkout.sources(),
          line <- path |> Checkout.read!() |> String.split("\n"),
          line =~ ~r/System\.system_time|:erlang\.(now|system_time|timestamp)/,
          do: {path, String.trim(line)}

    assert read != []

    telemetry = "system_time: System.system_time()"
    assert Enum.reject(read, fn {_path, line} -> line =~ telemetry end) == []
  end

  # Functions that read numbers from text in one call of the virtual machine, of quadratic time.
  @forbidden [
    {[:Integer], :parse},
    {[:Float], :parse},
    {[:String], :to_integer},
    {[:String], :to_float},
    {[:List], :to_integer},
    {[:List], :to_float},
    {:erlang, :binary_to_integer},
    {:erlang, :binary_to_float},
    {:erlang, :list_to_integer},
    {:erlang, :list_to_float}
  ]

  test "no other module reads numbers from text" do
    found =
      for path <- Checkout.sources(),
          path != "lib/skillbook/support/number.ex",
          {place, function} <- calls(Checkout.read!(path)),
          do: "#{path}:#{place} #{function}"

    assert found == [], "use Skillbook.Support.Number"
  end

  test "finds calls, captures and pipes" do
    for code <- [
          ~S'Integer.parse("1")',
          ~S'"1" |> Integer.parse()',
          ~S'Enum.map(list, &String.to_integer/1)',
          ~S':erlang.binary_to_integer("1")',
          ~S'with {f, ""} <- Float.parse(text), do: f'
        ] do
      assert [_call] = calls(code), code
    end

    assert calls(~S'Number.integer("1") + Integer.digits(1)') == []
  end

  defp calls(code) do
    {:ok, ast} = Code.string_to_quoted(code)

    {_ast, found} =
      Macro.prewalk(ast, [], fn
        {:., meta, [{:__aliases__, _, module}, function]} = node, found ->
          {node, add(found, module, function, meta)}

        {:., meta, [module, function]} = node, found when is_atom(module) ->
          {node, add(found, module, function, meta)}

        node, found ->
          {node, found}
      end)

    found
  end

  defp add(found, module, function, meta) do
    if {module, function} in @forbidden,
      do: [{meta[:line], "#{inspect(module)}.#{function}"} | found],
      else: found
  end

  # The text, and what each of the two reads.
end
