defmodule Skillbook.MCP.Resources do
  @moduledoc false
  # Entries and the files of skills as resources: `skill://` and `note://`.
  #
  # A URI names an entry of the caller's view, and a file among those that the catalog has listed
  # for it. So a URI leads nowhere else, and that of a hidden entry is answered as that of none.

  alias Skillbook.Catalog.{ChangedFiles, SkillFile}
  alias Skillbook.MCP.{Context, Error, Pagination, Skill, SkillURI}
  alias Skillbook.Support.{Hidden, JSON, MediaType}
  alias Skillbook.{Entry, View}

  @page 200
  # Characters of a title or a description.
  @max_text 1_024
  @markdown "text/markdown"
  @directory "inode/directory"
  @template "skill://{+skill}/{+file}"

  @typedoc "Where a URI leads to."
  @type found ::
          {:page, Entry.t()} | {:file, Entry.t(), String.t()} | {:folder, Entry.t(), String.t()}

  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def handle("resources/list", params, %Context{view: view}) do
    with {:ok, key} <- Pagination.after_key(params, "resources"),
         {:ok, last} <- last(key) do
      {rows, next} = view |> entries(last) |> skip(last) |> take(view, [], @page)
      {:ok, with_cursor(%{"resources" => Enum.reverse(rows)}, next)}
    end
  end

  def handle("resources/templates/list", params, _context) do
    with {:ok, _after_key} <- Pagination.after_key(params, "templates") do
      template = %{
        "uriTemplate" => @template,
        "name" => "skill-file",
        "title" => "File of a skill",
        "description" =>
          "A file of a skill by its path, such as skill://pdf/references/forms.md. SKILL.md " <>
            "has the skill's instructions"
      }

      {:ok, %{"resourceTemplates" => [template]}}
    end
  end

  def handle("resources/read", params, %Context{view: view} = context) do
    with {:ok, uri} <- uri(params) do
      with {:ok, found} <- find(view, uri),
           {:ok, content} <- content(view, found) do
        {:ok, %{"contents" => [content]}}
      else
        {:error, :efbig} ->
          text = "the file at #{Error.quoted(uri)} has more than #{Skill.max_bytes()} bytes"
          {:error, Error.params(text, %{"uri" => uri})}

        _ ->
          {:error, missing(uri, context)}
      end
    end
  end

  # The revisions before had a code for this.
  defp missing(uri, context) do
    error = Error.params("no resource is served at #{Error.quoted(uri)}", %{"uri" => uri})
    if Context.stateless?(context), do: error, else: %{error | code: -32_002}
  end

  @doc "Answers `resources/directory/read`."
  @spec directory(map(), Context.t()) :: {:ok, map()} | {:error, Error.t()}
  def directory(params, %Context{view: view}) do
    with {:ok, uri} <- uri(params) do
      case find(view, uri) do
        {:ok, {:folder, entry, folder}} ->
          # Only the files of the page are looked at on the disk.
          children = children(entry, folder)

          with {:ok, page, more} <-
                 Pagination.of(children, params, "directory", @page, &elem(&1, 0)) do
            rows =
              for {_uri, kind, path} <- page, row = child_row(view, entry, kind, path), do: row

            {:ok, Map.put(more, "resources", rows)}
          end

        {:ok, {:prefix, entry}} ->
          {:ok, %{"resources" => [folder(entry, nil, SkillURI.name(entry.name))]}}

        {:ok, _file} ->
          text = "#{Error.quoted(uri)} is a file, and not a directory"
          {:error, Error.params(text, %{"uri" => uri})}

        :error ->
          text = "no directory is served at #{Error.quoted(uri)}"
          {:error, Error.params(text, %{"uri" => uri})}
      end
    end
  end

  @doc "Reads the parameter `uri`."
  @spec uri(map()) :: {:ok, String.t()} | {:error, Error.t()}
  def uri(%{"uri" => uri}) when is_binary(uri) and byte_size(uri) <= 4_096, do: {:ok, uri}

  def uri(_params),
    do: {:error, Error.params("expected a URI of at most 4,096 bytes as `uri`")}

  @doc "Returns the page, file or folder that a view shows at a URI."
  @spec find(View.t(), String.t()) :: {:ok, found() | {:prefix, Entry.t()}} | :error
  def find(view, uri) do
    with {:ok, place} <- SkillURI.parse(uri),
         name = elem(place, 1),
         # An alias has no URI of its own.
         %Entry{name: ^name} = entry <- View.find(view, name),
         true <- Skill.served?(entry),
         {:ok, found} <- found(place, entry) do
      {:ok, found}
    else
      _ -> :error
    end
  end

  defp found({:note, _name}, %Entry{kind: :note} = entry), do: {:ok, {:page, entry}}
  defp found(_place, %Entry{kind: :note}), do: :error
  defp found({:note, _name}, _entry), do: :error
  defp found({:prefix, _name}, entry), do: {:ok, {:prefix, entry}}
  defp found({:skill, _name, []}, entry), do: {:ok, {:folder, entry, ""}}
  defp found({:skill, _name, ["SKILL.md"]}, entry), do: {:ok, {:page, entry}}

  defp found({:skill, _name, names}, entry) do
    path = Enum.join(names, "/")
    folder = path <> "/"
    files = Skill.files(entry)

    cond do
      path in files -> {:ok, {:file, entry, path}}
      Enum.any?(files, &String.starts_with?(&1, folder)) -> {:ok, {:folder, entry, folder}}
      true -> :error
    end
  end

  # Contents

  defp content(view, {:page, entry}) do
    with {:ok, text} <- text(view, entry),
         do: {:ok, %{"uri" => page_uri(entry), "mimeType" => @markdown, "text" => text}}
  end

  defp content(_view, {:file, entry, file}) do
    with {:ok, bytes} <- SkillFile.read(entry, file, Skill.max_bytes()) do
      uri = SkillURI.of(entry.name, file)
      type = MediaType.of(file)

      # The bytes of a file are never changed, because its digest is of them. A text with hidden
      # characters goes as bytes, so that nobody takes it for a text without a look.
      if text?(bytes),
        do: {:ok, %{"uri" => uri, "mimeType" => type || "text/plain", "text" => bytes}},
        else:
          {:ok,
           %{
             "uri" => uri,
             "mimeType" => type || "application/octet-stream",
             "blob" => Base.encode64(bytes)
           }}
    end
  end

  defp content(_view, _folder), do: :error

  defp text?(bytes),
    do: String.valid?(bytes) and not String.contains?(bytes, "\0") and not Hidden.any?(bytes)

  defp text(view, %Entry{kind: :note} = entry) do
    case View.frontmatter(view, entry.name) do
      {:ok, own} -> {:ok, Hidden.visible(own <> entry.body)}
      {:error, _} -> :error
    end
  end

  defp text(view, entry), do: with({:ok, text, _data} <- Skill.page(view, entry), do: {:ok, text})

  defp page_uri(%Entry{kind: :note, name: name}), do: SkillURI.note(name)
  defp page_uri(%Entry{name: name}), do: SkillURI.of(name, SkillURI.page())

  # Lists. A cursor has the name of an entry and, after its own page, the last file of it.

  defp last(nil), do: {:ok, nil}

  defp last(key) do
    case JSON.decode(key) do
      {:ok, [name, file]} when is_binary(name) and is_binary(file) -> {:ok, {name, file}}
      _ -> Pagination.invalid()
    end
  end

  # Enough for a page: each entry has a row, but the first may have had its last row before.
  defp entries(view, last) do
    view
    |> View.stream(listed: true, from: last && elem(last, 0))
    |> Stream.filter(&Skill.served?/1)
    |> Enum.take(@page + 2)
  end

  defp skip(entries, nil), do: Enum.map(entries, &{&1, [:page | Skill.files(&1)]})

  defp skip(entries, {name, file}) do
    for entry <- entries do
      if entry.name == name,
        do: {entry, entry |> Skill.files() |> Enum.drop_while(&(&1 <= file))},
        else: {entry, [:page | Skill.files(entry)]}
    end
  end

  # A page ends only where another one begins.
  defp take([], _view, rows, _left), do: {rows, nil}
  defp take([{_entry, []} | rest], view, rows, left), do: take(rest, view, rows, left)

  defp take([{entry, [item | items]} | rest], view, rows, left) do
    rows = if row = row(view, entry, item), do: [row | rows], else: rows
    left = left - 1

    cond do
      items == [] and rest == [] -> {rows, nil}
      left > 0 -> take([{entry, items} | rest], view, rows, left)
      item == :page -> {rows, [entry.name, ""]}
      true -> {rows, [entry.name, item]}
    end
  end

  defp with_cursor(result, nil), do: result

  defp with_cursor(result, last),
    do: Map.put(result, "nextCursor", Pagination.cursor("resources", JSON.encode(last)))

  defp row(_view, %Entry{kind: :note} = entry, :page) do
    own(%{
      "uri" => SkillURI.note(entry.name),
      "name" => entry.name,
      "title" => entry.title,
      "description" => entry.description,
      "mimeType" => @markdown,
      "annotations" => annotations(entry, priority(entry))
    })
  end

  defp row(view, entry, :page) do
    case Skill.page(view, entry) do
      {:ok, text, data} ->
        own(%{
          "uri" => page_uri(entry),
          "name" => data["name"],
          "title" => entry.title,
          "description" => data["description"],
          "mimeType" => @markdown,
          "size" => byte_size(text),
          "annotations" => annotations(entry, priority(entry))
        })

      :error ->
        nil
    end
  end

  defp row(_view, entry, file), do: file(entry, file)

  defp file(entry, file) do
    case SkillFile.stat(entry, file) do
      {:ok, stat} ->
        own(%{
          "uri" => SkillURI.of(entry.name, file),
          "name" => Path.basename(file),
          "title" => entry.name <> "/" <> file,
          "mimeType" => MediaType.of(file),
          "size" => stat.size,
          "annotations" => entry |> annotations(0.3) |> modified(stat.modified)
        })

      :error ->
        nil
    end
  end

  # A file system may have times before the year 0.
  defp modified(annotations, time) do
    case DateTime.from_unix(time) do
      {:ok, time} -> Map.put(annotations, "lastModified", DateTime.to_iso8601(time))
      {:error, _} -> annotations
    end
  end

  defp folder(entry, path, name) do
    %{"uri" => SkillURI.of(entry.name, path), "name" => name, "mimeType" => @directory}
  end

  # The files and folders directly in a folder of the entry, sorted by URI.
  defp children(entry, folder) do
    children =
      for file <- Skill.files(entry), String.starts_with?(file, folder), uniq: true do
        case file |> String.replace_prefix(folder, "") |> String.split("/", parts: 2) do
          [name] -> {SkillURI.of(entry.name, folder <> name), :file, folder <> name}
          [name, _below] -> {SkillURI.of(entry.name, folder <> name), :folder, folder <> name}
        end
      end

    page = if folder == "", do: [{page_uri(entry), :page, nil}], else: []
    Enum.sort(page ++ children)
  end

  defp child_row(view, entry, :page, _path), do: row(view, entry, :page)
  defp child_row(_view, entry, :file, path), do: file(entry, path)
  defp child_row(_view, entry, :folder, path), do: folder(entry, path, Path.basename(path))

  defp annotations(entry, priority) do
    audience =
      for {who, true} <- [
            {"user", entry.user_invocable},
            {"assistant", not entry.hidden_from_model}
          ],
          do: who

    %{"audience" => audience, "priority" => priority}
  end

  defp priority(%Entry{selection: :inline}), do: 1.0
  defp priority(%Entry{include_in_prompt: true}), do: 0.8
  defp priority(_entry), do: 0.5

  # Names and descriptions are read by models too. The format limits descriptions of skills,
  # and nothing limits titles and descriptions of notes.
  defp own(row) do
    for {key, value} <- row, value not in [nil, "", []], into: %{} do
      case key do
        "name" ->
          {key, Hidden.visible(value)}

        key when key in ["title", "description"] ->
          {key, value |> shortened() |> Hidden.visible()}

        _ ->
          {key, value}
      end
    end
  end

  defp shortened(text) when byte_size(text) <= @max_text, do: text
  defp shortened(text), do: String.slice(text, 0, @max_text)

  # Changes

  @doc """
  Compares the resources of two views of one caller.

  `names` are the names of entries that may differ, also of hidden ones. Returns whether the list
  differs, and which URIs of `watched` have another content now, are new or are gone. A change of
  a skill's entry counts for its files too, since the catalog does not read them.
  """
  @spec changes(Context.t(), Context.t(), [String.t()], [String.t()]) ::
          %{list: boolean(), updated: [String.t()]}
  def changes(
        %Context{view: %View{generation: same}},
        %Context{view: %View{generation: same}},
        _,
        _
      ),
      do: %{list: false, updated: []}

  def changes(old, new, names, watched) do
    %{
      list: differ?(old.view, new.view, names),
      updated: Enum.filter(watched, &(state(old.view, &1) != state(new.view, &1)))
    }
  end

  @doc """
  As `changes/4`, for changes of files alone: whether the list has a file of them, and which URIs
  of `watched` lead to one.
  """
  @spec changed_files(ChangedFiles.t(), Context.t(), [String.t()]) ::
          %{list: boolean(), updated: [String.t()]}
  def changed_files(changed, %Context{view: view}, watched) do
    %{
      list: ChangedFiles.any?(changed, view, &listed_files/1),
      updated: Enum.filter(watched, &changed_file?(changed, view, &1))
    }
  end

  defp listed_files(%Entry{hidden_from_model: false} = entry),
    do: if(Skill.served?(entry), do: Skill.files(entry), else: [])

  defp listed_files(_entry), do: []

  defp changed_file?(changed, view, uri) do
    case find(view, uri) do
      {:ok, {:file, entry, file}} -> ChangedFiles.file?(changed, entry, file)
      _other -> false
    end
  end

  defp differ?(old, new, names), do: Enum.any?(names, &(listing(old, &1) != listing(new, &1)))

  # The fields of an entry that its rows depend on.
  defp listing(view, name) do
    with %Entry{name: ^name, hidden_from_model: false} = entry <- View.find(view, name),
         true <- Skill.served?(entry),
         {:ok, frontmatter} <- View.frontmatter(view, name) do
      {%{entry | body: "", path: ""}, frontmatter}
    else
      _ -> nil
    end
  end

  defp state(view, uri) do
    with {:ok, found} <- find(view, uri),
         {:ok, text} <- text(view, elem(found, 1)) do
      {elem(found, 0), text, elem(found, 1).files}
    else
      _ -> nil
    end
  end

  @doc "Values for a variable of a template, for `completion/complete`."
  @spec complete(String.t(), String.t(), String.t(), Context.t()) :: {:ok, [String.t()]} | :error
  def complete(@template, "skill", value, %Context{view: view}) do
    paths =
      for %Entry{kind: kind, name: name} = entry <- View.listed(view),
          kind in [:command, :skill] and Skill.served?(entry) do
        String.replace_prefix(SkillURI.of(name), "skill://", "")
      end

    {:ok, Enum.filter(paths, &String.starts_with?(&1, value))}
  end

  def complete(@template, "file", value, _context),
    do: {:ok, Enum.filter([SkillURI.page()], &String.starts_with?(&1, value))}

  def complete(_template, _variable, _value, _context), do: :error
end
