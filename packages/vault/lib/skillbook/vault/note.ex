defmodule Skillbook.Vault.Note do
  @moduledoc false
  # Parses a document of a vault: frontmatter, labels, title, aliases, tags and links.

  alias Skillbook.Frontmatter

  @type t :: %__MODULE__{
          id: String.t(),
          path: String.t(),
          folder: String.t(),
          name: String.t(),
          title: String.t(),
          aliases: [String.t()],
          tags: [String.t()],
          links: [String.t()],
          frontmatter: map(),
          content: String.t(),
          word_count: non_neg_integer(),
          labels: [String.t()],
          hash: String.t(),
          size: non_neg_integer() | nil,
          mtime: integer() | nil
        }

  @typedoc "The fields that the index reads, of a note or of its row."
  @type searched :: %{
          required(:path) => String.t(),
          required(:folder) => String.t(),
          required(:name) => String.t(),
          required(:title) => String.t(),
          required(:aliases) => [String.t()],
          required(:tags) => [String.t()],
          required(:frontmatter) => map(),
          required(:content) => String.t(),
          optional(atom()) => term()
        }

  defstruct [
    :id,
    :path,
    :folder,
    :name,
    :title,
    :content,
    :word_count,
    :hash,
    :size,
    :mtime,
    aliases: [],
    tags: [],
    links: [],
    frontmatter: %{},
    labels: []
  ]

  @max_bytes 2_097_152
  # PostgreSQL's indexes take keys of up to about 2,700 bytes.
  @max_name 2_000

  @doc "The size of the largest document that is indexed."
  def max_bytes, do: @max_bytes

  @doc """
  Parses a document: `{:ok, note, warning}`, or `{:error, reason}` if it must not be indexed.

  The warning is nil, or a text about frontmatter that cannot be read. `labels` are added to the
  labels of the frontmatter.
  """
  @spec read(String.t(), String.t(), binary(), [String.t()]) ::
          {:ok, t(), String.t() | nil} | {:error, String.t()}
  def read(id, path, text, labels \\ []) do
    with :ok <- short("id", id),
         :ok <- short("path", path),
         :ok <- text(text),
         {:ok, own} <- own_labels(text),
         {:ok, data, body, warning} <- split(text) do
      {:ok, note(id, path, text, data, body, own ++ labels), warning}
    end
  end

  @doc "A digest of a text, to detect changes."
  @spec hash(binary()) :: String.t()
  def hash(text), do: :crypto.hash(:sha256, text) |> Base.encode16(case: :lower)

  defp short(_what, name) when byte_size(name) <= @max_name, do: :ok
  defp short(what, _name), do: {:error, "its #{what} has more than #{@max_name} bytes"}

  defp text(text) do
    cond do
      byte_size(text) > @max_bytes ->
        {:error, "it has more than #{@max_bytes} bytes"}

      not String.valid?(text) or String.contains?(text, <<0>>) ->
        {:error, "it is not text in UTF-8"}

      true ->
        :ok
    end
  end

  defp split(text) do
    case Frontmatter.parse(text) do
      {:ok, document} ->
        {:ok, document.data, document.body, nil}

      {:error, error} ->
        {:ok, %{}, text, "its frontmatter is read as text: " <> Exception.message(error)}
    end
  end

  # The same rule as for entries: a restriction that cannot be read hides the document.
  defp own_labels(text) do
    case Frontmatter.access(text) do
      {:ok, own} -> {:ok, own.labels}
      {:error, message} -> {:error, message}
    end
  end

  defp note(id, path, text, data, body, labels) do
    name = path |> Path.basename() |> String.replace(~r/\.(md|markdown)\z/i, "")
    title = title(data, body) || name
    aliases = texts(data["aliases"]) ++ texts(data["alias"])

    %__MODULE__{
      id: id,
      path: path,
      folder: folder(path),
      name: name,
      title: title,
      aliases: Enum.uniq(aliases),
      tags: tags(data, body),
      links: links(body),
      frontmatter: data,
      content: body,
      word_count: body |> String.split() |> length(),
      labels: labels |> Enum.uniq() |> Enum.sort(),
      hash: hash(text)
    }
  end

  defp folder(path) do
    case Path.dirname(path) do
      "." -> ""
      folder -> folder
    end
  end

  defp title(data, body),
    do: line(plain(data["title"])) || body |> String.trim_leading() |> heading()

  defp heading(<<"#", blank, text::binary>>) when blank in [?\s, ?\t] do
    [text | _] = :binary.split(text, ["\n", "\r"])
    text |> without_marks(byte_size(text)) |> line()
  end

  defp heading(_text), do: nil

  # The closing `#` marks of a heading, and blanks.
  defp without_marks(_heading, 0), do: ""

  defp without_marks(heading, length) do
    if :binary.at(heading, length - 1) in [?\s, ?\t, ?#],
      do: without_marks(heading, length - 1),
      else: binary_part(heading, 0, length)
  end

  defp line(nil), do: nil

  defp line(text) do
    case text |> String.split() |> Enum.join(" ") do
      "" -> nil
      line -> String.slice(line, 0, 500)
    end
  end

  # Tags of the frontmatter, with or without `#`, and `#tags` in the text, except in code. A
  # number is not a tag.
  defp tags(data, body) do
    given =
      (tag_texts(data["tags"]) ++ tag_texts(data["tag"]))
      |> Enum.map(&String.trim_leading(&1, "#"))

    inline =
      if String.contains?(body, "#") do
        for [_, tag] <-
              Regex.scan(
                ~r/(?<![\p{L}\p{N}\p{M}_&\/#\]\)])#([\p{L}\p{N}\p{M}_\/\-]+)/u,
                without_code(body)
              ),
            Regex.match?(~r/[^\d\/\-]/u, tag),
            do: tag
      else
        []
      end

    (given ++ inline)
    |> Enum.map(&String.trim(&1, "/"))
    |> Enum.reject(&(&1 == ""))
    |> Enum.uniq_by(&String.downcase/1)
  end

  defp tag_texts(text) when is_binary(text), do: String.split(text, ~r/[\s,]+/u, trim: true)
  defp tag_texts(value), do: texts(value)

  defp without_code(body) do
    if String.contains?(body, ["`", "~~~"]),
      do:
        body
        |> String.split("\n")
        |> prose(nil, [])
        |> Enum.intersperse("\n")
        |> IO.iodata_to_binary(),
      else: body
  end

  # The lines outside of code blocks, without inline code. A block ends with a line that begins
  # with the same marks, or with the text.
  defp prose([], _fence, lines), do: Enum.reverse(lines)

  defp prose([line | rest], nil, lines) do
    case line do
      <<mark, mark, mark, _::binary>> when mark in [?`, ?~] and rest != [] ->
        marks = byte_size(line) - byte_size(String.trim_leading(line, <<mark>>))
        prose(rest, binary_part(line, 0, marks), lines)

      _ ->
        prose(rest, nil, [line |> String.split("`") |> without_spans() | lines])
    end
  end

  defp prose([line | rest], fence, lines),
    do: prose(rest, if(String.starts_with?(line, fence), do: nil, else: fence), lines)

  # The parts of a line between backticks: every second one is code, if its end is there.
  defp without_spans([text, _code, rest | parts]), do: [text, " " | without_spans([rest | parts])]
  defp without_spans([text, rest]), do: [text, "`", rest]
  defp without_spans([text]), do: [text]

  defp links(body) do
    if String.contains?(body, "[[") do
      for([_, target] <- Regex.scan(~r/\[\[([^\[\]|#^\n]+)/u, body), do: String.trim(target))
      |> Enum.reject(&(&1 == ""))
      |> Enum.uniq()
    else
      []
    end
  end

  defp texts(value), do: for(item <- List.wrap(value), text = plain(item), text != "", do: text)

  @doc "A value of frontmatter as text, or nil."
  @spec plain(Frontmatter.value()) :: String.t() | nil
  # YAML can contain zero bytes, which PostgreSQL cannot store.
  def plain(value) when is_binary(value), do: String.replace(value, <<0>>, "")
  def plain(nil), do: nil
  def plain(value) when is_boolean(value) or is_number(value), do: to_string(value)
  def plain(_value), do: nil

  @doc """
  The lowercase pairs of field and value that filters match: fields of the frontmatter, tags with
  their parents, and as `"*"` all names of the note.
  """
  @spec fields(searched()) :: [{String.t(), String.t()}]
  def fields(note) do
    given =
      for {field, value} <- note.frontmatter,
          field not in ["tags", "tag"],
          text <- texts(value),
          do: {field, text}

    tags =
      for tag <- note.tags,
          part <- tag |> key() |> String.split("/") |> Enum.scan(&(&2 <> "/" <> &1)),
          do: {"tags", part}

    names = [note.path, Path.rootname(note.path), note.name, note.title | note.aliases]
    names = for name <- names, do: {"*", name}

    (given ++ tags ++ names)
    |> Enum.map(fn {field, value} -> {key(field), key(value)} end)
    |> Enum.uniq()
  end

  # Truncated, because PostgreSQL's indexes take keys of up to about 2,700 bytes.
  @doc "The form of a text that filters compare."
  @spec key(String.t()) :: String.t()
  def key(text),
    do:
      text
      |> String.replace(<<0>>, "")
      |> String.trim()
      |> String.slice(0, 200)
      |> String.downcase()
end
