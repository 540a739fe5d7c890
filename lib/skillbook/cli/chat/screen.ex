defmodule Skillbook.CLI.Chat.Screen do
  @moduledoc false
  # A run as a person sees it: the text as it is written, each command and its result on a line of their own. Where no person
  # sits, only the text goes to standard output; the rest goes to standard error.

  alias Skillbook.CLI.{Run, Terminal}

  # `at` counts, for the events of one run: whether the line is open (1), and the turn's commands (2) and results (3).
  @enforce_keys [:terminal, :person, :at]
  defstruct [:terminal, :person, :at]

  @open 1
  @commands 2
  @results 3

  @doc "The screen of one run."
  def new(terminal, person?),
    do: %__MODULE__{terminal: terminal, person: person?, at: :atomics.new(3, [])}

  @doc "Shows an event of `Skillbook.Agent.run/3`."
  def show(screen, {:turn, _number}) do
    close(screen)
    for counter <- [@commands, @results], do: :atomics.put(screen.at, counter, 0)
    :ok
  end

  def show(screen, {:text, text}) do
    # What divides a block from the text is not needed where the block's commands stand on lines of their own.
    text = if open?(screen), do: text, else: String.trim_leading(text, "\n")

    if text != "" do
      Terminal.write(Terminal.safe(screen.terminal, text))
      :atomics.put(screen.at, @open, if(String.ends_with?(text, "\n"), do: 0, else: 1))
    end
  end

  def show(screen, {:command, command}) do
    number = :atomics.add_get(screen.at, @commands, 1)
    note(screen, :bright, "[#{number}] #{line(command)}")
  end

  def show(screen, {:result, result}) do
    number = :atomics.add_get(screen.at, @results, 1)
    status = Terminal.style(screen.terminal, Run.color(result.status), to_string(result.status))

    note(screen, :faint, [
      "[#{number}] ",
      status,
      Run.took(result.duration),
      ": ",
      line(result.content)
    ])
  end

  def show(screen, {:incomplete, commands}),
    do:
      note(screen, :yellow, "not run, its block was cut off: #{line(Enum.join(commands, "; "))}")

  def show(screen, {:note, _text}),
    do:
      note(
        screen,
        :yellow,
        "the model is told that nothing of this ran, for it stands in no cmd block"
      )

  def show(screen, {:cut_off, why}), do: note(screen, :yellow, cut_off(why))

  def show(screen, {:retry, retry}) do
    message = Exception.message(%{retry.error | retry_after: nil})
    note(screen, :yellow, "#{message}; again in #{Float.round(retry.delay / 1000, 1)} s")
  end

  def show(screen, {:news, _text}),
    do: note(screen, :faint, "the model is told which skills changed")

  def show(screen, {:compacted, %{messages: count}}),
    do: note(screen, :faint, "left out #{count} older messages to save room")

  # Of an agent's work a line for each command, under the command that dispatched it.
  def show(screen, {:agent, id, event}), do: agent(screen, ["  ", id], event)

  def show(_screen, _event), do: :ok

  defp agent(screen, path, {:agent, id, event}), do: agent(screen, [path, " > ", id], event)

  defp agent(screen, path, {:result, result}) do
    status = Terminal.style(screen.terminal, Run.color(result.status), to_string(result.status))

    note(screen, :faint, [
      path,
      ": ",
      line(result.command || ""),
      ": ",
      status,
      Run.took(result.duration)
    ])
  end

  defp agent(screen, path, {:retry, _retry}),
    do: note(screen, :yellow, [path, ": an attempt failed; again"])

  defp agent(_screen, _path, _event), do: :ok

  @doc "Ends a line that is open."
  def close(screen) do
    if open?(screen), do: Terminal.write("\n")
    :atomics.put(screen.at, @open, 0)
  end

  defp cut_off(:length),
    do: "the reply is not whole: it reached the limit of --max-tokens, or the model's own"

  defp cut_off(:filtered), do: "the reply is not whole: the server withheld the rest"
  defp cut_off(:broken), do: "the connection broke in the reply; the model is asked to go on"

  defp note(screen, style, text) do
    close(screen)
    text = Terminal.style(screen.terminal, style, text)
    if screen.person, do: Terminal.put(["  ", text]), else: IO.puts(:stderr, ["  ", text])
  end

  defp open?(screen), do: :atomics.get(screen.at, @open) == 1

  # As much of the first line as there is room for, and nothing that drives a terminal.
  defp line(text) do
    [line | more] = text |> String.trim() |> String.split("\n", parts: 2)
    line = Terminal.safe(%Terminal{width: 80}, line)
    shown = String.slice(line, 0, 100)
    if more == [] and shown == line, do: shown, else: shown <> " …"
  end
end
