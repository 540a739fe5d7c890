defmodule Skillbook.Vault.Folder do
  @moduledoc """
  Produces the notes of a folder: its Markdown files and those of its subfolders.

  `vaults: ["notes"]` and `vaults: [[path: "notes"]]` use this producer.

  ## Options

    * `:path` - the folder. Required
    * `:poll` - an interval in milliseconds at which the folder is scanned, instead of relying on
      the system's file events

  The id of a note is its path in the folder. Names that begin with a dot, `node_modules` and
  backup files that end in `~` are ignored. Symbolic links are not followed.

  ## Examples

      {Skillbook,
       name: MyApp.Skills,
       sources: ["skills"],
       store: "skillbook.db",
       vaults: ["notes", [path: "/mnt/share/wiki", watch: [poll: 60_000]]]}
  """

  @behaviour Skillbook.Vault.Producer

  alias Skillbook.Native
  alias Skillbook.Support.ReadFile
  alias Skillbook.Vault.Note

  require Logger

  # Used when file events are not available.
  @default_poll 1_000
  # The native watcher has the same limit.
  @max_depth 16

  @doc "How many folders may lie within each other: deeper ones are not indexed."
  @spec max_depth() :: pos_integer()
  def max_depth, do: @max_depth

  @impl true
  def list(options, under), do: scan(options[:path], under)

  defp scan(root, "") do
    case File.stat(root) do
      {:ok, %{type: :directory}} ->
        # If an unmounted or unreadable folder were an empty list, the index would lose its notes.
        with {:ok, _names} <- :file.list_dir_all(root) do
          {references, skipped} = folder(root, "", 1, {[], []})
          {:ok, references, skipped}
        end

      {:ok, _} ->
        {:error, :enotdir}

      {:error, reason} ->
        {:error, reason}
    end
  end

  defp scan(root, under) do
    names = String.split(under, "/")

    if Enum.any?(names, &ignored?/1) or linked?(root, names) do
      {:ok, [], []}
    else
      {references, skipped} = entry(root, under, length(names), {[], []})
      {:ok, references, skipped}
    end
  end

  # Whether a parent folder is a link. `entry/4` checks the last name.
  defp linked?(root, names) do
    names
    |> Enum.drop(-1)
    |> Enum.scan(&(&2 <> "/" <> &1))
    |> Enum.any?(fn part -> not match?({:ok, :directory, _, _}, stat(Path.join(root, part))) end)
  end

  defp folder(root, path, depth, found) do
    case :file.list_dir_all(Path.join(root, path)) do
      {:ok, names} ->
        Enum.reduce(names, found, fn name, {references, skipped} ->
          name = if is_list(name), do: List.to_string(name), else: name

          cond do
            not String.valid?(name) ->
              skip = "the name #{inspect(name)} in #{inspect(path)} is not UTF-8"
              {references, [skip | skipped]}

            ignored?(name) ->
              {references, skipped}

            true ->
              path = if path == "", do: name, else: path <> "/" <> name
              entry(root, path, depth, {references, skipped})
          end
        end)

      {:error, reason} ->
        {references, skipped} = found

        {references,
         ["the folder #{path} cannot be read: #{:file.format_error(reason)}" | skipped]}
    end
  end

  defp entry(root, path, depth, {references, skipped} = found) do
    case stat(Path.join(root, path)) do
      {:ok, :directory, _, _} when depth > @max_depth ->
        {references, ["#{path} is deeper than #{@max_depth} folders" | skipped]}

      {:ok, :directory, _, _} ->
        folder(root, path, depth + 1, found)

      {:ok, :symlink, _, _} ->
        {references, ["#{path} is a symbolic link, and links are not followed" | skipped]}

      {:ok, :regular, size, mtime} ->
        file(path, size, mtime, found)

      _ ->
        found
    end
  end

  defp file(path, size, mtime, {references, skipped} = found) do
    cond do
      not Regex.match?(~r/\.(md|markdown)\z/i, path) ->
        found

      size > Note.max_bytes() ->
        skip = "#{path} is not indexed: it has more than #{Note.max_bytes()} bytes"
        {references, [skip | skipped]}

      true ->
        {[%{id: path, size: size, mtime: mtime} | references], skipped}
    end
  end

  defp ignored?(name),
    do: String.starts_with?(name, ".") or name == "node_modules" or String.ends_with?(name, "~")

  defp stat(path) do
    with {:ok, info} <- :file.read_link_info(path, [:raw, time: :posix]),
         do: {:ok, elem(info, 2), elem(info, 1), elem(info, 5)}
  end

  @impl true
  def read(options, id) do
    path = Path.join(options[:path], id)

    # The file may have become a link, or grown, since it was listed.
    with {:ok, :regular, size, _} <- stat(path),
         true <-
           size <= Note.max_bytes() || {:skip, "it has more than #{Note.max_bytes()} bytes"},
         {:ok, content} <- ReadFile.regular(path, Note.max_bytes()) do
      {:ok, %{path: id, content: content}}
    else
      {:error, :enoent} -> :missing
      {:ok, _, _, _} -> {:skip, "it is not a file"}
      {:error, reason} -> {:skip, "#{:file.format_error(reason)}"}
      skip -> skip
    end
  end

  @impl true
  def watch(options) do
    poll = options[:poll]
    Native.watch_start([options[:path]], poll != nil, poll || @default_poll)
  end

  @impl true
  def changed(options, {:skillbook_paths, paths}) when is_list(paths) do
    root = options[:path]
    ids = Enum.map(paths, &Path.relative_to(&1, root))
    if root in paths or Enum.any?(ids, &(Path.type(&1) == :absolute)), do: :all, else: ids
  end

  def changed(_options, {:skillbook_paths, _all}), do: :all

  def changed(options, {:skillbook_polling, reason}) do
    Logger.warning(
      "the vault of #{options[:path]} gets no file events and scans the folder instead: #{reason}"
    )

    :ignore
  end

  def changed(_options, :skillbook_watch_ended), do: exit(:watch_ended)
  def changed(_options, _message), do: :ignore
end
