defmodule Skillbook.Web.Page.Entry do
  @moduledoc false
  # The page of one entry: its text, rendered and as it is written, and everything known about it.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Parts

  alias Skillbook.{Book, Diagnostic, Entry, StoreError, Stored, View}
  alias Skillbook.Store.{Edit, Read}
  alias Skillbook.Web.{Caller, Html, Markdown, Request, Response}
  alias Skillbook.Web.Page.{Entries, Files, Layout, Report, Rights, Runs}

  # Profiles that are listed with whether they see the entry, and files of a skill.
  @max_profiles 100
  @max_files 500

  @typedoc "An entry of the view, that of the store with the same name, or both."
  @type found :: %{name: String.t(), entry: Entry.t() | nil, stored: Stored.t() | nil}

  # Finds the entry of a name: in the view, and in the store, also a disabled one. An alias is
  # `{:other, name}`.
  defp find(view, name) do
    entry = with {:ok, entry} <- View.fetch(view, name), do: entry, else: (_ -> nil)
    stored = stored(view, name)

    cond do
      entry != nil and entry.name == name -> {:ok, %{name: name, entry: entry, stored: stored}}
      stored != nil -> {:ok, %{name: name, entry: nil, stored: stored}}
      entry != nil -> {:other, entry.name}
      true -> :error
    end
  end

  # Titles and other spellings, which `Store.fetch/3` takes too, are no addresses, and looking for
  # suggestions would take long.
  defp stored(view, name) do
    with {:ok, _book, sql} <- Read.database(view),
         {:ok, %Stored{name: ^name} = stored} <- Read.find(%{sql: sql, view: view}, name) do
      stored
    else
      _none -> nil
    end
  end

  @doc "Whether the caller sees an entry of this name, or a disabled one."
  @spec known?(Request.t(), String.t()) :: boolean()
  def known?(request, name), do: match?({:ok, _found}, find(Caller.view(request), name))

  @doc "Calls the function with the entry of the path's name, or answers that there is none."
  @spec with_entry(Request.t(), String.t(), (found() -> Response.t())) :: Response.t()
  def with_entry(request, name, fun) do
    case find(Caller.view(request), name) do
      {:ok, found} -> fun.(found)
      {:other, other} -> Response.redirect(303, Layout.path(request, ["skills", other]))
      :error -> Layout.not_found(request)
    end
  end

  # Whether the entry that the view shows is that of the store.
  defp editable?(%{stored: nil}), do: false
  defp editable?(%{entry: nil}), do: true
  defp editable?(%{entry: entry, stored: stored}), do: entry.source == "store" or stored.enabled

  @doc "Calls the function with the entry of the store that the caller may edit."
  @spec with_stored(Request.t(), String.t(), (Stored.t() -> Response.t())) :: Response.t()
  def with_stored(request, name, fun) do
    Rights.with_writes(request, fn ->
      with_entry(request, name, fn found ->
        if editable?(found), do: fun.(found.stored), else: of_file(request)
      end)
    end)
  end

  @doc """
  Calls the function if the caller may turn the entry of the store on and off. It may be one that
  the view shows nothing of: it is disabled, and the view has a file's entry of its name.
  """
  @spec with_switch(Request.t(), String.t(), (() -> Response.t())) :: Response.t()
  def with_switch(request, name, fun) do
    Rights.with_writes(request, fn ->
      with_entry(request, name, fn
        %{stored: nil} -> of_file(request)
        _found -> fun.()
      end)
    end)
  end

  defp of_file(request),
    do: Layout.failed(request, 403, "This entry comes from a file, and is changed there.")

  @doc "The status of an answer to a write that failed."
  @spec status(Exception.t()) :: 403 | 404 | 409 | 422 | 500
  def status(%StoreError{kind: kind}) when kind in [:version_conflict, :exists], do: 409
  def status(%StoreError{kind: :own_labels}), do: 403
  def status(%StoreError{}), do: 422
  def status(%Skillbook.SQL.Error{}), do: 500
  def status(_error), do: 422

  @doc "Answers with the page of an entry."
  def show(request, %{name: name}) do
    with_entry(request, name, fn found ->
      if Request.wants_json?(request),
        do: Response.json(200, json(request, found)),
        else: page(request, found)
    end)
  end

  defp json(request, found) do
    {frontmatter, body} = text(Caller.view(request), found)

    found
    |> about(request)
    |> Map.merge(%{frontmatter: frontmatter, content: body, editable: editable?(found)})
  end

  defp about(%{entry: nil, stored: stored}, _request) do
    stored
    |> Map.from_struct()
    |> Map.drop([:id, :writers, :content])
    |> Map.put(:source, "store")
  end

  defp about(%{entry: entry} = found, request) do
    keys =
      ~w(name title kind domain description source trust labels tags aliases triggers requires
              effects allowed_tools schedule timezone include_in_prompt license compatibility
              files)a

    stored =
      with %Stored{} = stored <- editable?(found) && found.stored,
           do: Map.take(stored, [:version, :author, :created_at, :updated_at, :enabled]),
           else: (_ -> %{enabled: true})

    operator =
      if request.caller.operator?, do: %{path: entry.path, handler: entry.handler}, else: %{}

    entry |> Map.take(keys) |> Map.merge(stored) |> Map.merge(operator)
  end

  # The frontmatter and the rest of the text.
  defp text(_view, %{entry: nil, stored: stored}), do: Edit.split(stored.content)

  defp text(view, %{entry: entry} = found) do
    if editable?(found) do
      Edit.split(found.stored.content)
    else
      case View.frontmatter(view, entry.name) do
        {:ok, frontmatter} -> {frontmatter, entry.body}
        {:error, _gone} -> {"", entry.body}
      end
    end
  end

  @doc "The text of a document below its frontmatter."
  @spec body(String.t()) :: String.t()
  def body(content), do: content |> Edit.split() |> elem(1)

  defp page(request, %{name: name} = found) do
    view = Caller.view(request)
    {frontmatter, body} = text(view, found)
    title = (found.entry && found.entry.title) || (found.stored && found.stored.title) || name

    Layout.page(
      request,
      name,
      [
        notice(request),
        Runs.fired(request, name),
        live("entry", "skills", [
          if(title != name, do: tag(:p, [class: "lead"], title)),
          state(request, found),
          description(found),
          details(request, found),
          beside(
            tag(:div, [class: rendered_class(found)], rendered(request, found, body)),
            frontmatter <> body
          ),
          files(request, found),
          problems(request, view, found),
          seen_by(request, found)
        ])
      ],
      section: :skills,
      back: {"Skills", Layout.path(request, ["skills"])},
      actions: actions(request, found)
    )
  end

  @doc "A rendered text and its source, beside each other."
  @spec beside(Html.content(), String.t()) :: Html.safe()
  def beside(rendered, source) do
    tag(:div, [class: "beside"], [
      part("rendered", "Rendered", rendered),
      part("source", "Source", tag(:pre, [class: "source", tabindex: "0"], source))
    ])
  end

  defp part(id, title, content),
    do: tag(:section, [aria_labelledby: id], [tag(:h2, [id: id], title), content])

  # Lines of flags and examples in the page of a command are no paragraphs.
  defp rendered_class(%{entry: %Entry{kind: :command}}), do: "rendered lines"
  defp rendered_class(_found), do: "rendered"

  defp rendered(request, found, body) do
    if String.trim(body) == "",
      do: tag(:p, [class: "help"], "The text is empty."),
      else: Markdown.html(body, Layout.path(request, ["skills", found.name, "files"]) |> folder())
  end

  # Relative links get no query, so a skill that is seen as another profile has none.
  defp folder(path), do: if(String.contains?(path, "?"), do: "", else: path <> "/")

  @answers %{
    "created" => "It is in the store.",
    "saved" => "Your change is saved.",
    "enabled" => "It is enabled, and in the lists and prompts again.",
    "disabled" => "It is disabled: nobody finds it until it is enabled.",
    "restored" => "The version is restored, as the newest one."
  }

  @doc "The text about an action that is done, or nil."
  @spec answer(term()) :: String.t() | nil
  def answer(done), do: @answers[done]

  defp notice(request),
    do: with(text when text != nil <- answer(Request.query(request)["done"]), do: done(text))

  defp state(request, found) do
    cond do
      found.entry == nil and not found.stored.enabled ->
        tag(
          :div,
          [class: "notice warn"],
          tag(:p, [], "Disabled: nobody finds it, and no prompt has it.")
        )

      not editable?(found) and found.stored != nil ->
        tag(:div, [class: "notice"], [
          tag(:p, [], [
            "The store has a disabled entry of this name, which hides this one when it is ",
            "enabled. ",
            tag(
              :a,
              [href: Layout.path(request, ["skills", found.name, "versions"])],
              "Its versions"
            )
          ]),
          if(Rights.check(request) == :ok,
            do: button(request, ["skills", found.name, "enable"], "Enable it")
          )
        ])

      true ->
        nil
    end
  end

  defp description(%{entry: entry, stored: stored}) do
    text = if entry, do: entry.description, else: stored.description
    if text != "", do: tag(:p, [class: "description"], text)
  end

  # Actions

  defp actions(request, found) do
    path = &Layout.path(request, ["skills", found.name | &1])
    writes? = Rights.check(request) == :ok

    [
      if(match?(%{kind: :command}, found.entry),
        do: tag(:a, [class: "button", href: Layout.path(request, ["try", found.name])], "Try")
      ),
      if(found.entry, do: tag(:a, [class: "button", href: path.(["export"])], "Export")),
      if(found.stored, do: tag(:a, [class: "button", href: path.(["versions"])], "Versions")),
      if(scheduled?(request, found),
        do: button(request, ["skills", found.name, "fire"], "Run as scheduled")
      ),
      if Files.writable?(request, found.entry) do
        [
          tag(:a, [class: "button", href: path.(["history"])], "History"),
          tag(:a, [class: "button primary", href: path.(["source"])], "Edit")
        ]
      end,
      if writes? and editable?(found) do
        [
          if(found.stored.enabled,
            do: button(request, ["skills", found.name, "disable"], "Disable"),
            else: button(request, ["skills", found.name, "enable"], "Enable")
          ),
          tag(:a, [class: "button danger", href: path.(["delete"]), data_dialog: true], "Delete"),
          tag(:a, [class: "button", href: path.(["change"])], "Change a part"),
          tag(:a, [class: "button primary", href: path.(["edit"])], "Edit")
        ]
      end
    ]
  end

  defp scheduled?(request, %{entry: %{schedule: schedule}}) when schedule != nil,
    do: Report.operates?(request) and Book.of!(Caller.view(request)).store != nil

  defp scheduled?(_request, _found), do: false

  # Facts

  defp details(request, %{entry: nil, stored: stored}) do
    facts([
      {"Kind", Atom.to_string(stored.kind)},
      {"Source", "store"},
      {"Visible to", labels(stored.labels)},
      {"Tags", tags(request, stored.tags)}
      | stored_facts(stored)
    ])
  end

  defp details(request, %{entry: entry} = found) do
    operator? = request.caller.operator?
    stored = if editable?(found), do: found.stored

    facts([
      {"Kind", [Atom.to_string(entry.kind), if(entry.domain, do: " of #{entry.domain}")]},
      {"Source", [entry.source, " ", trust(entry.trust)]},
      {"Visible to", labels(entry.labels)},
      {"In prompts",
       [
         prompts(entry),
         " ",
         why(Layout.path(request, ["explain"], name: entry.name), "this profile")
       ]},
      {"Tags", tags(request, entry.tags)},
      {"Aliases", Enum.join(entry.aliases, ", ")},
      {"Triggers", Enum.join(entry.triggers, ", ")},
      {"Needs", Enum.intersperse(links(request, entry.requires), ", ")},
      {"Effect", if(entry.kind == :command, do: effect(entry))},
      {"Handler", if(operator? and entry.handler, do: tag(:code, [], entry.handler))},
      {"Tools", Enum.intersperse(Enum.map(entry.allowed_tools, &tag(:code, [], &1)), " ")},
      {"Schedule", schedule(entry)},
      {"License", entry.license},
      {"Works with", entry.compatibility},
      {"Author", if(stored == nil, do: Entries.author(entry))},
      {"Used", used(Caller.view(request), entry)},
      {"File", if(operator? and stored == nil, do: tag(:code, [], entry.path)), :wide}
      | if(stored, do: stored_facts(stored), else: [])
    ])
  end

  defp stored_facts(stored) do
    [
      {"Author", [stored.author, by(stored.source)]},
      {"Version", "#{stored.version}"},
      {"Created", time(stored.created_at)},
      {"Changed", if(stored.version > 1, do: time(stored.updated_at))},
      {"Always for", Enum.join(stored.proactive_for, ", ")},
      {"Never for", Enum.join(stored.excluded_for, ", ")},
      {"Attachments", Enum.join(stored.attachments, ", ")}
    ]
  end

  defp by(:user), do: nil
  defp by(:agent), do: [" ", badge("an agent wrote in it")]
  defp by(:import), do: [" ", badge("imported", :warn)]

  defp trust(:low), do: badge("low trust", :warn)
  defp trust(trust), do: badge("#{trust} trust")

  defp labels([]), do: "every profile"

  defp labels(labels),
    do: ["profiles with ", for(label <- labels, do: [badge(label, :info), " "])]

  defp why(path, about), do: tag(:a, [href: path, aria_label: "why, for #{about}"], "why")

  defp prompts(%{hidden_from_model: true}), do: "hidden from models"
  defp prompts(%{include_in_prompt: false}), do: "not listed; found by search"
  defp prompts(%{selection: :inline}), do: "with its text"
  defp prompts(_entry), do: "listed"

  defp tags(request, tags) do
    for tag <- tags do
      [tag(:a, [href: Layout.path(request, ["skills"], %{"tag" => tag})], "#" <> tag), " "]
    end
  end

  defp links(request, names),
    do: for(name <- names, do: tag(:a, [href: Layout.path(request, ["skills", name])], name))

  defp effect(entry) do
    case Entry.effect(entry) do
      :read -> "reads only"
      :write -> "changes something"
    end
  end

  defp schedule(%{schedule: nil}), do: nil
  defp schedule(entry), do: [tag(:code, [], entry.schedule), " ", entry.timezone || "UTC"]

  # Only a name without the characters of a glob can be asked for.
  defp used(view, entry) do
    names = if entry.name =~ ~r/[*?\[\]{}!\\]/, do: [], else: [names: [entry.name]]

    with {:ok, report} <- Skillbook.usage(view, [since: days_ago(30)] ++ names),
         %{} = row <- Enum.find(report.rows, &(&1.key == entry.name)) do
      parts =
        for {count, text} <- [{row.read, "read"}, {row.run, "run"}, {row.failed, "failed"}],
            count > 0,
            do: "#{text} #{number(count)}×"

      Enum.join(parts, ", ") <> " in 30 days"
    else
      _none -> "not in the last 30 days"
    end
  end

  defp days_ago(days), do: DateTime.add(DateTime.utc_now(), -days * 86_400, :second)

  # Files of a skill

  defp files(_request, %{entry: nil}), do: nil
  defp files(_request, %{entry: %{files: []}}), do: nil

  defp files(request, %{entry: entry}) do
    {files, more} = Enum.split(entry.files, @max_files)

    items =
      for file <- files do
        segments = ["skills", entry.name, "files" | String.split(file, "/")]
        tag(:li, [], tag(:a, [href: Layout.path(request, segments)], file))
      end

    part("files", "Files", [
      tag(:ul, [], items),
      if(more != [], do: tag(:p, [class: "help"], "and #{length(more)} more"))
    ])
  end

  @doc "Answers with the text of a file of a skill, or with its size and type."
  def file(request, %{name: name, path: path}) do
    with_entry(request, name, fn found ->
      file = Enum.join(path, "/")

      with %Entry{} = entry <- found.entry,
           true <- file in entry.files,
           {:ok, text} <- Skillbook.get(Caller.view(request), entry.name <> "/" <> file) do
        Layout.page(request, file, tag(:pre, [class: "source", tabindex: "0"], text),
          section: :skills,
          back: {name, Layout.path(request, ["skills", name])}
        )
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  # Diagnostics

  defp problems(_request, _view, %{entry: nil}), do: nil

  defp problems(request, view, %{entry: entry}) do
    case for one <- View.diagnostics(view), one.path == entry.path, do: one do
      [] ->
        nil

      diagnostics ->
        items = Enum.map(diagnostics, &tag(:li, [], problem(&1)))

        mend =
          if Enum.any?(diagnostics, & &1.fix) and Files.writable?(request, entry) do
            href = Layout.path(request, ["diagnostics", "fix"], path: entry.path)
            tag(:p, [], tag(:a, [class: "button", href: href], "Mend"))
          end

        part("problems", "Problems", [tag(:ul, [class: "problems"], items), mend])
    end
  end

  defp problem(%Diagnostic{} = diagnostic) do
    kind = %{error: :bad, warning: :warn, info: :info}[diagnostic.severity]

    [
      badge(Atom.to_string(diagnostic.severity), kind),
      " ",
      if(diagnostic.line, do: "line #{diagnostic.line}: "),
      diagnostic.message,
      if(diagnostic.hint, do: tag(:span, [class: "help"], [" ", sentence(diagnostic.hint)])),
      " ",
      tag(:code, [], Atom.to_string(diagnostic.code))
    ]
  end

  # Profiles

  defp seen_by(%Request{caller: %{operator?: true}} = request, %{entry: %Entry{}} = found) do
    book = Caller.view(request).book

    rows =
      for id <- request.caller |> Caller.profiles() |> Enum.take(@max_profiles) do
        path = Request.path(request, ["skills", found.name], as: id)

        why = Request.path(request, ["explain"], name: found.name, profile: id)
        [tag(:a, [href: path], id) | sees(View.of(book, id), found)] ++ [why(why, id)]
      end

    columns = ["Profile", "Sees it", "Labels that it holds", "Reason"]

    part(
      "seen-by",
      "Visible to profiles",
      table("The book's profiles", columns, rows, hide_caption: true)
    )
  end

  defp seen_by(_request, _found), do: nil

  defp sees(view, %{entry: entry}) do
    grants =
      case view.profile.grants do
        :all -> "all"
        [] -> "none"
        grants -> Enum.join(grants, ", ")
      end

    answer =
      case View.fetch(view, entry.name) do
        {:ok, %{path: path, source: source}} when path == entry.path and source == entry.source ->
          badge("yes", :good)

        {:ok, other} ->
          badge(["another entry, of ", other.source], :warn)

        {:error, _} ->
          badge("no", :plain)
      end

    [answer, grants]
  end
end
