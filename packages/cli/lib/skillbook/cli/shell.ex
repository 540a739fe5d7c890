defmodule Skillbook.CLI.Shell do
  @moduledoc false
  # `skillbook shell`: reads commands from a prompt and runs them.

  @behaviour Skillbook.CLI.Subcommand
  @behaviour Skillbook.CLI.Shell.Loop

  alias Skillbook.CLI.Shell.{Input, Loop}
  alias Skillbook.CLI.{EmbedderFlags, Help, Run, Session, Terminal}

  @impl true
  def switches, do: EmbedderFlags.switches()

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`shell` takes no argument, got: #{arg}"}

  @impl true
  def run(options) do
    case EmbedderFlags.read(options) do
      {:ok, options} -> shell(options)
      {:error, message} -> Terminal.usage_error(message, "shell --help")
    end
  end

  defp shell(options) do
    Session.with_book(options, :converse, fn book ->
      Loop.start(%{
        module: __MODULE__,
        book: book,
        options: options,
        name: "skillbook",
        greeting: "Skillbook. A line is a command; :help shows help, :quit quits.",
        help: Help.part("shell"),
        colon_commands: [{":reload", nil}, {":diagnostics", nil}],
        unfinished: "a command, which did not run"
      })
    end)
  end

  @impl true
  def read(text) do
    read =
      cond do
        String.trim(text) == "" -> :blank
        text |> String.trim() |> String.starts_with?(["```", "~~~"]) -> block(text)
        true -> command(text)
      end

    with :more <- read, do: {:more, text <> "\n"}
  end

  defp block(text) do
    case Skillbook.Extractor.extract(text) do
      {:ok, %{commands: [], incomplete: []}} ->
        if String.contains?(text, "\n"), do: {:run, text}, else: :more

      {:ok, %{incomplete: []}} ->
        {:run, text}

      {:ok, _} ->
        :more

      {:error, _} ->
        {:run, text}
    end
  end

  defp command(text) do
    case Skillbook.Command.parse(text) do
      {:error, %{kind: kind}} when kind in [:unclosed_quote, :unclosed_heredoc] -> :more
      _ -> if joins?(text), do: :more, else: {:run, Run.block(text)}
    end
  end

  # An odd number of backslashes at the end: the last one is not itself escaped.
  defp joins?(text) do
    [backslashes] = Regex.run(~r/\\*\z/, text)
    rem(byte_size(backslashes), 2) == 1
  end

  # A new view for each line: a command sees the last reload, and never half of one.
  @impl true
  def run(%{terminal: terminal} = state, reply) do
    outcome = Input.run(state.input, fn -> Skillbook.run(view(state), reply, by: :user) end)

    Loop.handle_outcome(state, outcome, fn state, report ->
      for result <- report.results, do: Terminal.put(Run.outcome(terminal, result))
      if report.text != "", do: Terminal.put(Terminal.foreign(report.text))
      %{state | failed: state.failed or Enum.any?(report.results, &(&1.status == :error))}
    end)
  end

  @impl true
  def colon_command(state, ":profile", _name), do: state

  def colon_command(state, ":reload", _) do
    :ok = Skillbook.reload(state.book)
    Terminal.put("reloaded")
    state
  end

  def colon_command(state, ":diagnostics", _) do
    case Skillbook.diagnostics(state.book) do
      [] ->
        Terminal.put("No problems found.")

      diagnostics ->
        for diagnostic <- diagnostics,
            do: Terminal.put(to_string(diagnostic))
    end

    state
  end

  @impl true
  def view(state), do: Session.view(state.book, state.options)

  @impl true
  def completions(state) do
    view = view(state)
    names = Enum.map(Skillbook.View.entries(view, []), & &1.name)
    domains = Enum.map(Skillbook.View.domains(view), & &1.name)

    %{
      names: Enum.sort(["get_skill" | names] ++ domains) ++ Loop.colon_commands(state),
      flags: fn name -> flags(Skillbook.View.fetch(view, name)) end
    }
  end

  defp flags({:ok, %{usage: usage}}) when is_binary(usage) do
    ~r/--[\w-]+/ |> Regex.scan(usage) |> List.flatten() |> Enum.uniq() |> Enum.sort()
  end

  defp flags(_), do: []
end
