defmodule Skillbook.Reply.StrayCommands do
  @moduledoc false
  # Finds text in a reply that looks like commands but is outside a `cmd` block. It never runs;
  # the model gets a note, so it does not assume that it did.
  #
  # There are two cases: a `cmd` block inside of a code block that was not closed, and a reply
  # without any `cmd` block that has a command in a shell block, a JSON block or tags, as models
  # write it that were trained on other formats. Quoted blocks and Markdown blocks are examples
  # and are ignored.

  alias Skillbook.Reply.ToolCall
  alias Skillbook.Support.JSON
  alias Skillbook.{Command, Entry, Extractor, View}

  # A text without any of these has no blocks and no tags.
  @marks ["```", "~~~", "<"]

  # Info strings of blocks that may hold a command. Blocks of other languages are ignored.
  @infos [
    "" | ~w(bash sh shell zsh console terminal text txt plaintext json command commands cmdline)
  ]

  # Replies are searched for fixed texts: a regular expression with two repetitions in a row would
  # take quadratic time.
  @thoughts {["<think>", "<thinking>"], ["</think>", "</thinking>"]}
  @tags {["<tool_call>", "<function_call>", "<cmd>", "<command>", "<|python_tag|>"], ["</", "<|"]}
  @name ~r/\A(?:[$>] )?(get_skill|[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+)(?=[\s:({]|\z)/

  @max_commands 3
  @max_line_length 200

  @doc "Returns notes for the model about stray commands of the view in a reply."
  @spec notes(View.t(), String.t(), Extractor.extraction()) :: [String.t()]
  def notes(view, reply, extraction) do
    case (extraction[:hidden] || [])
         |> Stream.flat_map(&hidden(view, reply, &1))
         |> Enum.take(@max_commands) do
      [] when extraction.commands == [] and extraction.incomplete == [] ->
        outside(view, extraction.text)

      notes ->
        notes
    end
  end

  # Without its first line the block is read as a reply; its end may be the end of a `cmd` block.
  defp hidden(view, reply, {start, length}) do
    with [_fence, rest] <- reply |> binary_part(start, length) |> String.split("\n", parts: 2),
         {:ok, %{commands: commands}} <- Extractor.extract(rest, unclosed: :run),
         [_ | _] = commands <- Enum.flat_map(commands, &command(view, &1)) do
      line = 1 + length(:binary.matches(reply, "\n", scope: {0, start}))
      [unclosed(line, commands)]
    else
      _ -> []
    end
  end

  defp unclosed(line, commands) do
    """
    The code block that opens at line #{line} of your reply was not closed before the next cmd \
    block, so that one is part of it, and #{length(commands)} of its lines that look like \
    commands did not run. If you meant to run this, close the code block first, and write it \
    again in a block that opens with ```cmd:

    #{indented(Enum.take(commands, @max_commands))}

    If it was only meant to be read, go on.\
    """
  end

  defp outside(view, text) do
    if :binary.match(text, @marks) == :nomatch do
      []
    else
      case text
           |> candidates()
           |> Stream.flat_map(&command(view, &1))
           |> Enum.take(@max_commands) do
        [] -> []
        commands -> [note(commands)]
      end
    end
  end

  defp note(commands) do
    """
    Nothing ran: your reply has no cmd block, and text outside of cmd blocks is for the user. \
    If you meant to run this, write it in a block that opens with ```cmd:

    #{indented(commands)}

    If it was only meant to be read, repeat your answer.\
    """
  end

  # Without a block, so that a model that only repeats the note runs nothing.
  defp indented(commands), do: Enum.map_join(commands, "\n", &("  " <> &1))

  # Returns the texts that may begin with a command, in order.
  defp candidates(text) do
    {outside, _thoughts} = between(text, compiled(@thoughts), [], [])
    text = IO.iodata_to_binary(outside)
    {_outside, tagged} = between(text, compiled(@tags), [], [])
    fenced(String.split(text, "\n"), []) ++ tagged
  end

  # Compiling the marks takes longer than most searches.
  defp compiled({opening, closing}),
    do: {:binary.compile_pattern(opening), :binary.compile_pattern(closing)}

  # The parts of a text outside of marks, and those between an opening and a closing one. The last
  # mark may be left open.
  defp between(text, {opening, closing} = marks, outside, inside) do
    case cut(text, opening) do
      {before, rest} ->
        {part, rest} = cut(rest, closing) || {rest, ""}
        between(rest, marks, [before | outside], [part | inside])

      nil ->
        {Enum.reverse([text | outside]), Enum.reverse(inside)}
    end
  end

  # The text before and after the first of some marks.
  defp cut(text, marks) do
    case :binary.split(text, marks) do
      [before, rest] -> {before, rest}
      [_text] -> nil
    end
  end

  defp fenced([], blocks), do: blocks |> Enum.reverse() |> Enum.concat()

  defp fenced([line | lines], blocks) do
    case fence(line) do
      {fence, info} ->
        {body, lines} = body(lines, fence, [])
        fenced(lines, [wanted(String.downcase(info), body) | blocks])

      nil ->
        fenced(lines, blocks)
    end
  end

  # Splits the lines at the closing fence, which is at least as long and has no info string.
  defp body([], _fence, body), do: {Enum.reverse(body), []}

  defp body([line | lines], fence, body) do
    with {closing, ""} <- fence(line),
         true <- String.starts_with?(closing, fence) do
      {Enum.reverse(body), lines}
    else
      _ -> body(lines, fence, [line | body])
    end
  end

  # The fence of a line, with its info string; `nil` for any other line.
  defp fence("   " <> line), do: marks(line)
  defp fence("  " <> line), do: marks(line)
  defp fence(" " <> line), do: marks(line)
  defp fence(line), do: marks(line)

  defp marks(<<mark, mark, mark, _::binary>> = line) when mark in [?`, ?~] do
    rest = String.trim_leading(line, <<mark>>)
    info = String.trim(rest)
    fence = binary_part(line, 0, byte_size(line) - byte_size(rest))
    if String.contains?(info, "`"), do: nil, else: {fence, info}
  end

  defp marks(_line), do: nil

  defp wanted(info, body) when info in @infos, do: [Enum.join(body, "\n")]
  defp wanted(_info, _body), do: []

  defp command(view, text) do
    text = String.trim(text)

    case text do
      <<first, _::binary>> when first in [?{, ?[] -> json(view, JSON.decode(text))
      _ -> line(view, text)
    end
  end

  defp line(view, text) do
    with [start, name] <- Regex.run(@name, text), true <- command?(view, name) do
      [line | _] =
        text
        |> String.replace_prefix("$ ", "")
        |> String.replace_prefix("> ", "")
        |> String.split("\n")

      call? =
        String.starts_with?(
          binary_part(text, byte_size(start), byte_size(text) - byte_size(start)),
          "("
        )

      [if(call? or not complete?(line), do: "#{name} --FLAG VALUE", else: line)]
    else
      _ -> []
    end
  end

  defp complete?(line),
    do: String.length(line) <= @max_line_length and match?({:ok, _}, Command.parse(line))

  defp json(view, {:ok, calls}) when is_list(calls),
    do: Enum.flat_map(calls, &json(view, {:ok, &1}))

  defp json(view, {:ok, %{"function" => %{} = call}}), do: json(view, {:ok, call})

  defp json(view, {:ok, %{"name" => tool} = call}) when is_binary(tool) do
    name = String.replace(tool, "__", ".")

    if name =~ ~r/\A#{@name.source}\z/ and command?(view, name) do
      arguments = call["arguments"] || call["parameters"] || call["input"]

      line =
        if is_map(arguments), do: ToolCall.line(name, arguments), else: "#{name} --FLAG VALUE"

      [if(complete?(line), do: line, else: "#{name} --FLAG VALUE")]
    else
      []
    end
  end

  defp json(_view, _other), do: []

  defp command?(_view, "get_skill"), do: true
  defp command?(view, name), do: match?({:ok, %Entry{kind: :command}}, View.fetch(view, name))
end
