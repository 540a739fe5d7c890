defmodule Skillbook.CLI.Chat do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand
  @behaviour Skillbook.CLI.Shell.Loop

  alias Skillbook.CLI.Chat.{Approval, Screen}
  alias Skillbook.CLI.Shell.{Input, Loop}
  alias Skillbook.CLI.{ModelFlags, Session, Terminal}
  alias Skillbook.{Agent, Transcript, TranscriptError}

  # A small model that does not stop would write until its window is full.
  @max_tokens 4000

  @words_help """
  A line is a message to the model; one that ends in a backslash goes on in the next.

    :save FILE            keep the conversation in a file
    :resume FILE          go on with one that was kept
    :prompt               the system prompt's sections
    :profile [NAME]       show or change on whose behalf commands run; another one begins a new conversation
    :tokens               what the conversation has used
    :help                 this help
    :quit                 leave; so does Ctrl-D

  Up and Down walk through the history, Ctrl-C drops the line or stops the model.
  """

  @impl true
  def switches do
    ModelFlags.switches() ++
      [
        system: :string,
        temperature: :float,
        max_tokens: {:number, 0, nil},
        max_turns: {:number, 1, nil},
        max_context: {:number, 1, nil},
        grammar: :boolean,
        ask: :boolean,
        resume: :string
      ]
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`chat` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "talk with a model that has these skills"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] chat --url URL --model NAME [--key-env VARIABLE] …

    A conversation with a model behind any server of the OpenAI chat interface. Its commands run here. From a pipe, each line
    is a message: answers go to standard output, commands and results to standard error; the exit status is 1 if one of the
    answers failed.

      #{ModelFlags.help()}
      --system TEXT        what stands before the skills in the system prompt
      --temperature N      from 0
      --max-tokens N       how long one reply may be (default: #{@max_tokens}; 0 for as long as the server allows)
      --max-turns N        how often the model is asked for one answer (default: 20)
      --max-context N      how many tokens the conversation may have before older messages are left out
      --grammar            hold a local model to commands that exist, if the server takes grammars (llama.cpp and its kin)
      --ask                ask before each command that changes something: y, n, always (that command, until you leave) or why
                           (what it is); what stands behind n is told to the model. From a pipe the next line is the answer
      --resume FILE        go on with a conversation that :save kept

    #{@words_help}
    Examples:
      skillbook chat --url http://localhost:8080 --model qwen3 --grammar --ask
      skillbook chat --url https://api.openai.com/v1 --model gpt-5-mini --key-env OPENAI_API_KEY
      echo 'What is overdue?' | skillbook chat --url http://localhost:11434 --model llama3.2
    """
  end

  @impl true
  def run(options) do
    with {:ok, model} <- ModelFlags.model("chat", options.flags),
         {:ok, transcript} <- resumed(options.flags[:resume], options.profile) do
      Session.with_book(options, :converse, &converse(&1, options, model, transcript))
    else
      {:error, message} ->
        Terminal.complain([message, "\nSee: skillbook chat --help"])
        2
    end
  end

  defp converse(book, options, model, transcript) do
    Loop.start(%{
      module: __MODULE__,
      book: book,
      options: options,
      name: "you",
      greeting: "You talk with #{model.model}. :help says more, :quit leaves.",
      help: @words_help,
      words: [{":save", "a file"}, {":resume", "a file"}, {":tokens", nil}],
      unfinished: "a message, which was not sent",
      model: model,
      transcript: transcript,
      usage: %{prompt_tokens: 0, completion_tokens: 0, estimated: false},
      consent: Approval.new(Terminal.new(options.color))
    })
  end

  @impl true
  def known(state), do: %{names: Loop.words(state), flags: fn _ -> [] end}

  # Options

  defp resumed(nil, _profile), do: {:ok, nil}

  defp resumed(path, profile) do
    with {:ok, json} <- File.read(path),
         {:ok, %{profile: ^profile} = transcript} <- Transcript.from_json(json) do
      {:ok, transcript}
    else
      {:ok, transcript} ->
        {:error,
         "#{path} is a conversation of the profile #{transcript.profile}, not of #{profile}"}

      {:error, %TranscriptError{} = error} ->
        {:error, "#{path}: #{Exception.message(error)}"}

      {:error, reason} ->
        {:error, "cannot read #{path}: #{:file.format_error(reason)}"}
    end
  end

  # The conversation

  @impl true
  def read(text) do
    cond do
      String.ends_with?(text, "\\") -> {:more, String.trim_trailing(text, "\\") <> "\n"}
      String.trim(text) == "" -> :blank
      true -> {:run, text}
    end
  end

  @impl true
  def run(state, text) do
    chat = self()
    screen = Screen.new(state.terminal, Input.person?(state.input))

    # A turn that is stopped leaves what was whole before it.
    on_event = fn
      {:transcript, transcript} -> send(chat, {:transcript, transcript})
      event -> Screen.show(screen, event)
    end

    flags = state.options.flags
    consent = state.consent

    options = [
      model: state.model,
      profile: acting(state.options),
      transcript: state.transcript,
      system: flags[:system] || "",
      chat: chat(flags),
      grammar: if(flags[:grammar], do: []),
      commands: [ask: &Approval.ask(consent, &1)],
      max_turns: flags[:max_turns] || 20,
      max_context: flags[:max_context],
      on_event: on_event
    ]

    answer = fn request, input ->
      Screen.close(screen)
      Approval.answer(consent, request, input)
    end

    outcome = Input.run(state.input, fn -> Agent.run(state.book, text, options) end, answer)
    Screen.close(screen)

    Loop.ran(%{state | transcript: whole(state.transcript)}, outcome, fn state, result ->
      ended(result, flags)
      usage = Map.merge(state.usage, result.usage, fn _, before, more -> added(before, more) end)
      failed = state.failed or result.status != :done
      %{state | transcript: result.transcript, usage: usage, failed: failed}
    end)
  end

  @impl true
  def view(state), do: Skillbook.view(state.book, acting(state.options))

  defp acting(options),
    do: %{Session.profile(options) | writes: if(options.flags[:ask], do: :ask, else: :run)}

  defp chat(flags) do
    max_tokens = Keyword.get(flags, :max_tokens, @max_tokens)

    Keyword.take(flags, [:temperature]) ++
      if(max_tokens > 0, do: [max_tokens: max_tokens], else: [])
  end

  defp whole(transcript) do
    receive do
      {:transcript, transcript} -> whole(transcript)
    after
      0 -> transcript
    end
  end

  defp added(before, more) when is_integer(more), do: before + more
  defp added(before, more), do: before or more

  # Why it is not whole was said where it ends.
  defp ended(%{status: status}, _flags) when status in [:done, :cut_off], do: :ok

  defp ended(%{status: :error, error: error}, flags),
    do: Terminal.complain([Exception.message(error), advice(error, flags)])

  defp ended(%{status: :max_turns, turns: turns}, _flags),
    do: Terminal.complain("stopped after #{turns} turns; --max-turns allows more")

  defp ended(%{status: :stuck}, _flags),
    do:
      Terminal.complain(
        "stopped: the model writes the same command again and again, and it fails"
      )

  defp ended(%{status: status}, _flags), do: Terminal.complain("stopped: #{status} is reached")

  defp advice(%{kind: :connection}, flags), do: "\nIs the server running at #{flags[:url]}?"

  defp advice(%{kind: :refused, status: status}, flags) when status in [401, 403] do
    if flags[:key_env],
      do: "\nIs the key in #{flags[:key_env]} the right one?",
      else: "\nIf the server wants a key, --key-env names the environment variable that holds it."
  end

  defp advice(_error, _flags), do: ""

  # Words

  @impl true
  def word(state, ":profile", name) do
    Terminal.put("a new conversation, on behalf of #{name}")
    %{state | transcript: nil}
  end

  def word(state, ":tokens", nil) do
    %{prompt_tokens: prompt, completion_tokens: completion, estimated: estimated} = state.usage
    about = if estimated, do: "about ", else: ""
    held = if state.transcript, do: Transcript.tokens(state.transcript), else: 0

    Terminal.put(
      "used: #{about}#{prompt} in prompts, #{about}#{completion} in replies; the conversation has about #{held}"
    )

    state
  end

  def word(%{transcript: nil} = state, ":save", _path),
    do: Loop.wrong(state, "there is no conversation yet")

  def word(state, ":save", path) do
    case save(path, Transcript.to_json(state.transcript)) do
      :ok ->
        Terminal.put("saved in #{path}")
        state

      {:error, reason} ->
        Loop.wrong(state, "cannot write #{path}: #{:file.format_error(reason)}")
    end
  end

  def word(state, ":resume", path) do
    case resumed(path, state.options.profile) do
      {:ok, transcript} ->
        Terminal.put("the conversation has #{length(transcript.messages)} messages")
        %{state | transcript: transcript}

      {:error, message} ->
        Loop.wrong(state, message)
    end
  end

  # Whole or not at all, and only for the one whose conversation it is.
  defp save(path, json) do
    temporary = "#{path}.#{System.pid()}"

    with :ok <- File.write(temporary, ""),
         :ok <- File.chmod(temporary, 0o600),
         :ok <- File.write(temporary, json),
         do: File.rename(temporary, path)
  end
end
