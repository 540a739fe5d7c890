defmodule Skillbook.Reply.Placeholder do
  @moduledoc false
  # Placeholders in the values of a command: `{1}` and `{last}` for results of a reply, also names of flags and steps in the page
  # of a workflow. They are filled in after the line was split into words, and once, so a value can become neither a flag nor a
  # command nor another placeholder.

  alias Skillbook.{Command, PlaceholderError}

  # As much as a reply may have.
  @most 16 * 1024 * 1024
  @written ~r/\{\{|\{[\p{L}\p{N}_][\p{L}\p{N}_-]*\}/u

  @type name :: non_neg_integer() | :last | String.t()
  @type value :: true | String.t() | [String.t()]
  @type resolve :: (name() -> {:ok, value()} | {:error, Exception.t()})

  @doc "A command of a reply, whose placeholders are words without quotes. Its `:raw` stays as it was written."
  @spec fill(Command.t(), resolve()) :: {:ok, Command.t()} | {:error, Exception.t()}
  def fill(%Command{placeholders: placeholders} = command, resolve) do
    at = Map.new(placeholders, fn {place, index, name} -> {{place, index}, name} end)
    parts = fn place, text -> if name = at[place], do: [{:name, name}], else: [text] end

    with {:ok, values} <- resolved(Enum.map(placeholders, &elem(&1, 2)), resolve),
         do: {:ok, put(command, parts, values)}
  end

  @doc """
  A command of a page, whose placeholders stand anywhere in its values. `{{` is a brace, and a word that is a list's placeholder
  and nothing else stands for all of its values.
  """
  @spec fill_page(Command.t(), resolve()) :: {:ok, Command.t()} | {:error, Exception.t()}
  def fill_page(command, resolve) do
    with {:ok, values} <- resolved(used(command), resolve) do
      command = %{put(command, fn _place, text -> parts(text) end, values) | placeholders: []}
      {:ok, %{command | raw: Command.line(command)}}
    end
  end

  @doc "The names of the placeholders in a command of a page, each once."
  @spec names(Command.t()) :: [String.t()]
  def names(command), do: Enum.uniq(used(command))

  @doc "The placeholders of a filled command of a reply, each once: what they look like, and the value."
  @spec values(Command.t()) :: [{String.t(), String.t()}]
  def values(%Command{placeholders: placeholders} = command) do
    for {place, index, name} <- Enum.uniq_by(placeholders, &elem(&1, 2)) do
      values = if place == :args, do: command.args, else: List.wrap(command.flags[place])
      {"{#{name}}", Enum.at(values, index)}
    end
  end

  defp used(command) do
    for text <- texts([command.args, Map.values(command.flags)]),
        {:name, name} <- parts(text),
        do: name
  end

  defp texts(value) when is_binary(value), do: [value]
  defp texts(values) when is_list(values), do: Enum.flat_map(values, &texts/1)
  defp texts(%{} = map), do: map |> Map.values() |> texts()
  defp texts(_other), do: []

  defp parts(text) do
    for part <- Regex.split(@written, text, include_captures: true, trim: true) do
      cond do
        part == "{{" -> "{"
        part =~ ~r/\A#{@written.source}\z/u -> {:name, String.slice(part, 1..-2//1)}
        true -> part
      end
    end
  end

  # The values by their names. A name counts as often as it is used, before anything is put together.
  defp resolved(names, resolve) do
    found =
      Enum.reduce_while(names, {%{}, 0}, fn name, {values, size} ->
        with {:ok, value} <- if(known = values[name], do: {:ok, known}, else: resolve.(name)),
             size when size <= @most <- size + byte_size(joined(value)) do
          {:cont, {Map.put(values, name, value), size}}
        else
          {:error, error} ->
            {:halt, {:error, error}}

          _size ->
            {:halt, {:error, %PlaceholderError{kind: :too_large, reference: name, most: @most}}}
        end
      end)

    with {values, size} when is_integer(size) <- found, do: {:ok, values}
  end

  defp put(command, parts, values) do
    fun = fn place, text -> filled(parts.(place, text), values) end
    flags = Map.new(command.flags, fn {flag, given} -> {flag, inside(given, flag, fun)} end)
    %{command | args: inside(command.args, :args, fun), flags: flags}
  end

  defp inside(values, place, fun) when is_list(values) do
    values
    |> Enum.with_index()
    |> Enum.flat_map(fn
      {text, index} when is_binary(text) -> List.wrap(fun.({place, index}, text))
      {other, _index} -> [inside(other, nil, fun)]
    end)
  end

  defp inside(%{} = map, _place, fun),
    do: Map.new(map, fn {key, value} -> {key, inside(value, nil, fun)} end)

  defp inside(text, place, fun) when is_binary(text), do: fun.({place, 0}, text)
  defp inside(other, _place, _fun), do: other

  defp filled([{:name, name}], values), do: with(true <- values[name], do: "true")

  # What is written before a placeholder on its line of the page decides how a value of several lines goes on.
  defp filled(parts, values) do
    {_before, done} =
      Enum.reduce(parts, {"", ""}, fn
        {:name, name}, {before, done} ->
          line = if before == done, do: "\n" <> before, else: before
          {"", done <> (values[name] |> joined() |> as_item(line))}

        text, {_before, done} ->
          {text, done <> text}
      end)

    done
  end

  # Each line of a value behind `-` or `>` is an item, or a part of the quotation, as its first is.
  defp as_item(text, before) do
    case Regex.run(~r/\n([ \t]{0,8}(?:[*+-]|>{1,8})[ \t]{1,8})\z/, before) do
      [_, mark] -> text |> String.trim() |> String.replace(~r/\R(?=[^\r\n])/u, "\n" <> mark)
      nil -> text
    end
  end

  defp joined(true), do: "true"
  defp joined(values) when is_list(values), do: Enum.join(values, ", ")
  defp joined(text), do: text
end
