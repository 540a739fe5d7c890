defmodule Skillbook.Store.Fields do
  @moduledoc false
  # Validates and normalizes the fields of an entry, and derives names from titles.

  alias Skillbook.Support.UntilError
  alias Skillbook.{Frontmatter, StoreError, Stored}

  @common ~w(title description content tags labels include_in_prompt proactive_for excluded_for
             attachments schedule timezone)a
  @create [:name, :kind] ++ @common
  @update (@common -- [:content]) ++ [:edit]

  # Characters, and bytes for the content.
  @max_name 64
  # The number behind a name, with its dash.
  @max_number 10
  @max_title 200
  @max_description 1_024
  @max_content 1_048_576
  @max_schedule 256

  # The largest number of items, and the largest length of each.
  @lists %{
    tags: {32, 64},
    labels: {64, 128},
    proactive_for: {64, 128},
    excluded_for: {64, 128},
    attachments: {64, 256}
  }

  # Control characters, line separators and direction marks, which are invisible in a line.
  @unprintable ~r/[\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]/u

  @letters "\\p{Ll}\\p{Lo}\\p{Lm}\\p{Nd}"
  @name ~r/\A[#{@letters}]+(?:-[#{@letters}]+)*\z/u
  @between ~r/[^#{@letters}]+/u
  # Letters without a visible glyph.
  @fillers ~r/[\x{115F}\x{1160}\x{3164}\x{FFA0}]/u

  @name_expected "lowercase letters, digits and single dashes between them, " <>
                   "at most #{@max_name} characters,"

  @doc "The normalized fields of a new entry; fields that are `nil` are dropped."
  @spec create(map()) :: {:ok, map()} | {:error, StoreError.t()}
  def create(fields) do
    with {:ok, fields} <- cast(fields, @create),
         {:ok, fields} <-
           required(fields, :title, "one line of 1 to #{@max_title} characters", "Weekly report"),
         {:ok, fields} <- required(fields, :content, "the text", nil) do
      {:ok, Map.put_new_lazy(fields, :name, fn -> slug(fields.title) end)}
    end
  end

  @doc "The normalized fields of an update, `:edit` unchanged; fields that are `nil` are dropped."
  @spec update(map()) :: {:ok, map()} | {:error, StoreError.t()}
  def update(fields) do
    with {:ok, fields} <- cast(fields, @update) do
      # Removing the schedule also removes its time zone.
      case fields do
        %{schedule: nil} -> {:ok, Map.put_new(fields, :timezone, nil)}
        _ -> {:ok, fields}
      end
    end
  end

  @doc "The normalized content."
  @spec content(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def content(content), do: field(:content, content)

  @doc "The normalized name."
  @spec name(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def name(name), do: field(:name, name)

  @doc "The normalized title."
  @spec title(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def title(title), do: field(:title, title)

  @doc """
  The entry with the kind, labels and exclusions that follow from its content.

  An entry whose frontmatter has a name and a description is a skill. A skill needs a description,
  its own or that of its frontmatter. Labels and exclusions of the frontmatter are added to those
  of the entry, so that lists, versions and the rules of names need no content.
  """
  @spec resolve(Stored.t()) :: {:ok, Stored.t()} | {:error, StoreError.t()}
  def resolve(%Stored{} = entry) do
    with {:ok, own} <- access(entry.content),
         {:ok, labels} <- join(:labels, entry.labels, own.labels),
         {:ok, excluded_for} <- join(:excluded_for, entry.excluded_for, own.excluded_for) do
      kind = if own.makes_skill, do: :skill, else: entry.kind

      if kind == :skill and entry.description == "" and not own.is_described do
        expected = "text of 1 to #{@max_description} characters for a skill"
        invalid(:description, expected, "", "What it is for")
      else
        {:ok, %{entry | kind: kind, labels: labels, excluded_for: excluded_for}}
      end
    end
  end

  defp access(content) do
    with {:error, message} <- Frontmatter.access(content),
         do: {:error, %StoreError{kind: :restriction, field: :content, expected: message}}
  end

  defp join(_field, own, []), do: {:ok, own}
  defp join(field, own, more), do: field(field, own ++ more)

  @doc """
  Derives a name from a title: characters that are neither letters nor digits become dashes. A
  title without letters and digits becomes `"note"`.
  """
  @spec slug(String.t()) :: String.t()
  def slug(title) do
    title
    |> String.downcase()
    |> String.normalize(:nfc)
    |> String.replace(~r/\p{M}/u, "")
    |> String.replace(@fillers, "")
    |> String.replace(@between, "-")
    # Removing marks and fillers can bring parts of one letter together.
    |> String.normalize(:nfc)
    |> String.trim("-")
    |> truncate(@max_name)
    |> case do
      "" -> "note"
      name -> name
    end
  end

  @doc "The common beginning of a name and of all names that `numbered/2` derives from it."
  @spec stem(String.t()) :: String.t()
  def stem(name), do: truncate(name, @max_name - @max_number)

  @doc "The name with a number appended, within the length limit."
  @spec numbered(String.t(), pos_integer()) :: String.t()
  def numbered(name, number), do: stem(name) <> "-#{number}"

  defp truncate(name, characters) do
    name
    |> String.codepoints()
    |> Enum.take(characters)
    |> Enum.join()
    |> String.trim_trailing("-")
  end

  defp required(fields, field, expected, example) do
    if is_map_key(fields, field),
      do: {:ok, fields},
      else:
        {:error, %StoreError{kind: :missing, field: field, expected: expected, example: example}}
  end

  defp cast(fields, allowed) do
    fields
    |> Enum.sort()
    |> UntilError.reduce(%{}, fn {field, value}, fields ->
      case cast(field, value, allowed) do
        {:ok, nil} when value == nil -> {:ok, fields}
        {:ok, value} -> {:ok, Map.put(fields, field, value)}
        error -> error
      end
    end)
  end

  defp cast(field, value, allowed) do
    cond do
      field not in allowed ->
        {:error, %StoreError{kind: :unknown, field: field, expected: allowed}}

      is_nil(value) ->
        {:ok, nil}

      field == :edit ->
        {:ok, value}

      true ->
        field(field, value)
    end
  end

  defp field(:name, name) do
    normal = if utf8?(name), do: String.normalize(name, :nfc)

    if normal && length?(normal, 1, @max_name) && normal =~ @name && not (normal =~ @fillers) do
      {:ok, normal}
    else
      example = slug(if(normal, do: String.slice(normal, 0, 200), else: ""))
      invalid(:name, @name_expected, name, example)
    end
  end

  defp field(:kind, kind) when kind in [:skill, :note], do: {:ok, kind}
  defp field(:kind, kind), do: invalid(:kind, ":skill or :note", kind, ":note")

  defp field(:title, title) do
    trimmed = if utf8?(title), do: String.trim(title)

    if trimmed && line?(trimmed, @max_title),
      do: {:ok, trimmed},
      else: invalid(:title, "one line of 1 to #{@max_title} characters", title, "Weekly report")
  end

  defp field(:description, text) do
    trimmed = if utf8?(text), do: String.trim(text)

    expected = "text of at most #{@max_description} characters without NUL"

    if trimmed && length?(trimmed, 0, @max_description),
      do: {:ok, trimmed},
      else: invalid(:description, expected, text, nil)
  end

  defp field(:content, content) do
    expected = "text of at most #{@max_content} bytes in UTF-8 without NUL"

    if utf8?(content) and byte_size(content) <= @max_content,
      do: {:ok, content},
      else: invalid(:content, expected, content, nil)
  end

  # An empty text removes it. `ScheduleRules` parses both fields together.
  defp field(field, text) when field in [:schedule, :timezone] do
    trimmed = if utf8?(text), do: String.trim(text)

    if trimmed && length?(trimmed, 0, @max_schedule),
      do: {:ok, if(trimmed != "", do: trimmed)},
      else: invalid(field, "text of at most #{@max_schedule} characters without NUL", text, nil)
  end

  defp field(:include_in_prompt, value) when is_boolean(value), do: {:ok, value}

  defp field(:include_in_prompt, value),
    do: invalid(:include_in_prompt, "true or false", value, "false")

  defp field(field, list) do
    {max_count, max_length} = @lists[field]
    expected = "at most #{max_count} texts of 1 to #{max_length} characters on one line"

    if is_list(list) and length(list) <= max_count and Enum.all?(list, &item?(&1, max_length)),
      do: {:ok, unique(field, list)},
      else: invalid(field, expected, list, nil)
  end

  defp item?(text, max_length),
    do: utf8?(text) and line?(text, max_length) and String.trim(text) != ""

  # Tags are compared in any case, labels and ids exactly.
  defp unique(:tags, tags),
    do: tags |> Enum.map(&String.trim/1) |> Enum.uniq_by(&String.downcase/1)

  defp unique(:attachments, attachments), do: Enum.uniq(attachments)
  defp unique(_field, list), do: list |> Enum.uniq() |> Enum.sort()

  defp utf8?(text),
    do: is_binary(text) and String.valid?(text) and not String.contains?(text, "\0")

  defp line?(text, max), do: length?(text, 1, max) and not (text =~ @unprintable)

  # Length in code points, as databases count. The test of the bytes keeps a huge text from being
  # split.
  defp length?(text, min, max),
    do: byte_size(text) <= 4 * max and length(String.codepoints(text)) in min..max

  defp invalid(field, expected, value, example) do
    {:error,
     %StoreError{
       kind: :invalid,
       field: field,
       expected: expected,
       value: value,
       example: example
     }}
  end
end
