defmodule Skillbook.Vault.Folder do
  @moduledoc """
  The notes of a folder: its Markdown files and those of the folders in it.

  ## Options

    * `:path` - the folder. Required
    * `:poll` - look through it at intervals of so many milliseconds instead of relying on the system's reports

  Names that begin with a dot, `node_modules` and copies that end in `~` are left out, as sources leave them out. Links are not
  followed. The id of a note is its path below the folder.
  """

  @behaviour Skillbook.Vault.Producer

  alias Skillbook.Native
  alias Skillbook.Vault.Note

  require Logger

  @interval 1_000
  # As deep as the native watcher looks.
  @deepest 16

  @impl true
  def list(options, under) do
    root = options[:path]

    with {:ok, references, skipped} <- look(root, under) do
      {:ok, references, skipped}
    end
  end

  defp look(root, "") do
    case File.stat(root) do
      # A drive that is not there now, or may not be read, has not lost its notes.
      {:ok, %{type: :directory}} ->
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

  defp look(root, under) do
    names = String.split(under, "/")

    if Enum.any?(names, &left_out?/1) or linked?(root, names) do
      {:ok, [], []}
    else
      {references, skipped} = entry(root, under, length(names), {[], []})
      {:ok, references, skipped}
    end
  end

  # Whether a folder on the way is a link; the last name is looked at by itself.
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
              {references, ["#{inspect(name)} in #{inspect(path)} is no name in UTF-8" | skipped]}

            left_out?(name) ->
              {references, skipped}

            true ->
              entry(
                root,
                if(path == "", do: name, else: path <> "/" <> name),
                depth,
                {references, skipped}
              )
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
      {:ok, :directory, _, _} when depth > @deepest ->
        {references, ["#{path} is deeper than #{@deepest} folders" | skipped]}

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

      size > Note.largest() ->
        {references,
         ["#{path} is not indexed: it has more than #{Note.largest()} bytes" | skipped]}

      true ->
        {[%{id: path, size: size, mtime: mtime} | references], skipped}
    end
  end

  defp left_out?(name),
    do: String.starts_with?(name, ".") or name == "node_modules" or String.ends_with?(name, "~")

  defp stat(path) do
    with {:ok, info} <- :file.read_link_info(path, [:raw, time: :posix]),
         do: {:ok, elem(info, 2), elem(info, 1), elem(info, 5)}
  end

  @impl true
  def read(options, id) do
    path = Path.join(options[:path], id)

    # It may have become a link or grown since it was listed.
    with {:ok, :regular, size, _} <- stat(path),
         true <- size <= Note.largest() || {:skip, "it has more than #{Note.largest()} bytes"},
         {:ok, content} <- File.read(path) do
      {:ok, %{path: id, content: content}}
    else
      {:error, :enoent} -> :missing
      {:ok, _, _, _} -> {:skip, "it is no file"}
      {:error, reason} -> {:skip, "#{:file.format_error(reason)}"}
      skip -> skip
    end
  end

  @impl true
  def watch(options) do
    poll = options[:poll]
    Native.watch_start([options[:path]], poll != nil, poll || @interval)
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
      "the vault of #{options[:path]} gets no reports of changed files and looks through it instead: #{reason}"
    )

    :ignore
  end

  def changed(_options, :skillbook_watch_ended), do: exit(:watch_ended)
  def changed(_options, _message), do: :ignore
end
