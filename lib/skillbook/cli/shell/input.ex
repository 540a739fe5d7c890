defmodule Skillbook.CLI.Shell.Input do
  @moduledoc false
  # Where lines come from: a terminal whose keys bin/skillbook hands over one by one, or any other standard input.

  alias Skillbook.CLI.Shell.{Completion, Editor, History, Keys}
  alias Skillbook.CLI.Terminal

  # `bytes` are the beginning of a key, `keys` were typed ahead or pasted and wait for their turn.
  defstruct [:port, :complete, bytes: "", keys: [], pasting: false, history: []]

  # Pasted text comes marked, so that a tab in it is a tab.
  @paste_on "\e[?2004h"
  @paste_off "\e[?2004l"

  @doc """
  Keys or lines, as `SKILLBOOK_KEYS` says: bin/skillbook sets it to 1 when it has set the terminal to hand over keys,
  and to 0 when standard input or output is no terminal. Under mix it is not set.
  """
  def open do
    if System.get_env("SKILLBOOK_KEYS") == "1" do
      History.trim()
      %__MODULE__{port: Port.open({:fd, 0, 0}, [:in, :binary, :eof]), history: History.load()}
    else
      %__MODULE__{}
    end
  end

  @doc "Whether a person sits there: greetings and prompts are for people."
  def person?(%{port: nil}), do: System.get_env("SKILLBOOK_KEYS") == nil and Terminal.new(:never).width != nil
  def person?(_input), do: true

  @doc "Sets what Tab asks: the text left of the cursor in, what `Completion.complete/2` gives out."
  def completing(input, complete), do: %{input | complete: complete}

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
    outcome = edit(input, Editor.new(input.history), prompt, 0)
    Terminal.write(["\n", @paste_off])
    outcome
  end

  @doc """
  Runs the function in a process of its own, so that Ctrl-C can end it.

  `{:ok, value, input}`, `{:interrupt, input}`, or `{:crash, reason, input}`.
  """
  def run(input, fun) do
    {pid, monitor} = spawn_monitor(fn -> exit({:done, fun.()}) end)
    await(input, pid, monitor)
  end

  defp await(%{port: port} = input, pid, monitor) do
    receive do
      {:DOWN, ^monitor, _, _, {:done, value}} ->
        {:ok, value, input}

      {:DOWN, ^monitor, _, _, reason} ->
        {:crash, reason, input}

      {^port, {:data, bytes}} ->
        input = take(input, bytes)

        if :interrupt in input.keys do
          Process.demonitor(monitor, [:flush])
          Process.exit(pid, :kill)
          {:interrupt, %{input | keys: []}}
        else
          await(input, pid, monitor)
        end
    end
  end

  # What has been typed is drawn once there is nothing more to work off.
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
        {:line, text, %{input | history: History.add(input.history, text)}}

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

  # Draws the line for good, with the cursor behind it.
  defp leave(editor, prompt, row) do
    {:edit, editor} = Editor.key(editor, :end)
    draw(editor, prompt, row)
  end

  defp draw(editor, prompt, row) do
    {drawing, row} = Editor.draw(editor, prompt, columns(), row)
    Terminal.write(drawing)
    row
  end

  # Asked each time: the window may have changed its size.
  defp columns, do: Terminal.new(:never).width || 80
end
