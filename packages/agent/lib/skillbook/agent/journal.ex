defmodule Skillbook.Agent.Journal do
  @moduledoc false
  # The journal of a durable run, with which another process or node continues it.
  #
  # It has the conversation as a call that waits for an approval has it, and the counters of the
  # run: stored with the input, and again with each answer of the model, before any of its
  # commands runs. Each command has a row, stored before its handler begins and again with its
  # result. So a run that is continued handles the last answer once more: it takes the results
  # that are known, does not run again what had begun, and runs the rest.
  #
  # A run without a journal has `nil` for it.

  alias Skillbook.Agent.{Budget, Loop, ResultMedia, Runs, Settings, State}
  alias Skillbook.Agent.Runs.{Server, Table}
  alias Skillbook.Approval
  alias Skillbook.Approval.{Assigns, Rights}

  alias Skillbook.{
    Book,
    Entry,
    HandlerError,
    Model,
    ModelError,
    OptionError,
    Profile,
    Request,
    Result,
    RunError,
    SQL,
    StoppedError,
    Transcript,
    Workflow
  }

  @enforce_keys [:book, :ref, :values]
  defstruct [:book, :ref, :values, :holder, :known]

  @type t :: %__MODULE__{
          book: Book.t(),
          ref: String.t(),
          # The columns that stay the same.
          values: map(),
          holder: String.t() | nil,
          # The calls of the answer that is handled once more, by their numbers.
          known: %{pos_integer() => map()} | nil
        }

  # Options of a run that are stored, and those of its commands.
  @options ~w(system protocol max_turns max_time max_tokens max_cost max_repeats max_context
              max_depth skill output leader hand_over)a
  @commands ~w(by on_error timeout max_result unclosed)a
  # Bytes of a state, which has the text of an answer.
  @max_state 1024 * 1024
  @max_title 200
  # Fields of the state that are stored.
  @counted [:turns, :hand_overs, :breaks, :broken, :noted, :empty, :repaired, :closing, :text]

  @doc """
  The journal of a new run, or `nil`. `profile` is the one of the run, or its id.

  Raises an `OptionError` for a run that could not be continued.
  """
  @spec new(State.t(), Profile.t() | String.t(), keyword()) :: t() | nil
  def new(state, profile, options) do
    book = state.book && Book.find(state.book)

    cond do
      not durable?(book, options) -> nil
      book == nil or book.of_parts.durable == false -> invalid("nil for a book without :durable")
      SQL.in_transaction?(Book.sql(book)) -> invalid("false inside of a transaction")
      true -> new(book, state, profile, options)
    end
  end

  @doc "Whether a run with these options is durable in a book."
  @spec durable?(Book.t() | nil, keyword()) :: boolean()
  def durable?(book, options) do
    case options[:durable] do
      nil -> options[:parent] == nil and book != nil and book.of_parts.durable != false
      durable -> durable != false
    end
  end

  defp new(book, state, profile, options) do
    commands = Settings.commands(options)

    rights = rights(book, state.view.profile)

    with {:ok, assigns} <- Assigns.encode(Map.new(commands[:assigns] || %{})),
         again? = is_binary(options[:durable]),
         own = %{by_id: is_binary(profile), again: again?},
         {:ok, stored} <- stored(options, commands, own) do
      values = %{
        ref: if(again?, do: options[:durable], else: State.new_id()),
        again: again?,
        run: state.id,
        conversation: options[:conversation],
        profile: state.view.profile.id,
        tenant: Profile.home(state.view.profile),
        rights: rights,
        assigns: assigns,
        options: stored
      }

      %__MODULE__{book: book, ref: values.ref, values: values}
    else
      {:error, expected} ->
        invalid("false for options that cannot be stored (#{expected})")
    end
  end

  defp rights(book, profile) do
    case Rights.encode(book, profile) do
      {:ok, rights} -> rights
      _unknown -> invalid("false for a profile that is not one of the book's")
    end
  end

  defp stored(options, commands, own) do
    options = options |> Keyword.take(@options) |> Map.new()
    commands = commands |> Keyword.take(@commands) |> Map.new()
    Assigns.encode(Map.merge(own, %{options: options, commands: commands}))
  end

  @spec invalid(String.t()) :: no_return()
  defp invalid(expected) do
    problem = {:invalid, expected <> ",", true}
    raise %OptionError{subject: "a run", option: :durable, problem: problem}
  end

  # Writing

  @doc "Stores the start of a run, from which it may be continued, with its input."
  @spec open(State.t(), :input | :turn, String.t()) :: {:ok, State.t()} | {:error, Exception.t()}
  def open(%{journal: nil} = state, _stage, _input), do: {:ok, state}

  def open(%{journal: journal} = state, stage, input) do
    with {:ok, fields} <- fields(state, %{stage: stage}),
         {:ok, lease} <- Server.enter(journal.book, journal.ref) do
      run =
        Map.merge(journal.values, %{
          title: title(input),
          started_at: DateTime.truncate(state.clock.(), :second),
          lease: lease
        })

      case Runs.store(journal.book, &Table.insert(&1, Map.merge(run, fields))) do
        :ok ->
          Runs.publish(journal.book, journal.ref)
          {:ok, %{state | journal: %{journal | holder: lease.holder}}}

        error ->
          Server.leave(journal.book, journal.ref)
          error
      end
    end
    |> named(journal)
  end

  defp title(input) do
    [first | _] = input |> String.trim() |> String.split("\n", parts: 2)
    String.slice(first, 0, @max_title)
  end

  @doc """
  Stores an answer of the model, of which nothing has run. `reply` has all that `Loop` needs to
  handle it once more.
  """
  @spec reply(State.t(), map()) :: {:ok, State.t()} | {:error, Exception.t()}
  def reply(%{journal: nil} = state, _reply), do: {:ok, state}

  def reply(%{journal: journal} = state, reply) do
    with {:ok, fields} <- fields(state, %{stage: :reply, reply: reply}),
         fields = Map.put(fields, :turns, state.turns),
         :ok <- Runs.store(journal.book, &Table.put(&1, journal.ref, journal.holder, fields)) do
      {:ok, %{state | journal: %{journal | known: nil}}}
    end
    |> named(journal)
  end

  # The error of the run.
  defp named({:error, %SQL.Error{}} = error, _journal), do: error
  defp named({:error, {:busy, ref}}, _journal), do: {:error, %RunError{kind: :busy, ref: ref}}
  defp named({:error, kind}, journal), do: {:error, %RunError{kind: kind, ref: journal.ref}}
  defp named(ok, _journal), do: ok

  # The state as JSON. Counts of repeated results begin anew.
  defp fields(state, stage) do
    values =
      state
      |> Map.take(@counted)
      |> Map.merge(stage)
      |> Map.put(:pending, for(approval <- state.pending, do: approval.ref))
      |> Map.put(:budget, Budget.counters(state.budget, state.max_time))

    case Assigns.encode(values, @max_state) do
      {:ok, json} -> {:ok, %{state: json, transcript: Transcript.to_json(state.transcript)}}
      {:error, _expected} -> {:error, :too_large}
    end
  end

  # Calls

  @typedoc "The `:journal` of `Skillbook.Reply.Pipeline`."
  @type calls :: (pos_integer(), String.t(), (keyword() -> answer()) -> {:ran | :known, answer()})
  @type answer :: {Result.t(), String.t()}

  @doc "The journal of the commands of an answer."
  @spec calls(State.t()) :: calls() | nil
  def calls(%{journal: nil}), do: nil

  def calls(%{journal: journal, turns: turn}) do
    process = self()
    fn number, line, run -> call(journal, process, {turn, number}, line, run) end
  end

  @doc "Whether the result of a call was known before this process began, and was told."
  @spec known?(State.t(), pos_integer()) :: boolean()
  def known?(%{journal: %{known: known}}, number),
    do: match?(%{status: <<_::binary>>}, known[number])

  def known?(_state, _number), do: false

  defp call(journal, process, {_turn, number} = place, line, run) do
    case journal.known do
      %{^number => %{status: nil, name: name}} ->
        error = %HandlerError{kind: :unknown_end, name: name}
        result = %{Result.error(error) | name: name, command: line, duration: 0}
        ended(journal, place, {result, result.content})

      %{^number => %{status: <<_::binary>>} = known} ->
        {:known, answer(journal, known, line)}

      _new ->
        ref = approval_ref(journal, place)

        if approval = asked(journal, ref) do
          Approval.Notice.hold(approval, process)
          result = %{Result.pending(approval) | command: line, duration: 0}
          ended(journal, place, {result, result.content})
        else
          ended(journal, place, run.(begin: &begin(journal, place, &1), ref: ref))
        end
    end
  end

  # A call that waited for an approval before the run was interrupted waits under the same one.
  defp approval_ref(%{ref: ref, values: %{run: run}}, {turn, number}) do
    <<bytes::binary-8, _rest::binary>> = :crypto.hash(:sha256, "#{run} #{ref} #{turn} #{number}")
    Request.new_ref(bytes)
  end

  defp asked(%{known: nil}, _ref), do: nil
  defp asked(journal, ref), do: journal |> approvals([ref]) |> List.first()

  # A call that may run once more needs no row before its end.
  defp begin(%{ref: ref} = journal, place, %{name: name} = entry) do
    with false <- idempotent?(entry),
         {:error, error} <-
           Runs.once(journal.book, &Table.begin(&1, ref, journal.holder, place, name)) do
      if error == :lost,
        do: {:error, %RunError{kind: :lost, ref: ref}},
        else: {:error, %HandlerError{kind: :unrecorded, name: name, reason: error}}
    else
      _began -> :ok
    end
  end

  # That a command only reads is not guessed by its name. The steps of a workflow may write.
  defp idempotent?(%Entry{} = entry) do
    entry.limits[:idempotent] == true or
      ((entry.effects == :read or entry.handler == nil) and not Workflow.workflow?(entry))
  end

  # A result that cannot be stored is in the conversation that is stored with the next answer.
  defp ended(journal, place, {result, text} = answer) do
    with {:ok, fields} <- Assigns.encode(result_fields(result)) do
      row = %{
        status: Atom.to_string(result.status),
        content: result.content,
        text: if(text != result.content, do: text),
        fields: fields
      }

      Runs.store(journal.book, &Table.finish_call(&1, journal.ref, journal.holder, place, row))
    end

    {:ran, answer}
  end

  @doc """
  Decodes what a journal encoded.

  A node that has just started has loaded few modules, and only their atoms are known.
  """
  @spec decode(String.t() | nil) :: {:ok, map()} | :error
  def decode(nil), do: :error

  def decode(json) do
    for module <- [Loop, Model.Answer, Settings, State], do: Code.ensure_loaded(module)
    Assigns.decode(json)
  end

  defp result_fields(result) do
    metadata = Map.take(result.metadata, [:activates, :parts, :path, :external, :hand_over])
    # Without their bytes.
    notes = ResultMedia.notes(result)
    metadata = if notes == [], do: metadata, else: Map.put(metadata, :media, notes)
    pending = for %Approval{ref: ref} <- Map.get(result.metadata, :pending, []), do: ref

    fields = Map.take(result, [:name, :duration])
    effects = Enum.map(result.effects, &Atom.to_string/1)
    Map.merge(fields, %{effects: effects, metadata: metadata, pending: pending})
  end

  defp answer(journal, known, line) do
    fields =
      with {:ok, fields} <- decode(known.fields),
           do: fields,
           else:
             (_other_release ->
                %{name: nil, effects: [], duration: 0, metadata: %{}, pending: []})

    pending = approvals(journal, fields.pending)
    more = if pending == [], do: %{}, else: %{pending: pending}

    result = %Result{
      status: String.to_existing_atom(known.status),
      content: known.content,
      command: line,
      name: fields.name,
      effects: Enum.flat_map(fields.effects, &effect/1),
      duration: fields.duration,
      metadata: Map.merge(fields.metadata, more)
    }

    {result, known.text || known.content}
  end

  # That of a handler whose module is not loaded is not known, and has no meaning here.
  defp effect(text) do
    [String.to_existing_atom(text)]
  rescue
    ArgumentError -> []
  end

  defp approvals(%{book: book}, refs) do
    for ref <- refs,
        {:ok, %{approval: approval}} <- [Approval.Table.fetch(Book.sql(book), book.name, ref)],
        do: approval
  end

  # The end

  @doc """
  Calls the function, which runs the turns, and stores how the run ended.

  A run that ends with its book, or whose process fails, is given back for another one.
  """
  @spec run(t() | nil, (() -> Skillbook.Agent.Result.t())) :: Skillbook.Agent.Result.t()
  def run(nil, fun), do: fun.()

  def run(%{book: book, ref: ref} = journal, fun) do
    result = fun.()
    # One whose beginning was not stored has no end.
    if holder = Server.holder(book, ref), do: finish(journal, holder, result)
    result
  catch
    kind, reason ->
      if holder = Server.holder(book, ref), do: Runs.release(book, ref, holder, :gone)
      :erlang.raise(kind, reason, __STACKTRACE__)
  end

  defp finish(%{book: book, ref: ref}, holder, %{status: :error, error: %StoppedError{}}),
    do: Runs.release(book, ref, holder, :stopping)

  defp finish(%{book: book, ref: ref}, holder, %{status: :error, error: %SQL.Error{}}),
    do: Runs.release(book, ref, holder, :gone)

  defp finish(%{book: book, ref: ref}, _holder, %{error: %RunError{kind: :lost}}),
    do: Server.leave(book, ref)

  # The caller who gave the run its ref tries again.
  defp finish(%{values: %{again: true}} = journal, holder, %{error: %ModelError{} = error}),
    do: Runs.fail(journal.book, journal.ref, holder, error)

  defp finish(journal, holder, result) do
    kept? = journal.values.conversation != nil

    Runs.finish(journal.book, journal.ref, holder, %{
      status: result.status,
      text: result.text,
      turns: result.turns,
      reason: result.error && Exception.message(result.error),
      transcript: if(kept?, do: Transcript.to_json(result.transcript))
    })
  end

  # Continuing

  @doc """
  The state of a run as it was stored, and from where it goes on: `:input`, `:turn` or
  `{:reply, reply}`.

  The last answer is not in the conversation, which is prepared for its model first; `reply` has
  its message.
  """
  @spec restore(State.t(), t(), map()) :: {State.t(), :input | :turn | {:reply, map()}}
  def restore(state, journal, stored) do
    fields = Map.take(stored, @counted)

    state = struct!(state, Map.put(fields, :journal, journal))
    state = %{state | budget: Budget.restore(state.budget, stored.budget)}
    state = %{state | pending: approvals(journal, stored.pending)}

    case stored do
      %{stage: :reply, reply: %{added: true} = reply} ->
        {messages, [message]} = Enum.split(state.transcript.messages, -1)
        {put_in(state.transcript.messages, messages), {:reply, Map.put(reply, :message, message)}}

      %{stage: :reply, reply: reply} ->
        {state, {:reply, Map.put(reply, :message, nil)}}

      %{stage: stage} ->
        {state, stage}
    end
  end
end
