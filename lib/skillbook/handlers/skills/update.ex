defmodule Skillbook.Handlers.Skills.Update do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.{Edited, Written}

  @operations ~w(replace find_replace append prepend delete)
  @changes ["operation", "content", "clear"] ++ Edited.flags() ++ Written.fields() ++ Written.times()
  @texts ["description" | Written.times()]
  @clearable @texts ++ Written.lists()
  @shown ~w(title description tags labels include_in_prompt proactive_for excluded_for attachments schedule
           timezone)a

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["name", "expected-version" | @changes]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Written.cast_fields(flags),
         {:ok, flags} <- Written.cast_times(flags),
         {:ok, flags} <- Flags.cast_list(flags, "clear"),
         :ok <- Flags.validate_enum(flags, "clear", @clearable),
         {:ok, flags} <- Flags.cast_integer(flags, "expected-version", min: 1),
         {:ok, flags} <- Edited.cast(flags, @operations),
         :ok <- Flags.require_any(flags, @changes),
         {:ok, edit} <- Edited.edit(flags),
         {:ok, cleared} <- cleared(flags),
         changes =
           flags
           |> Written.taken(Written.fields() ++ Written.times())
           |> Map.merge(cleared)
           |> Map.merge(if(edit, do: %{edit: edit}, else: %{})),
         {:ok, changed} <- Store.update(context.view, flags["name"], changes, Written.options(context, flags)) do
      {:ok, result(changed, flags, context)}
    end
  end

  defp cleared(flags) do
    names = Map.get(flags, "clear", [])

    case Enum.filter(names, &Map.has_key?(flags, &1)) do
      [] -> {:ok, Map.new(names, &{Written.field(&1), if(&1 in @texts, do: "", else: [])})}
      both -> Written.conflict(both ++ ["clear"], "a field is either set or cleared, not both")
    end
  end

  defp result(%{entry: entry, before: before}, flags, context) do
    data = Map.take(entry, [:name, :version])

    if entry.version == before.version do
      Result.ok("Nothing changed, it is so already: #{entry.name} is at version #{entry.version}.", data: data)
    else
      text = Enum.join(["Updated #{entry.name} to version #{entry.version}." | changes(before, entry)], "\n")

      lost =
        if flags["operation"] == "replace",
          do: Written.lost(flags, before.name, before.version, context),
          else: ""

      Result.ok(text <> lost <> never(before, entry, context), data: data, effects: [:skill_updated])
    end
  end

  # Who sets a schedule is told at once; later the log says it.
  defp never(before, entry, context) do
    if entry.schedule not in [nil, before.schedule] and not Store.runs?(context.view, entry),
      do:
        "\nIt does not run: somebody who wrote it is no profile of the book, or had fewer rights than that. Create it anew.",
      else: ""
  end

  defp changes(before, entry) do
    fields =
      for field <- @shown,
          {old, new} = {Map.fetch!(before, field), Map.fetch!(entry, field)},
          old != new,
          do: "  #{field}: #{Written.show(old)} -> #{Written.show(new)}"

    content =
      if before.content == entry.content,
        do: [],
        else: ["  content: #{String.length(before.content)} -> #{String.length(entry.content)} characters"]

    fields ++ content
  end
end
