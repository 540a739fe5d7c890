defmodule Skillbook.Handlers.Skills.Store do
  @moduledoc false
  # The commands `skills.*` and `notes.*` that read and write the store. `call/4` maps a command
  # to a function of `Skillbook.Store`, and `answer/4` formats its result.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Skills.{Answers, EditFlags, Load}

  alias Skillbook.Support.Count

  alias Skillbook.{
    Context,
    Entry,
    FlagError,
    Flags,
    Result,
    Schedule,
    Store,
    StoreError,
    Stored,
    View
  }

  @texts ~w(description schedule timezone)
  @lists ~w(tags labels proactive-for excluded-for attachments)
  @fields ["title", "description", "include-in-prompt"] ++ @lists ++ ~w(schedule timezone)
  @changes ~w(operation content clear find replace replace-all) ++ @fields
  # Flags to fields of the store.
  @columns Map.new(
             ["name", "content" | @fields],
             &{&1, &1 |> String.replace("-", "_") |> String.to_atom()}
           )
  # Fields whose changes are listed.
  @listed ~w(title description tags labels include_in_prompt proactive_for excluded_for)a ++
            ~w(attachments schedule timezone)a

  @impl true
  def execute(flags, %Context{entry: %{name: command}} = context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, result} <- call(command, flags, context.view, options(context, flags)),
         do: {:ok, answer(command, result, flags, context)}
  end

  defp options(context, flags) do
    expected = for {"expected-version", version} <- flags, do: {:expected_version, version}
    [by: context.by, now: context.now] ++ expected
  end

  defp call("skills.create", flags, view, options), do: Store.create(view, fields(flags), options)

  defp call("skills.delete", flags, view, options), do: Store.delete(view, flags["name"], options)
  defp call("notes.delete", flags, view, options), do: Store.delete(view, flags["title"], options)
  defp call("skills.enable", flags, view, options), do: Store.enable(view, flags["name"], options)

  defp call("skills.disable", flags, view, options),
    do: Store.disable(view, flags["name"], options)

  defp call("skills.history", %{"name" => name, "limit" => limit} = flags, view, _options) do
    options = [limit: limit + 1, after: flags["after"]]

    with {:ok, versions} <- Store.history(view, name, options) do
      {shown, more} = Enum.split(versions, limit)
      {:ok, {shown, if(more != [], do: List.last(shown).version)}}
    end
  end

  defp call("skills.list", flags, view, _options), do: list(view, :skill, flags)
  defp call("notes.list", flags, view, _options), do: list(view, :note, flags)

  defp call("skills.restore", %{"name" => name, "version" => version}, view, options),
    do: Store.restore(view, name, version, options)

  defp call("skills.update", %{"name" => name} = flags, view, options) do
    with :ok <- Flags.require_any(flags, @changes),
         {:ok, edit} <- EditFlags.edit(flags),
         {:ok, cleared} <- cleared(flags) do
      changes = flags |> fields() |> Map.drop([:name, :content]) |> Map.merge(cleared)

      changes = if edit, do: Map.put(changes, :edit, edit), else: changes
      Store.update(view, name, changes, options)
    end
  end

  defp call("notes.add", %{"title" => title, "content" => content} = flags, view, options) do
    fields = flags |> fields() |> Map.drop([:title, :content])
    Store.put_note(view, title, content, [fields: fields] ++ options)
  end

  defp call("skills.read", %{"name" => name, "version" => number}, view, _options) do
    with {:ok, version} <- Store.version(view, name, number), do: {:ok, version.entry}
  end

  # Reads files too: a model need not know where a skill is stored.
  defp call("skills.read", %{"name" => name}, view, _options) do
    with {:error, %StoreError{kind: :is_file}} = error <- Store.fetch(view, name),
         :error <- Load.fetch(view, name, [:skill, :note]),
         do: error
  end

  defp call("skills.diff", %{"name" => name} = flags, view, _options) do
    with {:ok, versions} <- Store.history(view, name),
         to = flags["to"] || hd(versions).version,
         # Versions that the profile cannot read leave gaps in the numbers.
         from =
           flags["from"] || Enum.find_value(versions, to, &if(&1.version < to, do: &1.version)),
         {:ok, diff} <- Store.diff(view, name, from, to),
         do: {:ok, Map.merge(diff, %{name: hd(versions).entry.name, from: from, to: to})}
  end

  defp list(view, kind, flags) do
    disabled = Map.get(flags, "include-disabled", false)

    options = [kind: kind, tags: flags["tags"], include_disabled: disabled]

    with :ok <- check_tags(flags["tags"] || []),
         :ok <- check_place(flags["after"]),
         place = [limit: flags["limit"], after: flags["after"]],
         {:ok, entries, next} <- Store.page(view, options ++ place),
         do: {:ok, {entries, next}}
  end

  defp check_place(place) do
    if place == nil or Store.Read.place?(place),
      do: :ok,
      else: FlagError.invalid("after", place, "the name after which the list goes on", "milk")
  end

  # No tag of the store is longer.
  defp check_tags(tags) do
    Enum.find_value(tags, :ok, fn tag ->
      with {:ok, _} <- Flags.cast_text(%{"tags" => tag}, "tags", line: true, max: 64), do: nil
    end)
  end

  defp fields(flags),
    do: for({flag, value} <- flags, column = @columns[flag], into: %{}, do: {column, value})

  defp cleared(flags) do
    names = Map.get(flags, "clear", [])

    case Enum.filter(names, &Map.has_key?(flags, &1)) do
      [] -> {:ok, Map.new(names, &{@columns[&1], if(&1 in @texts, do: "", else: [])})}
      both -> FlagError.conflict(both ++ ["clear"], "a field is either set or cleared, not both")
    end
  end

  defp answer("skills.create", stored, _flags, context) do
    text =
      "Created the skill #{stored.name}, version #{stored.version}. `get_skill: " <>
        "#{stored.name}` reads it."

    ok(
      text <>
        continues(stored) <>
        next_run(stored, context.now) <> replaces(Answers.replaced(context.view, stored), stored),
      data: version(stored),
      effects: [:skill_created]
    )
  end

  defp answer(
         "skills.update",
         %{entry: %{version: number} = entry, before: %{version: number}},
         _flags,
         _context
       ),
       do: ok("Nothing changed: #{entry.name} is at version #{number}.", data: version(entry))

  defp answer("skills.update", %{entry: entry, before: before}, flags, context) do
    text =
      Enum.join(
        ["Updated #{entry.name} to version #{entry.version}." | changes(before, entry)],
        "\n"
      )

    replaced =
      if flags["operation"] == "replace",
        do: Answers.replaced_version(flags, before.name, before.version, context),
        else: ""

    ok(text <> replaced <> never_runs(before, entry, context),
      data: version(entry),
      effects: [:skill_updated]
    )
  end

  defp answer("skills.restore", stored, flags, _context) do
    text = "Restored version #{flags["version"]} of #{stored.name} as version #{stored.version}."

    disabled =
      if stored.enabled,
        do: "",
        else: "\nIt is disabled; `skills.enable #{stored.name}` enables it."

    ok(text <> disabled, data: version(stored), effects: [:skill_restored])
  end

  defp answer("skills.enable", stored, _flags, _context) do
    text = "Enabled #{stored.name}: it can be found and read again."
    ok(text, data: Map.take(stored, [:name, :enabled]), effects: [:skill_enabled])
  end

  defp answer("skills.disable", stored, _flags, context) do
    text =
      "Disabled #{stored.name}: only `skills.read` and `skills.list --include-disabled` find " <>
        "it. `skills.enable #{stored.name}` enables it again."

    data = Map.take(stored, [:name, :enabled])
    ok(text <> Answers.uncovered(context, stored), data: data, effects: [:skill_disabled])
  end

  defp answer(command, deleted, _flags, context)
       when command in ["skills.delete", "notes.delete"] do
    text =
      "Deleted the #{deleted.kind} #{deleted.name}; " <>
        "`skills.restore #{deleted.name} --version #{deleted.version}` restores it."

    effect = if deleted.kind == :note, do: :note_deleted, else: :skill_deleted
    ok(text <> Answers.uncovered(context, deleted), data: %{deleted: true}, effects: [effect])
  end

  defp answer("notes.add", %{entry: stored, before: before}, flags, context) do
    note = "\"#{stored.title}\" (#{stored.name})"
    data = Map.take(stored, [:name, :title, :version])

    case before do
      nil ->
        ok("Added the note #{note}." <> continues(stored), data: data, effects: [:note_added])

      ^stored ->
        ok("Nothing changed: #{note} is at version #{stored.version}.", data: data)

      _ ->
        replaced = Answers.replaced_version(flags, stored.name, stored.version - 1, context)

        ok("Updated #{note} to version #{stored.version}." <> replaced,
          data: data,
          effects: [:note_updated]
        )
    end
  end

  defp answer("skills.list", stored, flags, _context), do: listed(stored, "skill", :skills, flags)
  defp answer("notes.list", stored, flags, _context), do: listed(stored, "note", :notes, flags)

  defp answer("skills.history", {[], _next}, %{"name" => name, "after" => number}, _context),
    do: ok("No version of #{name} before #{number}.", data: %{name: name, versions: []})

  defp answer("skills.history", {versions, next}, %{"name" => name}, _context) do
    name = with [%{entry: entry} | _] <- versions, do: entry.name, else: ([] -> name)

    lines =
      for version <- versions do
        author = Answers.author(version.by, version.author, version.at)
        "- version #{version.version}: #{version.action} by #{author}"
      end

    data = Enum.map(versions, &Map.take(&1, [:version, :action, :by, :author, :at]))
    more = Count.more(nil, nil, next)
    text = Enum.join(["Versions of #{name}, the newest first:" | lines] ++ more, "\n")
    ok(text, data: Count.with_next(%{name: name, versions: data}, next))
  end

  defp answer("skills.diff", diff, _flags, _context), do: ok(compared(diff), data: diff)

  defp answer("skills.read", %Stored{} = stored, _flags, context) do
    data = Map.take(stored, [:name, :title, :description, :content, :tags, :source, :version])

    options = [
      data: Map.merge(data, Answers.schedule_fields(stored)),
      metadata: activates(context.view, stored)
    ]

    ok(Answers.page(data, Answers.facts(stored)), options)
  end

  defp answer("skills.read", %Entry{} = entry, _flags, _context) do
    data = %{
      name: entry.name,
      title: Load.title(entry),
      description: entry.description,
      content: String.trim(entry.body),
      tags: entry.tags,
      source: :file,
      version: nil
    }

    text = Answers.page(data, [{"source", "a file, which commands cannot change"}])
    ok(text, data: data, metadata: %{activates: [Entry.activation(entry)]})
  end

  defp ok(text, options), do: Result.ok(text, options)

  defp version(stored), do: Map.take(stored, [:name, :version])

  # Only after an entry that all readers of the new one could see; the first version says nothing.
  defp continues(%{version: 1}), do: ""

  defp continues(stored) do
    " A deleted entry of this name had the versions up to #{stored.version - 1}; this one " <>
      "continues its numbers with version #{stored.version}."
  end

  defp next_run(%{schedule: nil}, _now), do: ""

  defp next_run(stored, now) do
    schedule = Answers.schedule(stored)
    at = Schedule.local(schedule, Schedule.next(schedule, now))
    "\nIt runs #{Schedule.describe(schedule)}; the next time is #{at}."
  end

  defp replaces(nil, _stored), do: ""

  defp replaces(entry, stored) do
    "\nIt replaces the #{entry.kind} #{entry.name} of a file; `skills.delete #{stored.name}` " <>
      "restores that."
  end

  # The author is told at once. Otherwise only the log has it.
  defp never_runs(before, entry, context) do
    if entry.schedule not in [nil, before.schedule] and not Store.runs?(context.view, entry) do
      "\nIt does not run: one of its authors is not a profile of the book, or had fewer " <>
        "rights. Create it again."
    else
      ""
    end
  end

  defp changes(before, entry) do
    fields =
      for field <- @listed,
          {old, new} = {Map.fetch!(before, field), Map.fetch!(entry, field)},
          old != new,
          do: "  #{field}: #{Answers.show(old)} -> #{Answers.show(new)}"

    lengths = "#{String.length(before.content)} -> #{String.length(entry.content)}"

    if before.content == entry.content,
      do: fields,
      else: fields ++ ["  content: #{lengths} characters"]
  end

  defp listed({stored, next}, kind, key, flags) do
    tagged =
      case flags["tags"] do
        nil -> ""
        [tag] -> " with the tag #{tag}"
        tags -> " with the tags #{Enum.join(tags, " and ")}"
      end

    fields = [:name, :title, :description, :tags, :source, :version]

    head =
      case {stored, flags["after"]} do
        {[], nil} ->
          "No #{kind}s in the store#{tagged}. `get_skill` lists everything, including files."

        {[], place} ->
          "No #{kind}s in the store#{tagged} after #{place}."

        {stored, nil} when next == nil ->
          "#{Count.text(length(stored), kind)} in the store#{tagged}:"

        {stored, nil} ->
          "The first #{Count.text(length(stored), kind)} in the store#{tagged}:"

        {stored, place} ->
          "#{Count.text(length(stored), kind)} in the store#{tagged} after #{place}:"
      end

    more = Count.more(nil, nil, next)
    data = Enum.map(stored, &Map.merge(Answers.schedule_fields(&1), Map.take(&1, fields)))
    data = Count.with_next(%{key => data}, next)
    ok(Enum.join([head | Enum.map(stored, &Answers.line/1)] ++ more, "\n"), data: data)
  end

  defp compared(%{from: number, to: number} = diff),
    do: "#{diff.name}: both are version #{number}. Name two different versions."

  defp compared(%{fields: [], content: ""} = diff),
    do: "#{diff.name}: versions #{diff.from} and #{diff.to} are the same."

  defp compared(diff) do
    fields =
      for %{field: field, from: old, to: new} <- diff.fields,
          do: "  #{field}: #{Answers.show(old)} -> #{Answers.show(new)}\n"

    String.trim_trailing(
      "#{diff.name}: from version #{diff.from} to version #{diff.to}\n#{fields}#{diff.content}",
      "\n"
    )
  end

  # Only if the view shows this text; it does not for disabled entries and old versions.
  defp activates(view, stored) do
    with {:ok, %Entry{source: "store"} = entry} <- View.fetch(view, stored.name),
         true <- stored.content |> String.trim() |> String.ends_with?(String.trim(entry.body)) do
      %{activates: [Entry.activation(entry)]}
    else
      _ -> %{}
    end
  end
end
