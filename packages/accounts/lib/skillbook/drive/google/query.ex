defmodule Skillbook.Drive.Google.Query do
  @moduledoc false
  # Writes a search in the query language of Google Drive, as the guide "Search query terms and
  # operators" describes it. Values stand in single quotes, in which only `\` and `'` have a
  # meaning, so a value can never add an operator.

  alias Skillbook.Drive.Types

  @doc """
  The query of a search: its conditions, and that the file is not in the trash.

      iex> alias Skillbook.Drive.Google.Query
      iex> Query.search(%{text: "Ann's plan", owner: "me", limit: 10})
      "trashed = false and fullText contains 'Ann\\\\'s plan' and 'me' in owners"
  """
  @spec search(Skillbook.Drive.query()) :: String.t()
  def search(query) do
    conditions =
      for field <- [:text, :name, :kind, :folder, :owner, :after, :before, :shared],
          value = Map.get(query, field),
          do: condition(field, value)

    Enum.join(["trashed = false" | conditions], " and ")
  end

  defp condition(:text, text), do: "fullText contains #{value(text)}"
  defp condition(:name, name), do: "name = #{value(name)}"
  defp condition(:folder, id), do: "#{value(id)} in parents"
  defp condition(:owner, owner), do: "#{value(owner)} in owners"
  defp condition(:after, day), do: "modifiedTime >= '#{Date.to_iso8601(day)}T00:00:00'"
  defp condition(:before, day), do: "modifiedTime < '#{Date.to_iso8601(day)}T00:00:00'"
  defp condition(:shared, true), do: "sharedWithMe"

  defp condition(:kind, kind) do
    case Enum.map(Types.of(kind), &type/1) do
      [condition] -> condition
      several -> "(" <> Enum.join(several, " or ") <> ")"
    end
  end

  # A family of types, such as image/.
  defp type(type) do
    if String.ends_with?(type, "/"),
      do: "mimeType contains #{value(type)}",
      else: "mimeType = #{value(type)}"
  end

  @doc "The query of everything in some folders that is not in the trash."
  @spec children([String.t(), ...]) :: String.t()
  def children(folders) do
    parents = Enum.map_join(folders, " or ", &"#{value(&1)} in parents")
    "trashed = false and (#{parents})"
  end

  @doc "The query of the file that has a property of ours."
  @spec property(String.t(), String.t()) :: String.t()
  def property(key, value),
    do: "trashed = false and appProperties has { key=#{value(key)} and value=#{value(value)} }"

  @doc "A value in single quotes."
  @spec value(String.t()) :: String.t()
  def value(text) do
    "'" <> (text |> String.replace("\\", "\\\\") |> String.replace("'", "\\'")) <> "'"
  end
end
