defmodule Skillbook.Agent.State do
  @moduledoc false
  # The state of a run: its options, the view of the turn, the conversation, and counters.

  alias Skillbook.Agent.{Budget, Output, Prices, Settings}
  alias Skillbook.Model.Content
  alias Skillbook.Prompt.Sections
  alias Skillbook.Support.External
  alias Skillbook.Usage.Counter
  alias Skillbook.{Book, Model, Profile, Transcript}
  alias Skillbook.Transcript.{Conversations, Message}

  @default_max_turns 20
  @default_max_time 600_000
  @default_max_repeats 3
  @default_max_depth 1

  defstruct [
    :book,
    # As it was given: a profile, or an id whose rights may change from turn to turn.
    :profile,
    :view,
    :model,
    :transcript,
    :on_event,
    :system,
    :prompt,
    :chat,
    :grammar,
    :protocol,
    :tools,
    # The ids of the profiles that the conversation may be handed over to.
    :hand_over,
    :preflight,
    :sections,
    :commands,
    :budget,
    :max_time,
    # Of a durable run, or `nil`.
    :journal,
    # The form of the answer, and whether the model was told that an answer does not have it.
    :output,
    # Those of the book, its daily limits, and the skill that runs the agent, for costs.
    :prices,
    :limits,
    :skill,
    :max_repeats,
    :max_context,
    # Options of `Skillbook.Agent.Summary`, or `nil`.
    :summary,
    :depth,
    :max_depth,
    :clock,
    # Identifies the run among the calls that wait for an approval.
    :id,
    # The approvals for which commands of the last reply wait, and whether the model is asked for
    # the words that tell it.
    pending: [],
    closing: false,
    # Those of calls whose results have joined the conversation, before its input.
    again: [],
    # Whether the server refused the conversation of this turn as too long.
    halved: false,
    repaired: false,
    turns: 0,
    # How often it was handed over.
    hand_overs: 0,
    # Connections that broke in a row.
    breaks: 0,
    # The end of the reply that the next one continues, see `Skillbook.Agent.Continuation`.
    broken: nil,
    # Whether the model knows how to write commands: it ran some, or got the note about it.
    noted: false,
    # Whether the last reply was empty, which the model was told.
    empty: false,
    # The grammar of a generation of the catalog.
    made_grammar: {nil, nil},
    text: "",
    # The origins of the texts from outside in the conversation, the last one first.
    shown: [],
    # How often in a row each command has failed with the same error.
    failures: %{},
    # The commands with their results so far, and how many replies in a row gave no new ones.
    results: MapSet.new(),
    repeats: 0
  ]

  @type t :: %__MODULE__{}

  @doc "The state at the start of a run, from validated options."
  def new(view, transcript, options) do
    max_turns = Keyword.get(options, :max_turns, @default_max_turns)
    max_time = Keyword.get(options, :max_time, @default_max_time)

    %__MODULE__{
      book: view.book,
      profile: view.profile,
      view: view,
      model: options[:model],
      transcript: transcript,
      shown: shown(transcript),
      on_event: event_function(options[:on_event]),
      system: options[:system] || "",
      prompt: options[:prompt] || [],
      chat: options[:chat] || [],
      grammar: options[:grammar],
      protocol: Settings.protocol(options),
      tools: options[:tools] || [],
      hand_over: options[:hand_over] || [],
      preflight: options[:preflight],
      sections: sections(view, options[:sections]),
      commands: Settings.commands(options),
      max_time: max_time,
      budget: Budget.new(max_turns, max_time, options, options[:parent]),
      prices: part(view, :prices) || %{},
      limits: part(view, :budget) || [],
      skill: options[:skill],
      output: output(options[:output]),
      max_repeats: Keyword.get(options, :max_repeats, @default_max_repeats),
      max_context: options[:max_context],
      summary: summary(options[:summary]),
      depth: Keyword.get(options, :depth, 0),
      max_depth: Keyword.get(options, :max_depth, @default_max_depth),
      clock: options[:clock] || (&DateTime.utc_now/0),
      id: transcript.run || new_id()
    }
  end

  defp part(view, option), do: Book.find(view.book) && Book.find(view.book).of_parts[option]

  @doc "A random id."
  @spec new_id() :: String.t()
  def new_id,
    do: 12 |> :crypto.strong_rand_bytes() |> Base.encode32(case: :lower, padding: false)

  defp sections(view, nil), do: Sections.of_book(view)

  defp sections(_view, sections) do
    {:ok, sections} = Sections.read(sections, "a run")
    sections
  end

  defp output(option) do
    {:ok, output} = Output.read(option)
    output
  end

  defp summary(no) when no in [nil, false], do: nil
  defp summary(true), do: []
  defp summary(options), do: options

  @doc "The function of the option `:on_event`. Made in the process of the run."
  @spec event_function(nil | pid() | (term() -> term())) :: (term() -> term())
  def event_function(nil), do: fn _event -> :ok end
  def event_function(function) when is_function(function, 1), do: function

  def event_function(pid) when is_pid(pid) do
    run = self()
    &send(pid, {:skillbook_agent, run, &1})
  end

  @doc "The state of a run whose messages and results are stored."
  def recorded(state, nil), do: state

  def recorded(%{on_event: on_event} = state, record) do
    %{
      state
      | on_event: fn event ->
          Conversations.event(record, event)
          on_event.(event)
        end
    }
  end

  def emit(state, event), do: state.on_event.(event)

  def emit_transcript(state) do
    emit(state, {:transcript, state.transcript})
    state
  end

  def add_message(state, kind, content, fields \\ []) do
    message = struct!(Message, [kind: kind, content: content, at: state.clock.()] ++ fields)
    emit(state, {:message, message})
    shown = add_shown(message, state.shown)
    %{state | transcript: Transcript.add(state.transcript, message), shown: shown}
  end

  @doc "Puts a message of a journal back, which was told before."
  @spec restore_message(t(), Message.t()) :: t()
  def restore_message(state, message),
    do: %{state | transcript: Transcript.add(state.transcript, message)}

  @max_shown 100

  @doc "The origins of the texts from outside in a conversation, the last one first."
  @spec shown(Transcript.t()) :: [String.t()]
  def shown(transcript), do: Enum.reduce(transcript.messages, [], &add_shown/2)

  defp add_shown(%{kind: kind, content: content}, shown) when kind in [:report, :result],
    do: Enum.take(External.origins(Content.text(content)) ++ shown, @max_shown)

  defp add_shown(_message, shown), do: shown

  @doc """
  Counts the tokens and the cost of a call of a model, for the run, those around it and the usage
  of the book. Returns the cost.
  """
  @spec spend(t(), Model.t(), String.t() | nil, Model.usage(), boolean()) ::
          non_neg_integer() | nil
  def spend(state, model, answered_by, usage, estimated) do
    cost = Prices.cost(state.prices, model, answered_by, usage)
    Budget.use_tokens(state.budget, usage, estimated, cost)
    profile = state.view.profile

    Counter.spend(state.book, Profile.home(profile), state.skill || "", profile.id,
      prompt: usage.prompt_tokens,
      completion: usage.completion_tokens,
      cached: usage.cached_tokens,
      cost: cost || 0
    )

    cost
  end

  @doc "An event for `Skillbook.Hook`."
  @spec event(t(), keyword()) :: map()
  def event(state, more) do
    Map.merge(
      %{
        book: state.book,
        profile: state.view.profile,
        assigns: Map.new(state.commands[:assigns] || %{}),
        run: state.id,
        depth: state.depth,
        turn: state.turns,
        usage: Budget.usage(state.budget),
        cost: Budget.cost(state.budget)
      },
      Map.new(more)
    )
  end

  @doc "Milliseconds that the run may still take."
  def time_left(state), do: Budget.left(state.budget).time

  @doc "Metadata of telemetry events about the whole run."
  def run_metadata(state),
    do:
      state
      |> metadata()
      |> Map.put(:depth, state.depth)
      |> Map.put(:tenant, Profile.home(state.view.profile))
      |> Map.put(:skill, state.skill)
      |> Map.put(:continued, continued(state.journal))
      |> Map.merge(Model.describe(state.model))

  # How often a durable run was continued.
  defp continued(%{values: %{continued: count}}), do: max(count, 0)
  defp continued(_new), do: 0

  @doc "Metadata of telemetry events."
  def metadata(state), do: %{book: state.book, profile: state.view.profile.id}
end
