defmodule Skillbook.House.DocsTest do
  # The pages of the project: their links, and the folders and files that they name.
  use ExUnit.Case, async: true

  alias Skillbook.Test.Checkout

  @pages ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] ++
           Checkout.wildcard(["docs/*.md", "packages/*/*.md", "examples/*/*.md"])

  test "every link between pages leads to a file and a heading" do
    for page <- @pages, target <- links(uncoded(Checkout.read!(page))) do
      assert {page, target, :ok} == {page, target, resolve(target, page)}
    end
  end

  test "every link from the docs of a module leads to a page and a heading" do
    for file <- Checkout.sources(),
        target <- links(Checkout.read!(file)),
        target =~ ".md" and not String.starts_with?(target, "http") do
      page = "docs/" <> String.replace_prefix(target, "docs/", "")
      assert {file, target, :ok} == {file, target, resolve(page, "README.md")}
    end
  end

  test "the tests exist that the comparison with peers names" do
    page = Checkout.read!("docs/peers.md")
    named = Regex.scan(~r/\[([^\]]+)\]\(([^()\s]+_test\.exs)\)/, page)

    for [_, name, file] <- named do
      found? = Checkout.read!(Path.join("docs", file)) =~ ~s(test "#{name})
      assert {file, name, found?} == {file, name, true}
    end

    assert length(named) > 20
  end

  test "every page of docs/ is linked from the README" do
    targets = links(Checkout.read!("README.md"))
    for page <- Checkout.wildcard("docs/*.md"), do: assert(page in targets)
  end

  test "lines of prose end by column 100" do
    for page <- @pages,
        line <- String.split(prose(Checkout.read!(page)), "\n"),
        not String.starts_with?(line, "|") do
      assert String.length(line) <= 100, "#{page}: #{line}"
    end
  end

  test "a page of docs/ can be read at one sitting" do
    for page <- Checkout.wildcard("docs/*.md") do
      lines = page |> Checkout.read!() |> prose() |> String.split("\n")
      assert {page, length(lines) <= 420} == {page, true}
    end
  end

  describe "ARCHITECTURE.md" do
    setup do
      page = Checkout.read!("ARCHITECTURE.md")
      [_, folders] = String.split(page, "\n## Floors\n")
      [_, paths] = String.split(Checkout.read!("docs/development.md"), "\n## Data paths\n")
      {:ok, page: page, folders: folders, paths: paths}
    end

    test "fits on a few screens, and so does the README", %{page: page} do
      for {text, limit} <- [{page, 120}, {Checkout.read!("README.md"), 150}],
          do: assert(length(String.split(text, "\n", trim: true)) <= limit)
    end

    test "shows every folder of the library", %{folders: folders} do
      folders = for [name] <- Regex.scan(~r/\w+/, folders), do: name

      for root <- ["lib/skillbook", "packages", "native/skillbook_core/src"],
          path <- Checkout.wildcard(root <> "/*/"),
          File.dir?(Checkout.path(path)),
          do: assert(Path.basename(path) in folders, path)
    end

    test "names files that exist on the data paths", %{paths: paths} do
      [paths, _] = String.split(paths, "\n## ")
      rust = Checkout.wildcard("native/skillbook_*/src/**/*.rs")

      for [_, path] <- Regex.scan(~r/`([\w\/]+\.ex)`/, paths) do
        assert code?(path) or beside?(path, paths), path
      end

      for [_, path] <- Regex.scan(~r/`(?:nif\/)?([\w\/]+\.rs)`/, paths) do
        assert Enum.any?(rust, &String.ends_with?(&1, "/" <> path)), path
      end
    end
  end

  # A file named without its folder, beside one that was named with it.
  defp beside?(path, paths) do
    Regex.scan(~r/`(\w+)\/\w+\.ex`/, paths)
    |> Enum.any?(fn [_, folder] -> code?(Path.join(folder, path)) end)
  end

  defp code?(path), do: Checkout.sources("skillbook/#{path}") != []

  defp links(text), do: for([_, target] <- Regex.scan(~r/\]\(([^()\s]+)\)/, text), do: target)

  defp uncoded(text), do: text |> prose() |> String.replace(~r/`[^`]*`/, "")

  # Without comments, and without fenced and indented code.
  defp prose(text) do
    {lines, _fence} =
      text
      |> String.replace(~r/^<!-- .*?-->$/ms, "")
      |> String.split("\n")
      |> Enum.map_reduce(nil, fn line, fence ->
        case {fence, Regex.run(~r/^\s*(`{3,}|~{3,})/, line)} do
          {nil, nil} -> {line, nil}
          {nil, [_, open]} -> {"", open}
          {open, [_, open]} -> {"", nil}
          _ -> {"", fence}
        end
      end)

    lines
    |> Enum.reject(&String.starts_with?(&1, "    "))
    |> Enum.join("\n")
  end

  defp resolve("http" <> _, _page), do: :ok

  defp resolve(target, page) do
    {path, anchor} =
      case String.split(target, "#") do
        ["", anchor] -> {page, anchor}
        [path] -> {Path.join(Path.dirname(page), path), nil}
        [path, anchor] -> {Path.join(Path.dirname(page), path), anchor}
      end

    cond do
      not File.exists?(Checkout.path(path)) -> :no_file
      anchor && anchor not in anchors(path) -> :no_heading
      true -> :ok
    end
  end

  # As GitHub makes them.
  defp anchors(path) do
    for [_, heading] <- Regex.scan(~r/^#+ (.*)$/m, prose(Checkout.read!(path))) do
      heading
      |> String.downcase()
      |> String.replace(~r/[^\p{L}\p{N} _-]/u, "")
      |> String.replace(" ", "-")
    end
  end
end
