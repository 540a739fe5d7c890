defmodule Skillbook.Agent.State do
  @moduledoc false
  # The state of a run: its options, the view of the turn, the conversation, and counters.

  alias Skillbook.Agent.Budget
  alias Skillbook.Transcript
  alias Skillbook.Transcript.Message

  @default_max_turns 20
  @default_max_time 600_000
  @default_max_repeats 3
  @default_max_depth 1

  defstruct [
    :book,
    :view,
    :model,
    :transcript,
    :on_event,
    :system,
    :prompt,
    :chat,
    :grammar,
    :preflight,
    :commands,
    :budget,
    :max_repeats,
    :max_context,
    :depth,
    :max_depth,
    :clock,
    turns: 0,
    # Connections that broke in a row.
    breaks: 0,
    # Whether the model knows how to write commands: it ran some, or got the note about it.
    noted: false,
    # The grammar of a generation of the catalog.
    made_grammar: {nil, nil},
    text: "",
    # How often in a row each command has failed with the same error.
    failures: %{}
  ]

  @type t :: %__MODULE__{}

  @doc "The state at the start of a run, from validated options."
  def new(book, view, transcript, options) do
    max_turns = Keyword.get(options, :max_turns, @default_max_turns)
    max_time = Keyword.get(options, :max_time, @default_max_time)

    %__MODULE__{
      book: book,
      view: view,
      model: options[:model],
      transcript: transcript,
      on_event: event_function(options[:on_event]),
      system: options[:system] || "",
      prompt: options[:prompt] || [],
      chat: options[:chat] || [],
      grammar: options[:grammar],
      preflight: options[:preflight],
      commands: options[:commands] || [],
      budget: Budget.new(max_turns, max_time, options[:max_tokens], options[:parent]),
      max_repeats: Keyword.get(options, :max_repeats, @default_max_repeats),
      max_context: options[:max_context],
      depth: Keyword.get(options, :depth, 0),
      max_depth: Keyword.get(options, :max_depth, @default_max_depth),
      clock: options[:clock] || (&DateTime.utc_now/0)
    }
  end

  defp event_function(nil), do: fn _event -> :ok end
  defp event_function(function) when is_function(function, 1), do: function

  defp event_function(pid) when is_pid(pid) do
    run = self()
    &send(pid, {:skillbook_agent, run, &1})
  end

  def emit(state, event), do: state.on_event.(event)

  def emit_transcript(state) do
    emit(state, {:transcript, state.transcript})
    state
  end

  def add_message(state, kind, content, fields \\ []) do
    message = struct!(Message, [kind: kind, content: content, at: state.clock.()] ++ fields)
    %{state | transcript: Transcript.add(state.transcript, message)}
  end

  @doc "Milliseconds that the run may still take."
  def time_left(state), do: Budget.left(state.budget).time

  @doc "Metadata of telemetry events."
  def metadata(state), do: %{book: state.book, profile: state.view.profile.id}
end
