defmodule Skillbook.CLI.Chat.Screen do
  @moduledoc false
  # Prints the events of an agent run: the text as it is streamed, and one line for each command
  # and each result. On a terminal all of it goes to standard output. Otherwise only the text
  # does, and the rest goes to standard error.

  alias Skillbook.CLI.Chat.Spinner
  alias Skillbook.CLI.{Run, Terminal}

  # `counters` is an `:atomics` array, because events of one run come from several processes.
  # `spinner` is `nil` unless a person is waiting.
  @enforce_keys [:terminal, :interactive, :counters]
  defstruct [:terminal, :interactive, :counters, :spinner]

  # 1 if the last text did not end its line
  @open_line 1
  # Commands and results of the current turn
  @commands 2
  @results 3

  @max_line 100

  @doc "The screen of one run."
  def new(terminal, interactive?) do
    %__MODULE__{
      terminal: terminal,
      interactive: interactive?,
      counters: :atomics.new(3, []),
      spinner: if(interactive?, do: Spinner.start())
    }
  end

  @doc "Ends the output of the run."
  def stop(screen) do
    close(screen)
    Spinner.stop(screen.spinner)
  end

  @doc "Shows an event of `Skillbook.Agent.run/3`."
  def show(screen, {:turn, _number}) do
    close(screen)
    for counter <- [@commands, @results], do: :atomics.put(screen.counters, counter, 0)
    Spinner.wait(screen.spinner)
  end

  def show(screen, event) do
    Spinner.clear(screen.spinner)
    show_event(screen, event)
  end

  defp show_event(screen, {:text, text}) do
    # Commands have lines of their own, so the blank line before their block is dropped.
    text = if open?(screen), do: text, else: String.trim_leading(text, "\n")

    if text != "" do
      Terminal.write(if(screen.interactive, do: indent(screen, text), else: Terminal.safe(text)))
      :atomics.put(screen.counters, @open_line, if(String.ends_with?(text, "\n"), do: 0, else: 1))
    end
  end

  defp show_event(screen, {:command, command}) do
    number = :atomics.add_get(screen.counters, @commands, 1)
    note(screen, :bright, "[#{number}] #{line(command)}")
  end

  defp show_event(screen, {:result, result}) do
    number = :atomics.add_get(screen.counters, @results, 1)
    status = Terminal.style(screen.terminal, Run.color(result.status), to_string(result.status))

    note(screen, :faint, [
      "[#{number}] ",
      status,
      Run.duration(result.duration),
      ": ",
      line(result.content)
    ])
  end

  defp show_event(screen, {:incomplete, commands}),
    do:
      note(screen, :yellow, "not run, its block was cut off: #{line(Enum.join(commands, "; "))}")

  defp show_event(screen, {:note, _text}),
    do:
      note(
        screen,
        :yellow,
        "the reply has commands outside a cmd block; the model is told that they did not run"
      )

  defp show_event(screen, {:repeated, _text}),
    do: note(screen, :yellow, "the replies repeat the same commands; the model is told")

  defp show_event(screen, {:empty, _text}),
    do: note(screen, :yellow, "the reply is empty; the model is asked again")

  defp show_event(screen, {:cut_off, why}), do: note(screen, :yellow, cut_off(why))

  defp show_event(screen, {:retry, retry}) do
    message = Exception.message(%{retry.error | retry_after: nil})
    note(screen, :yellow, "#{message}; again in #{Float.round(retry.delay / 1000, 1)} s")
  end

  defp show_event(screen, {:preloaded, %{loaded: loaded, left_out: left_out}}),
    do: note(screen, :faint, preloaded(loaded, left_out))

  defp show_event(screen, {:handed_over, %{to: to, reason: reason}}),
    do: note(screen, :faint, "#{to} leads the conversation: #{line(reason)}")

  defp show_event(screen, {:news, _text}),
    do: note(screen, :faint, "the model is told which skills changed")

  defp show_event(screen, {:compacted, %{messages: count}}),
    do: note(screen, :faint, "left out #{count} older messages to save room")

  # Results of a dispatched agent, below the command that dispatched it.
  defp show_event(screen, {:agent, id, event}), do: agent(screen, ["  ", id], event)

  defp show_event(_screen, _event), do: :ok

  defp agent(screen, path, {:agent, id, event}), do: agent(screen, [path, " > ", id], event)

  defp agent(screen, path, {:result, result}) do
    status = Terminal.style(screen.terminal, Run.color(result.status), to_string(result.status))

    note(screen, :faint, [
      path,
      ": ",
      line(result.command || ""),
      ": ",
      status,
      Run.duration(result.duration)
    ])
  end

  defp agent(screen, path, {:retry, _retry}),
    do: note(screen, :yellow, [path, ": an attempt failed; again"])

  defp agent(_screen, _path, _event), do: :ok

  @doc "Ends the current line, if text is on it."
  def close(screen) do
    Spinner.clear(screen.spinner)
    if open?(screen), do: Terminal.write("\n")
    :atomics.put(screen.counters, @open_line, 0)
  end

  defp preloaded(loaded, []), do: "loaded: #{line(Enum.join(loaded, ", "))}"
  defp preloaded([], left_out), do: "too long to load: #{line(Enum.join(left_out, ", "))}"
  defp preloaded(loaded, left_out), do: "#{preloaded(loaded, [])}; #{preloaded([], left_out)}"

  defp cut_off(:length),
    do: "the reply is incomplete: it reached --max-tokens or the model's limit"

  defp cut_off(:filtered), do: "the reply is incomplete: the server withheld the rest"

  defp cut_off(:broken),
    do: "the connection broke during the reply; the model is asked to continue"

  defp note(screen, style, text) do
    close(screen)
    text = Terminal.style(screen.terminal, style, text)
    if screen.interactive, do: Terminal.put(text), else: IO.puts(:stderr, ["  ", text])
  end

  # On a terminal, lines of the reply are indented and ours are not. Otherwise ours go elsewhere.
  defp indent(screen, text) do
    text = text |> Terminal.safe() |> String.replace(~r/\n(?=[^\n])/, "\n  ")
    if open?(screen), do: text, else: "  " <> text
  end

  defp open?(screen), do: :atomics.get(screen.counters, @open_line) == 1

  # The first line, truncated, without control characters.
  defp line(text) do
    [line | more] = text |> String.trim() |> String.split("\n", parts: 2)
    line = Terminal.line(line)
    truncated = String.slice(line, 0, @max_line)
    if more == [] and truncated == line, do: line, else: truncated <> " …"
  end
end
