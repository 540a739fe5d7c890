defmodule Skillbook.Workflow.Page do
  @moduledoc false
  # Fills the placeholders of a page of prose, whose text a model follows. They are those of a
  # workflow's steps: the flags that the command declares, and `{today}`, `{yesterday}`, `{now}`
  # and `{user}`. Other braces are text.
  #
  # A value is data: it is written as a word of a command, in quotes unless it is a plain word, so
  # that it cannot pass for the text around it. After the mark of a list item or a quotation, each
  # of its lines gets this mark instead.
  #
  # Steps leave out a flag whose value is missing. A page leaves out the part with it: the
  # paragraph, the table row, the line of code, or the list item with everything indented below.

  alias Skillbook.Workflow.Plan
  alias Skillbook.{Command, Context, Declaration, Entry, View, WorkflowError}

  # The size limit of a reply.
  @max_bytes 16 * 1024 * 1024
  @placeholder ~r/\{?\{[\p{L}\p{N}_][\p{L}\p{N}_-]*\}/u
  @fence ~r/\A[ \t]*(`{3,}|~{3,})/
  # A list item or a quotation that is a placeholder and nothing else.
  @mark ~r/\A([ \t]*(?:[*+-]|[0-9]{1,9}[.)]|>)[ \t]+)\z/

  @doc """
  Returns the text of a page for a call.

  `declaration` is that of a command whose flags are converted already. Without one, flags are
  checked only if the page has a placeholder for them.
  """
  @spec fill(Entry.t(), Declaration.t() | nil, Command.t(), Context.t()) ::
          {:ok, String.t()} | {:error, Exception.t()}
  def fill(entry, declaration \\ nil, command, context)

  def fill(%Entry{kind: :command, body: body} = entry, nil, command, context) do
    with true <- String.contains?(body, "{"),
         {:ok, %Declaration{} = declaration} <- View.flags(context.view, entry.name),
         names = for(flag <- declaration.flags, name <- flag.names, do: name),
         {:ok, flags} <- cast(names(body), names, command, declaration, context) do
      text(entry, Plan.values(declaration, flags, context))
    else
      {:error, error} -> {:error, error}
      _ -> {:ok, body}
    end
  end

  def fill(%Entry{kind: :command} = entry, declaration, command, context),
    do: text(entry, Plan.values(declaration, command.flags, context))

  def fill(%Entry{body: body}, _declaration, _command, _context), do: {:ok, body}

  # A page that is only an instruction may be called with any flags.
  defp cast(used, names, command, declaration, context) do
    if Enum.any?(used, &(&1 in names)),
      do: Plan.cast_flags(command, declaration, context),
      else: {:ok, %{}}
  end

  defp names(text) do
    for ["{" <> rest] <- Regex.scan(@placeholder, text),
        not String.starts_with?(rest, "{"),
        uniq: true,
        do: name(rest)
  end

  defp name(rest), do: binary_part(rest, 0, byte_size(rest) - 1)

  # The text

  defp text(%{body: body} = entry, values) do
    with true <- String.contains?(body, "{"),
         :ok <- check_size(entry, values) do
      missing = for {name, :none} <- values, into: %{}, do: {name, true}
      parts = body |> String.split("\n") |> parts(nil, [])
      {:ok, parts |> leave_out(missing, []) |> Enum.join("\n") |> fill_in(values)}
    else
      false -> {:ok, body}
      error -> error
    end
  end

  defp check_size(%{body: body} = entry, values) do
    sizes = Map.new(values, fn {name, value} -> {name, size(value)} end)

    Regex.scan(@placeholder, body)
    |> Enum.reduce_while(0, fn ["{" <> rest], size ->
      name = name(rest)
      size = size + Map.get(sizes, name, 0)
      if size > @max_bytes, do: {:halt, name}, else: {:cont, size}
    end)
    |> case do
      size when is_integer(size) ->
        :ok

      flag ->
        text = "with its flags the page would have more than 16 MiB; write a shorter --#{flag}"
        {:error, %WorkflowError{kind: :value, name: entry.name, text: text}}
    end
  end

  defp size(values) when is_list(values), do: values |> Enum.map(&size/1) |> Enum.sum()
  defp size(text) when is_binary(text), do: byte_size(text)
  defp size(_other), do: 4

  # The parts of a page: kind, indentation and lines. Blank lines and lines of code are parts of
  # their own.
  defp parts([], _fence, parts), do: Enum.reverse(parts)

  defp parts([line | rest], fence, parts) do
    mark = with [_, mark] <- Regex.run(@fence, line), do: mark
    indent = byte_size(line) - byte_size(String.trim_leading(line))

    cond do
      fence != nil ->
        closes = mark != nil and String.starts_with?(mark, fence)
        parts(rest, if(closes, do: nil, else: fence), [{:line, indent, [line]} | parts])

      mark != nil ->
        parts(rest, mark, [{:line, indent, [line]} | parts])

      true ->
        parts(rest, nil, add(kind(line), indent, line, parts))
    end
  end

  defp kind(line) do
    cond do
      String.trim(line) == "" -> :blank
      line =~ ~r/\A[ \t]*(?:[*+-]|[0-9]{1,9}[.)])(?:[ \t]|\z)/ -> :item
      line =~ ~r/\A[ \t]*(?:\||>|\#{1,6}[ \t])/ -> :line
      true -> :text
    end
  end

  defp add(:text, _indent, line, [{kind, first, lines} | parts]) when kind in [:text, :item],
    do: [{kind, first, [line | lines]} | parts]

  defp add(kind, indent, line, parts), do: [{kind, indent, [line]} | parts]

  # Leaves out the parts with a missing value.
  defp leave_out([], _missing, done), do: Enum.reverse(done)

  defp leave_out([{kind, indent, lines} | rest], missing, done) do
    text = lines |> Enum.reverse() |> Enum.join("\n")

    cond do
      missing == %{} or not Enum.any?(names(text), &is_map_key(missing, &1)) ->
        leave_out(rest, missing, [text | done])

      kind == :item ->
        rest |> Enum.drop_while(&below?(&1, indent)) |> leave_out(missing, done)

      true ->
        rest |> without_second_blank(done) |> leave_out(missing, done)
    end
  end

  defp below?({:blank, _indent, _lines}, _item), do: true
  defp below?({_kind, indent, _lines}, item), do: indent > item

  defp without_second_blank([{:blank, _, _} | rest], [before | _]) when before in ["", "\r"],
    do: rest

  defp without_second_blank(rest, _done), do: rest

  defp fill_in(text, values) do
    @placeholder
    |> Regex.split(text, include_captures: true)
    |> fill_in(values, "", [])
    |> IO.iodata_to_binary()
  end

  # `line` is the text of the line so far, as in the page.
  defp fill_in([text], _values, _line, done), do: Enum.reverse([text | done])

  defp fill_in([text, "{" <> rest = placeholder, next | more], values, line, done) do
    line = line |> Kernel.<>(text) |> String.split("\n") |> List.last()
    name = rest |> String.trim_leading("{") |> name()

    written =
      case values do
        %{^name => _} when binary_part(rest, 0, 1) == "{" -> rest
        %{^name => value} -> written(value, line, next)
        _ -> placeholder
      end

    fill_in([next | more], values, line <> placeholder, [written, text | done])
  end

  defp written(value, line, next) do
    mark = with [_, mark] <- Regex.run(@mark, line), true <- whole?(next), do: mark

    cond do
      is_binary(mark) ->
        for(text <- List.wrap(value), do: lines(text))
        |> List.flatten()
        |> Enum.join("\n" <> mark)

      String.ends_with?(line, "\"") and String.starts_with?(next, "\"") ->
        value |> List.wrap() |> Enum.map_join(", ", &inside_quotes/1)

      true ->
        value |> List.wrap() |> Enum.map_join(", ", &word/1)
    end
  end

  defp whole?(next), do: next == "" or String.starts_with?(next, ["\n", "\r\n"])

  defp lines(true), do: ["true"]
  defp lines(text), do: String.split(text, ~r/\R/u, trim: true)

  defp word(true), do: "true"

  defp word(text) do
    if text =~ ~r/\A[\p{L}\p{N}_.@:\/+%-]+\z/u, do: text, else: Command.word(text)
  end

  defp inside_quotes(value) do
    with "\"" <> rest <- word(value), do: binary_part(rest, 0, byte_size(rest) - 1)
  end
end
