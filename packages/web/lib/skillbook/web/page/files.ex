defmodule Skillbook.Web.Page.Files do
  @moduledoc false
  # Pages in files: operators change those in the folder that the book writes to (`:write_to`),
  # and write new ones. As an entry of the store, a file is changed in two steps: the first shows
  # the difference and what loading would find, the second writes it, if the form and the file are
  # still those that were shown.
  #
  # A page gets no labels that its writer lacks, and runs on its schedule as no other profile than
  # before, or than its writer.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]
  import Skillbook.Web.Page.Report, only: [for_operators: 2, book: 1]

  alias Skillbook.Support.Diff
  alias Skillbook.Web.{Caller, Markdown, Request, Response}
  alias Skillbook.Web.Page.Entry, as: PageEntry
  alias Skillbook.Web.Page.{Edit, Findings, FlagFields, Layout, NewFile, Parts, Rights}
  alias Skillbook.{Book, Catalog, Document, Entry, Lint, Profile, View}

  # Bytes of a page.
  @max_text 256 * 1024
  # Files of a skill.
  @max_files 500

  @doc """
  The folder that the book writes to, unless it belongs to another tenant, or to all tenants and
  the caller to one.
  """
  @spec folder(Request.t()) :: Path.t() | nil
  def folder(request) do
    with path when path != nil <- Book.fetch!(book(request)).write_to,
         folder = Path.expand(path),
         true <- Enum.all?(own(request, folder), &Caller.writes?(request.caller, &1.tenant)),
         do: folder,
         else: (_none -> nil)
  end

  @doc "The sources of that folder."
  @spec own(Request.t(), Path.t()) :: [Skillbook.Source.t()]
  def own(request, folder) do
    Enum.filter(
      Book.fetch!(book(request)).sources,
      &(&1.kind != :stored and &1.path != nil and Path.expand(&1.path) == folder)
    )
  end

  @doc "Whether the caller may change the file of an entry here."
  @spec writable?(Request.t(), Entry.t() | nil) :: boolean()
  def writable?(_request, nil), do: false

  def writable?(%{caller: %{operator?: operator?}} = request, entry),
    do: operator? and Rights.check(request) == :ok and place(request, entry) != :error

  # The folder and the path below it.
  defp place(request, %Entry{path: path}) do
    with folder when folder != nil <- folder(request),
         [_ | _] <- own(request, folder),
         true <- Findings.below?(path, folder) and Path.expand(path) == path,
         do: {:ok, folder, Path.relative_to(path, folder)},
         else: (_none -> :error)
  end

  # Editing

  @doc "The form of the file of an entry."
  def edit(request, %{name: name}) do
    with_file(request, name, fn file ->
      page(request, file, %{"content" => file.text, "digest" => digest(file.text)}, [])
    end)
  end

  @doc "Tries or writes a change of a file."
  def update(request, %{name: name}) do
    with_file(request, name, fn file ->
      with_form(request, fn fields ->
        new = Edit.line_ends(fields["content"], %{content: file.text})

        case with_flags(file, Map.put(fields, "content", new)) do
          {:ok, fields} -> put(request, file, fields)
          {:again, fields} -> page(request, file, fields, [])
          {:error, errors} -> page(request, file, Map.put(fields, "content", new), errors: errors)
        end
      end)
    end)
  end

  # Only commands have flags.
  defp with_flags(%{entry: %{kind: :command}}, fields), do: FlagFields.put(fields)
  defp with_flags(_file, fields), do: {:ok, fields}

  defp put(request, file, fields) do
    if fields["digest"] == digest(file.text),
      do: checked(request, file, fields, &Document.replace/3, "saved"),
      else: conflict(request, file, fields)
  end

  defp with_file(request, name, fun) do
    for_operators(request, fn ->
      with {:ok, %Entry{name: ^name} = entry} <- View.fetch(Caller.view(request), name),
           {:ok, folder, path} <- place(request, entry),
           {:ok, text} <- Document.read(folder, path),
           true <- String.valid?(text) and byte_size(text) <= @max_text do
        Rights.with_writes(request, fn ->
          fun.(%{name: name, folder: folder, path: path, text: text, entry: entry})
        end)
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  defp with_form(request, fun) do
    case Request.form(request) do
      {:ok, fields} ->
        fun.(for {name, text} when is_binary(text) <- fields, into: %{}, do: {name, text})

      :error ->
        Layout.failed(request, 400, "The form cannot be read.")
    end
  end

  defp conflict(request, file, fields) do
    difference = Diff.unified(file.text, fields["content"])

    notice =
      Parts.alert(
        [
          tag(:h2, [], "Somebody has changed this file meanwhile"),
          tag(:p, [], "Nothing was saved. Your text is still in the form below. Preview again.")
        ],
        :warn
      )

    fields = Map.put(fields, "digest", digest(file.text))
    note = [notice, Parts.diff(difference, "From the newest text to yours")]
    page(request, file, fields, note: note, status: 409)
  end

  # Saves

  defp saves?(fields),
    do: fields["step"] == "save" and fields["previewed"] == digest(fields["content"])

  # Shows a text, or writes it with a function of `Skillbook.Document` if it was shown.
  defp checked(request, file, %{"content" => text} = fields, write, done) do
    with {:ok, findings} <- check(request, file, text),
         {:save, true, _findings} <- {:save, saves?(fields), findings},
         {:ok, path} <- write.(file.folder, file.path, text) do
      saved(request, path, done)
    else
      {:save, false, findings} ->
        page(request, file, fields, preview: preview(file, text, findings))

      {:error, error} when is_binary(error) ->
        page(request, file, fields, errors: [{"content", error}])

      {:error, error} ->
        page(request, file, fields, errors: [{"content", Exception.message(error)}])
    end
  end

  # The name may be another one, or the page may be hidden.
  defp saved(request, path, done) do
    Skillbook.reload(book(request))
    view = View.of(book(request), Caller.view(request).profile)

    case Enum.find(View.entries(view), &(&1.path == path)) do
      nil -> Response.redirect(303, Request.path(request, ["skills"]))
      entry -> Response.redirect(303, Request.path(request, ["skills", entry.name], done: done))
    end
  end

  # Checks

  # The entry and the findings of a text, as if it was in the file.
  defp tried(request, file, text) do
    folder = Path.join(System.tmp_dir!(), "skillbook-try-#{token()}")
    File.mkdir!(folder)

    try do
      {:ok, path} = Document.create(folder, file.path, text)
      put_beside(path, file.entry)
      sources = Book.fetch!(book(request)).sources
      [own | _] = own(request, file.folder)
      source = %{own | path: folder}
      readable = Enum.filter(sources, &Caller.reads?(request.caller, &1.tenant))
      {:ok, catalog} = Catalog.load([source])
      entry = catalog |> View.all() |> View.entries() |> Enum.find(&(&1.path == path))
      # The page as it is comes before the new one, which takes its name.
      context = Enum.reject(readable, &(&1.kind in [:stored, :mcp]))
      {entry, Enum.filter(Lint.run([source], context: context), &(&1.path == path))}
    after
      File.rm_rf!(folder)
    end
  end

  # The files of a skill, without their contents, so that links to them lead somewhere.
  defp put_beside(path, %Entry{kind: :skill, files: files}) do
    for name <- Enum.take(files, @max_files) do
      beside = Path.join(Path.dirname(path), name)
      File.mkdir_p!(Path.dirname(beside))
      File.write!(beside, "")
    end
  end

  defp put_beside(_path, _entry), do: []

  defp token, do: 9 |> :crypto.strong_rand_bytes() |> Base.url_encode64(padding: false)

  # The findings of a text, or why it must not be written.
  defp check(request, file, text) do
    profile = Caller.view(request).profile

    cond do
      not String.valid?(text) or String.contains?(text, <<0>>) ->
        {:error, "expected text in UTF-8 without NUL"}

      byte_size(text) > @max_text ->
        {:error, "expected at most #{@max_text} bytes, got: #{byte_size(text)}"}

      true ->
        {entry, findings} = tried(request, file, text)

        loaded =
          if entry, do: right(profile, file.entry, entry), else: "the page would not be loaded"

        error = first_error(findings) || loaded
        if error, do: {:error, error}, else: {:ok, findings}
    end
  end

  defp first_error(findings) do
    with %{} = one <- Enum.find(findings, &(&1.severity == :error)) do
      place = if one.line, do: "line #{one.line}: ", else: ""
      place <> one.message <> if(one.hint, do: "; " <> one.hint, else: "")
    end
  end

  defp right(profile, before, entry) do
    run_as = entry.data["run_as"]
    before = if before, do: before.data["run_as"]

    cond do
      profile.grants != :all and entry.labels -- profile.grants != [] ->
        "expected labels that the profile #{profile.id} holds, got: " <>
          Enum.join(entry.labels -- profile.grants, ", ")

      run_as not in [nil, before, profile.id] and not Profile.unrestricted?(profile) ->
        "expected run_as: #{profile.id} or none, got: #{run_as}"

      true ->
        nil
    end
  end

  defp digest(text), do: :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower)

  # The page

  defp preview(file, new, findings) do
    tag(:section, [aria_labelledby: "preview"], [
      tag(:h2, [id: "preview"], "Preview"),
      Parts.diff(Diff.unified(file.text, new), "Text"),
      found(findings),
      tag(:details, [], [
        tag(:summary, [], "Rendered"),
        tag(:div, [class: "rendered"], Markdown.html(PageEntry.body(new), ""))
      ])
    ])
  end

  defp found([]), do: nil

  defp found(findings) do
    tag(
      :ul,
      [class: "problems"],
      for one <- findings do
        place = if one.line, do: "line #{one.line}: "
        tag(:li, [], [Parts.badge(to_string(one.severity), :warn), " ", place, one.message])
      end
    )
  end

  defp page(request, file, fields, shown) do
    {segments, back, title, address} =
      if file.entry,
        do:
          {["skills", file.name], {file.name, ["skills", file.name]}, "Edit " <> file.name,
           ["skills", file.name, "source"]},
        else: {["skills"], {"Skills", ["skills"]}, "New file", ["new", "file"]}

    preview = shown[:preview]

    hidden =
      for {name, value} <- [
            {"digest", fields["digest"]},
            {"name", if(file.entry == nil, do: fields["name"])},
            {"kind", if(file.entry == nil, do: fields["kind"])},
            {"previewed", preview && digest(fields["content"])}
          ],
          value,
          do: tag(:input, type: "hidden", name: name, value: value)

    errors = shown[:errors] || []

    inputs = [
      tag(:p, [class: "help"], ["File ", tag(:code, [], file.path)]),
      if(match?(%{kind: :command}, file.entry), do: FlagFields.section(fields, errors)),
      Parts.text_area("content", "Page", fields["content"],
        class: "code",
        rows: 24,
        wide: true,
        spellcheck: "false"
      )
    ]

    inputs =
      if preview,
        do: tag(:details, [class: "again"], [tag(:summary, [], "Edit further"), inputs]),
        else: inputs

    buttons =
      tag(:div, [class: "buttons"], [
        if(preview, do: step("save", if(file.entry, do: "Save", else: "Create"), "primary")),
        step("preview", if(preview, do: "Preview again", else: "Preview"), !preview && "primary"),
        tag(:a, [class: "button", href: Layout.path(request, segments)], "Cancel")
      ])

    # Enter presses the first button of a form.
    enter =
      tag(
        :button,
        [name: "step", value: "preview", class: "hidden", tabindex: "-1", aria_hidden: "true"],
        "Preview"
      )

    form = Parts.form(request, address, [enter, hidden, inputs, buttons], data_edit: true)
    {text, path} = back

    Layout.page(request, title, [shown[:note], preview, form],
      section: :skills,
      back: {text, Layout.path(request, path)},
      errors: Parts.errors(errors),
      status: shown[:status] || if(errors == [], do: 200, else: 422)
    )
  end

  defp step(value, text, class),
    do: tag(:button, [type: "submit", name: "step", value: value, class: class || nil], text)

  # New files

  @doc "The form of a new file: first its kind, name and flags, and then its text."
  def new(request, _values),
    do: with_folder(request, fn _folder -> NewFile.page(request, Request.query(request)) end)

  @doc "Begins, tries or writes a new file."
  def create(request, _values) do
    with_folder(request, fn folder ->
      with_form(request, fn
        %{"content" => content} = fields ->
          with_path(request, fields, NewFile.path(fields), fn path ->
            fields = Map.put(fields, "content", Edit.line_ends(content, nil))
            checked(request, new_file(folder, path), fields, &Document.create/3, "created")
          end)

        fields ->
          with_path(request, fields, NewFile.read(fields), fn {path, text} ->
            page(request, new_file(folder, path), Map.put(fields, "content", text), [])
          end)
      end)
    end)
  end

  defp with_path(_request, _fields, {:ok, read}, fun), do: fun.(read)
  defp with_path(request, _fields, {:again, fields}, _fun), do: NewFile.page(request, fields)
  defp with_path(request, fields, {:error, error}, _), do: NewFile.page(request, fields, error)

  defp new_file(folder, path), do: %{folder: folder, path: path, text: "", entry: nil}

  defp with_folder(request, fun) do
    for_operators(request, fn ->
      case folder(request) do
        nil -> Layout.not_found(request)
        folder -> Rights.with_writes(request, fn -> fun.(folder) end)
      end
    end)
  end

  # History

  @max_commits 50
  @git_time 5_000

  @doc "Who changed the file of an entry, by git."
  def history(request, %{name: name}) do
    for_operators(request, fn ->
      with {:ok, %Entry{name: ^name} = entry} <- View.fetch(Caller.view(request), name),
           {:ok, folder, path} <- place(request, entry) do
        commits = commits(folder, path)

        if Request.wants_json?(request) do
          Response.json(200, %{name: name, commits: commits})
        else
          Layout.page(request, "History of " <> name, history_of(request, name, commits),
            section: :skills,
            back: {name, Layout.path(request, ["skills", name])}
          )
        end
      else
        _none -> Layout.not_found(request)
      end
    end)
  end

  defp history_of(request, name, []),
    do: Parts.empty(request, "Git has no commits of this file.", {"Open it", ["skills", name]})

  defp history_of(_request, _name, commits) do
    Parts.table(
      "Changes, the newest first",
      ["Change", "By", "Time", "Commit"],
      for one <- commits do
        [one.subject, one.author, one.at && Parts.time(one.at), tag(:code, [], one.commit)]
      end
    )
  end

  # Neither hooks nor programs of a repository run for a log without a difference.
  defp commits(folder, path) do
    with git when git != nil <- System.find_executable("git"),
         task = Task.async(fn -> log(git, folder, path) end),
         {:ok, {output, 0}} <- Task.yield(task, @git_time) || Task.shutdown(task, :brutal_kill) do
      for line <- String.split(output, "\0", trim: true),
          fields = line |> String.trim("\n") |> String.split("\t", parts: 4),
          [commit, author, at, subject] <- [fields],
          do: %{commit: commit, author: author, at: time(at), subject: subject}
    else
      _none -> []
    end
  end

  defp log(git, folder, path) do
    arguments =
      ["-C", folder, "-c", "core.fsmonitor=false", "log", "--no-show-signature"] ++
        ["-n", "#{@max_commits}", "--format=%h%x09%an%x09%aI%x09%s%x00", "--", path]

    # Nothing is fetched or locked, and the repository is that of the folder.
    environment = [
      {"GIT_TERMINAL_PROMPT", "0"},
      {"GIT_NO_LAZY_FETCH", "1"},
      {"GIT_OPTIONAL_LOCKS", "0"},
      {"GIT_DIR", nil}
    ]

    System.cmd(git, arguments, stderr_to_stdout: true, env: environment)
  rescue
    error in [ErlangError, ArgumentError] -> {Exception.message(error), 1}
  end

  defp time(text) do
    case DateTime.from_iso8601(text) do
      {:ok, time, _offset} -> time
      {:error, _reason} -> nil
    end
  end
end
