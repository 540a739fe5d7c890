defmodule Skillbook.CLI.Shell do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand
  @behaviour Skillbook.CLI.Shell.Loop

  alias Skillbook.CLI.Shell.{Input, Loop}
  alias Skillbook.CLI.{Run, Session, Terminal}

  @words_help """
  A line is a command, as a model would write it in a `cmd` block. An open quote, a heredoc, a backslash at the
  end of a line and a ```cmd block go on in the next line.

    get_skill             what there is; `get_skill: tasks.create` for one of it
    NAME --help           how to use a command
    :prompt               the system prompt's sections
    :profile [NAME]       show or change on whose behalf commands run
    :reload               read the skills again; changed files are seen by themselves
    :diagnostics          what is wrong with the skills
    :help                 this help
    :quit                 leave; so does Ctrl-D

  Tab completes names and flags, Up and Down walk through the history, Ctrl-C drops the line or stops the command.
  """

  @impl true
  def switches, do: []

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`shell` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "play the model: type commands, see what they answer"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] shell

    A prompt at which a person plays the model. Lines can also come from a pipe; then the exit status is 1 if one of
    the commands failed.

    #{@words_help}
    Examples:
      skillbook shell
      skillbook --db :memory: --profile maria shell
      echo 'tasks.search --overdue' | skillbook shell
    """
  end

  @impl true
  def run(options) do
    Session.with_book(options, :converse, fn book ->
      Loop.start(%{
        module: __MODULE__,
        book: book,
        options: options,
        name: "skillbook",
        greeting: "Skillbook. A line is a command; :help says more, :quit leaves.",
        help: @words_help,
        words: [{":reload", nil}, {":diagnostics", nil}],
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

  # A view a turn, so that a reload is seen by the next command and never by half of one.
  @impl true
  def run(%{terminal: terminal} = state, reply) do
    outcome = Input.run(state.input, fn -> Skillbook.run(view(state), reply, by: :user) end)

    Loop.ran(state, outcome, fn state, report ->
      for result <- report.results, do: Terminal.put(Run.outcome(terminal, result))
      if report.text != "", do: Terminal.put(Terminal.safe(terminal, report.text))
      %{state | failed: state.failed or Enum.any?(report.results, &(&1.status == :error))}
    end)
  end

  @impl true
  def word(state, ":profile", _name), do: state

  def word(state, ":reload", _) do
    :ok = Skillbook.reload(state.book)
    Terminal.put("reloaded")
    state
  end

  def word(state, ":diagnostics", _) do
    case Skillbook.diagnostics(state.book) do
      [] ->
        Terminal.put("Nothing is wrong.")

      found ->
        for diagnostic <- found,
            do: Terminal.put(Terminal.safe(state.terminal, to_string(diagnostic)))
    end

    state
  end

  @impl true
  def view(state), do: Session.view(state.book, state.options)

  @impl true
  def known(state) do
    view = view(state)
    names = Enum.map(Skillbook.View.entries(view, []), & &1.name)
    domains = Enum.map(Skillbook.View.domains(view), & &1.name)

    %{
      names: Enum.sort(["get_skill" | names] ++ domains) ++ Loop.words(state),
      flags: fn name -> flags(Skillbook.View.fetch(view, name)) end
    }
  end

  defp flags({:ok, %{usage: usage}}) when is_binary(usage) do
    ~r/--[\w-]+/ |> Regex.scan(usage) |> List.flatten() |> Enum.uniq() |> Enum.sort()
  end

  defp flags(_), do: []
end
