defmodule Skillbook.House.PackageTest do
  # The packages for Hex: the files that `mix.exs` names are all that is needed to compile them.
  use ExUnit.Case, async: false

  alias Skillbook.Test.Checkout

  @moduletag :tmp_dir

  test "the library compiles from its files alone", %{tmp_dir: folder} do
    copy(".", folder)
    refute File.exists?(Path.join(folder, "packages"))
    refute File.exists?(Path.join(folder, "priv/native"))

    # The workspace of cargo is whole, and has the files that the crates include.
    metadata = ~w(metadata --offline --no-deps --format-version 1)
    assert {_, 0} = System.cmd("cargo", metadata, cd: folder, stderr_to_stdout: true)

    for file <- Path.wildcard(folder <> "/native/*/src/**/*.rs"),
        [_, included] <- Regex.scan(~r/include_(?:str|bytes)!\("([^"]+)"\)/, File.read!(file)),
        path = Path.expand(included, Path.dirname(file)),
        do: assert({file, included, File.exists?(path)} == {file, included, true})

    # With the libraries of this checkout; one that no test has built yet is left out.
    prebuilt =
      for %{crate: crate, variable: variable} <- config(".")[:native],
          path = Checkout.path("priv/native/lib#{crate}.so"),
          do: {variable, if(File.exists?(path), do: path, else: "0")}

    env = [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", Path.join(folder, "_build")} | prebuilt]

    code = ~s|options = [name: :packed, builtins: ["tasks"], store: ":memory:"]
    {:ok, _} = Skillbook.start_link(options)
    %{results: [%{status: :ok}]} = Skillbook.run(:packed, "```cmd\\ntasks.search\\n```")
    IO.puts("It runs.")|

    assert {printed, 0} =
             System.cmd("mix", ["run", "-e", code], cd: folder, env: env, stderr_to_stdout: true)

    assert printed =~ "It runs."
  end

  test "each package has all that Hex asks for", %{tmp_dir: folder} do
    for manifest <- ["mix.exs" | Checkout.wildcard("packages/*/mix.exs")] do
      config = config(Path.dirname(manifest))
      assert config[:description] =~ ~r/\A[A-Z].{20,280}\.\z/
      assert config[:package][:licenses] == ["MIT"]
      assert map_size(config[:package][:links]) > 0
      assert {manifest, config[:version]} == {manifest, "0.1.0"}

      # Not the folders of other packages, but their versions.
      for dep <- config[:deps], do: assert({_name, "~> 0.1.0", _} = requirement(dep))

      target = Path.join(folder, to_string(config[:app]))
      copy(Path.dirname(manifest), target)

      for path <- Checkout.wildcard(Path.dirname(manifest) <> "/lib/**/*.ex"),
          path = Path.relative_to(path, Path.dirname(manifest)),
          do: assert(File.exists?(Path.join(target, path)), path)
    end
  end

  test "the site of ExDoc has every page, in the order of the README" do
    docs = config(".")[:docs]
    pages = Checkout.wildcard(["docs/*.md", "*.md"])
    assert Enum.sort(docs[:extras] -- ["LICENSE"]) == Enum.sort(pages)

    readme = Checkout.read!("README.md")
    [_, guides] = String.split(readme, "\n## Documentation\n")
    listed = for [_, page] <- Regex.scan(~r/\((docs\/[\w-]+\.md)\)/, guides), do: page
    assert listed == Enum.filter(docs[:extras], &String.starts_with?(&1, "docs/"))
    assert Enum.flat_map(docs[:groups_for_extras], &elem(&1, 1)) -- listed == []
  end

  defp requirement({name, version}), do: {name, version, []}
  defp requirement(dep), do: dep

  # The files of a package as Hex takes them, into a folder.
  defp copy(package, target) do
    root = Checkout.path(package)

    for pattern <- config(package)[:package][:files] do
      found = Path.wildcard(Path.join(root, pattern), match_dot: true)
      assert {package, pattern, found} != {package, pattern, []}

      for path <- found do
        to = Path.join(target, Path.relative_to(path, root))
        File.mkdir_p!(Path.dirname(to))
        File.cp_r!(path, to)
      end
    end
  end

  # As it is on Hex.
  defp config(package) do
    code = "IO.puts(inspect(Mix.Project.config(), limit: :infinity, printable_limit: :infinity))"
    env = [{"SKILLBOOK_HEX", "1"}, {"MIX_ENV", "prod"}]
    script = "Mix.start(); Code.require_file(\"mix.exs\"); " <> code
    {text, 0} = System.cmd("elixir", ["-e", script], cd: Checkout.path(package), env: env)
    {config, _} = Code.eval_string(text)
    config
  end
end
