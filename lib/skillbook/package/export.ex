defmodule Skillbook.Package.Export do
  @moduledoc false
  # Writes an entry as a folder in the Agent Skills format: `SKILL.md`, built from the entry's
  # fields, and copies of the skill's other files.

  alias Skillbook.Package.{FolderLock, Installed, Item, Skill}
  alias Skillbook.Support.Options
  alias Skillbook.{Document, Entry, Frontmatter, PackageError, View}

  @max_description 1024

  @doc "See `Skillbook.Package.export/4`. The options have their defaults."
  def run(view, name, folder, options) do
    with {:ok, entry} <- View.fetch(view, name),
         {:ok, frontmatter} <- View.frontmatter(view, entry.name),
         {:ok, own} <- Frontmatter.access(frontmatter),
         {:ok, files} <- resource_files(entry) do
      name = Skill.normalize(entry.name) || "skill"
      files = [{%Item{path: "SKILL.md", type: :file}, page(entry, own.data, name)} | files]

      case File.mkdir_p(folder) do
        :ok ->
          FolderLock.run(folder, options[:lock_timeout], fn ->
            write(folder, name, files, options[:force])
          end)

        {:error, reason} ->
          PackageError.io(folder, reason)
      end
    end
  end

  defp write(folder, name, files, force) do
    Installed.recover(folder)
    path = Path.join(folder, name)
    hashes = Map.new(files, fn {item, bytes} -> {item.path, Installed.digest(bytes)} end)

    case Installed.compare(folder, name, %{"files" => hashes}) do
      :same ->
        {:ok, path}

      state when state == :missing or force ->
        with :ok <- Installed.put(folder, name, files, :no_entry), do: {:ok, path}

      _changed ->
        PackageError.new(
          :exists,
          path,
          "already exists with other content",
          "name another folder, or replace it with --force"
        )
    end
  end

  defp resource_files(%Entry{files: files, path: path}) do
    root = Path.dirname(path)

    Options.each(files, fn file ->
      with {:ok, bytes} <- Document.read(root, file) do
        item = %Item{
          path: file,
          type: :file,
          executable: executable?(Path.join(root, file)),
          size: byte_size(bytes)
        }

        {:ok, {item, bytes}}
      end
    end)
  end

  defp executable?(path) do
    case File.stat(path) do
      {:ok, %{mode: mode}} -> Bitwise.band(mode, 0o111) != 0
      {:error, _} -> false
    end
  end

  # Fields of the format, and those that go into `metadata` below.
  @written ~w(name description license compatibility allowed-tools metadata title tags author
              version schedule timezone)
  # They name code, tools and profiles of this book, and labels of which the command tells.
  @left_out ~w(domain handler tool aliases effects timeout max_running strict on_error run_as
               visibility_labels labels)
  # Columns of the store that a text need not have.
  @columns ~w(source include_in_prompt)

  defp page(entry, own, name) do
    {metadata, rest} = metadata(entry, own)

    fields =
      [
        {"name", name},
        {"description", description(entry)},
        {"license", entry.license},
        {"compatibility", entry.compatibility},
        {"allowed-tools", tools(entry.data["allowed-tools"])},
        {"metadata", metadata}
      ]
      |> Enum.reject(fn {_, value} -> value in [nil, %{}] end)

    body =
      if entry.body == "" or String.ends_with?(entry.body, "\n"),
        do: entry.body,
        else: entry.body <> "\n"

    Frontmatter.write(fields ++ Enum.sort(rest), body)
  end

  # In the format tools are one text, in which spaces and commas separate them.
  defp tools([_ | _] = tools) do
    if Enum.any?(tools, &(to_string(&1) =~ ~r/[\s,]/)), do: tools, else: Enum.join(tools, " ")
  end

  defp tools(tools), do: tools

  defp description(entry) do
    text = Enum.find([entry.description, entry.title, entry.name], &(&1 not in [nil, ""]))

    if String.length(text) > @max_description,
      do: String.slice(text, 0, @max_description - 1) <> "…",
      else: text
  end

  defp command(entry) do
    on_error = entry.data["on_error"]
    on_error = if is_binary(on_error), do: %{"skillbook-on-error" => on_error}, else: %{}
    Map.put(on_error, "skillbook-command", entry.name)
  end

  # The metadata, and the fields that other programs and Skillbook read outside of it. A field
  # whose name the author's metadata uses for another value stays outside too.
  defp metadata(entry, own) do
    own = own || %{}

    # The version in a text comes before the record's, which counts its changes.
    data = Map.merge(entry.data, Map.take(own, ["version"]))

    more =
      for key <- ["author", "version", "schedule", "timezone"],
          value = data[key],
          is_binary(value) or is_number(value),
          into: %{},
          do: {key, to_string(value)}

    # A page without a handler is a command of its name again where it is installed.
    more =
      if entry.kind == :command and entry.handler == nil,
        do: Map.merge(more, command(entry)),
        else: more

    more = if entry.title, do: Map.put(more, "title", entry.title), else: more
    more = if entry.tags != [], do: Map.put(more, "tags", Enum.join(entry.tags, ", ")), else: more
    {taken, more} = Map.split(more, Map.keys(entry.metadata))
    different = Map.reject(taken, fn {key, value} -> entry.metadata[key] == value end)

    rest =
      entry.data
      |> Map.merge(Map.take(own, @columns))
      |> Map.drop(@written ++ @left_out ++ (@columns -- Map.keys(own)))

    {Map.merge(more, entry.metadata), Map.merge(rest, different)}
  end
end
