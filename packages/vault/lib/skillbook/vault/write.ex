defmodule Skillbook.Vault.Write do
  @moduledoc false
  # Reads, creates and edits notes in folder vaults, and stores the documents that an application
  # puts.
  #
  # Files are written first and indexed right after, so the next search finds the change. The
  # indexer hears of the file too, and finds it already indexed.

  alias Skillbook.{Book, Document, Frontmatter, Profile, Store, StoreError, VaultError, View}
  alias Skillbook.Store.Edit
  alias Skillbook.Support.FileName
  alias Skillbook.Vault.{Config, Folder, Indexer, Note, Search, Table}

  # Creating a note

  def create(%View{} = view, fields) do
    labels = (Map.get(fields, :labels, []) ++ view.profile.labels) |> Enum.uniq() |> Enum.sort()

    with {:ok, sql} <- Search.fetch_sql(view),
         {:ok, vault, root} <- folder_vault(view, fields[:vault]),
         :ok <- check_tenant(view, vault),
         :ok <- Store.check_held_labels(view, labels),
         {:ok, name} <- file_name(fields.title),
         {:ok, folder} <- folder_name(fields[:folder]) do
      text = fields |> frontmatter(labels, name) |> text(fields.content)
      path = if folder == "", do: name, else: folder <> "/" <> name

      # The pairs of `:fields` and the text may add labels.
      with {:ok, note} <- note(%{id: path, path: path}, text),
           :ok <- Store.check_held_labels(view, note.labels),
           do: create_file(sql, view, vault, root, path, text, 1)
    end
  end

  defp text([], content), do: content
  defp text(pairs, content), do: Frontmatter.write(pairs, content)

  defp frontmatter(fields, labels, name) do
    title = if fields.title == name, do: [], else: [{"title", fields.title}]

    tags =
      for tags <- [Map.get(fields, :tags, [])],
          tags != [],
          do: {"tags", Enum.map(tags, &String.trim_leading(&1, "#"))}

    labels = if labels == [], do: [], else: [{"visibility_labels", labels}]
    title ++ tags ++ labels ++ Map.get(fields, :fields, [])
  end

  @max_attempts 1_000

  # A file that the profile cannot see must not show in an error, so the note gets a number.
  defp create_file(sql, view, vault, root, path, text, number) do
    id = if number == 1, do: path <> ".md", else: "#{path} #{number}.md"

    case Document.create(root, id, text) do
      {:ok, _file} ->
        with :ok <- index(view.book, vault, id, text), do: {:ok, %{vault: vault.name, path: id}}

      {:error, %{kind: :exists}} when number < @max_attempts ->
        case visible?(sql, view, vault, id) do
          {:ok, true} -> {:error, %VaultError{kind: :exists, name: id}}
          {:ok, false} -> create_file(sql, view, vault, root, path, text, number + 1)
          error -> error
        end

      {:error, error} ->
        {:error, error}
    end
  end

  defp visible?(sql, view, vault, id) do
    with {:ok, scope} <- Search.scope(sql, view, vault: vault.name, fields: [{"*", id}]),
         {:ok, total, _ids} <- Table.first(sql, scope, 1),
         do: {:ok, total > 0}
  end

  defp folder_vault(view, name) do
    with {:ok, vaults} <- Search.visible_vaults(view, name) do
      case {vaults, Enum.filter(vaults, &match?(%{producer: {Folder, _}}, &1))} do
        {[vault], []} ->
          {:error, %VaultError{kind: :no_folder, name: vault.name}}

        {_, [%{producer: {Folder, options}} = vault]} ->
          {:ok, vault, options[:path]}

        {_, []} ->
          {:error, %VaultError{kind: :no_vaults}}

        {_, several} ->
          {:error, %VaultError{kind: :which, available: Enum.map(several, & &1.name)}}
      end
    end
  end

  # Without the characters that Windows and Obsidian's links do not allow, and without joiners of
  # emoji and scripts, which are allowed in a title but not in a file name.
  @title_only ~r/[\x{200C}\x{200D}\p{Cn}\p{Co}]/u

  defp file_name(title) do
    name =
      title
      |> String.replace(~r/[\/\\:*?"<>|#^\[\]\x00-\x1f\x7f]+/u, " ")
      |> String.replace(@title_only, "")
      |> String.split()
      |> Enum.join(" ")

    name = name |> String.slice(0, 100) |> String.trim() |> String.trim_trailing(".")

    with false <- name == "" or String.starts_with?(name, ".") or byte_size(name) > 240,
         :ok <- FileName.check(name) do
      {:ok, name}
    else
      true -> {:error, %VaultError{kind: :name, name: title}}
      {:error, reason} -> {:error, %VaultError{kind: :name, name: title, reason: reason}}
    end
  end

  defp folder_name(nil), do: {:ok, ""}

  defp folder_name(folder) do
    names = folder |> String.trim("/") |> String.split("/")

    cond do
      folder in ["", "/"] ->
        {:ok, ""}

      length(names) > Folder.max_depth() ->
        reason = "is deeper than #{Folder.max_depth()} folders"
        {:error, %VaultError{kind: :name, name: folder, reason: reason}}

      Enum.all?(names, &match?({:ok, ^&1}, file_name(&1))) and "node_modules" not in names ->
        {:ok, Enum.join(names, "/")}

      true ->
        {:error, %VaultError{kind: :name, name: folder}}
    end
  end

  # Reading and editing a note

  def read(%View{} = view, name, options \\ []) do
    with {:ok, sql} <- Search.fetch_sql(view),
         {:ok, document} <- Search.resolve(sql, view, name, options[:vault]),
         {:ok, [vault]} <- Search.visible_vaults(view, document.vault),
         {:ok, text, labels} <- text_of(vault, document),
         {:ok, note} <- note(document, text, labels),
         :ok <- check_visible(view, document, note) do
      fields = Map.take(note, [:title, :tags, :content])
      found = %{vault: vault.name, path: document.path, external: vault.external}
      {:ok, Map.merge(fields, found)}
    end
  end

  defp text_of(%{producer: {Folder, options}}, document) do
    with {:ok, text} <- read_file(options[:path], document), do: {:ok, text, []}
  end

  defp text_of(%{producer: nil, name: name}, _document),
    do: {:error, %VaultError{kind: :no_text, name: name}}

  defp text_of(%{producer: {module, options}}, document) do
    case module.read(options, document.id) do
      {:ok, read} -> {:ok, read.content, Map.get(read, :labels, [])}
      :missing -> Search.not_found(document.path)
      {:skip, reason} -> unreadable(document, reason)
      {:error, error} when is_exception(error) -> {:error, error}
      {:error, reason} -> unreadable(document, Indexer.reason(reason))
    end
  end

  defp unreadable(document, reason),
    do: {:error, %VaultError{kind: :unreadable, name: document.path, reason: reason}}

  def edit(%View{} = view, name, edit, options \\ []) do
    with {:ok, sql} <- Search.fetch_sql(view),
         {:ok, document} <- Search.resolve(sql, view, name, options[:vault]),
         {:ok, vault, root} <- folder_vault(view, document.vault) do
      # Two edits of a file must not both start from the same text, or one of them would be lost.
      :global.trans(
        {{__MODULE__, root, document.id}, self()},
        fn -> edit_file(view, vault, root, document, edit) end,
        [node()]
      )
    end
  end

  defp edit_file(view, vault, root, document, edit) do
    with {:ok, text} <- read_file(root, document),
         {:ok, before} <- note(document, text),
         :ok <- check_visible(view, document, before),
         :ok <- check_tenant(view, vault),
         :ok <- check_own_labels(view, vault, document, before),
         {:ok, body} <- Edit.apply(edit, before.content, document.path),
         head = binary_part(text, 0, byte_size(text) - byte_size(before.content)),
         changed = head <> body,
         {:ok, edited} <- note(document, changed),
         :ok <- check_frontmatter(document, before, edited),
         :ok <- replace_file(root, document, text, changed),
         :ok <- index(view.book, vault, document.id, changed) do
      {:ok, %{vault: vault.name, path: document.path, changed: changed != text}}
    end
  end

  defp read_file(root, document) do
    with {:error, %{kind: :missing}} <- Document.read(root, document.id),
         do: Search.not_found(document.path)
  end

  defp replace_file(_root, _document, text, text), do: :ok

  defp replace_file(root, document, _text, changed) do
    with {:ok, _file} <- Document.replace(root, document.id, changed), do: :ok
  end

  defp note(document, text, labels \\ []) do
    case Note.read(document.id, document.path, text, labels) do
      {:ok, note, _warning} ->
        {:ok, note}

      {:error, reason} ->
        unreadable(document, reason)
    end
  end

  # The file may have got other labels since it was indexed.
  defp check_visible(view, document, note) do
    if Profile.foreign(view.profile, note.labels) == [],
      do: :ok,
      else: Search.not_found(document.path)
  end

  defp check_own_labels(view, vault, document, note) do
    case view.profile.labels -- (note.labels ++ vault.labels) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, name: document.path, labels: missing}}
    end
  end

  # What a profile of a tenant writes must not reach other tenants.
  defp check_tenant(view, vault) do
    if Profile.writes?(view.profile, vault.tenant),
      do: :ok,
      else: {:error, %VaultError{kind: :common, name: vault.name}}
  end

  # A text that begins with --- could become frontmatter.
  defp check_frontmatter(document, before, edited) do
    if before.frontmatter == edited.frontmatter,
      do: :ok,
      else: {:error, %VaultError{kind: :frontmatter, name: document.path}}
  end

  # Documents of applications

  def put(book, vault, %{id: id, content: content} = document) do
    path = Map.get(document, :path, id)
    book = Book.fetch!(book)

    with {:ok, vault} <- Config.find(book.of_parts.vaults, vault),
         do: index(book.name, vault, id, path, content, Map.get(document, :labels, []))
  end

  def delete(book, vault, id) do
    book = Book.fetch!(book)

    with {:ok, vault} <- Config.find(book.of_parts.vaults, vault),
         {:ok, _} <- Table.remove(Book.sql(book), vault.name, [id]),
         do: :ok
  end

  # Indexing

  defp index(book, vault, id, text), do: index(book, vault, id, id, text, [])

  defp index(book, vault, id, path, text, labels) do
    with {:ok, note, _warning} <- Note.read(id, path, text, labels),
         {:ok, _} <- Indexer.put(book, vault, [%{note | size: byte_size(text)}]) do
      :ok
    else
      {:error, reason} when is_binary(reason) ->
        {:error, %VaultError{kind: :unreadable, name: path, reason: reason}}

      error ->
        error
    end
  end
end
