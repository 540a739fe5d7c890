defmodule Skillbook.CLI.Shell do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Run, Terminal}
  alias Skillbook.CLI.Shell.{Completion, Input}

  @words ~w(:help :quit :prompt :profile :reload :diagnostics)

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
    Book.with_book(options, :converse, fn book ->
      terminal = Terminal.new(options.color)

      state = %{
        book: book,
        options: options,
        terminal: terminal,
        input: Input.open(),
        pending: "",
        failed: false
      }

      if Input.person?(state.input),
        do: Terminal.put("Skillbook. A line is a command; :help says more, :quit leaves.")

      loop(state)
    end)
  end

  defp loop(state) do
    input = Input.completing(state.input, &Completion.complete(&1, known(state)))

    case Input.line(input, prompt(state)) do
      {:line, line, input} -> line(%{state | input: input}, state.pending <> line)
      {:interrupt, input} -> loop(%{state | input: input, pending: ""})
      {:eof, _input} -> finish(state)
    end
  end

  defp prompt(state) do
    cond do
      not Input.person?(state.input) -> ""
      state.pending != "" -> "      ...> "
      state.options.profile == "default" -> "skillbook> "
      true -> "skillbook (#{state.options.profile})> "
    end
  end

  defp finish(%{pending: ""} = state), do: if(state.failed and not Input.person?(state.input), do: 1, else: 0)

  defp finish(state) do
    Terminal.complain(
      "the input ended inside a command, which did not run:\n#{String.trim_trailing(state.pending)}"
    )

    1
  end

  defp line(state, text) do
    case classify(text) do
      :blank -> loop(%{state | pending: ""})
      :more -> loop(%{state | pending: text <> "\n"})
      {:word, word, argument} -> word(%{state | pending: ""}, word, argument)
      {:run, reply} -> execute(%{state | pending: ""}, reply)
    end
  end

  @doc """
  What a text typed so far is: `:blank`, `:more` to come, a `{:word, word, argument}` for the shell itself, or a
  reply to `{:run, reply}`.
  """
  def classify(text) do
    trimmed = String.trim(text)

    cond do
      trimmed == "" -> :blank
      String.starts_with?(trimmed, ":") -> word(trimmed)
      String.starts_with?(trimmed, ["```", "~~~"]) -> block(text)
      true -> command(text)
    end
  end

  defp word(text) do
    [word | argument] = String.split(text, ~r/\s+/, parts: 2)
    {:word, word, List.first(argument)}
  end

  defp block(text) do
    case Skillbook.Extractor.extract(text) do
      {:ok, %{commands: [], incomplete: []}} -> if String.contains?(text, "\n"), do: {:run, text}, else: :more
      {:ok, %{incomplete: []}} -> {:run, text}
      {:ok, _} -> :more
      {:error, _} -> {:run, text}
    end
  end

  defp command(text) do
    case Skillbook.Command.parse(text) do
      {:error, %{kind: kind}} when kind in [:unclosed_quote, :unclosed_heredoc] -> :more
      _ -> if joins?(text), do: :more, else: {:run, fence(text)}
    end
  end

  # An odd number of backslashes at the end: the last one is not itself escaped.
  defp joins?(text) do
    [backslashes] = Regex.run(~r/\\*\z/, text)
    rem(byte_size(backslashes), 2) == 1
  end

  # Longer than any fence in the command, so that a body may hold code.
  defp fence(text) do
    longest = ~r/`+/ |> Regex.scan(text) |> Enum.map(fn [run] -> byte_size(run) end) |> Enum.max(fn -> 0 end)
    fence = String.duplicate("`", max(longest + 1, 3))
    "#{fence}cmd\n#{text}\n#{fence}\n"
  end

  defp execute(%{terminal: terminal} = state, reply) do
    # A view a turn, so that a reload is seen by the next command and never by half of one.
    case Input.run(state.input, fn -> Skillbook.run(view(state), reply, by: :user) end) do
      {:ok, report, input} ->
        for result <- report.results, do: Terminal.put(Run.outcome(terminal, result))
        if report.text != "", do: Terminal.put(Terminal.safe(terminal, report.text))

        loop(%{
          state
          | input: input,
            failed: state.failed or Enum.any?(report.results, &(&1.status == :error))
        })

      {:interrupt, input} ->
        Terminal.put("stopped")
        loop(%{state | input: input, failed: true})

      {:crash, reason, input} ->
        Terminal.complain(["crashed: ", Exception.format_exit(reason)])
        loop(%{state | input: input, failed: true})
    end
  end

  defp word(state, word, _) when word in [":quit", ":q", ":exit"], do: finish(state)

  defp word(state, ":help", _) do
    Terminal.write(@words_help)
    loop(state)
  end

  defp word(state, ":prompt", _) do
    Terminal.put(Terminal.safe(state.terminal, Skillbook.prompt(view(state), [])))
    loop(state)
  end

  defp word(state, ":profile", nil) do
    Terminal.put(state.options.profile)
    loop(state)
  end

  defp word(state, ":profile", name), do: loop(put_in(state.options.profile, name))

  defp word(state, ":reload", _) do
    :ok = Skillbook.reload(state.book)
    Terminal.put("reloaded")
    loop(state)
  end

  defp word(state, ":diagnostics", _) do
    case Skillbook.diagnostics(state.book) do
      [] ->
        Terminal.put("Nothing is wrong.")

      diagnostics ->
        for diagnostic <- diagnostics, do: Terminal.put(Terminal.safe(state.terminal, to_string(diagnostic)))
    end

    loop(state)
  end

  defp word(state, word, _) do
    Terminal.complain("unknown word `#{word}`; the shell knows #{Enum.join(@words, ", ")}")
    loop(%{state | failed: true})
  end

  defp view(state), do: Book.view(state.book, state.options)

  # Asked when Tab is pressed, so that it knows what a reload brought.
  defp known(state) do
    view = view(state)
    names = Enum.map(Skillbook.View.entries(view, []), & &1.name)
    domains = Enum.map(Skillbook.View.domains(view), & &1.name)

    %{
      names: Enum.sort(["get_skill" | names] ++ domains) ++ @words,
      flags: fn name -> flags(Skillbook.View.fetch(view, name)) end
    }
  end

  defp flags({:ok, %{usage: usage}}) when is_binary(usage) do
    ~r/--[\w-]+/ |> Regex.scan(usage) |> List.flatten() |> Enum.uniq() |> Enum.sort()
  end

  defp flags(_), do: []
end
