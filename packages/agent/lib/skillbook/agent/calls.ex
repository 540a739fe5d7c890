defmodule Skillbook.Agent.Calls do
  @moduledoc false
  # Runs the tool calls of a reply and adds their results to the conversation.
  #
  # Calls run in order. Those that follow each other and only read run at the same time, within
  # the limits of the book, and so do agents that they dispatch; any other call waits for those
  # before it.

  alias Skillbook.Agent.{Commands, Journal, ResultMedia, SkillsRead, State}
  alias Skillbook.Model.Content
  alias Skillbook.Reply.{Pipeline, ToolCall}
  alias Skillbook.Support.Hidden

  alias Skillbook.{
    Entry,
    Executor,
    Model,
    Report,
    Result,
    RoutedCommand,
    Router,
    ToolCallError,
    Tools,
    View,
    Workflow
  }

  # The most calls of one reply.
  @max_calls 100
  # The most calls of one reply that are in the conversation. Each needs a message with its
  # result, and a server may send hundreds of thousands in an answer.
  @max_read 1_000
  # The most calls at the same time.
  @max_parallel 8
  # Characters of the line of a call that cannot be read.
  @max_line 500

  @typedoc "A call: as it is in the conversation, and the name that the model wrote."
  @type t :: {Model.tool_call(), String.t()}

  @doc """
  Gives each call of an answer an id of its own, and a name that all vendors accept.

  Models invent names, and some servers send no ids, or the same ones again. Of too many calls,
  the first #{@max_read} stay.
  """
  @spec read(State.t(), [Model.tool_call()]) :: [t()]
  def read(state, calls) do
    known = for %{tool_calls: calls} <- state.transcript.messages, call <- calls, do: call.id

    {calls, _ids} =
      calls
      |> Enum.take(@max_read)
      |> Enum.map_reduce(MapSet.new(known), fn call, ids ->
        id = if text?(call.id) and call.id not in ids, do: call.id, else: new_id(ids)
        name = if is_binary(call.name), do: Hidden.visible(call.name), else: ""
        arguments = if is_binary(call.arguments), do: call.arguments, else: ""
        call = %{id: id, name: Tools.name(state.view, name), arguments: arguments}
        {{call, name}, MapSet.put(ids, id)}
      end)

    calls
  end

  defp text?(text), do: is_binary(text) and text != "" and String.valid?(text)

  defp new_id(ids, number \\ 1) do
    id = "call_#{number}"
    if id in ids, do: new_id(ids, number + 1), else: id
  end

  @doc "The command line of a call."
  @spec line(View.t(), t()) :: String.t()
  def line(view, {call, written}) do
    case Tools.line(view, tool_call(call, written)) do
      {:ok, line, _json?} -> line
      {:error, _} -> unreadable(written, call.arguments)
    end
  end

  defp tool_call(call, name), do: ToolCall.read(%{"name" => name, "arguments" => call.arguments})

  defp unreadable(name, arguments) do
    "#{name} #{arguments}"
    |> String.slice(0, @max_line)
    |> String.split()
    |> Enum.join(" ")
    |> Hidden.visible()
  end

  # Running

  @doc """
  Runs the calls of a reply whose commands have run with `before`, and returns their results.

  The last call of a reply that reached its limit of tokens may be incomplete and does not run; of
  a reply that the server withheld, none does.
  """
  @spec run(State.t(), [t()], atom(), [Result.t()]) :: [Result.t()]
  def run(state, calls, finish_reason, before) do
    last = length(calls)
    # In the journal, the calls follow the commands of the text.
    offset = length(before)

    steps =
      for {call, number} <- Enum.with_index(calls, 1),
          do: {call, refusal(finish_reason, number, last), offset + number}

    run_next(steps, Pipeline.view_after(state.view, before), state, halted?(state, before))
  end

  defp refusal(:filtered, _number, _last), do: :withheld
  defp refusal(:length, last, last), do: :cut_off
  defp refusal(_reason, number, _last) when number > @max_calls, do: :too_many
  defp refusal(_reason, _number, _last), do: nil

  defp halted?(state, results),
    do: halt?(state) and Enum.any?(results, &(&1.status in [:error, :pending]))

  defp halt?(state), do: state.commands[:on_error] == :halt

  defp run_next([], _view, _state, _halted), do: []

  defp run_next([{call, _refusal, _number} | rest], view, state, true) do
    result = Pipeline.skipped(line(view, call))
    State.emit(state, {:result, result})
    [result | run_next(rest, view, state, true)]
  end

  defp run_next([step | rest], view, state, false) do
    first = prepare(step, view)
    room = if first.sort == :write, do: 0, else: max_parallel(state) - 1
    {more, rest} = take(rest, view, first.sort, room, %{first.name => 1}, [])
    results = run_batch([first | more], view, state)
    results ++ run_next(rest, Pipeline.view_after(view, results), state, halted?(state, results))
  end

  # The calls that may run at the same time as the first one, and the rest.
  defp take([step | rest] = steps, view, sort, room, counts, taken) when room > 0 do
    step = prepare(step, view)
    count = Map.get(counts, step.name, 0) + 1

    if step.sort == sort and count <= step.max_running,
      do: take(rest, view, sort, room - 1, Map.put(counts, step.name, count), [step | taken]),
      else: {Enum.reverse(taken), steps}
  end

  defp take(steps, _view, _sort, _room, _counts, taken), do: {Enum.reverse(taken), steps}

  # More calls than the book runs at once would wait for each other, and fail after a while. A
  # nested run has only the slot of its caller. With `on_error: :halt` each call decides about the
  # next one.
  defp max_parallel(state) do
    limit = Executor.max_running(state.view, nil)

    cond do
      halt?(state) -> 1
      state.depth > 0 and limit != :infinity -> 1
      true -> min(limit, @max_parallel)
    end
  end

  # Routed with the view of its batch, since a call before it may have written its skill.
  defp prepare({{call, written} = id, refusal, number}, view) do
    step = %{call: id, number: number, name: nil, sort: :read, max_running: :infinity}

    with nil <- refusal,
         {:ok, line, json?} <- Tools.line(view, tool_call(call, written)) do
      Map.merge(%{step | call: {:run, line, json?}}, limits(view, line))
    else
      {:error, error} -> Map.put(step, :error, error)
      kind -> Map.put(step, :error, refused(kind))
    end
  end

  defp limits(view, line) do
    case Router.find(view, line) do
      {:ok, %RoutedCommand{entry: entry}} ->
        %{name: entry.name, sort: sort(entry), max_running: Executor.max_running(view, entry)}

      _help_or_error ->
        %{}
    end
  end

  defp sort(%Entry{name: "agent.dispatch"}), do: :agent

  # The steps of a workflow may write.
  defp sort(entry) do
    if Entry.effect(entry) == :read and not Workflow.workflow?(entry), do: :read, else: :write
  end

  defp refused(:too_many), do: %ToolCallError{kind: :too_many, most: @max_calls}
  defp refused(kind), do: %ToolCallError{kind: kind}

  defp run_batch([step], view, state),
    do: [step |> run_step(view, options(state)) |> emit(step, state)]

  # A call that does not run needs no process, which would copy the state of the run.
  defp run_batch([%{error: _} | _] = batch, view, state) do
    {refused, rest} = Enum.split_while(batch, &is_map_key(&1, :error))
    results = for step <- refused, do: step |> run_step(view, []) |> emit(step, state)
    results ++ run_batch(rest, view, state)
  end

  defp run_batch([], _view, _state), do: []

  defp run_batch(batch, view, state) do
    options = batch |> hd() |> shared(options(state), length(batch))

    batch
    |> Task.async_stream(&run_step(&1, view, options),
      max_concurrency: length(batch),
      timeout: :infinity
    )
    |> Enum.zip_with(batch, fn {:ok, result}, step -> emit(result, step, state) end)
  end

  # Agents at the same time share what is left.
  defp shared(%{sort: :agent}, options, number) do
    agent = Commands.share(options[:agent].(), number)
    Keyword.put(options, :agent, fn -> agent end)
  end

  defp shared(_step, options, _number), do: options

  defp options(state) do
    options = state |> Commands.options() |> Keyword.drop([:on_result, :on_error, :unclosed])
    [journal: Journal.calls(state)] ++ options
  end

  defp emit(result, step, state) do
    unless Journal.known?(state, step.number), do: State.emit(state, {:result, result})
    result
  end

  defp run_step(%{error: error, call: call}, view, _options) do
    result = Result.error(error)
    %{result | content: Hidden.visible(result.content), command: line(view, call), duration: 0}
  end

  defp run_step(%{call: {:run, line, json?}, number: number}, view, options) do
    {journal, options} = Keyword.pop(options, :journal)
    journal = journal && fn 1, line, run -> journal.(number, line, run) end
    [result] = Pipeline.commands(view, [line], [journal: journal, json: json?] ++ options)
    result
  end

  # The conversation

  @doc "Adds the results to the conversation, without texts that are already in it."
  @spec add_results(State.t(), [t()], [Result.t()]) :: State.t()
  def add_results(state, calls, results) do
    calls
    |> Enum.zip(results)
    |> Enum.reduce(state, fn {{call, _written}, result}, state ->
      {[result], activations} = SkillsRead.deduplicate([result], state.transcript)

      content = ResultMedia.content(state, Report.answer(result), [result])

      State.add_message(state, :result, content,
        call: Map.take(call, [:id, :name]),
        error: result.status in [:error, :skipped],
        activations: activations
      )
    end)
  end

  @doc """
  Writes calls as command blocks and their results as reports, for a conversation without tools.
  """
  @spec as_blocks(View.t(), [Model.message()]) :: [Model.message()]
  def as_blocks(view, messages) do
    messages
    |> Enum.chunk_by(&(&1.role == :tool))
    |> Enum.flat_map(fn
      [%{role: :tool} | _] = results -> [%{role: :user, content: with_media(results)}]
      messages -> Enum.map(messages, &as_block(view, &1))
    end)
    |> Enum.chunk_by(&{&1.role, is_map_key(&1, :opaque) && make_ref()})
    |> Enum.map(fn [first | _] = group ->
      %{first | content: group |> Enum.map(& &1.content) |> Content.join()}
    end)
  end

  defp as_block(view, %{tool_calls: calls} = message) do
    lines = Enum.map_join(calls, "\n", &line(view, {&1, &1.name}))
    text = String.trim("#{message.content}\n\n```cmd\n#{lines}\n```")
    %{role: :assistant, content: text}
  end

  defp as_block(_view, message), do: message

  defp with_media(results) do
    case Content.media(results) do
      [] -> report(results)
      media -> [report(results) | media]
    end
  end

  defp report(results) do
    results
    |> Enum.with_index(1)
    |> Enum.map_join("\n\n", fn {%{name: name, content: content}, number} ->
      [status | lines] = content |> Content.text() |> String.split("\n")
      Enum.join(["[#{number}] #{name}", status | Enum.map(lines, &indent/1)], "\n")
    end)
  end

  defp indent(""), do: ""
  defp indent(line), do: "  " <> line
end
