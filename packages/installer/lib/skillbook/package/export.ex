defmodule Skillbook.Package.Export do
  @moduledoc false
  # Turns an entry into the files of a skill in the Agent Skills format, and writes them as a
  # folder: `SKILL.md`, built from the entry's fields, and copies of the skill's other files.

  alias Skillbook.Package.{FolderLock, Installed, Item, Skill}
  alias Skillbook.Support.UntilError
  alias Skillbook.{Document, Entry, Frontmatter, PackageError, View}

  @max_description 1024

  @doc "See `Skillbook.Package.export/4`. The options have their defaults."
  def run(view, name, folder, options) do
    with {:ok, entry} <- View.fetch(view, name),
         name = Skill.normalize(entry.name) || "skill",
         {:ok, files} <- files(view, entry, name) do
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

  @doc "The files of an entry as a skill of this name; `SKILL.md` is the first."
  @spec files(View.t(), Entry.t(), String.t()) ::
          {:ok, [{Item.t(), binary()}]} | {:error, Exception.t()}
  def files(view, entry, name) do
    with {:ok, text} <- page(view, entry, name),
         {:ok, files} <- resource_files(entry),
         do: {:ok, [{%Item{path: "SKILL.md", type: :file, size: byte_size(text)}, text} | files]}
  end

  @doc "Whether an entry can be passed on. Tools and skills of MCP servers are their servers'."
  @spec own?(Entry.t()) :: boolean()
  def own?(%Entry{path: "mcp:" <> _}), do: false
  def own?(_entry), do: true

  @doc "The text of an entry's `SKILL.md` as a skill of this name."
  @spec page(View.t(), Entry.t(), String.t()) :: {:ok, String.t()} | {:error, Exception.t()}
  def page(_view, %Entry{path: "mcp:" <> _} = entry, _name) do
    PackageError.new(:skill, entry.name, "belongs to an MCP server and cannot be passed on")
  end

  def page(view, entry, name) do
    with {:ok, frontmatter} <- View.frontmatter(view, entry.name),
         {:ok, own} <- Frontmatter.access(frontmatter),
         {:ok, entry} <- ordered(view, entry),
         do: {:ok, text(entry, own.data, name)}
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

    UntilError.map(files, fn file ->
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
  @left_out ~w(domain handler tool on_error run_as visibility_labels labels)
  # They are about the run of a command, and of no use to a text.
  @of_runs ~w(aliases effects approval timeout max_running idempotent strict)
  # Columns of the store that a text need not have.
  @columns ~w(source include_in_prompt)

  # Words before the first flag become values of flags in the order of `flags`.
  defp ordered(view, %Entry{data: %{"flags" => %{} = flags}} = entry) do
    with {:ok, declaration} <- View.flags(view, entry.name) do
      pairs =
        for %{name: name} <- declared(declaration),
            is_map_key(flags, name),
            do: {name, flags[name]}

      if length(pairs) == map_size(flags),
        do: {:ok, %{entry | data: %{entry.data | "flags" => pairs}}},
        else: {:ok, entry}
    end
  end

  defp ordered(_view, entry), do: {:ok, entry}

  defp declared(%{given: true, flags: flags}), do: flags
  defp declared(_declaration), do: []

  defp text(entry, own, name) do
    {metadata, rest} = metadata(entry, own, name)

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

  @doc "The description of an entry in the format: its own, its title or its name."
  @spec description(Entry.t()) :: String.t()
  def description(entry) do
    text = Enum.find([entry.description, entry.title, entry.name], &(&1 not in [nil, ""]))
    if units(text) > @max_description, do: cut(text), else: text
  end

  # Programs count characters in different ways. UTF-16 units are the most.
  defp units(text), do: div(byte_size(:unicode.characters_to_binary(text, :utf8, :utf16)), 2)

  defp cut(text) do
    text
    |> String.graphemes()
    |> Enum.reduce_while({[], 1}, fn grapheme, {start, count} ->
      count = count + units(grapheme)

      if count > @max_description,
        do: {:halt, {start, count}},
        else: {:cont, {[start, grapheme], count}}
    end)
    |> then(fn {start, _count} -> IO.iodata_to_binary([start, "…"]) end)
  end

  defp command(entry) do
    on_error = entry.data["on_error"]
    on_error = if is_binary(on_error), do: %{"skillbook-on-error" => on_error}, else: %{}
    Map.put(on_error, "skillbook-command", entry.name)
  end

  # The metadata, and the fields that other programs and Skillbook read outside of it. A field
  # whose name the author's metadata uses for another value stays outside too.
  defp metadata(entry, own, name) do
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
    command? = entry.kind == :command and entry.handler == nil and entry.data["handler"] == nil

    more =
      cond do
        command? -> Map.merge(more, command(entry))
        entry.name != name -> Map.put(more, "skillbook-name", entry.name)
        true -> more
      end

    more = if entry.title, do: Map.put(more, "title", entry.title), else: more
    more = if entry.tags != [], do: Map.put(more, "tags", Enum.join(entry.tags, ", ")), else: more
    {taken, more} = Map.split(more, Map.keys(entry.metadata))
    different = Map.reject(taken, fn {key, value} -> entry.metadata[key] == value end)

    rest =
      entry.data
      |> Map.merge(Map.take(own, @columns))
      |> Map.drop(@written ++ @left_out ++ (@columns -- Map.keys(own)))
      |> Map.drop(if(command?, do: [], else: @of_runs))

    {Map.merge(more, entry.metadata), Map.merge(rest, different)}
  end
end
