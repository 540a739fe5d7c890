defmodule Skillbook.MCP.Skill do
  @moduledoc false
  # An entry as a skill of the extension `io.modelcontextprotocol/skills`: its `SKILL.md`, its
  # frontmatter as JSON, and the list of its files with digests.
  #
  # A skill's own text is served as its author wrote it. Where that is no `SKILL.md` that every
  # client reads alike, one is written, as for an export: for pages of commands, for names and
  # values that the format does not allow, for YAML that had to be repaired, and for texts with
  # hidden characters, which are shown.

  alias Skillbook.MCP.{Digests, SkillURI}
  alias Skillbook.Package.{Export, Publish}
  alias Skillbook.Support.{Hidden, JSON}
  alias Skillbook.{Entry, Frontmatter, View}

  # The limits of the extension for one skill, `SKILL.md` included.
  @max_files 512
  @max_bytes 16 * 1024 * 1024
  @max_description 1024
  @max_compatibility 500

  @typedoc "Its `SKILL.md`, without the text itself."
  @type text :: %{uri: String.t(), frontmatter: map(), digest: String.t(), size: pos_integer()}

  @doc "The most bytes of a file."
  @spec max_bytes() :: pos_integer()
  def max_bytes, do: @max_bytes

  @doc """
  Whether an entry is served. A skill of another MCP server is not: its texts are from outside,
  and only `get_skill` says so.
  """
  @spec served?(Entry.t()) :: boolean()
  def served?(%Entry{path: path, source: source}),
    do: not String.starts_with?(path, "mcp:" <> source <> "/")

  @doc """
  Returns the names of an entry's files. Clients refuse a backslash in a name, which some systems
  take for a slash.
  """
  @spec files(Entry.t()) :: [String.t()]
  def files(%Entry{files: files}), do: Enum.reject(files, &String.contains?(&1, "\\"))

  @doc "Returns the text of an entry's `SKILL.md`, and its frontmatter."
  @spec page(View.t(), Entry.t()) :: {:ok, String.t(), map()} | :error
  def page(view, %Entry{kind: kind} = entry) when kind in [:command, :skill] do
    with {:ok, own} <- View.frontmatter(view, entry.name) do
      text = own <> entry.body

      case as_written(entry, text) do
        {:ok, frontmatter} -> {:ok, text, frontmatter}
        :error -> written(view, entry)
      end
    else
      {:error, _} -> :error
    end
  end

  defp as_written(%Entry{kind: :skill, name: name}, "---" <> _ = text) do
    with true <- SkillURI.format?(name) and not Hidden.any?(text),
         {:ok, %{diagnostics: [], data: %{"name" => ^name} = data}} <- Frontmatter.parse(text),
         true <- described?(data) and data == conform(data) do
      {:ok, data}
    else
      _ -> :error
    end
  end

  defp as_written(_entry, _text), do: :error

  # Clients count code points.
  defp described?(%{"description" => text}) when is_binary(text),
    do: String.trim(text) != "" and length(String.codepoints(text)) <= @max_description

  defp described?(_data), do: false

  defp written(view, entry) do
    with {:ok, text} <- Export.page(view, entry, SkillURI.name(entry.name)),
         {:ok, %{data: data, body: body}} <- Frontmatter.parse(text) do
      case data |> conform() |> visible() do
        ^data -> {:ok, Hidden.visible(text), data}
        data -> {:ok, write(data, Hidden.visible(body)), data}
      end
    else
      {:error, _} -> :error
    end
  end

  defp write(data, body) do
    {first, rest} = Map.split(data, ["name", "description"])
    Frontmatter.write(Enum.sort(first, :desc) ++ Enum.sort(rest), body)
  end

  # The types that the format gives to its fields. A client that checks them may refuse a whole
  # list for one skill.
  defp conform(data) do
    data
    |> change("license", &text/1)
    |> change("compatibility", &(&1 |> text() |> String.slice(0, @max_compatibility)))
    |> change("allowed-tools", &tools/1)
    |> change("metadata", &metadata/1)
  end

  defp change(data, field, convert) do
    case data do
      %{^field => value} when value in [nil, ""] -> Map.delete(data, field)
      %{^field => value} -> %{data | field => convert.(value)}
      _ -> data
    end
  end

  defp tools(tools) when is_list(tools), do: Enum.map_join(tools, " ", &text/1)
  defp tools(tools), do: text(tools)

  defp metadata(%{} = map), do: Map.new(map, fn {key, value} -> {key, text(value)} end)
  defp metadata(value), do: %{"metadata" => text(value)}

  defp text(text) when is_binary(text), do: text
  defp text(nil), do: ""
  defp text(value), do: JSON.encode(value)

  # Characters are shown in the values: a code in a quoted text could be an escape of YAML.
  defp visible(text) when is_binary(text), do: Hidden.visible(text)
  defp visible(list) when is_list(list), do: Enum.map(list, &visible/1)

  defp visible(map) when is_map(map),
    do: Map.new(map, fn {key, value} -> {visible(key), visible(value)} end)

  defp visible(value), do: value

  @doc """
  Returns an entry of `skills/list`.

  `{:error, text}` has the limit of the extension that the skill exceeds; `:error` means that it
  has no `SKILL.md`.
  """
  @spec entry(View.t(), Entry.t()) :: {:ok, map()} | {:error, String.t()} | :error
  def entry(view, %Entry{} = entry),
    do: with({:ok, text} <- text(view, entry), do: entry(view, entry, text))

  @spec entry(View.t(), Entry.t(), text()) :: {:ok, map()} | {:error, String.t()}
  def entry(view, entry, %{uri: uri} = text) do
    files = files(entry)

    with :ok <- count(uri, files),
         {:ok, rows} <- rows(view, entry, files, uri, @max_bytes - text.size) do
      resources = [resource(uri, text.digest, text.size) | rows]
      {:ok, %{"uri" => uri, "frontmatter" => text.frontmatter, "resources" => resources}}
    end
  end

  @doc "Returns the part of `entry/2` that does not depend on the entry's other files."
  @spec text(View.t(), Entry.t()) :: {:ok, text()} | :error
  def text(view, entry) do
    with {:ok, text, frontmatter} <- page(view, entry) do
      uri = SkillURI.of(entry.name, SkillURI.page())
      size = byte_size(text)
      {:ok, %{uri: uri, frontmatter: frontmatter, digest: Publish.digest(text), size: size}}
    end
  end

  defp resource(uri, digest, size), do: %{"uri" => uri, "digest" => digest, "size" => size}

  defp count(uri, files) do
    # A list may have hundreds of thousands of files; only the first ones are counted.
    if Enum.drop(files, @max_files - 1) == [],
      do: :ok,
      else: {:error, "#{uri} has more than #{@max_files} files"}
  end

  # A file that cannot be read is not served at all, so it is in no list either.
  defp rows(view, entry, files, uri, left) do
    Enum.reduce_while(files, {:ok, [], left}, fn file, {:ok, done, left} ->
      case Digests.fetch(view.book, entry, file, left) do
        {:ok, digest, size} ->
          row = resource(SkillURI.of(entry.name, file), digest, size)
          {:cont, {:ok, [row | done], left - size}}

        :error ->
          {:cont, {:ok, done, left}}

        {:error, :efbig} ->
          {:halt, {:error, "#{uri} and its files have more than #{@max_bytes} bytes"}}
      end
    end)
    |> then(fn
      {:ok, done, _left} -> {:ok, Enum.reverse(done)}
      error -> error
    end)
  end
end
