defmodule Skillbook.Handlers.Skills.Answers do
  @moduledoc false
  # Formats entries of the store for the answers of `skills.*` and `notes.*`.

  alias Skillbook.{Context, Entry, Flags, Schedule, Store, Stored, View}

  @doc "The entry of a file that the store's entry replaces, by name or title."
  @spec replaced(View.t(), Stored.t()) :: Entry.t() | nil
  def replaced(view, %Stored{name: name, title: title}), do: View.file(view, name, title)

  @doc "A line about the entry of a file that is visible again, now that the store's entry " <>
         "is gone."
  @spec uncovered(Context.t(), Stored.t()) :: String.t()
  def uncovered(%Context{book: book, profile: profile}, stored) do
    case replaced(Skillbook.view(book, profile), stored) do
      nil -> ""
      entry -> "\nThe #{entry.kind} #{entry.name} of a file, which it replaced, is visible again."
    end
  end

  @doc """
  A line about the version that a new text has replaced, if another author wrote that.

  Without `--expected-version`, the writer may not have read it.
  """
  @spec replaced_version(Flags.t(), String.t(), pos_integer(), Context.t()) :: String.t()
  def replaced_version(%{"expected-version" => _}, _name, _number, _context), do: ""

  def replaced_version(_flags, name, number, context) do
    case Store.version(context.view, name, number) do
      {:ok, version} when version.by != context.by or version.author != context.profile.id ->
        "\nIt replaced version #{number}, written by " <>
          "#{author(version.by, version.author, version.at)}; `skills.restore #{name} " <>
          "--version #{number}` restores it."

      _ ->
        ""
    end
  end

  @doc "Formats a value on one line."
  @spec show(term()) :: String.t()
  def show(empty) when empty in [nil, "", []], do: "none"
  def show(list) when is_list(list), do: Enum.join(list, ", ")
  def show(text) when is_binary(text), do: one_line(text)
  def show(value), do: to_string(value)

  @doc "Formats an author and a time: `agent \"default\" at 2026-03-01T09:30:00Z`."
  @spec author(atom(), String.t(), DateTime.t()) :: String.t()
  def author(by, author, at), do: "#{by} #{inspect(author)} at #{DateTime.to_iso8601(at)}"

  @doc "The schedule in words, or `nil`."
  @spec runs(Stored.t()) :: String.t() | nil
  def runs(stored) do
    case schedule(stored) do
      nil -> nil
      _schedule when stored.source == :import -> "never, since it was imported"
      schedule -> Schedule.describe(schedule)
    end
  end

  @doc "The fields of a schedule for `:data`, if it has one."
  @spec schedule_fields(Stored.t()) :: map()
  def schedule_fields(%Stored{schedule: nil}), do: %{}
  def schedule_fields(stored), do: Map.take(stored, [:schedule, :timezone])

  @doc "The parsed schedule, or `nil`."
  @spec schedule(Stored.t()) :: Schedule.t() | nil
  def schedule(%Stored{schedule: nil}), do: nil

  def schedule(stored) do
    with {:ok, schedule} <- Schedule.parse(stored.schedule, stored.timezone || "UTC"),
         do: schedule,
         else: (_ -> nil)
  end

  @doc "The fields besides name, title and text, as names and values."
  @spec facts(Stored.t()) :: [{String.t(), term()}]
  def facts(stored) do
    written = "written for #{inspect(stored.author)} at #{DateTime.to_iso8601(stored.updated_at)}"

    [
      {"labels", stored.labels},
      {"in the prompt", if(not stored.include_in_prompt, do: "no")},
      {"always in the prompt of", stored.proactive_for},
      {"never for", stored.excluded_for},
      {"attachments", stored.attachments},
      {"schedule", stored.schedule},
      {"timezone", stored.timezone},
      {"runs", runs(stored)},
      {"source", stored.source},
      {"version", "#{stored.version}, #{written}"},
      {"enabled", if(not stored.enabled, do: "no")}
    ]
  end

  @doc """
  Formats an entry: name and title, facts, and the text.

  Each fact is on one line, so that no value can imitate another fact.
  """
  @spec page(map(), [{String.t(), term()}]) :: String.t()
  def page(data, facts) do
    facts = [{"description", data.description}, {"tags", data.tags} | facts]
    lines = for {name, fact} <- facts, fact not in [nil, "", []], do: "#{name}: #{show(fact)}"
    Enum.join(["#{data.name}: #{data.title}" | lines] ++ ["", data.content], "\n")
  end

  @doc "Formats an entry as one line of a list."
  @spec line(Stored.t()) :: String.t()
  def line(stored) do
    title = if stored.title == stored.name, do: "", else: stored.title

    text = [title, one_line(stored.description)] |> Enum.reject(&(&1 == "")) |> Enum.join(" - ")

    tags = if stored.tags == [], do: "", else: " [#{Enum.join(stored.tags, ", ")}]"
    disabled = if stored.enabled, do: "", else: ", disabled"
    runs = with text when text != nil <- runs(stored), do: ", runs #{text}"

    facts = "source: #{stored.source}, version #{stored.version}#{runs}#{disabled}"
    "- #{stored.name}: #{text}#{tags} (#{facts})"
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")
end
