defmodule Skillbook.Handlers.Skills.Load do
  @moduledoc false
  # `skills.load` and `notes.get`: the skills and notes that a view shows, of files and of the store
  # alike, as they are handed to a model.

  @behaviour Skillbook.Handler

  alias Skillbook.{Entry, Help, NotFoundError, Result, View}

  @listed 20

  @impl true
  def execute(%{"skill-id" => id}, %{view: view}) do
    with :error <- found(view, id, [:skill], & &1.name),
         do: not_found(view, "skill", id, [:skill], & &1.name)
  end

  def execute(%{"title" => title}, %{view: view}) do
    kinds = [:note, :skill]

    with :error <- found(view, title, kinds, &title/1),
         do: not_found(view, "note", title, kinds, &title/1)
  end

  @doc "The entry of these kinds that has a name, a title or an alias; titles are also found whatever their case."
  @spec fetch(View.t(), String.t(), [:skill | :note]) :: {:ok, Entry.t()} | :error
  def fetch(view, wanted, kinds) do
    wanted = String.trim(wanted)
    entries = entries(view, kinds)

    found =
      Enum.find(entries, &(&1.name == wanted)) || Enum.find(entries, &(&1.title == wanted)) ||
        aliased(view, wanted, kinds) || alike(entries, wanted)

    if found, do: {:ok, found}, else: :error
  end

  defp aliased(view, wanted, kinds) do
    with {:ok, entry} <- View.fetch(view, wanted),
         true <- entry.kind in kinds,
         do: entry,
         else: (_ -> nil)
  end

  defp alike(entries, wanted) do
    wanted = String.downcase(wanted)

    with [entry] <- Enum.filter(entries, &(&1.title && String.downcase(&1.title) == wanted)),
         do: entry,
         else: (_ -> nil)
  end

  # The text of an entry under a heading.
  defp found(view, wanted, kinds, heading) do
    with {:ok, entry} <- fetch(view, wanted, kinds) do
      {:ok, text} = Help.skill(view, entry.name)
      data = Map.take(entry, [:name, :title, :kind])
      metadata = %{activates: [Entry.activation(entry)]}
      {:ok, Result.ok("# #{heading.(entry)}\n\n#{text}", data: data, metadata: metadata)}
    end
  end

  # That there is no such entry, with what there is: `name` gives what is said of each.
  defp not_found(view, kind, wanted, kinds, name) do
    told =
      for entry <- entries(view, kinds), not entry.hidden_from_model, uniq: true, do: name.(entry)

    {:error,
     %NotFoundError{kind: kind, id: wanted, find: nil, available: Enum.take(told, @listed)}}
  end

  @doc "What people call an entry."
  @spec title(Entry.t()) :: String.t()
  def title(entry), do: entry.title || entry.name

  defp entries(view, kinds),
    do: kinds |> Enum.flat_map(&View.entries(view, kind: &1)) |> Enum.sort_by(& &1.name)
end
