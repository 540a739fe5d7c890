defmodule Skillbook.CLI.Shell.Input do
  @moduledoc false
  # Reads lines from standard input: key by key from a terminal that bin/skillbook has prepared,
  # or line by line from anything else. Also runs a function that Ctrl-C can stop.

  alias Skillbook.CLI.Shell.{Completion, Editor, History, Keys}
  alias Skillbook.CLI.{Output, Terminal}

  # `bytes` is an incomplete key. `keys` were typed ahead or pasted. `history` is `nil` if lines
  # are not added to the history.
  defstruct [:port, :complete, bytes: "", keys: [], pasting: false, history: []]

  # Bracketed paste: a tab in pasted text is not a completion.
  @paste_on "\e[?2004h"
  @paste_off "\e[?2004l"

  @doc """
  Opens standard input.

  bin/skillbook sets `SKILLBOOK_KEYS` to 1 if the terminal sends single keys, and to 0 if standard
  input or output is not a terminal. It is not set under mix, which reads lines.
  """
  def open do
    if System.get_env("SKILLBOOK_KEYS") == "1" do
      History.trim()
      %__MODULE__{port: Port.open({:fd, 0, 0}, [:in, :binary, :eof]), history: History.load()}
    else
      %__MODULE__{}
    end
  end

  @doc "Whether input and output are a terminal, so that greetings and prompts are printed."
  def interactive?(%{port: nil}),
    do: System.get_env("SKILLBOOK_KEYS") == nil and Terminal.person?()

  def interactive?(_input), do: true

  @doc "Sets the function for Tab, from the text left of the cursor to a `Completion.complete/2`."
  def set_completion(input, complete), do: %{input | complete: complete}

  @doc "The next line: `{:line, text, input}`, `{:interrupt, input}` or `{:eof, input}`."
  def line(%{port: nil} = input, prompt) do
    Terminal.write(prompt)

    case IO.read(:stdio, :line) do
      line when is_binary(line) ->
        {:line, line |> String.trim_trailing("\n") |> String.trim_trailing("\r"), input}

      _ ->
        {:eof, input}
    end
  end

  def line(input, prompt) do
    Terminal.write(@paste_on)
    outcome = edit(input, Editor.new(input.history || []), prompt, 0)
    Terminal.write(["\n", @paste_off])
    outcome
  end

  @doc "As `line/2` for an answer: discards keys typed before the question, and adds no history."
  def answer(%{history: history} = input, prompt) do
    outcome = line(%{discard_keys(input) | history: nil}, prompt)
    last = tuple_size(outcome) - 1
    put_elem(outcome, last, %{elem(outcome, last) | history: history})
  end

  defp discard_keys(%{port: nil} = input), do: input

  defp discard_keys(%{port: port} = input) do
    receive do
      {^port, {:data, _bytes}} -> discard_keys(input)
    after
      0 -> %{input | keys: [], bytes: "", pasting: false}
    end
  end

  @doc """
  Runs the function in a separate process that Ctrl-C kills.

  Returns `{:ok, value, input}`, `{:interrupt, input}` or `{:crash, reason, input}`.

  A question of `ask/2` is passed to `answer` with the input. It returns `{:ok, answer, input}` or
  `{:interrupt, input}`.
  """
  def run(input, fun, answer \\ nil) do
    {pid, monitor} = spawn_monitor(fn -> exit({:done, fun.()}) end)
    await(input, pid, monitor, answer)
  end

  @doc "Asks the process that calls `run/3`, from another process, and waits for the answer."
  def ask(pid, question) do
    monitor = Process.monitor(pid)
    send(pid, {__MODULE__, self(), monitor, question})

    receive do
      {^monitor, answer} ->
        Process.demonitor(monitor, [:flush])
        answer

      {:DOWN, ^monitor, _, _, reason} ->
        exit(reason)
    end
  end

  defp await(%{port: port} = input, pid, monitor, answer) do
    receive do
      {__MODULE__, asker, ref, question} ->
        # The question may come from a run that was stopped.
        case if(Process.alive?(asker), do: answer.(question, input), else: {:ok, nil, input}) do
          {:ok, value, input} ->
            send(asker, {ref, value})
            await(input, pid, monitor, answer)

          {:interrupt, input} ->
            stop(input, pid, monitor)
        end

      {:DOWN, ^monitor, _, _, {:done, value}} ->
        {:ok, value, input}

      {:DOWN, ^monitor, _, _, reason} ->
        if reason == Output.stopped(), do: exit(reason), else: {:crash, reason, input}

      {^port, {:data, bytes}} ->
        input = take(input, bytes)

        if :interrupt in input.keys,
          do: stop(input, pid, monitor),
          else: await(input, pid, monitor, answer)
    end
  end

  defp stop(input, pid, monitor) do
    Process.demonitor(monitor, [:flush])
    Process.exit(pid, :kill)
    {:interrupt, %{input | keys: []}}
  end

  # Draws only when no keys are left, so that pasted text is drawn once.
  defp edit(%{keys: []} = input, editor, prompt, row) do
    row = draw(editor, prompt, row)
    input |> receive_keys() |> edit(editor, prompt, row)
  end

  defp edit(%{keys: [key | keys]} = input, editor, prompt, row) do
    input = %{input | keys: keys}

    case {key, Editor.key(editor, key)} do
      {:paste_start, _} ->
        edit(%{input | pasting: true}, editor, prompt, row)

      {:paste_end, _} ->
        edit(%{input | pasting: false}, editor, prompt, row)

      {:tab, _} when input.pasting ->
        edit(input, Editor.insert(editor, "\t"), prompt, row)

      {:tab, _} ->
        {editor, row} = complete(input, editor, prompt, row)
        edit(input, editor, prompt, row)

      {:clear, _} ->
        Terminal.write("\e[H\e[2J")
        edit(input, editor, prompt, 0)

      {_, {:edit, editor}} ->
        edit(input, editor, prompt, row)

      {_, {:enter, text}} ->
        leave(editor, prompt, row)
        {:line, text, %{input | history: input.history && History.add(input.history, text)}}

      {_, :interrupt} ->
        leave(editor, prompt, row)
        {:interrupt, %{input | keys: []}}

      {_, :end_of_input} ->
        {:eof, input}
    end
  end

  defp receive_keys(%{port: port} = input) do
    receive do
      {^port, {:data, bytes}} -> take(input, bytes)
      {^port, :eof} -> %{input | keys: [:kill_left, :kill_right, :end_of_input]}
    end
  end

  defp take(input, bytes) do
    {keys, rest} = Keys.decode(input.bytes <> bytes)
    %{input | keys: input.keys ++ keys, bytes: rest}
  end

  defp complete(input, editor, prompt, row) do
    case input.complete.(Editor.left(editor)) do
      {"", [_ | _] = choices} ->
        leave(editor, prompt, row)
        Terminal.write(["\n", Completion.columns(choices, columns()), "\n"])
        {editor, 0}

      {text, _choices} ->
        {Editor.insert(editor, text), row}
    end
  end

  # Draws the line for the last time, with the cursor at its end.
  defp leave(editor, prompt, row) do
    {:edit, editor} = Editor.key(editor, :end)
    draw(editor, prompt, row)
  end

  defp draw(editor, prompt, row) do
    {drawing, row} = Editor.draw(editor, prompt, columns(), row)
    Terminal.write(drawing)
    row
  end

  # Read each time, because the window may have been resized.
  defp columns, do: Terminal.new(:never).width || 80
end
