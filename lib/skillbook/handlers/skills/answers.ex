defmodule Skillbook.Handlers.Skills.Answers do
  @moduledoc false
  # The texts that commands over `Skillbook.Store` give of an entry.

  alias Skillbook.{Context, Entry, Flags, Schedule, Store, Stored, View}

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

  @doc "What there is to know of it beside its text."
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

  @doc "Its text under its name, title and facts; each is on one line, so that no text passes for another."
  @spec page(map(), [{String.t(), term()}]) :: String.t()
  def page(data, facts) do
    facts = [{"description", data.description}, {"tags", data.tags} | facts]
    lines = for {name, fact} <- facts, fact not in [nil, "", []], do: "#{name}: #{show(fact)}"
    Enum.join(["#{data.name}: #{data.title}" | lines] ++ ["", data.content], "\n")
  end

  @doc "An entry on one line of a list."
  @spec line(Stored.t()) :: String.t()
  def line(stored) do
    title = if stored.title == stored.name, do: [], else: [stored.title]

    said =
      Enum.join(
        title ++ if(stored.description == "", do: [], else: [one_line(stored.description)]),
        " - "
      )

    tags = if stored.tags == [], do: "", else: " [#{Enum.join(stored.tags, ", ")}]"
    disabled = if stored.enabled, do: "", else: ", disabled"
    runs = with text when text != nil <- runs(stored), do: ", runs #{text}"

    "- #{stored.name}: #{said}#{tags} (source: #{stored.source}, version #{stored.version}#{runs}#{disabled})"
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")
end
