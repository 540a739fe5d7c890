defmodule Skillbook.CLI.Sarif do
  @moduledoc false
  # Formats diagnostics as a log in the Static Analysis Results Interchange Format (SARIF) 2.1.0.
  #
  # Columns are counted in UTF-16 code units, because many readers ignore `columnKind`. Fixes
  # replace regions of text; for a region of bytes the format requires base64.

  alias Skillbook.Support.{DiagnosticDocs, ReadFile}

  @schema "https://json.schemastore.org/sarif-2.1.0.json"
  # The project has no address of its own for its documentation.
  @uri "urn:skillbook:diagnostic:"

  @doc "The log as a map for `Skillbook.Support.JSON`. Paths below the folder are relative to it."
  @spec log([Skillbook.Diagnostic.t()], Path.t()) :: map()
  def log(diagnostics, folder) do
    codes = diagnostics |> Enum.map(& &1.code) |> Enum.uniq() |> Enum.sort()
    places = codes |> Enum.with_index() |> Map.new()

    texts =
      for path <- diagnostics |> Enum.map(& &1.path) |> Enum.uniq(),
          into: %{},
          do: {path, text(path)}

    driver = %{
      name: "skillbook",
      version: to_string(Application.spec(:skillbook, :vsn)),
      rules: Enum.map(codes, &rule/1)
    }

    results =
      for one <- diagnostics do
        text = texts[one.path]
        line = String.trim(line(text, one.line || 1))
        {result(one, places[one.code], uri(one.path, folder), text), line}
      end

    results = add_fingerprints(results)
    run = %{tool: %{driver: driver}, columnKind: "utf16CodeUnits", results: results}
    %{"$schema" => @schema, "version" => "2.1.0", "runs" => [run]}
  end

  defp text(path) do
    with {:ok, text} <- ReadFile.regular(path),
         true <- String.valid?(text),
         do: text,
         else: (_ -> "")
  end

  @doc "The problem and the solution of a code, in Markdown, as the documentation says them."
  @spec explain(atom()) :: {String.t(), String.t()}
  def explain(code), do: code |> DiagnosticDocs.fetch() |> elem(1)

  defp rule(code) do
    {problem, solution} = explain(code)
    title = code |> to_string() |> String.replace("_", " ")

    %{
      id: code,
      shortDescription: %{text: title},
      fullDescription: %{text: plain(problem) <> "."},
      help: %{
        text: "#{plain(problem)}. #{plain(solution)}.",
        markdown: "#{problem}.\n\n**Solution:** #{solution}."
      },
      helpUri: @uri <> to_string(code)
    }
  end

  defp plain(markdown), do: String.replace(markdown, "`", "")

  # Readers recognise a finding of an earlier run by the hash of its line, which stays the same
  # when other lines change. Equal ones are numbered.
  defp add_fingerprints(results) do
    {results, _counts} =
      Enum.map_reduce(results, %{}, fn {result, line}, counts ->
        [%{physicalLocation: %{artifactLocation: %{uri: uri}}}] = result.locations
        bytes = :crypto.hash(:sha256, [to_string(result.ruleId), 0, uri, 0, line])
        hash = bytes |> binary_part(0, 8) |> Base.encode16(case: :lower)
        counts = Map.update(counts, hash, 1, &(&1 + 1))
        fingerprint = %{primaryLocationLineHash: "#{hash}:#{counts[hash]}"}
        {Map.put(result, :partialFingerprints, fingerprint), counts}
      end)

    results
  end

  defp result(diagnostic, index, uri, text) do
    result = %{
      ruleId: diagnostic.code,
      ruleIndex: index,
      level: level(diagnostic.severity),
      message: %{text: message(diagnostic)},
      locations: [
        %{physicalLocation: %{artifactLocation: %{uri: uri}, region: region(diagnostic, text)}}
      ]
    }

    if diagnostic.fix, do: Map.put(result, :fixes, [fix(diagnostic, uri, text)]), else: result
  end

  defp level(:info), do: "note"
  defp level(severity), do: severity

  defp message(%{hint: nil, message: message}), do: message
  defp message(%{hint: hint, message: message}), do: message <> "\nHint: " <> hint

  defp uri(path, folder) do
    case Path.relative_to(path, folder) do
      ^path -> "file://" <> encode(path)
      relative -> encode(relative)
    end
  end

  defp encode(path), do: URI.encode(path, &(&1 == ?/ or URI.char_unreserved?(&1)))

  # From the column, or the first one, to the end of the line.
  defp region(diagnostic, text) do
    number = diagnostic.line || 1
    line = text |> line(number) |> String.trim_trailing("\r")
    column = diagnostic.column || 1
    before = line |> String.to_charlist() |> Enum.take(column - 1) |> List.to_string()
    start = units(before) + 1

    %{
      startLine: number,
      startColumn: start,
      endLine: number,
      endColumn: max(units(line) + 1, start)
    }
  end

  defp line(text, number), do: text |> String.split("\n") |> Enum.at(number - 1, "")

  defp fix(%{fix: {offset, length, new}} = diagnostic, uri, text) do
    {start_line, start_column} = place(text, offset)
    {end_line, end_column} = place(text, offset + length)

    replacement = %{
      deletedRegion: %{
        startLine: start_line,
        startColumn: start_column,
        endLine: end_line,
        endColumn: end_column
      },
      insertedContent: %{text: new}
    }

    change = %{artifactLocation: %{uri: uri}, replacements: [replacement]}

    %{
      description: %{text: diagnostic.hint || "write the value as it was read"},
      artifactChanges: [change]
    }
  end

  # The line and column of a byte offset.
  defp place(text, offset) do
    before = binary_part(text, 0, min(offset, byte_size(text)))
    lines = String.split(before, "\n")
    {length(lines), units(List.last(lines)) + 1}
  end

  # The byte order mark is not counted.
  defp units("\uFEFF" <> text), do: units(text)

  defp units(text),
    do: text |> :unicode.characters_to_binary(:utf8, :utf16) |> byte_size() |> div(2)
end
