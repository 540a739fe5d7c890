defmodule Skillbook.Workflow.Template do
  @moduledoc false
  # A command of a workflow's page with placeholders in its values. They are filled in after the line was split into words,
  # and once, so a value can become neither a flag nor a command nor another placeholder.

  alias Skillbook.Command

  @placeholder ~r/\{\{|\{[\p{L}\p{N}_][\p{L}\p{N}_-]*\}/u

  @type value :: true | String.t() | [String.t()]

  @doc "The names of its placeholders, each once."
  @spec names(Command.t()) :: [String.t()]
  def names(command) do
    found =
      for text <- texts([command.args, Map.values(command.flags)]), {:name, name} <- parts(text), do: name

    Enum.uniq(found)
  end

  @doc "How many bytes the command's values get from `value`, without the marks of lists and quotations."
  @spec size(Command.t(), (String.t() -> value())) :: non_neg_integer()
  def size(command, value) do
    sizes =
      for text <- texts([command.args, Map.values(command.flags)]),
          {:name, name} <- parts(text),
          do: name |> value.() |> joined() |> byte_size()

    Enum.sum(sizes)
  end

  @doc "The command with values for its placeholders."
  @spec fill(Command.t(), (String.t() -> value())) :: Command.t()
  def fill(command, value) do
    args = Enum.flat_map(command.args, &List.wrap(filled(&1, value)))
    flags = Map.new(command.flags, fn {flag, given} -> {flag, filled(given, value)} end)
    command = %{command | args: args, flags: flags, placeholders: []}
    %{command | raw: line(command)}
  end

  # A word that is a list's placeholder and nothing else stands for all of its values.
  defp filled(values, value) when is_list(values), do: Enum.flat_map(values, &spliced(&1, value))
  defp filled(%{} = map, value), do: Map.new(map, fn {key, inner} -> {key, filled(inner, value)} end)

  defp filled(text, value) when is_binary(text) do
    case parts(text) do
      [{:name, name}] -> with true <- value.(name), do: "true"
      parts -> parts |> Enum.reduce({"", ""}, &put(&1, &2, value)) |> elem(1)
    end
  end

  defp filled(other, _value), do: other

  defp spliced(text, value) when is_binary(text), do: List.wrap(filled(text, value))
  defp spliced(other, value), do: [filled(other, value)]

  # What is written before it in the page, and the text as it is filled in.
  defp put({:name, name}, {before, done}, value) do
    line = if before == done, do: "\n" <> before, else: before
    {"", done <> (name |> value.() |> joined() |> as_item(line))}
  end

  defp put(text, {_before, done}, _value), do: {text, done <> text}

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

  defp texts(value) when is_binary(value), do: [value]
  defp texts(values) when is_list(values), do: Enum.flat_map(values, &texts/1)
  defp texts(%{} = map), do: map |> Map.values() |> texts()
  defp texts(_other), do: []

  defp parts(text) do
    for part <- Regex.split(@placeholder, text, include_captures: true, trim: true) do
      cond do
        part == "{{" -> "{"
        part =~ ~r/\A#{@placeholder.source}\z/u -> {:name, String.slice(part, 1..-2)}
        true -> part
      end
    end
  end

  @doc "A command as a line that is read as the same command."
  @spec line(Command.t()) :: String.t()
  def line(%Command{name: name, args: args, flags: flags}) do
    flags = for {flag, given} <- Enum.sort(flags), do: Enum.join(["--" <> flag | words(given)], " ")
    Enum.join([name | Enum.map(args, &word/1)] ++ flags, " ")
  end

  defp words(true), do: []
  defp words(values) when is_list(values), do: Enum.map(values, &word/1)
  defp words(value), do: [word(value)]

  defp word(text) when is_binary(text) do
    if text =~ ~r/\A[\p{L}\p{N}_.@:\/+][\p{L}\p{N}_.@:\/+,-]*\z/u, do: text, else: quoted(text)
  end

  defp word(other), do: other |> Skillbook.JSON.encode() |> quoted()

  defp quoted(text) do
    escaped = String.replace(text, ["\\", "\"", "\n", "\r", "\t"], &escape/1)
    "\"#{escaped}\""
  end

  defp escape("\n"), do: "\\n"
  defp escape("\r"), do: "\\r"
  defp escape("\t"), do: "\\t"
  defp escape(character), do: "\\" <> character
end
