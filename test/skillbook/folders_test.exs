defmodule Skillbook.FoldersTest do
  # Keeps `lib/skillbook` as ARCHITECTURE.md shows it: its files hold the modules that
  # applications name, and a module in a folder carries the folder's namespace. Public structs and
  # exceptions are named `Skillbook.X` in every folder. Also limits the length of lines.
  use ExUnit.Case, async: true

  @root Path.expand("../../lib/skillbook", __DIR__)
  # The application's callback and the native stubs, whose names are given by others.
  @named_elsewhere [Skillbook.Application, Skillbook.Native]

  test "a module in a folder carries the folder's namespace, or is a public struct" do
    for {file, module} <- modules(), [_, _ | _] = parts <- [Path.split(file)] do
      folders = parts |> Enum.drop(-1) |> Enum.map(&normal/1)
      namespace = module |> Module.split() |> tl() |> Enum.map(&normal/1)

      assert List.starts_with?(namespace, folders) or public_struct?(module) or
               module in @named_elsewhere,
             "#{file} defines #{inspect(module)}, which belongs to another folder"
    end
  end

  test "a file beside the folders holds the module of its name, and structs that it returns" do
    for {file, module} <- modules(), [name] <- [Path.split(file)] do
      assert module |> Module.split() |> Enum.at(1) |> normal() ==
               name |> Path.rootname() |> normal() or public_struct?(module),
             "#{file} defines #{inspect(module)}"
    end
  end

  test "only modules that applications name lie beside the folders" do
    hidden =
      for {file, module} <- modules(), [_name] <- [Path.split(file)], hidden?(module), do: module

    # The running instance.
    assert hidden -- [Skillbook.Book] == []
    assert length(Path.wildcard(Path.join(@root, "*.ex"))) <= 49
  end

  test "tests lie where the code lies" do
    tests = Path.expand(".", __DIR__)
    folders = for file <- Path.wildcard(Path.join(tests, "*/")), File.dir?(file), do: file

    for folder <- folders do
      name = Path.basename(folder)
      assert File.dir?(Path.join(@root, name)), "test/skillbook/#{name} mirrors no folder"
    end
  end

  test "lines of Elixir end by column 98, lines of Rust by column 100" do
    root = Path.expand("../..", @root)

    long =
      for {folders, type, limit} <- [
            {"lib,test,bench", "{ex,exs}", 98},
            {"native,fuzz", "rs", 100}
          ],
          path <- Path.wildcard("#{root}/{#{folders}}/**/*.#{type}"),
          # Cargo's builds.
          not String.contains?(Path.relative_to(path, root), "/target/"),
          {line, number} <- path |> File.read!() |> String.split("\n") |> Enum.with_index(1),
          String.length(line) > limit,
          do: "#{Path.relative_to(path, root)}:#{number}"

    assert long == []
  end

  defp modules do
    for path <- Path.wildcard(Path.join(@root, "**/*.ex")),
        [_, name] <- Regex.scan(~r/^defmodule (Skillbook[\w.]*) do/m, File.read!(path)),
        do: {Path.relative_to(path, @root), Module.concat([name])}
  end

  defp normal(name), do: name |> String.replace("_", "") |> String.downcase()

  defp public_struct?(module) do
    Code.ensure_loaded!(module)
    match?([_, _], Module.split(module)) and function_exported?(module, :__struct__, 0)
  end

  defp hidden?(module) do
    {:docs_v1, _, _, _, doc, _, _} = Code.fetch_docs(module)
    doc == :hidden
  end
end
