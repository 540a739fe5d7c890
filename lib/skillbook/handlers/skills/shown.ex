defmodule Skillbook.Handlers.Skills.Shown do
  @moduledoc false
  # The skills and notes that a view shows, of files and of the store alike, as they are handed to a model.

  alias Skillbook.{Entry, Flags, Help, NotFoundError, Result, View}

  @listed 20

  @doc "The value of a flag, which may also be all the words before the first flag."
  @spec cast_name(Flags.t(), [String.t()], String.t()) :: Flags.cast()
  def cast_name(flags, args, name) do
    words = if args == [], do: [], else: [Enum.join(args, " ")]

    with {:ok, flags} <- Flags.cast_args(flags, words, [name]),
         :ok <- Flags.require(flags, [name]),
         do: Flags.cast_text(flags, name, line: true)
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
    with {:ok, entry} <- View.fetch(view, wanted), true <- entry.kind in kinds, do: entry, else: (_ -> nil)
  end

  defp alike(entries, wanted) do
    wanted = String.downcase(wanted)

    with [entry] <- Enum.filter(entries, &(&1.title && String.downcase(&1.title) == wanted)),
         do: entry,
         else: (_ -> nil)
  end

  @doc "The text of an entry under a heading."
  @spec result(View.t(), Entry.t(), String.t()) :: Result.t()
  def result(view, entry, heading) do
    {:ok, text} = Help.skill(view, entry.name)
    metadata = %{activates: [Entry.activation(entry)]}
    Result.ok("# #{heading}\n\n#{text}", data: Map.take(entry, [:name, :title, :kind]), metadata: metadata)
  end

  @doc "That there is no such entry, with what there is: `name` gives what is said of each."
  @spec not_found(View.t(), String.t(), String.t(), [:skill | :note], (Entry.t() -> String.t())) ::
          {:error, NotFoundError.t()}
  def not_found(view, kind, wanted, kinds, name) do
    told = for entry <- entries(view, kinds), not entry.hidden_from_model, uniq: true, do: name.(entry)
    {:error, %NotFoundError{kind: kind, id: wanted, find: nil, available: Enum.take(told, @listed)}}
  end

  @doc "What people call an entry."
  @spec title(Entry.t()) :: String.t()
  def title(entry), do: entry.title || entry.name

  defp entries(view, kinds),
    do: kinds |> Enum.flat_map(&View.entries(view, kind: &1)) |> Enum.sort_by(& &1.name)
end
