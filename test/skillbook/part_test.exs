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
end
