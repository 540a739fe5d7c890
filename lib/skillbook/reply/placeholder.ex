defmodule Skillbook.Reply.Placeholder do
  @moduledoc false
  # Replaces placeholders in the values of a command: `{1}` and `{last}` for results of a reply,
  # and names of flags and steps in the page of a workflow. They are replaced once, after the line
  # was split into words, so a value cannot become a flag, a command or another placeholder.

  alias Skillbook.{Command, PlaceholderError}

  # The size limit of a reply.
  @max_bytes 16 * 1024 * 1024
  @placeholder ~r/\{\{|\{[\p{L}\p{N}_][\p{L}\p{N}_-]*\}/u

  @type name :: non_neg_integer() | :last | String.t()
  @type value :: true | :none | String.t() | [String.t()]
  @type resolve :: (name() -> {:ok, value()} | {:error, Exception.t()})

  @doc """
  Fills the placeholders of a command of a reply, where they are words without quotes.

  The field `:raw` is not changed.
  """
  @spec fill(Command.t(), resolve()) :: {:ok, Command.t()} | {:error, Exception.t()}
  def fill(%Command{placeholders: placeholders} = command, resolve) do
    at = Map.new(placeholders, fn {place, index, name} -> {{place, index}, name} end)
    parts = fn place, text -> if name = at[place], do: [{:name, name}], else: [text] end

    with {:ok, values} <- resolved(Enum.map(placeholders, &elem(&1, 2)), resolve),
         do: {:ok, put(command, parts, values)}
  end

  @doc """
  Fills the placeholders of a command of a workflow's page, where they may be anywhere in its
  values.

  `{{` is a brace. A word that consists of one placeholder becomes all values of a list. A flag
  whose only value is a placeholder with the value `:none` is left out.
  """
  @spec fill_page(Command.t(), resolve()) :: {:ok, Command.t()} | {:error, Exception.t()}
  def fill_page(command, resolve) do
    command = without(command, &(resolve.(&1) == {:ok, :none}))

    with {:ok, values} <- resolved(used(command), resolve) do
      command = %{put(command, fn _place, text -> parts(text) end, values) | placeholders: []}
      {:ok, %{command | raw: Command.line(command)}}
    end
  end

  @doc """
  Removes the flags of a command of a page whose only value is a placeholder for which `missing?`
  returns true, so that an optional flag of a workflow can be passed on to a step.
  """
  @spec without(Command.t(), (name() -> boolean())) :: Command.t()
  def without(command, missing?) do
    flags =
      for {flag, given} <- command.flags,
          kept = List.wrap(given) |> Enum.reject(&alone?(&1, missing?)),
          kept != [] or given == [],
          into: %{},
          do: {flag, if(is_list(given), do: kept, else: given)}

    %{command | flags: flags}
  end

  defp alone?(text, missing?) when is_binary(text) do
    with [{:name, name}] <- parts(text), do: missing?.(name), else: (_ -> false)
  end

  defp alone?(_other, _missing?), do: false

  @doc "Returns the names of the placeholders in a command of a page, without duplicates."
  @spec names(Command.t()) :: [String.t()]
  def names(command), do: Enum.uniq(used(command))

  @doc "Returns each placeholder of a filled command of a reply, as written, with its value."
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
    for part <- Regex.split(@placeholder, text, include_captures: true, trim: true) do
      cond do
        part == "{{" -> "{"
        part =~ ~r/\A#{@placeholder.source}\z/u -> {:name, String.slice(part, 1..-2//1)}
        true -> part
      end
    end
  end

  # Returns the values by name. Checks the size limit before any text is built; a value counts as
  # often as it is used.
  defp resolved(names, resolve) do
    result =
      Enum.reduce_while(names, {%{}, 0}, fn name, {values, size} ->
        with {:ok, value} <- if(known = values[name], do: {:ok, known}, else: resolve.(name)),
             size when size <= @max_bytes <- size + byte_size(joined(value)) do
          {:cont, {Map.put(values, name, value), size}}
        else
          {:error, error} ->
            {:halt, {:error, error}}

          _size ->
            {:halt,
             {:error, %PlaceholderError{kind: :too_large, reference: name, most: @max_bytes}}}
        end
      end)

    with {values, size} when is_integer(size) <- result, do: {:ok, values}
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

  # The text before a placeholder on its line decides how the lines of a long value continue.
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

  # After `-` or `>`, each line of the value becomes an item or a line of the quotation.
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
