defmodule Skillbook.Handlers.Skills.Written do
  @moduledoc false
  # What the commands over `Skillbook.Store` have in common: flags, options, and what they say of an entry.

  alias Skillbook.{Context, Entry, FlagError, Flags, Schedule, Store, Stored, View}

  @lists ~w(tags labels proactive-for excluded-for attachments)
  @fields ["title", "description", "include-in-prompt" | @lists]
  @times ~w(schedule timezone)

  @doc "The flags of the fields that an entry has beside its content."
  @spec fields() :: [String.t()]
  def fields, do: @fields

  @doc "Those of them that are lists."
  @spec lists() :: [String.t()]
  def lists, do: @lists

  @doc "The flags of when it runs by itself."
  @spec times() :: [String.t()]
  def times, do: @times

  @doc "Reads them."
  @spec cast_times(Flags.t()) :: Flags.cast()
  def cast_times(flags) do
    with {:ok, flags} <- Flags.cast_text(flags, "schedule", line: true),
         do: Flags.cast_text(flags, "timezone", line: true)
  end

  @doc "Reads the flags of fields."
  @spec cast_fields(Flags.t()) :: Flags.cast()
  def cast_fields(flags) do
    with {:ok, flags} <- Flags.cast_text(flags, "title", line: true),
         {:ok, flags} <- Flags.cast_text(flags, "description"),
         {:ok, flags} <- Flags.cast_boolean(flags, "include-in-prompt") do
      Enum.reduce_while(@lists, {:ok, flags}, fn name, {:ok, flags} ->
        case Flags.cast_list(flags, name) do
          {:ok, flags} -> {:cont, {:ok, flags}}
          {:error, _} = error -> {:halt, error}
        end
      end)
    end
  end

  @doc "Reads a text that may be empty or blank."
  @spec cast_content(Flags.t(), String.t()) :: Flags.cast()
  def cast_content(flags, name) do
    with %{^name => text} when is_binary(text) <- flags,
         true <- String.valid?(text) and String.trim(text) == "" do
      {:ok, flags}
    else
      _ -> Flags.cast_text(flags, name)
    end
  end

  @doc "The fields that are given, by the names that the store has for them."
  @spec taken(Flags.t(), [String.t()]) :: map()
  def taken(flags, names \\ @fields),
    do: for({name, value} <- Map.take(flags, names), into: %{}, do: {field(name), value})

  @doc "The store's name of a flag's field."
  @spec field(String.t()) :: atom()
  for name <- ["name", "content" | @fields ++ @times] do
    def field(unquote(name)), do: unquote(name |> String.replace("-", "_") |> String.to_atom())
  end

  @doc "The options of a write, and the version that it expects."
  @spec options(Context.t(), Flags.t()) :: keyword()
  def options(context, flags \\ %{}) do
    expected = for version <- [flags["expected-version"]], version, do: {:expected_version, version}
    [by: context.by, now: context.now] ++ expected
  end

  @doc "The error of flags that exclude each other."
  @spec conflict([String.t()], String.t()) :: {:error, FlagError.t()}
  def conflict(flags, text),
    do: {:error, %FlagError{kind: :conflict, flag: hd(flags), flags: flags, expected: text}}

  @doc "The entry of a file for which one of the store of this name and title stands in, or will."
  @spec replaced(View.t(), Stored.t()) :: Entry.t() | nil
  def replaced(view, %Stored{name: name, title: title}), do: View.file(view, name, title)

  @doc "What becomes of a file's entry now that the store's is gone, in the view that the next turn has."
  @spec back(Context.t(), Stored.t()) :: String.t()
  def back(%Context{book: book, profile: profile}, stored) do
    case replaced(Skillbook.view(book, profile), stored) do
      nil -> ""
      entry -> "\nThe #{entry.kind} #{entry.name} of a file, which it replaced, is used again."
    end
  end

  @doc """
  What a whole text that was written over another one has put away, if somebody else wrote that: who names no version may not
  have read it.
  """
  @spec lost(Flags.t(), String.t(), pos_integer(), Context.t()) :: String.t()
  def lost(%{"expected-version" => _}, _name, _number, _context), do: ""

  def lost(_flags, name, number, context) do
    case Store.version(context.view, name, number) do
      {:ok, version} when version.by != context.by or version.author != context.profile.id ->
        "\nIt replaced version #{number}, written by #{who(version.by, version.author, version.at)}; " <>
          "`skills.restore #{name} --version #{number}` brings that back."

      _ ->
        ""
    end
  end

  @doc "A field's value, on one line."
  @spec show(term()) :: String.t()
  def show(empty) when empty in [nil, "", []], do: "none"
  def show(list) when is_list(list), do: Enum.join(list, ", ")
  def show(text) when is_binary(text), do: one_line(text)
  def show(value), do: to_string(value)

  @doc "Who wrote something, and when: `agent \"default\" at 2026-03-01T09:30:00Z`."
  @spec who(atom(), String.t(), DateTime.t()) :: String.t()
  def who(by, author, at), do: "#{by} #{inspect(author)} at #{DateTime.to_iso8601(at)}"

  @doc "When it runs by itself, in words; `nil` if it does not."
  @spec runs(Stored.t()) :: String.t() | nil
  def runs(stored) do
    case schedule(stored) do
      nil -> nil
      _never when stored.source == :import -> "never, since it was imported"
      schedule -> Schedule.describe(schedule)
    end
  end

  @doc "What data has of that, if it has a schedule."
  @spec timed(Stored.t()) :: map()
  def timed(%Stored{schedule: nil}), do: %{}
  def timed(stored), do: Map.take(stored, [:schedule, :timezone])

  @doc "Its schedule."
  @spec schedule(Stored.t()) :: Schedule.t() | nil
  def schedule(%Stored{schedule: nil}), do: nil

  def schedule(stored) do
    with {:ok, schedule} <- Schedule.parse(stored.schedule, stored.timezone || "UTC"),
         do: schedule,
         else: (_ -> nil)
  end

  @doc "An entry on one line of a list."
  @spec line(Stored.t()) :: String.t()
  def line(stored) do
    title = if stored.title == stored.name, do: [], else: [stored.title]

    said =
      Enum.join(title ++ if(stored.description == "", do: [], else: [one_line(stored.description)]), " - ")

    tags = if stored.tags == [], do: "", else: " [#{Enum.join(stored.tags, ", ")}]"
    disabled = if stored.enabled, do: "", else: ", disabled"
    runs = with text when text != nil <- runs(stored), do: ", runs #{text}"
    "- #{stored.name}: #{said}#{tags} (source: #{stored.source}, version #{stored.version}#{runs}#{disabled})"
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")
end
