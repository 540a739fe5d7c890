defmodule Skillbook.Web.Page.Edit do
  @moduledoc false
  # The forms that create and change entries of the store. Each is sent twice: the first time it
  # is tried (`dry_run:`), and the answer shows the difference; the second time it is saved, if it
  # is still the form that was shown.
  #
  # A form has the version that it began with. If the entry has another one by then, nothing is
  # saved, and the answer shows the other change beside the text that was sent.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.{ScheduleError, Store, StoreError, Stored}
  alias Skillbook.Support.{Diff, Number}
  alias Skillbook.Web.{Caller, Markdown, Request, Response}
  alias Skillbook.Web.Page.{Entry, Layout, Rights}

  # Fields of lists have one item on each line.
  @lists ~w(tags labels proactive_for excluded_for attachments)a
  @compared ~w(title description tags labels include_in_prompt proactive_for excluded_for
               attachments schedule timezone kind)a
  @not_content ~w(_csrf step previewed)

  # A new entry

  @doc "Answers with the form of a new entry."
  def new(request, _values) do
    Rights.with_writes(request, fn ->
      labels = lines(request.caller.profile.labels)
      new_page(request, %{"kind" => "skill", "include_in_prompt" => "1", "labels" => labels}, [])
    end)
  end

  @doc "Tries or creates a new entry."
  def create(request, _values) do
    with_form(request, fn fields ->
      save? = save?(fields)
      given = Map.merge(given(fields, nil), identity(fields))

      case Store.create(Caller.view(request), given, dry_run: not save?) do
        {:ok, stored} when save? -> saved(request, stored.name, "created")
        {:ok, stored} -> new_page(request, fields, preview: preview(nil, stored))
        {:error, error} -> new_page(request, fields, errors: errors_of(error))
      end
    end)
  end

  # The store refuses an unknown kind, which becomes no atom.
  defp identity(fields) do
    kind = Map.get(%{"skill" => :skill, "note" => :note}, fields["kind"], fields["kind"])
    name = String.trim(fields["name"] || "")
    %{kind: kind, name: if(name != "", do: name), content: line_ends(fields["content"], nil)}
  end

  defp new_page(request, fields, shown) do
    errors = shown[:errors] || []

    inputs = [
      choice(
        "kind",
        "Kind",
        fields["kind"],
        [
          {"skill", "Skill: found by its description"},
          {"note", "Note: a text to keep"}
        ],
        error: error(errors, "kind")
      ),
      text_field("name", "Name", fields["name"],
        error: error(errors, "name"),
        optional: true,
        help: "Lower-case letters, digits and dashes. Without one it is made of the title.",
        spellcheck: "false"
      ),
      inputs(fields, errors)
    ]

    Layout.page(
      request,
      "New entry",
      form_of(request, ["new"], ["skills"], fields, inputs, [save: "Create"] ++ shown),
      section: :skills,
      status: if(errors == [], do: 200, else: 422),
      back: {"Skills", Layout.path(request, ["skills"])},
      errors: errors(errors)
    )
  end

  # Editing

  @doc "Answers with the form of an entry."
  def edit(request, %{name: name}),
    do: Entry.with_stored(request, name, &edit_page(request, &1, fields_of(&1), []))

  @doc "Tries or saves a change of an entry."
  def update(request, %{name: name}) do
    with_form(request, fn fields ->
      Entry.with_stored(request, name, fn stored ->
        text = {:replace, line_ends(fields["content"], stored)}
        change(request, stored, fields, Map.put(given(fields, stored), :edit, text), &edit_page/4)
      end)
    end)
  end

  defp edit_page(request, stored, fields, shown) do
    path = ["skills", stored.name]

    form =
      form_of(
        request,
        path ++ ["edit"],
        path,
        fields,
        inputs(fields, shown[:errors] || []),
        shown
      )

    entry_page(request, stored, "Edit " <> stored.name, form, shown)
  end

  # One part of the text

  @operations [
    {"find_replace", "Replace a text"},
    {"append", "Add at the end"},
    {"prepend", "Add at the beginning"},
    {"delete", "Remove a text"},
    {"replace", "Replace everything"}
  ]

  @doc "Answers with the form that changes a part of the text."
  def part(request, %{name: name}) do
    Entry.with_stored(request, name, fn stored ->
      fields = %{"operation" => "find_replace", "version" => "#{stored.version}"}
      part_page(request, stored, fields, [])
    end)
  end

  @doc "Tries or saves a change of a part of the text."
  def update_part(request, %{name: name}) do
    with_form(request, fn fields ->
      Entry.with_stored(request, name, fn stored ->
        case operation(fields, stored) do
          {:ok, edit} -> change(request, stored, fields, %{edit: edit}, &part_page/4)
          {:error, error} -> part_page(request, stored, fields, errors: [error])
        end
      end)
    end)
  end

  defp operation(fields, stored) do
    [find, text] = for name <- ["find", "text"], do: line_ends(fields[name], stored)

    case fields["operation"] do
      "find_replace" when find != "" ->
        {:ok, {:find_replace, find, text, all?: fields["all"] == "1"}}

      "delete" when find != "" ->
        {:ok, {:delete, find}}

      name when name in ["find_replace", "delete"] ->
        {:error, {"find", "expected a text that occurs in the entry, got nothing"}}

      "append" ->
        {:ok, {:append, text}}

      "prepend" ->
        {:ok, {:prepend, text}}

      "replace" ->
        {:ok, {:replace, text}}

      _other ->
        {:error, {"operation", "expected one of the operations in the list"}}
    end
  end

  defp part_page(request, stored, fields, shown) do
    errors = shown[:errors] || []
    path = ["skills", stored.name]

    inputs = [
      choice("operation", "Operation", fields["operation"], @operations,
        error: error(errors, "operation")
      ),
      text_area("find", "Text to replace or to remove", fields["find"],
        error: error(errors, "find"),
        help: "Exactly as it is in the entry.",
        class: "code",
        rows: 3
      ),
      text_area("text", "New text", fields["text"],
        error: error(errors, "content"),
        class: "code",
        rows: 6
      ),
      checkbox("all", "Replace every occurrence", fields["all"] == "1")
    ]

    content = [
      form_of(request, path ++ ["change"], path, fields, inputs, shown),
      tag(:h2, [], "The text now"),
      tag(:pre, [class: "source", tabindex: "0"], stored.content)
    ]

    # The field of the new text has another name here.
    shown =
      Keyword.replace(
        shown,
        :errors,
        for({field, text} <- errors, do: {if(field == "content", do: "text", else: field), text})
      )

    entry_page(request, stored, "Change a part of " <> stored.name, content, shown)
  end

  # Trying, saving, conflicts

  defp change(request, stored, fields, changes, page) do
    save? = save?(fields)
    version = version_number(fields["version"])
    options = [dry_run: not save?, expected_version: version]

    case version && Store.update(Caller.view(request), stored.name, changes, options) do
      nil ->
        Layout.failed(
          request,
          400,
          "The form has no version. Open the entry again, and repeat the change."
        )

      {:ok, _changed} when save? ->
        saved(request, stored.name, "saved")

      {:ok, %{entry: entry, before: before}} ->
        page.(request, stored, fields, preview: preview(before, entry))

      {:error, %StoreError{kind: :version_conflict}} ->
        conflict(request, stored.name, fields, changes, page)

      {:error, error} ->
        page.(request, stored, fields, errors: errors_of(error))
    end
  end

  # The form goes on with the newest version: the next preview shows the texts that it would
  # overwrite.
  defp conflict(request, name, fields, changes, page) do
    view = Caller.view(request)

    Entry.with_stored(request, name, fn stored ->
      theirs =
        case Store.diff(view, name, version_number(fields["version"]), stored.version) do
          {:ok, diff} ->
            [diff(diff.content, "The other change"), table_of(diff.fields, "Its other fields")]

          {:error, _hidden} ->
            nil
        end

      yours =
        case Store.update(view, name, changes, dry_run: true) do
          {:ok, %{entry: entry, before: before}} ->
            [
              diff(Diff.unified(before.content, entry.content), "From the newest text to yours"),
              table_of(differences(before, entry), "From the newest fields to yours")
            ]

          {:error, error} ->
            tag(:p, [], sentence(Exception.message(error)))
        end

      notice =
        [
          tag(:h2, [], "Somebody has changed this entry meanwhile"),
          tag(:p, [], [
            "Nothing was saved. Version #{stored.version} is by ",
            tag(:strong, [], stored.author),
            ", of ",
            time(stored.updated_at),
            ". Your text is still in the form below. Take over the parts that you want to " <>
              "keep of the other change, and preview again."
          ])
        ]
        |> alert(:warn)

      fields = Map.put(fields, "version", "#{stored.version}")
      page.(request, stored, fields, note: [notice, theirs, yours], status: 409)
    end)
  end

  defp saved(request, name, done),
    do: Response.redirect(303, Request.path(request, ["skills", name], done: done))

  # Whether to save: the form is the one whose difference was shown.
  defp save?(fields), do: fields["step"] == "save" and fields["previewed"] == digest(fields)

  defp digest(fields) do
    content =
      for {name, text} <- Enum.sort(fields),
          name not in @not_content,
          do: [name, 0, line_ends(text, nil), 0]

    :sha256 |> :crypto.hash(content) |> Base.encode16(case: :lower)
  end

  # Forms

  # Calls the function with the fields that are texts.
  defp with_form(request, fun) do
    Rights.with_writes(request, fn ->
      case Request.form(request) do
        {:ok, fields} ->
          fun.(for {name, text} when is_binary(text) <- fields, into: %{}, do: {name, text})

        :error ->
          Layout.failed(request, 400, "The form cannot be read.")
      end
    end)
  end

  defp entry_page(request, stored, title, content, shown) do
    errors = shown[:errors] || []

    Layout.page(request, title, content,
      section: :skills,
      status: shown[:status] || if(errors == [], do: 200, else: 422),
      back: {stored.name, Layout.path(request, ["skills", stored.name])},
      errors: errors(errors)
    )
  end

  # The form, below the difference that it makes or below a note.
  defp form_of(request, path, cancel, fields, inputs, shown) do
    preview = shown[:preview]

    inputs =
      if preview,
        do: tag(:details, [class: "again"], [tag(:summary, [], "Edit further"), inputs]),
        else: inputs

    hidden =
      for {name, value} <- [
            {"version", fields["version"]},
            {"previewed", preview && digest(fields)}
          ],
          value,
          do: tag(:input, type: "hidden", name: name, value: value)

    buttons =
      tag(:div, [class: "buttons"], [
        if preview do
          tag(
            :button,
            [type: "submit", name: "step", value: "save", class: "primary"],
            shown[:save] || "Save"
          )
        end,
        tag(
          :button,
          [
            type: "submit",
            name: "step",
            value: "preview",
            class: if(preview == nil, do: "primary")
          ],
          if(preview, do: "Preview again", else: "Preview")
        ),
        tag(:a, [class: "button", href: Layout.path(request, cancel)], "Cancel")
      ])

    [shown[:note], preview, form(request, path, [hidden, inputs, buttons], data_edit: true)]
  end

  defp inputs(fields, errors) do
    text = fn name, label, options ->
      text_field(name, label, fields[name], [error: error(errors, name)] ++ options)
    end

    list = fn name, label, help ->
      text_area(name, label, fields[name], error: error(errors, name), help: help, rows: 2)
    end

    [
      text.("title", "Title", required: true, maxlength: "200"),
      text_area("description", "Description", fields["description"],
        error: error(errors, "description"),
        help: "One or two sentences: its purpose, and when to use it. Models choose by them.",
        rows: 3
      ),
      text_area("content", "Text, in Markdown", fields["content"],
        error: error(errors, "content"),
        class: "code",
        rows: 22,
        spellcheck: "true",
        wide: true
      ),
      list.("tags", "Tags", "One on each line."),
      list.(
        "labels",
        "Labels",
        "One on each line. Only profiles that hold all of them see the entry."
      ),
      tag(:details, [open: more?(fields, errors)], [
        tag(:summary, [], "Prompts, schedule and attachments"),
        checkbox("include_in_prompt", "List it in prompts", fields["include_in_prompt"] == "1"),
        list.("proactive_for", "Always in the prompts of", "Ids of profiles, one on each line."),
        list.("excluded_for", "Never in the prompts of", "Ids of profiles, one on each line."),
        text.("schedule", "Schedule",
          help: "A cron expression such as 0 8 * * 1, or nothing.",
          spellcheck: "false",
          optional: true
        ),
        text.("timezone", "Time zone",
          help: "Such as Europe/Berlin. Without one it is UTC.",
          spellcheck: "false",
          optional: true
        ),
        list.("attachments", "Attachments", "One on each line.")
      ])
    ]
  end

  defp more?(fields, errors) do
    names = ~w(proactive_for excluded_for schedule timezone attachments)
    Enum.any?(names, &(fields[&1] not in [nil, ""] or error(errors, &1) != nil))
  end

  # Fields of forms and of the store

  defp fields_of(%Stored{} = stored) do
    texts =
      for name <- ~w(title description content schedule timezone)a,
          do: {"#{name}", Map.fetch!(stored, name)}

    lists = for name <- @lists, do: {"#{name}", lines(Map.fetch!(stored, name))}

    Map.new(
      texts ++
        lists ++
        [
          {"version", "#{stored.version}"},
          {"include_in_prompt", if(stored.include_in_prompt, do: "1")}
        ]
    )
  end

  # A box that is not ticked is not sent. Without a schedule, there is no time zone.
  defp given(fields, stored) do
    lists = for name <- @lists, into: %{}, do: {name, items(fields["#{name}"])}
    schedule = String.trim(fields["schedule"] || "")
    timezone = String.trim(fields["timezone"] || "")
    new? = stored == nil

    Map.merge(lists, %{
      title: fields["title"] || "",
      description: description(fields["description"], new?),
      include_in_prompt: fields["include_in_prompt"] == "1",
      schedule: if(schedule == "" and new?, do: nil, else: schedule),
      timezone: if(schedule != "", do: timezone(timezone, stored))
    })
  end

  defp description(nil, _new?), do: nil
  defp description("", true), do: nil
  defp description(text, _new?), do: text |> line_ends(nil) |> String.trim()

  defp timezone("", %Stored{timezone: timezone}) when timezone != nil, do: "UTC"
  defp timezone("", _stored), do: nil
  defp timezone(timezone, _stored), do: timezone

  defp lines(items), do: Enum.join(items, "\n")

  defp items(nil), do: []

  defp items(text),
    do:
      text
      |> String.split(["\r\n", "\n", "\r"])
      |> Enum.map(&String.trim/1)
      |> Enum.reject(&(&1 == ""))

  @doc """
  A text of a form. Browsers send the line ends of mails; a text keeps those that it had.
  """
  @spec line_ends(String.t() | nil, Stored.t() | %{content: String.t()} | nil) :: String.t()
  def line_ends(nil, _stored), do: ""

  def line_ends(text, stored) do
    text = String.replace(text, ["\r\n", "\r"], "\n")

    if stored != nil and stored.content =~ "\r\n" and not (stored.content =~ ~r/(?<!\r)\n/),
      do: String.replace(text, "\n", "\r\n"),
      else: text
  end

  defp version_number(text) do
    case Number.integer(text || "") do
      {number, ""} when number > 0 -> number
      _other -> nil
    end
  end

  # Differences

  defp preview(nil, %Stored{} = entry) do
    tag(:section, [aria_labelledby: "preview"], [
      tag(:h2, [id: "preview"], "Preview"),
      facts([
        {"Name", entry.name},
        {"Kind", Atom.to_string(entry.kind)},
        {"Title", entry.title},
        {"Description", entry.description},
        {"Tags", Enum.join(entry.tags, ", ")},
        {"Labels", Enum.join(entry.labels, ", ")},
        {"Schedule", entry.schedule}
      ]),
      rendered(entry)
    ])
  end

  defp preview(before, before) do
    tag(:div, [class: "notice", role: "status"], tag(:p, [], "Nothing is changed."))
  end

  defp preview(%Stored{} = before, %Stored{} = entry) do
    tag(:section, [aria_labelledby: "preview"], [
      tag(:h2, [id: "preview"], "The change"),
      diff(Diff.unified(before.content, entry.content), "Text"),
      table_of(differences(before, entry), "Other fields"),
      tag(:details, [], [tag(:summary, [], "Rendered"), rendered(entry)])
    ])
  end

  @doc "The text of an entry of the store, rendered."
  @spec rendered(Stored.t()) :: Skillbook.Web.Html.safe()
  def rendered(entry),
    do: tag(:div, [class: "rendered"], Markdown.html(Entry.body(entry.content)))

  defp differences(before, entry) do
    for field <- @compared,
        {from, to} = {Map.fetch!(before, field), Map.fetch!(entry, field)},
        from != to,
        do: %{field: field, from: from, to: to}
  end

  @doc "A table of fields that differ, each with its value before and after; nil without any."
  @spec table_of([map()], String.t()) :: Skillbook.Web.Html.content()
  def table_of([], _caption), do: nil

  def table_of(differences, caption) do
    rows =
      for %{field: field, from: from, to: to} <- differences,
          do: [label(field), value(from), value(to)]

    table(caption, ["Field", "Before", "After"], rows)
  end

  defp label(field),
    do: field |> Atom.to_string() |> String.replace("_", " ") |> String.capitalize()

  defp value(nothing) when nothing in [nil, "", []], do: tag(:span, [class: "help"], "nothing")
  defp value(items) when is_list(items), do: Enum.join(items, ", ")
  defp value(true), do: "yes"
  defp value(false), do: "no"
  defp value(atom) when is_atom(atom), do: Atom.to_string(atom)
  defp value(text), do: text

  # Errors

  defp error(errors, field) do
    with {_field, text} <- List.keyfind(errors, field, 0), do: sentence(text)
  end

  @of_schedule [:too_often, :too_many, :no_runner]

  defp errors_of(error), do: [{field_of(error), Exception.message(error)}]

  defp field_of(%ScheduleError{part: :timezone}), do: "timezone"
  defp field_of(%ScheduleError{}), do: "schedule"
  defp field_of(%StoreError{kind: :exists}), do: "name"
  defp field_of(%StoreError{kind: kind}) when kind in [:label_not_held, :own_labels], do: "labels"
  defp field_of(%StoreError{kind: :restriction}), do: "content"
  defp field_of(%StoreError{kind: :text_not_found}), do: "find"
  defp field_of(%StoreError{kind: kind}) when kind in @of_schedule, do: "schedule"
  defp field_of(%StoreError{field: :edit}), do: "content"
  defp field_of(%StoreError{field: field}) when field != nil, do: Atom.to_string(field)
  defp field_of(_error), do: nil
end
