defmodule Skillbook.House.FloorsTest do
  # The floors of the code: a package calls itself and the packages that its mix.exs names, or
  # that these name. Those that are only for tests do not count. Parts of a book
  # (`Skillbook.Part`) and pages that name handlers lead up without naming a module.
  use ExUnit.Case, async: true

  alias Skillbook.Test.Checkout

  # Each stands on some of those before it.
  @floors ~w(skillbook skillbook_ecto skillbook_http skillbook_embedder skillbook_vault) ++
            ~w(skillbook_agent skillbook_accounts skillbook_installer skillbook_mcp) ++
            ~w(skillbook_web skillbook_cli)

  test "each package has a floor" do
    folders = for path <- Checkout.wildcard("packages/*/mix.exs"), do: Path.split(path)
    names = for [_, name, _] <- folders, do: "skillbook_" <> name
    assert Enum.sort(["skillbook" | names]) == Enum.sort(@floors)
  end

  test "a package names only packages below it" do
    for {package, number} <- Enum.with_index(@floors), used <- deps(package) do
      assert Enum.find_index(@floors, &(&1 == used)) < number, "#{package} names #{used}"
    end
  end

  test "a package calls only what it names" do
    home = for package <- @floors, module <- modules(package), into: %{}, do: {module, package}

    calls =
      for package <- @floors,
          below = [package | below(package)],
          module <- modules(package),
          {called, _function, _arity} <- imports(module),
          floor = home[called],
          floor != nil and floor not in below,
          do: "#{inspect(module)} (#{package}) calls #{inspect(called)} (#{floor})"

    assert map_size(home) > 500
    assert Enum.uniq(calls) == []
  end

  defp below(package), do: package |> deps() |> Enum.flat_map(&[&1 | below(&1)]) |> Enum.uniq()

  # Those that are not only for tests.
  defp deps("skillbook"), do: []

  defp deps("skillbook_" <> folder) do
    text = Checkout.read!("packages/#{folder}/mix.exs")
    for [_, name] <- Regex.scan(~r/dep\(:(\w+), "[^"]+"\)/, text), do: name
  end

  defp modules(package) do
    for module <- Application.spec(String.to_existing_atom(package), :modules),
        source = to_string(module.module_info(:compile)[:source]),
        not String.contains?(source, "/test/support/"),
        do: module
  end

  defp imports(module) do
    {:ok, {_, [imports: imports]}} = module |> :code.which() |> :beam_lib.chunks([:imports])
    imports
  end
end
