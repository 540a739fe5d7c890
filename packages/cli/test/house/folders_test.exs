defmodule Skillbook.House.FoldersTest do
  # Keeps the `lib/skillbook` of each package as ARCHITECTURE.md shows it: its files hold the
  # modules that applications name, and a module in a folder carries the folder's namespace.
  # Public structs and exceptions are named `Skillbook.X` in every folder. Also limits the length
  # of lines.
  use ExUnit.Case, async: true

  alias Skillbook.Test.Checkout

  # The application's callback and the native stubs, whose names are given by others.
  @named_elsewhere [Skillbook.Application, Skillbook.Native]

  # A folder in a room may have a name of its own: `search/embedding` holds `Skillbook.Embedding`.
  test "a module in a folder carries the folder's namespace, or is a public struct" do
    for {file, module} <- modules(), [_, _ | _] = parts <- [Path.split(file)] do
      folders = parts |> Enum.drop(-1) |> Enum.map(&normal/1)
      namespace = module |> Module.split() |> tl() |> Enum.map(&normal/1)
      own = if match?([_, _ | _], folders), do: tl(folders), else: folders

      assert List.starts_with?(namespace, folders) or List.starts_with?(namespace, own) or
               public_struct?(module) or module in @named_elsewhere,
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
  end

  test "a floor has at most twelve rooms" do
    for lib <- ["lib/skillbook" | Checkout.wildcard("packages/*/lib/skillbook")] do
      rooms = for path <- Checkout.wildcard(lib <> "/*"), File.dir?(Checkout.path(path)), do: path
      assert length(rooms) <= 12, lib
    end
  end

  test "tests lie where the code lies" do
    for root <- ["." | Checkout.wildcard("packages/*")],
        folder <- Checkout.wildcard(Path.join(root, "test/skillbook/*/")),
        File.dir?(Checkout.path(folder)) do
      name = Path.basename(folder)

      assert Checkout.sources("skillbook/**/#{name}") != [],
             "#{folder} mirrors no folder"
    end
  end

  test "lines of Elixir end by column 98, lines of Rust by column 100" do
    long =
      for {folders, type, limit} <- [
            {"lib,test,bench,packages", "{ex,exs}", 98},
            {"native,fuzz", "rs", 100}
          ],
          path <- Checkout.wildcard("{#{folders}}/**/*.#{type}"),
          # Cargo's builds, and files of tests.
          not String.contains?(path, ["/target/", "/tmp/"]),
          {line, number} <- path |> Checkout.read!() |> String.split("\n") |> Enum.with_index(1),
          String.length(line) > limit,
          do: "#{path}:#{number}"

    assert long == []
  end

  defp modules do
    for path <- Checkout.sources(),
        [_, file] <- [Regex.run(~r{lib/skillbook/(.+)}, path)],
        [_, name] <- Regex.scan(~r/^defmodule (Skillbook[\w.]*) do/m, Checkout.read!(path)),
        do: {file, Module.concat([name])}
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
