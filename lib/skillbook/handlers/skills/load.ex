defmodule Skillbook.Handlers.Skills.Load do
  @moduledoc false
  # `skills.load` and `notes.get`: load the text of a skill or note, from a file or from the
  # store.

  @behaviour Skillbook.Handler

  alias Skillbook.{Entry, Help, NotFoundError, Result, UnknownSkillError, View}

  # How many names an error lists.
  @max_names 20

  @impl true
  def execute(%{"skill-id" => id}, %{view: view}) do
    with :error <- load(view, id, [:skill], & &1.name),
         do: not_found(view, "skill", id, [:skill], & &1.name)
  end

  def execute(%{"title" => title}, %{view: view}) do
    kinds = [:note, :skill]

    with :error <- load(view, title, kinds, &title/1),
         do: not_found(view, "note", title, kinds, &title/1)
  end

  @doc """
  Finds an entry of these kinds by its name, title or alias, in this order.

  If none is equal, another spelling of one of them is accepted, if it means only one entry.
  """
  @spec fetch(View.t(), String.t(), [:skill | :note]) ::
          {:ok, Entry.t()} | :error | {:error, UnknownSkillError.t()}
  def fetch(view, name, kinds) do
    name = String.trim(name)
    entries = entries(view, kinds)

    entry =
      Enum.find(entries, &(&1.name == name)) || Enum.find(entries, &(&1.title == name)) ||
        by_alias(view, name, kinds)

    if entry, do: {:ok, entry}, else: by_spelling(view, name, kinds)
  end

  defp by_alias(view, name, kinds) do
    with {:ok, entry} <- View.fetch(view, name),
         true <- entry.kind in kinds,
         do: entry,
         else: (_ -> nil)
  end

  defp by_spelling(view, text, kinds) do
    found =
      for name <- View.spelled(view, text),
          {:ok, entry} <- [View.fetch(view, name)],
          entry.kind in kinds,
          do: entry

    case found do
      [] -> :error
      [entry] -> {:ok, entry}
      entries -> {:error, UnknownSkillError.ambiguous(text, Enum.map(entries, & &1.name))}
    end
  end

  # `heading` returns the heading above the text.
  defp load(view, name, kinds, heading) do
    with {:ok, entry} <- fetch(view, name, kinds),
         {:ok, text} <- Help.skill(view, entry.name) do
      data = Map.take(entry, [:name, :title, :kind])
      metadata = %{activates: [Entry.activation(entry)]}
      {:ok, Result.ok(under(heading.(entry), text), data: data, metadata: metadata)}
    end
  end

  # Most pages begin with this heading themselves.
  defp under(heading, text) do
    [first | _] = String.split(text, "\n", parts: 2)
    same? = String.downcase(String.trim_trailing(first)) == String.downcase("# " <> heading)
    if same?, do: text, else: "# #{heading}\n\n#{text}"
  end

  # The error lists the existing entries by their names or titles.
  defp not_found(view, kind, id, kinds, name) do
    entries = kinds |> Enum.flat_map(&View.listed(view, kind: &1)) |> Enum.sort_by(& &1.name)
    names = for entry <- entries, uniq: true, do: name.(entry)

    {:error,
     %NotFoundError{kind: kind, id: id, find: nil, available: Enum.take(names, @max_names)}}
  end

  @doc "The title of an entry, or its name."
  @spec title(Entry.t()) :: String.t()
  def title(entry), do: entry.title || entry.name

  defp entries(view, kinds),
    do: kinds |> Enum.flat_map(&View.entries(view, kind: &1)) |> Enum.sort_by(& &1.name)
end
