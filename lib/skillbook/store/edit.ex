defmodule Skillbook.Store.Edit do
  @moduledoc false
  # Applies an edit to the content of an entry or the text of a note.

  alias Skillbook.{Frontmatter, StoreError}

  @type t :: Skillbook.Store.edit()

  @expected "{:replace, text}, {:find_replace, find, with, all?: boolean}, {:append, text}, " <>
              "{:prepend, text} or {:delete, text}"

  # The closest line is looked for within these limits.
  @compared_lines 250
  @compared_characters 100

  @doc "The content after an edit; `name` is for error messages."
  @spec apply(t(), String.t(), String.t()) :: {:ok, String.t()} | {:error, StoreError.t()}
  def apply({:replace, text}, _content, _name) when is_binary(text), do: {:ok, text}
  def apply({:append, text}, content, _name) when is_binary(text), do: {:ok, join(content, text)}

  def apply({:prepend, text}, content, _name) when is_binary(text) do
    {frontmatter, body} = split(content)
    {:ok, frontmatter <> join(text, body)}
  end

  def apply({:delete, text}, content, name) when is_binary(text),
    do: replace(content, text, "", false, name)

  def apply({:find_replace, find, with, all?: all?}, content, name)
      when is_binary(find) and is_binary(with) and is_boolean(all?),
      do: replace(content, find, with, all?, name)

  def apply(edit, _content, _name),
    do: {:error, %StoreError{kind: :invalid, field: :edit, expected: @expected, value: edit}}

  # Frontmatter stays at the top: below other text its restrictions would have no effect.
  @doc "The frontmatter of a content, or nothing, and its body."
  @spec split(String.t()) :: {String.t(), String.t()}
  def split(content) do
    case Frontmatter.parse(content) do
      {:ok, %{body: body}} ->
        {binary_part(content, 0, byte_size(content) - byte_size(body)), body}

      {:error, _} ->
        {"", content}
    end
  end

  # The second text begins on a new line, whether or not the caller has written the line break.
  defp join("", text), do: text
  defp join(text, ""), do: text

  defp join(before, text) do
    if String.ends_with?(before, "\n") or String.starts_with?(text, ["\n", "\r\n"]),
      do: before <> text,
      else: before <> line_break(before, text) <> text
  end

  defp line_break(before, text),
    do: if(String.contains?(before, "\r\n") or text =~ "\r\n", do: "\r\n", else: "\n")

  defp replace(_content, "", _with, _all?, _name) do
    expected = "a search text of at least one character"
    {:error, %StoreError{kind: :invalid, field: :edit, expected: expected, value: ""}}
  end

  defp replace(content, find, with, all?, name) do
    case :binary.match(content, find) do
      :nomatch ->
        {:error,
         %StoreError{
           kind: :text_not_found,
           name: name,
           value: find,
           nearest: nearest(content, find)
         }}

      {at, length} when not all? ->
        {before, rest} = :erlang.split_binary(content, at)
        {_, rest} = :erlang.split_binary(rest, length)
        {:ok, before <> with <> rest}

      _ ->
        {:ok, String.replace(content, find, with)}
    end
  end

  # The line of the content that is most similar to the first line of the search text.
  defp nearest("", _find), do: nil

  defp nearest(content, find) do
    wanted = find |> lines() |> Enum.find(find, &(String.trim(&1) != "")) |> comparable()

    {line, number} =
      content
      |> lines()
      |> Enum.take(@compared_lines)
      |> Enum.with_index(1)
      |> Enum.max_by(fn {line, _number} -> String.jaro_distance(wanted, comparable(line)) end)

    {number, String.trim(line)}
  end

  defp lines(text), do: String.split(text, ["\r\n", "\n"])

  defp comparable(line),
    do: line |> String.slice(0, @compared_characters) |> String.trim() |> String.downcase()
end
