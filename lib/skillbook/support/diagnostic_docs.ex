defmodule Skillbook.Support.DiagnosticDocs do
  @moduledoc false
  # The problem and the solution behind each code of a diagnostic, from the tables of its page in
  # the docs: `| code | severity | problem | solution | fix |`.

  @page Path.expand("../../../docs/diagnostics.md", __DIR__)
  @external_resource @page

  @explained for line <- @page |> File.read!() |> String.split("\n"),
                 [code, problem, solution] <- [
                   Regex.run(~r/\A\| `(\w+)` \|[^|]+\| ([^|]+) \| ([^|]+) \|/, line,
                     capture: :all_but_first
                   )
                 ],
                 into: %{},
                 do: {code, {problem, solution}}

  @doc "The problem and the solution of a code, as Markdown without links."
  @spec fetch(atom()) :: {:ok, {problem :: String.t(), solution :: String.t()}} | :error
  def fetch(code) do
    with {:ok, {problem, solution}} <- Map.fetch(@explained, Atom.to_string(code)),
         do: {:ok, {unlinked(problem), unlinked(solution)}}
  end

  # The links are relative to the page.
  defp unlinked(markdown), do: Regex.replace(~r/\[([^\]]+)\]\([^)]+\)/, markdown, "\\1")
end
