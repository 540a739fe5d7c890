defmodule Skillbook.CLI.Sarif do
  @moduledoc false
  # Diagnostics as a log in the Static Analysis Results Interchange Format, version 2.1.0.

  @schema "https://json.schemastore.org/sarif-2.1.0.json"

  @doc "The log as a map, for `Skillbook.JSON`."
  @spec log([Skillbook.Diagnostic.t()]) :: map()
  def log(diagnostics) do
    codes = diagnostics |> Enum.map(& &1.code) |> Enum.uniq() |> Enum.sort()
    places = codes |> Enum.with_index() |> Map.new()

    driver = %{
      name: "skillbook",
      version: to_string(Application.spec(:skillbook, :vsn)),
      rules: Enum.map(codes, &rule/1)
    }

    run = %{
      tool: %{driver: driver},
      columnKind: "unicodeCodePoints",
      results: Enum.map(diagnostics, &result(&1, places))
    }

    %{"$schema" => @schema, "version" => "2.1.0", "runs" => [run]}
  end

  defp rule(code) do
    %{id: code, shortDescription: %{text: code |> to_string() |> String.replace("_", " ")}}
  end

  defp result(diagnostic, places) do
    %{
      ruleId: diagnostic.code,
      ruleIndex: places[diagnostic.code],
      level: level(diagnostic.severity),
      message: %{text: message(diagnostic)},
      locations: [%{physicalLocation: location(diagnostic)}]
    }
    |> Map.merge(fixes(diagnostic))
  end

  defp level(:info), do: "note"
  defp level(severity), do: severity

  defp message(%{hint: nil, message: message}), do: message
  defp message(%{hint: hint, message: message}), do: message <> "\nHint: " <> hint

  defp location(diagnostic) do
    region =
      [startLine: diagnostic.line || 1, startColumn: diagnostic.column]
      |> Enum.reject(fn {_, value} -> is_nil(value) end)
      |> Map.new()

    %{artifactLocation: artifact(diagnostic), region: region}
  end

  defp artifact(diagnostic), do: %{uri: URI.encode(diagnostic.path, &(&1 == ?/ or URI.char_unreserved?(&1)))}

  defp fixes(%{fix: nil}), do: %{}

  defp fixes(%{fix: {offset, length, text}} = diagnostic) do
    replacement = %{
      deletedRegion: %{byteOffset: offset, byteLength: length},
      insertedContent: %{text: text}
    }

    change = %{artifactLocation: artifact(diagnostic), replacements: [replacement]}
    %{fixes: [%{artifactChanges: [change]}]}
  end
end
