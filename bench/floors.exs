# Counts the code of each package: files, lines, code, docs, comments, and public modules.
#
#     bin/bench floors

root = Path.expand("..", __DIR__)

count = fn text ->
  {lines, _doc?} =
    text
    |> String.split("\n")
    |> Enum.map_reduce(nil, fn line, doc ->
      trimmed = String.trim(line)

      cond do
        doc != nil -> {:docs, if(trimmed == doc, do: nil, else: doc)}
        trimmed =~ ~r/^@(module|type)?doc ~?S?"""$/ -> {:docs, ~s(""")}
        trimmed =~ ~r/^@(module|type)?doc "/ -> {:docs, nil}
        trimmed == "" -> {:blank, nil}
        String.starts_with?(trimmed, "#") -> {:comments, nil}
        true -> {:code, nil}
      end
    end)

  Enum.frequencies(lines)
end

IO.puts("package      files   lines    code    docs comments public modules")

for package <- ["library" | root |> Path.join("packages") |> File.ls!() |> Enum.sort()] do
  folder = if package == "library", do: root, else: Path.join([root, "packages", package])
  app = if package == "library", do: :skillbook, else: :"skillbook_#{package}"
  files = Path.wildcard(Path.join(folder, "lib/**/*.ex"))
  texts = Enum.map(files, &File.read!/1)
  counts = texts |> Enum.map(count) |> Enum.reduce(&Map.merge(&1, &2, fn _, a, b -> a + b end))
  lines = texts |> Enum.map(&(length(String.split(&1, "\n")) - 1)) |> Enum.sum()

  public =
    Enum.count(Application.spec(app, :modules) || [], fn module ->
      match?({:docs_v1, _, _, _, %{}, _, _}, Code.fetch_docs(module))
    end)

  [length(files), lines, counts[:code], counts[:docs], counts[:comments] || 0, public]
  |> Enum.map_join(&String.pad_leading("#{&1}", 8))
  |> then(&IO.puts(String.pad_trailing(package, 10) <> &1))
end
