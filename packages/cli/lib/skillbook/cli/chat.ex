defmodule Skillbook.CLI.Chat do
  @moduledoc false
  # `skillbook chat`: runs a conversation with a model, with `Skillbook.Agent` and the loop of
  # `shell`.

  @behaviour Skillbook.CLI.Subcommand
  @behaviour Skillbook.CLI.Shell.Loop

  alias Skillbook.CLI.Chat.{Approval, Screen}
  alias Skillbook.CLI.Shell.{Input, Loop}
  alias Skillbook.CLI.{EmbedderFlags, Help, ModelFlags, Session, Terminal}
  alias Skillbook.Support.{PrivateFile, ReadFile}
  alias Skillbook.Transcript.Log
  alias Skillbook.{Agent, AgentError, Transcript, TranscriptError}

  # Stops a small model that would repeat itself until its context is full.
  @max_tokens 4000
  @max_turns 20
  # Bytes of a saved conversation
  @max_conversation 64 * 1024 * 1024

  @impl true
  def switches do
    ModelFlags.switches() ++
      EmbedderFlags.switches() ++
      [
        system: :string,
        temperature: :float,
        max_tokens: {:number, 0, nil},
        max_turns: {:number, 1, nil},
        max_context: {:number, 1, nil},
        grammar: :boolean,
        protocol: {:one_of, [:auto, :tools, :blocks]},
        preflight: :boolean,
        ask: :boolean,
        resume: :string,
        log: :string
      ]
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`chat` takes no argument, got: #{arg}"}

  @impl true
  def run(options) do
    with {:ok, options} <- EmbedderFlags.read(options),
         {:ok, model} <- ModelFlags.model("chat", options.flags),
         {:ok, transcript} <- load_transcript(options.flags[:resume], options.profile) do
      Session.with_book(options, :converse, fn book ->
        with_log(options, &converse(book, options, model, transcript, &1))
      end)
    else
      {:error, message} -> Terminal.usage_error(message, "chat --help")
    end
  end

  # Calls `fun` with the receiver of messages.
  defp with_log(%{flags: flags} = options, fun) do
    case flags[:log] do
      nil ->
        fun.(fn _event -> :ok end)

      path ->
        {:ok, log} = Log.start_link(path: Path.expand(path))
        id = "chat-" <> Base.encode16(:crypto.strong_rand_bytes(8), case: :lower)
        fun.(Log.on_event(log, conversation: id, profile: options.profile))
    end
  end

  defp converse(book, options, model, transcript, log) do
    Loop.start(%{
      module: __MODULE__,
      book: book,
      options: options,
      name: "you",
      greeting: "Chatting with #{model.model}. :help shows help, :quit quits.",
      help: Help.part("chat"),
      colon_commands: [{":save", "a file"}, {":resume", "a file"}, {":tokens", nil}],
      unfinished: "a message, which was not sent",
      model: model,
      log: log,
      transcript: transcript,
      usage: %{prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, estimated: false},
      approval: Approval.new(Terminal.new(options.color))
    })
  end

  @impl true
  def completions(state), do: %{names: Loop.colon_commands(state), flags: fn _ -> [] end}

  # Options

  defp load_transcript(nil, _profile), do: {:ok, nil}

  defp load_transcript(path, profile) do
    with {:ok, json} <- ReadFile.read(path, @max_conversation),
         {:ok, %{profile: ^profile} = transcript} <- Transcript.from_json(json) do
      {:ok, transcript}
    else
      {:ok, transcript} ->
        {:error,
         "#{path} is a conversation of the profile #{transcript.profile}, not of #{profile}"}

      {:error, %TranscriptError{} = error} ->
        {:error, "#{path}: #{Exception.message(error)}"}

      {:error, :efbig} ->
        {:error, "cannot read #{path}: expected up to #{@max_conversation} bytes, got more"}

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
      String.downcase(String.trim(text)) in ["exit", "quit"] -> :quit
      true -> {:run, text}
    end
  end

  @impl true
  def run(state, text) do
    chat = self()
    screen = Screen.new(state.terminal, Input.interactive?(state.input))

    # If the run is stopped, the transcript of the last complete turn remains.
    on_event = fn event ->
      state.log.(event)

      case event do
        {:transcript, transcript} -> send(chat, {:transcript, transcript})
        _ -> Screen.show(screen, event)
      end
    end

    flags = state.options.flags
    approval = state.approval

    options = [
      model: state.model,
      profile: profile(state.options),
      transcript: state.transcript,
      system: flags[:system] || "",
      chat: chat(flags),
      grammar: if(flags[:grammar], do: []),
      protocol: flags[:protocol] || :auto,
      commands: [ask: &Approval.ask(approval, &1)],
      max_turns: flags[:max_turns] || @max_turns,
      max_context: flags[:max_context],
      on_event: on_event
    ]

    answer = fn request, input ->
      Screen.close(screen)
      Approval.answer(approval, request, input)
    end

    outcome = Input.run(state.input, fn -> Agent.run(state.book, text, options) end, answer)
    Screen.stop(screen)

    Loop.handle_outcome(
      %{state | transcript: last_transcript(state.transcript)},
      outcome,
      fn state, answer ->
        result = report_end(answer, flags)
        usage = Map.merge(state.usage, result.usage, fn _, before, more -> add(before, more) end)
        failed = state.failed or result.status not in [:done, :pending]
        %{state | transcript: result.transcript, usage: usage, failed: failed}
      end
    )
  end

  @impl true
  def view(state), do: Skillbook.view(state.book, profile(state.options))

  defp profile(options),
    do: %{Session.profile(options) | writes: if(options.flags[:ask], do: :ask, else: :run)}

  defp chat(flags) do
    max_tokens = Keyword.get(flags, :max_tokens, @max_tokens)

    Keyword.take(flags, [:temperature]) ++
      if(max_tokens > 0, do: [max_tokens: max_tokens], else: [])
  end

  defp last_transcript(transcript) do
    receive do
      {:transcript, transcript} -> last_transcript(transcript)
    after
      0 -> transcript
    end
  end

  defp add(before, more) when is_integer(more), do: before + more
  defp add(before, more), do: before or more

  defp report_end({:ok, result}, _flags) do
    if text = ending(result), do: Terminal.complain(text)
    result
  end

  defp report_end({:error, %AgentError{error: error, result: result}}, flags) do
    Terminal.complain([Exception.message(error), advice(error, flags)])
    result
  end

  # For `:cut_off`, the screen has shown the reason.
  defp ending(%{status: status}) when status in [:done, :cut_off], do: nil

  defp ending(%{status: :max_turns, turns: turns}),
    do: "stopped after #{turns} turns; --max-turns allows more"

  defp ending(%{status: :pending, pending: pending}) do
    Enum.map_join(pending, "\n", fn approval ->
      "`#{approval.command}` waits for an approval: skillbook approvals approve #{approval.ref}"
    end)
  end

  defp ending(%{status: :empty}), do: "stopped: the model answers with nothing"
  defp ending(%{status: :stuck}), do: "stopped: the model repeats commands with the same results"
  defp ending(%{status: :refused, text: text}), do: "refused: #{text}"
  defp ending(%{status: :over_budget, error: error}), do: Exception.message(error)
  defp ending(%{status: status}), do: "stopped: #{status} is reached"

  defp advice(%{kind: :connection}, flags),
    do: "\nIs the server running at #{ModelFlags.url(flags)}?"

  defp advice(%{kind: :refused, status: status}, flags) when status in [401, 403] do
    if variable = ModelFlags.key_env(flags),
      do: "\nIs the key in #{variable} correct?",
      else: "\nIf the server needs a key, name its environment variable with --key-env."
  end

  defp advice(_error, _flags), do: ""

  # Colon commands

  @impl true
  def colon_command(state, ":profile", name) do
    Terminal.put("new conversation as #{name}")
    %{state | transcript: nil}
  end

  def colon_command(state, ":tokens", nil) do
    %{prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached} = state.usage
    about = if state.usage.estimated, do: "about ", else: ""
    cached = if cached > 0, do: " (#{cached} from the server's cache)", else: ""
    total = if state.transcript, do: Transcript.tokens(state.transcript), else: 0

    Terminal.put(
      "used: #{about}#{prompt} in prompts#{cached}, #{about}#{completion} in replies; " <>
        "the conversation has about #{total}"
    )

    state
  end

  def colon_command(%{transcript: nil} = state, ":save", _path),
    do: Loop.error(state, "there is no conversation yet")

  def colon_command(state, ":save", path) do
    case save(path, Transcript.to_json(state.transcript)) do
      :ok ->
        Terminal.put("saved in #{path}")
        state

      {:error, reason} ->
        Loop.error(state, "cannot write #{path}: #{:file.format_error(reason)}")
    end
  end

  def colon_command(state, ":resume", path) do
    case load_transcript(path, state.options.profile) do
      {:ok, transcript} ->
        Terminal.put("the conversation has #{length(transcript.messages)} messages")
        %{state | transcript: transcript}

      {:error, message} ->
        Loop.error(state, message)
    end
  end

  # Atomic, and readable only by the owner.
  defp save(path, json), do: PrivateFile.replace(path, json)
end
