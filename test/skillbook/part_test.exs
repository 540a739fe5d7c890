defmodule Skillbook.PartTest do
  use ExUnit.Case, async: true

  alias Skillbook.Part

  doctest Skillbook.Part

  defmodule Silent do
    use Skillbook.Part
  end

  defmodule One do
    use Skillbook.Part
    @impl true
    def text(_view, path), do: if(path == "one", do: {:ok, "1"}, else: :other)
    @impl true
    def check_call(_context), do: :ok
    @impl true
    def services, do: ["a"]
  end

  defmodule Two do
    use Skillbook.Part
    @impl true
    def text(_view, _path), do: {:ok, "2"}
    @impl true
    def check_call(_context), do: {:error, %RuntimeError{message: "no account"}}
    @impl true
    def services, do: ["b", "c"]
  end

  test "are asked in their order, without those that lack the callback" do
    parts = [Silent, One, Two]
    assert Part.first(parts, :text, [nil, "one"]) == {:ok, "1"}
    assert Part.first(parts, :text, [nil, "two"]) == {:ok, "2"}
    assert Part.first([Silent, One], :text, [nil, "two"]) == :other
    assert Part.check([Silent, One], :check_call, [nil]) == :ok
    assert {:error, %RuntimeError{}} = Part.check(parts, :check_call, [nil])
    assert Part.flat(parts, :services) == ["a", "b", "c"]
  end

  test "of packages that are missing are named by the options and functions that need them" do
    for {options, package} <- [
          {[vaults: ["notes"]], "skillbook_vault"},
          {[agent: []], "skillbook_agent"},
          {[scheduler: false], "skillbook_agent"},
          {[connections: []], "skillbook_accounts"},
          {[store: {Skillbook.SQL.Ecto, repo: MyApp.Repo}], "skillbook_ecto"}
        ] do
      [{option, _value}] = options
      {:error, error} = Skillbook.start_link([name: :part_missing] ++ options)

      assert Exception.message(error) ==
               "the option #{inspect(option)} of a book needs the package #{package}: add it " <>
                 "to the deps in mix.exs"
    end

    {:error, error} = Skillbook.Source.list([{:mcp, "https://a.example/mcp", label: "a"}])

    assert Exception.message(error) ==
             "the option :mcp of a source needs the package skillbook_mcp: add it to the " <>
               "deps in mix.exs"

    {:ok, _pid} = Skillbook.start_link(name: :part_functions, builtins: false)

    for {call, name} <- [
          {fn -> Skillbook.approvals(:part_functions) end, "approvals"},
          {fn -> Skillbook.schedule(:part_functions) end, "schedule"},
          {fn -> Skillbook.carry_out(:part_functions, "a.b") end, "carry_out"}
        ] do
      message =
        "Skillbook.#{name} needs the package skillbook_agent: add it to the deps in mix.exs"

      assert_raise ArgumentError, message, call
    end
  end
end
