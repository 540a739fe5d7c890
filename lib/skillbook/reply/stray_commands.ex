defmodule Skillbook.Reply.StrayCommands do
  @moduledoc false
  # What looks like a command in a reply and is none. It never runs, since commands are also shown to a reader so; but the
  # model is told, so that it knows that nothing happened.
  #
  # One is in a `cmd` block behind a code block that was not closed. Of a reply that has no `cmd` block at all: models that were
  # trained on other forms write it in a block of the shell or of JSON, or in tags. Quoted blocks and those of Markdown are
  # always meant to be read.

  alias Skillbook.Reply.ToolCall
  alias Skillbook.Support.JSON
  alias Skillbook.{Command, Entry, Extractor, View}

  # Where none of these stands there is nothing to look for.
  @marks ["```", "~~~", "<"]

  # Info strings of blocks that a command may have been meant in. Any other language is taken at its word.
  @infos [
    "" | ~w(bash sh shell zsh console terminal text txt plaintext json command commands cmdline)
  ]

  @thought ~r/<think(?:ing)?>.*?(?:<\/think(?:ing)?>|\z)/s
  @tag ~r/<(?:(?:tool_call|function_call|cmd|command)>|\|python_tag\|>)\s*(.+?)\s*(?:<[\/|]|\z)/s
  @fence ~r/\A {0,3}(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*\z/
  @name ~r/\A(?:[$>] )?(get_skill|[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+)(?=[\s:({]|\z)/

  # As many as one has to see to know what is meant.
  @most 3
  @shown 200

  @doc "Notes for the model about what looks like commands of the view in a reply that was taken apart."
  @spec notes(View.t(), String.t(), Extractor.extraction()) :: [String.t()]
  def notes(view, reply, found) do
    case Enum.flat_map(found[:hidden] || [], &hidden(view, reply, &1)) do
      [] when found.commands == [] and found.incomplete == [] -> outside(view, found.text)
      notes -> Enum.take(notes, @most)
    end
  end

  # The block without its first line is a reply of its own, whose end may be that of a command block.
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
    The code block that opens at line #{line} of your reply was not closed before the next cmd block, so that one is a part of \
    it, and #{length(commands)} of its lines that look like commands did not run. If you meant to run this, close the code \
    block first, and write it again:

    ```cmd
    #{commands |> Enum.take(@most) |> Enum.join("\n")}
    ```

    If it was only meant to be read, go on.\
    """
  end

  defp outside(view, text) do
    if :binary.match(text, @marks) == :nomatch do
      []
    else
      case text |> candidates() |> Stream.flat_map(&command(view, &1)) |> Enum.take(@most) do
        [] -> []
        commands -> [note(commands)]
      end
    end
  end

  defp note(commands) do
    """
    Nothing ran: your reply has no cmd block, and whatever stands elsewhere is text for the user. If you meant to run this, \
    write it so:

    ```cmd
    #{Enum.join(commands, "\n")}
    ```

    If it was only meant to be read, write your answer once more.\
    """
  end

  # The texts that may begin with a command, in order.
  defp candidates(text) do
    text = Regex.replace(@thought, text, "")
    tagged = for [_, body] <- Regex.scan(@tag, text), do: body
    fenced(String.split(text, "\n"), []) ++ tagged
  end

  defp fenced([], found), do: found |> Enum.reverse() |> Enum.concat()

  defp fenced([line | lines], found) do
    case Regex.run(@fence, line) do
      [_, fence, info] ->
        {body, lines} = body(lines, fence, [])
        fenced(lines, [wanted(String.downcase(info), body) | found])

      nil ->
        fenced(lines, found)
    end
  end

  # The lines up to the closing fence, which is as long and has nothing behind it.
  defp body([], _fence, body), do: {Enum.reverse(body), []}

  defp body([line | lines], fence, body) do
    with [_, closing, ""] <- Regex.run(@fence, line),
         true <- String.starts_with?(closing, fence) do
      {Enum.reverse(body), lines}
    else
      _ -> body(lines, fence, [line | body])
    end
  end

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

      [if(call? or not whole?(line), do: "#{name} --FLAG VALUE", else: line)]
    else
      _ -> []
    end
  end

  defp whole?(line), do: String.length(line) <= @shown and match?({:ok, _}, Command.parse(line))

  defp json(view, {:ok, calls}) when is_list(calls),
    do: Enum.flat_map(calls, &json(view, {:ok, &1}))

  defp json(view, {:ok, %{"function" => %{} = call}}), do: json(view, {:ok, call})

  defp json(view, {:ok, %{"name" => tool} = call}) when is_binary(tool) do
    name = String.replace(tool, "__", ".")

    if name =~ ~r/\A#{@name.source}\z/ and command?(view, name) do
      arguments = call["arguments"] || call["parameters"] || call["input"]

      line =
        if is_map(arguments), do: ToolCall.line(name, arguments), else: "#{name} --FLAG VALUE"

      [if(whole?(line), do: line, else: "#{name} --FLAG VALUE")]
    else
      []
    end
  end

  defp json(_view, _other), do: []

  defp command?(_view, "get_skill"), do: true
  defp command?(view, name), do: match?({:ok, %Entry{kind: :command}}, View.fetch(view, name))
end
