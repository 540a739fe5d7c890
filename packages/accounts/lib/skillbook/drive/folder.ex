defmodule Skillbook.Drive.Folder do
  @moduledoc """
  Produces the documents in a folder of a drive, for a vault: its documents as Markdown, its
  Markdown files, and those of its subfolders.

      {Skillbook,
       name: MyApp.Skills,
       store: "skillbook.db",
       connections: [google: [client_id: id, client_secret: {:env, "GOOGLE"}]],
       vaults: [
         [name: "plans", labels: ["ann"], drive: [profile: "ann", folder: "1x7Tq0bYzWm3"]]
       ]}

  ## Options

    * `:profile` (text) - the id of the profile whose connection reads the folder. Required
    * `:folder` (text) - the id or the address of the folder; `"root"` is the top of the person's
      own files. Required

  The vault's `labels:` are required with `drive:`, because a folder of one person would otherwise
  be searched by all profiles; `[]` means all. `watch: [poll: milliseconds]` sets how often
  changes are asked for. Default: 60,000.

  ## Documents

  The id of a document is that of the drive, and stays when it is renamed or moved. Its path has
  the names of its folders, with `.md` at the end. Names that begin with a dot and `node_modules`
  are left out, shortcuts are not followed, and folders are read 16 deep and up to 100,000
  entries.

  A document that is moved out of the folder or into the trash, that is deleted, or that the
  person may no longer see is removed from the index. So are all of them, if the folder is gone,
  or if the person has disconnected the account. Failures of the service remove nothing.

  Documents were written by others: `markdown.search` and `markdown.read` mark them as texts from
  outside.
  """

  @behaviour Skillbook.Vault.Producer

  alias Skillbook.{Command, ConnectionError, Connections, Context, Drive, DriveError}
  alias Skillbook.{NotFoundError, OptionError, Profile}
  alias Skillbook.Drive.Feed
  alias Skillbook.Support.Options
  alias Skillbook.Vault.Note

  @max_entries 100_000
  @max_depth 16
  # Milliseconds for the list of a folder, and for one document.
  @list_time 600_000
  @read_time 60_000
  # Below the present time in seconds, as the indexer expects of a time of change.
  @marks 1_000_000_000

  @doc false
  # Checks the options of `drive:`, and adds the name of the book.
  @spec options(keyword(), atom(), keyword()) :: {:ok, keyword()} | {:error, OptionError.t()}
  def options(options, book, poll) do
    schema = [
      profile: {"the id of a profile", &Options.text?/1},
      folder: {"the id or the address of a folder", &Options.text?/1}
    ]

    with :ok <- Options.validate(options, "the option :drive of a vault", schema),
         nil <- Enum.find([:profile, :folder], &(options[&1] == nil)) do
      {:ok, [book: book] ++ options ++ poll}
    else
      {:error, error} ->
        {:error, error}

      missing ->
        subject = "the option :drive of a vault"
        {:error, %OptionError{subject: subject, option: missing, problem: :missing}}
    end
  end

  @doc false
  @spec account(keyword(), pos_integer()) ::
          {:ok, Connections.Account.t()} | {:error, ConnectionError.t()}
  def account(options, time) do
    context = %Context{
      book: options[:book],
      view: nil,
      profile: %Profile{id: options[:profile]},
      entry: nil,
      command: Command.parse!("drive.list"),
      now: DateTime.utc_now(),
      timeout: time
    }

    Connections.account(context, :drive)
  end

  @impl true
  def list(options, under) do
    with {:ok, account} <- account(options, @list_time),
         {:ok, root} <- root(account, options[:folder]) do
      if under == "", do: tree(account, root), else: one(account, root, under)
    else
      # The folder is gone, or hidden from the person.
      {:error, %NotFoundError{}} -> {:ok, [], lost(under, "does not exist, or is hidden")}
      {:error, %DriveError{kind: :no_folder}} -> {:ok, [], lost(under, "is not a folder")}
      {:error, %ConnectionError{} = error} -> disconnected(options, under, error)
      {:error, error} -> {:error, error}
    end
  end

  defp root(account, id) do
    case Drive.file(account, id) do
      {:ok, %{kind: :folder} = folder} -> {:ok, folder}
      {:ok, file} -> {:error, %DriveError{kind: :no_folder, name: file.name}}
      error -> error
    end
  end

  defp lost("", why), do: ["its documents are removed, because its folder #{why}"]
  defp lost(_id, _why), do: []

  # Only a connection that the database knows to be gone removes documents.
  defp disconnected(options, under, %{kind: kind} = error) when kind in [:none, :revoked] do
    with {:ok, connections} <- Connections.list(options[:book], profile: options[:profile]),
         false <- Enum.any?(connections, &(&1.status == :connected and :drive in &1.services)) do
      reason = "its documents are removed: #{Exception.message(error)}"
      {:ok, [], if(under == "", do: [reason], else: [])}
    else
      _unknown_or_connected -> {:error, error}
    end
  end

  defp disconnected(_options, _under, error), do: {:error, error}

  # All documents, level by level.

  defp tree(account, root), do: tree(account, root, [{root, ""}], 1, %{root.id => true}, [])

  defp tree(_account, _root, [], _depth, _seen, found), do: {:ok, found}

  defp tree(account, root, folders, depth, seen, found) do
    paths = Map.new(folders, fn {folder, path} -> {folder.id, path} end)
    room = @max_entries - map_size(seen)

    case Drive.children(account, Enum.map(folders, &elem(&1, 0)), room) do
      {:ok, files} ->
        files =
          for file <- files,
              above = paths[file.folder],
              not Map.has_key?(seen, file.id) and not ignored?(file.name),
              do: {file, above}

        seen =
          Enum.reduce(files, seen, fn {file, _above}, seen -> Map.put(seen, file.id, true) end)

        notes = for {file, above} <- files, note?(file), do: listed(file, above)

        below =
          for {%{kind: :folder} = folder, above} <- files,
              depth < @max_depth,
              do: {folder, above <> name(folder) <> "/"}

        tree(account, root, below, depth + 1, seen, notes ++ found)

      {:error, %DriveError{kind: :too_many} = error} ->
        {:error, %{error | name: root.name, limit: @max_entries}}

      error ->
        error
    end
  end

  # One document, if it is below the folder.

  defp one(account, root, id) do
    case Drive.file(account, id) do
      {:ok, file} ->
        # The id of a shortcut is not that of its target.
        if note?(file) and file.id == id and not ignored?(file.name),
          do: below(account, root, file),
          else: {:ok, []}

      {:error, %NotFoundError{}} ->
        {:ok, []}

      error ->
        error
    end
  end

  defp below(account, root, file) do
    case path(account, root, file.folder, "", @max_depth) do
      {:ok, nil} -> {:ok, []}
      {:ok, above} -> {:ok, [listed(file, above)]}
      error -> error
    end
  end

  # The names of the folders between the root and a file, or nil if it is elsewhere.
  defp path(_account, %{id: id}, id, path, _left), do: {:ok, path}
  defp path(_account, _root, nil, _path, _left), do: {:ok, nil}
  defp path(_account, _root, _folder, _path, 0), do: {:ok, nil}

  defp path(account, root, folder, path, left) do
    case Drive.file(account, folder) do
      {:ok, file} ->
        if ignored?(file.name),
          do: {:ok, nil},
          else: path(account, root, file.folder, name(file) <> "/" <> path, left - 1)

      {:error, %NotFoundError{}} ->
        {:ok, nil}

      error ->
        error
    end
  end

  defp note?(%{kind: :markdown}), do: true
  defp note?(%{kind: :document, own: own}), do: own
  defp note?(_file), do: false

  # As in folders of files.
  defp ignored?("." <> _name), do: true
  defp ignored?(name), do: name == "node_modules"

  # A rename changes no time, so the mark is made of everything that the index shows.
  defp listed(file, above) do
    path = above <> name(file) <> extension(file)
    mark = :erlang.phash2({file.revision, file.modified, path}, @marks)
    %{id: file.id, size: file.size, mtime: mark, path: path}
  end

  defp extension(%{kind: :document}), do: ".md"
  defp extension(_file), do: ""

  # Names in a drive may have any character; those in a path have no slash.
  defp name(file), do: file.name |> String.replace(~r/[\/\x00-\x1f\x7f]+/, " ") |> String.trim()

  @impl true
  def read(options, id) do
    with {:ok, account} <- account(options, @read_time),
         {:ok, file} <- Drive.file(account, id),
         true <- file.own or (file.size || 0) <= Note.max_bytes(),
         {:ok, text} <- Drive.text(account, file) do
      {:ok, %{content: text}}
    else
      false -> {:skip, "it has more than #{Note.max_bytes()} bytes"}
      {:error, %NotFoundError{}} -> :missing
      {:error, %DriveError{} = error} -> {:skip, Exception.message(error)}
      {:error, error} -> {:error, error}
    end
  end

  @impl true
  def watch(options), do: Feed.start_link(options, self())

  @impl true
  def changed(_options, {:skillbook_drive, changed}), do: changed
  def changed(_options, _message), do: :ignore
end
