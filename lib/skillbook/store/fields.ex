defmodule Skillbook.Store.Fields do
  @moduledoc false
  # What the fields of an entry may hold, and names made of titles.

  alias Skillbook.{Frontmatter, StoreError, Stored}

  @settable ~w(title description content tags labels include_in_prompt proactive_for excluded_for attachments schedule
               timezone)a
  @create [:name, :kind] ++ @settable
  @update (@settable -- [:content]) ++ [:edit]

  @longest_name 64
  # With its dash.
  @longest_number 10
  @longest_title 200
  @longest_description 1_024
  @largest_content 1_048_576
  @longest_schedule 256

  # How many, and how long each.
  @lists %{
    tags: {32, 64},
    labels: {64, 128},
    proactive_for: {64, 128},
    excluded_for: {64, 128},
    attachments: {64, 256}
  }

  # Controls, separators of lines, and those that turn the direction of what follows: nothing that a line shows.
  @unprintable ~r/[\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]/u

  @letters "\\p{Ll}\\p{Lo}\\p{Lm}\\p{Nd}"
  @name ~r/\A[#{@letters}]+(?:-[#{@letters}]+)*\z/u
  @between ~r/[^#{@letters}]+/u
  # Letters that show nothing.
  @fillers ~r/[\x{115F}\x{1160}\x{3164}\x{FFA0}]/u

  @name_expected "small letters, digits and single dashes between them, at most #{@longest_name} characters,"

  @doc "The fields of a new entry as they are kept; those that are `nil` are left out."
  @spec create(map()) :: {:ok, map()} | {:error, StoreError.t()}
  def create(given) do
    with {:ok, fields} <- cast(given, @create),
         {:ok, fields} <-
           need(fields, :title, "one line of 1 to #{@longest_title} characters", "Weekly report"),
         {:ok, fields} <- need(fields, :content, "the text", nil) do
      {:ok, Map.put_new_lazy(fields, :name, fn -> slug(fields.title) end)}
    end
  end

  @doc "The fields to change as they are kept, `:edit` as it is; those that are `nil` are left out."
  @spec update(map()) :: {:ok, map()} | {:error, StoreError.t()}
  def update(given) do
    with {:ok, fields} <- cast(given, @update) do
      # Without a schedule there is nothing that a time zone could be of.
      if Map.get(fields, :schedule, :as_it_was) == nil,
        do: {:ok, Map.put_new(fields, :timezone, nil)},
        else: {:ok, fields}
    end
  end

  @doc "A content as it is kept."
  @spec content(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def content(content), do: field(:content, content)

  @doc "A name as it is kept."
  @spec name(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def name(name), do: field(:name, name)

  @doc "A title as it is kept."
  @spec title(String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def title(title), do: field(:title, title)

  @doc """
  The entry with the kind that its content makes it: one whose frontmatter has a name and a description is a skill, and
  stays one. A skill has a description, its own or that of its frontmatter.
  """
  @spec settle(Stored.t()) :: {:ok, Stored.t()} | {:error, StoreError.t()}
  def settle(%Stored{} = stored) do
    data = data(stored.content)
    kind = if text?(data["name"]) and text?(data["description"]), do: :skill, else: stored.kind

    if kind == :skill and stored.description == "" and not text?(data["description"]),
      do:
        invalid(
          :description,
          "text of 1 to #{@longest_description} characters for a skill",
          "",
          "What it is for"
        ),
      else: {:ok, %{stored | kind: kind}}
  end

  defp data("---" <> _ = content) do
    case Frontmatter.parse(content) do
      {:ok, %{data: data}} -> data
      {:error, _} -> %{}
    end
  end

  defp data(_content), do: %{}

  defp text?(value), do: is_binary(value) and String.trim(value) != ""

  @doc "A name made of a title: what is neither letter nor digit becomes a dash. `\"note\"` if nothing is left."
  @spec slug(String.t()) :: String.t()
  def slug(title) do
    title
    |> String.downcase()
    |> String.normalize(:nfc)
    |> String.replace(~r/\p{M}/u, "")
    |> String.replace(@fillers, "")
    |> String.replace(@between, "-")
    # What was apart may now be one letter.
    |> String.normalize(:nfc)
    |> String.trim("-")
    |> shortened(@longest_name)
    |> case do
      "" -> "note"
      name -> name
    end
  end

  @doc "What a name has in common with all that `numbered/2` makes of it."
  @spec stem(String.t()) :: String.t()
  def stem(name), do: shortened(name, @longest_name - @longest_number)

  @doc "The name with a number behind it, within the limit."
  @spec numbered(String.t(), pos_integer()) :: String.t()
  def numbered(name, number), do: stem(name) <> "-#{number}"

  defp shortened(name, characters) do
    name
    |> String.codepoints()
    |> Enum.take(characters)
    |> Enum.join()
    |> String.trim_trailing("-")
  end

  defp need(fields, field, expected, example) do
    if is_map_key(fields, field),
      do: {:ok, fields},
      else:
        {:error, %StoreError{kind: :missing, field: field, expected: expected, example: example}}
  end

  defp cast(given, known) do
    given
    |> Enum.reject(fn {_field, value} -> is_nil(value) end)
    |> Enum.sort()
    |> Enum.reduce_while({:ok, %{}}, fn {field, value}, {:ok, fields} ->
      case known(field, value, known) do
        {:ok, value} -> {:cont, {:ok, Map.put(fields, field, value)}}
        {:error, error} -> {:halt, {:error, error}}
      end
    end)
  end

  defp known(field, value, known) do
    cond do
      field not in known -> {:error, %StoreError{kind: :unknown, field: field, expected: known}}
      field == :edit -> {:ok, value}
      true -> field(field, value)
    end
  end

  defp field(:name, name) do
    normal = if utf8?(name), do: String.normalize(name, :nfc)

    if normal && within?(normal, 1, @longest_name) && normal =~ @name && not (normal =~ @fillers),
      do: {:ok, normal},
      else:
        invalid(
          :name,
          @name_expected,
          name,
          slug(if(normal, do: String.slice(normal, 0, 200), else: ""))
        )
  end

  defp field(:kind, kind) when kind in [:skill, :note], do: {:ok, kind}
  defp field(:kind, kind), do: invalid(:kind, ":skill or :note", kind, ":note")

  defp field(:title, title) do
    trimmed = if utf8?(title), do: String.trim(title)

    if trimmed && line?(trimmed, @longest_title),
      do: {:ok, trimmed},
      else:
        invalid(:title, "one line of 1 to #{@longest_title} characters", title, "Weekly report")
  end

  defp field(:description, text) do
    trimmed = if utf8?(text), do: String.trim(text)

    if trimmed && within?(trimmed, 0, @longest_description),
      do: {:ok, trimmed},
      else:
        invalid(
          :description,
          "text of at most #{@longest_description} characters without NUL",
          text,
          nil
        )
  end

  defp field(:content, content) do
    if utf8?(content) and byte_size(content) <= @largest_content,
      do: {:ok, content},
      else:
        invalid(
          :content,
          "text of at most #{@largest_content} bytes in UTF-8 without NUL",
          content,
          nil
        )
  end

  # What it means is found out with the other one; an empty text takes it away.
  defp field(field, text) when field in [:schedule, :timezone] do
    trimmed = if utf8?(text), do: String.trim(text)

    if trimmed && within?(trimmed, 0, @longest_schedule),
      do: {:ok, if(trimmed != "", do: trimmed)},
      else:
        invalid(field, "text of at most #{@longest_schedule} characters without NUL", text, nil)
  end

  defp field(:include_in_prompt, value) when is_boolean(value), do: {:ok, value}

  defp field(:include_in_prompt, value),
    do: invalid(:include_in_prompt, "true or false", value, "false")

  defp field(field, list) do
    {most, longest} = @lists[field]

    if is_list(list) and length(list) <= most and Enum.all?(list, &item?(&1, longest)),
      do: {:ok, tidy(field, list)},
      else:
        invalid(
          field,
          "at most #{most} texts of 1 to #{longest} characters on one line",
          list,
          nil
        )
  end

  defp item?(text, longest), do: utf8?(text) and line?(text, longest) and String.trim(text) != ""

  # A tag is the same in any case. Labels and ids are compared as they are.
  defp tidy(:tags, tags), do: tags |> Enum.map(&String.trim/1) |> Enum.uniq_by(&String.downcase/1)
  defp tidy(:attachments, attachments), do: Enum.uniq(attachments)
  defp tidy(_field, list), do: list |> Enum.uniq() |> Enum.sort()

  defp utf8?(text),
    do: is_binary(text) and String.valid?(text) and not String.contains?(text, "\0")

  defp line?(text, longest), do: within?(text, 1, longest) and not (text =~ @unprintable)

  # Code points, which is what databases count; and a text that is too long in bytes is not counted.
  defp within?(text, least, most),
    do: byte_size(text) <= 4 * most and length(String.codepoints(text)) in least..most

  defp invalid(field, expected, value, example),
    do:
      {:error,
       %StoreError{
         kind: :invalid,
         field: field,
         expected: expected,
         value: value,
         example: example
       }}
end
