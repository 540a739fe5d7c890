defmodule Skillbook.Workflow do
  @moduledoc ~S"""
  Runs the commands on a page, step by step and without a model.

  A command without a handler whose Behavior section holds `cmd` blocks is such a workflow: when it is called, its lines run in
  their order as they are written. Each goes through the router, the policy and the executor on behalf of the same profile, so
  a workflow can do nothing that its caller cannot. A page of a source of low trust is never run; it is given back to be read.

  ## Placeholders

  `{name}` in a value, in quotes or not, stands for

    * `{recipient}` - the value of a flag that the page declares, or its default
    * `{today}`, `{yesterday}`, `{now}` - the day and the time of the call, in UTC
    * `{user}` - the id of the profile
    * `{1}`, `{last}` - the whole result of the first step, and of the step before
    * `{late}` - that of the step which a comment `# name: late` stands before

  They are filled in after the line was split into words, so no value becomes a flag or a command. `{{` is a brace. A word that
  is nothing but a flag with several values stands for all of them. What stands for nothing is an error before any step runs.

  ## What is done with the results

  What stands below the last block is for who called it: a run that came to its end gives it with the results, so that a model
  goes on by it. A run inside of another one leaves it out.

  ## Errors and limits

  `on_error: stop` in the frontmatter, which is the default, ends the run at the first step that gives an error;
  `on_error: continue` goes on, and a step that needs its result is not run. A run has at most 100 steps, with those of the
  workflows that it calls 1000, at most 5 of which are inside of each other. It takes at most 10 minutes, or what `timeout` of
  the page says.

  ## Runs

  A book with a database keeps the last hundred runs of each workflow, with the command and the result of each step;
  `workflow.show` shows them. One whose time is over, and which did not end, is shown as interrupted. The result's `:data` has the
  run's id as `:run`, the pairs of a step and its result as `:steps`, `:ended` (`:done`, `:stopped`, `:steps` or `:time`), and as
  `:rest` what stands below the last block.

  ## Prose

  A page without such blocks is for a model to follow. In a conversation it is the answer of its command; `Skillbook.carry_out/3`,
  and the schedule of a book with the option `:agent`, have an agent follow it, as they have one do what stands below the last
  block.
  """

  alias Skillbook.Reply.{Pipeline, Placeholder}
  alias Skillbook.Support.JSON

  alias Skillbook.{
    Command,
    Context,
    Declaration,
    Entry,
    Flags,
    Native,
    PlaceholderError,
    Report,
    Result,
    Router,
    Telemetry,
    View,
    WorkflowError
  }

  alias Skillbook.Workflow.Runs

  @max_steps 100
  @max_all 1000
  @max_depth 5
  @max_time 600_000

  @words ~w(today yesterday now user last)

  @type step :: %{
          number: pos_integer(),
          name: String.t() | nil,
          line: String.t(),
          command: Command.t(),
          uses: [String.t()]
        }
  @type plan :: %{
          steps: [step()],
          values: %{String.t() => Placeholder.value()},
          on_error: :stop | :continue,
          rest: String.t()
        }

  @doc "Whether calling an entry runs its commands."
  @spec workflow?(Entry.t()) :: boolean()
  def workflow?(%Entry{kind: :command, handler: nil, trust: trust, body: body})
      when trust != :low,
      do: not match?({:ok, [], _}, Native.behavior_steps(body))

  def workflow?(_entry), do: false

  @doc """
  The steps of a page that declares these flags, what becomes of an error, and the text below the steps; or why it cannot be run.
  """
  @spec read(Entry.t(), Declaration.t() | nil) ::
          {:ok, %{steps: [step()], on_error: :stop | :continue, rest: String.t()}}
          | {:error, WorkflowError.t()}
  def read(%Entry{} = entry, declaration) do
    with {:ok, lines, rest} <- lines(entry),
         {:ok, on_error} <- on_error(entry),
         {:ok, steps} <- steps(entry, lines),
         declared = declared(declaration, %{}),
         :ok <- names(entry, steps, declared),
         :ok <- known(entry, steps, declared),
         do: {:ok, %{steps: steps, on_error: on_error, rest: rest}}
  end

  @doc """
  What a call would run, with the values that are known before.

  Gives the steps and the values of its placeholders, or why it cannot be run.
  """
  @spec plan(Entry.t(), Command.t(), Context.t()) :: {:ok, plan()} | {:error, Exception.t()}
  def plan(%Entry{} = entry, %Command{} = command, %Context{} = context) do
    with {:ok, declaration} <- View.flags(context.view, entry.name),
         {:ok, page} <- read(entry, declaration),
         {:ok, flags} <- flags(command, declaration, context),
         values = Map.merge(declared(declaration, flags), words(context)),
         :ok <- given(entry, page.steps, values),
         do: {:ok, Map.put(page, :values, values)}
  end

  @doc "Runs it; the result's `:data` has the plan's steps with their results. Takes the options `:timeout` and `:ask`."
  @spec run(Entry.t(), Context.t(), keyword()) :: {:ok, Result.t()} | {:error, Exception.t()}
  def run(%Entry{} = entry, %Context{} = context, options \\ []) do
    with {:ok, plan} <- plan(entry, context.command, context),
         {:ok, state} <-
           enter(entry, context, options[:timeout] || entry.limits[:timeout] || @max_time) do
      kept(entry, context, length(plan.steps), state, fn run ->
        done = &Runs.step(context, run, &1, &2)
        {results, ended} = all(plan, state, context, done, options)

        {ended || :done, length(results), nil,
         result(results, ended, entry, below(plan, context), run)}
      end)
    end
  end

  @doc false
  # A run that is written down and told of: `fun` gets its id, and gives how it ended, how many steps it ran, what was reported,
  # and the answer.
  @spec kept(
          Entry.t(),
          Context.t(),
          non_neg_integer() | nil,
          Context.workflow(),
          (pos_integer() | nil ->
             {atom(), non_neg_integer(), String.t() | nil, answer})
        ) ::
          answer
        when answer: term()
  def kept(entry, context, steps, state, fun) do
    about = %{book: context.book, profile: context.profile.id, skill: entry.name}

    Telemetry.span([:skillbook, :workflow], about, fn ->
      began = System.monotonic_time(:millisecond)
      run = Runs.begin(entry, context, steps, max(state.deadline - began, 0))
      {status, ran, report, answer} = fun.(run)
      Runs.finish(context, run, status, System.monotonic_time(:millisecond) - began, report)
      {:stop, answer, %{status: status, steps: ran}}
    end)
  end

  # The page

  @doc "The lines of its page with their names, and the text below them, or why it cannot be run."
  @spec lines(Entry.t()) ::
          {:ok, [{String.t() | nil, String.t()}], String.t()} | {:error, WorkflowError.t()}
  def lines(entry) do
    case Native.behavior_steps(entry.body) do
      {:ok, lines, _rest} when length(lines) > @max_steps ->
        page(
          entry,
          nil,
          "it has #{length(lines)} steps, and may have #{@max_steps}; make two workflows of it"
        )

      {:ok, lines, rest} ->
        {:ok, lines, rest}

      {:error, error} ->
        page(entry, nil, Exception.message(error))
    end
  end

  defp on_error(%Entry{data: data} = entry) do
    case data["on_error"] do
      nil ->
        {:ok, :stop}

      "stop" ->
        {:ok, :stop}

      "continue" ->
        {:ok, :continue}

      other ->
        page(entry, nil, "expected on_error to be stop or continue, got: #{inspect(other)}")
    end
  end

  defp steps(entry, lines) do
    read =
      for {{name, line}, number} <- Enum.with_index(lines, 1) do
        with {:ok, command} <- Command.parse(line),
             do: %{
               number: number,
               name: name,
               line: line,
               command: command,
               uses: Placeholder.names(command)
             },
             else: ({:error, error} -> {number, error})
      end

    case Enum.find(read, &is_tuple/1) do
      nil ->
        {:ok, read}

      {number, error} ->
        page(entry, number, "step #{number} cannot be read: #{Exception.message(error)}")
    end
  end

  # A page that declares no flags takes none.
  defp flags(command, declaration, context) do
    options = [args: command.args, today: DateTime.to_date(context.now)]
    Flags.cast_declared(command.flags, declaration || %Declaration{}, options)
  end

  # A switch that is not given is false; another flag without a default has no value.
  defp declared(nil, _given), do: %{}

  defp declared(declaration, given) do
    for flag <- declaration.flags,
        value =
          given |> Map.get(flag.name, if(flag.type == :switch, do: false, else: :none)) |> texts(),
        name <- flag.names,
        into: %{},
        do: {name, value}
  end

  # A command that is a JSON object has values that no line has. A value that is not given has no text.
  defp texts(value) when value in [true, :none], do: value
  defp texts(values) when is_list(values), do: Enum.map(values, &text/1)
  defp texts(value), do: text(value)

  defp text(text) when is_binary(text), do: text
  defp text(%Date{} = day), do: Date.to_iso8601(day)
  defp text(other), do: other |> JSON.encode()

  defp names(entry, steps, declared) do
    steps
    |> Enum.filter(& &1.name)
    |> Enum.reduce_while([], fn step, before ->
      case name_problem(step.name, before, declared) do
        nil -> {:cont, [step.name | before]}
        problem -> {:halt, page(entry, step.number, "the name of step #{step.number} #{problem}")}
      end
    end)
    |> case do
      names when is_list(names) -> :ok
      error -> error
    end
  end

  defp name_problem(name, before, declared) do
    cond do
      not (name =~ ~r/\A[a-z][a-z0-9_-]{0,63}\z/) ->
        "must be one word of small letters, digits, - and _ that begins with a letter, got: #{inspect(name)}"

      name in @words ->
        "cannot be #{name}, for {#{name}} has a meaning already"

      is_map_key(declared, name) ->
        "cannot be #{name}, for {#{name}} is the flag --#{name}"

      name in before ->
        "is #{name}, as that of a step before it"

      true ->
        nil
    end
  end

  defp known(entry, steps, declared) do
    all = for %{name: name} when name != nil <- steps, do: name

    Enum.find_value(steps, :ok, fn step ->
      before =
        for %{name: name, number: number} when name != nil <- steps,
            number < step.number,
            do: name

      Enum.find_value(step.uses, &unknown(entry, step, &1, before, all, declared))
    end)
  end

  defp unknown(entry, step, name, before, all, declared) do
    cond do
      name == "last" and step.number == 1 ->
        page(entry, 1, "step 1 cannot use {last}, for no step is before it")

      is_map_key(declared, name) or name in @words or name in before ->
        nil

      number(name) in 1..(step.number - 1)//1 ->
        nil

      name in all or number(name) != nil ->
        page(
          entry,
          step.number,
          "step #{step.number} cannot use {#{name}}, for only steps before it have a result"
        )

      true ->
        names = Enum.map_join(Enum.sort(Map.keys(declared)) ++ @words ++ before, ", ", &"{#{&1}}")

        page(
          entry,
          step.number,
          "step #{step.number} has the placeholder {#{name}}, which stands for nothing; there are #{names} and the " <>
            "numbers of steps before it. A brace that is text is written {{"
        )
    end
  end

  defp given(entry, steps, values) do
    Enum.find_value(steps, :ok, fn step ->
      name = Enum.find(step.uses, &(values[&1] == :none))

      name &&
        {:error,
         %WorkflowError{
           kind: :value,
           name: entry.name,
           step: step.number,
           text: "step #{step.number} needs --#{name}, which is not given and has no default"
         }}
    end)
  end

  defp words(%Context{now: now, profile: profile}) do
    today = DateTime.to_date(now)

    %{
      "today" => Date.to_iso8601(today),
      "yesterday" => today |> Date.add(-1) |> Date.to_iso8601(),
      "now" => now |> DateTime.truncate(:second) |> DateTime.to_iso8601(),
      "user" => profile.id
    }
  end

  defp number(name) do
    case Integer.parse(name) do
      {number, ""} -> number
      _ -> nil
    end
  end

  defp page(entry, step, text),
    do: {:error, %WorkflowError{kind: :page, name: entry.name, step: step, text: text}}

  # The run

  @doc false
  # What the commands of a run have in common, which is over in so many milliseconds.
  @spec enter(Entry.t(), Context.t(), pos_integer()) ::
          {:ok, Context.workflow()} | {:error, WorkflowError.t()}
  def enter(entry, %Context{workflow: workflow}, time) do
    deadline = System.monotonic_time(:millisecond) + time

    case workflow do
      nil ->
        {:ok, %{depth: 1, deadline: deadline, ran: :counters.new(1, [])}}

      %{depth: depth} when depth >= @max_depth ->
        text = "#{@max_depth} workflows are inside of each other already, and no more may be"
        {:error, %WorkflowError{kind: :depth, name: entry.name, text: text}}

      %{depth: depth} ->
        {:ok, %{workflow | depth: depth + 1, deadline: min(deadline, workflow.deadline)}}
    end
  end

  # The results in order, and why it ended before its last step.
  defp all(plan, state, context, done, options) do
    {results, _values, ended} =
      Enum.reduce_while(plan.steps, {[], plan.values, nil}, fn step, {results, values, nil} ->
        case limit(state) do
          nil ->
            result = step(step, values, state, context, options)
            done.(step, result)
            ended = if result.status == :error and plan.on_error == :stop, do: :stopped
            values = Map.merge(values, told(step, result))
            {if(ended, do: :halt, else: :cont), {[result | results], values, ended}}

          limit ->
            {:halt, {results, values, limit}}
        end
      end)

    {Enum.reverse(results), ended}
  end

  defp limit(%{deadline: deadline, ran: ran}) do
    cond do
      System.monotonic_time(:millisecond) >= deadline ->
        :time

      :counters.get(ran, 1) >= @max_all ->
        :steps

      true ->
        :counters.add(ran, 1, 1)
        nil
    end
  end

  defp told(step, %Result{status: status, content: content}) do
    value = if status == :error, do: {:failed, step.number}, else: content
    for name <- ["last", "#{step.number}", step.name], name != nil, into: %{}, do: {name, value}
  end

  defp step(step, values, state, context, options) do
    options =
      [now: context.now, by: context.by, assigns: context.assigns, agent: context.agent] ++
        [ask: options[:ask], workflow: state, max_result: :infinity]

    {result, _whole} = Pipeline.command(context.view, step.line, &fill(&1, values), options)
    %{result | command: shown(step, values)}
  end

  defp fill(command, values) do
    Placeholder.fill_page(command, fn name ->
      case values do
        %{^name => {:failed, number}} ->
          {:error, %PlaceholderError{kind: :failed, reference: name, number: number}}

        %{^name => value} ->
          {:ok, value}
      end
    end)
  end

  defp shown(%{command: command, line: line}, values) do
    case fill(command, values) do
      {:ok, filled} -> filled.raw
      {:error, _} -> line
    end
  end

  # The report

  # Inside of another workflow nobody reads what is to be done with the results.
  defp below(plan, %Context{workflow: nil}), do: plan
  defp below(plan, _inside), do: %{plan | rest: ""}

  defp result(results, ended, entry, plan, run) do
    text = head(entry, plan, results, ended) <> "\n\n" <> to_string(%Report{results: results})
    effects = results |> Enum.flat_map(& &1.effects) |> Enum.uniq()
    metadata = %{path: entry.path}
    rest = if ended, do: "", else: plan.rest
    data = %{run: run, steps: Enum.zip(plan.steps, results), ended: ended || :done, rest: rest}

    if ended do
      error = %WorkflowError{
        kind: ended,
        name: entry.name,
        step: length(results),
        text: String.trim_trailing(text)
      }

      {:ok, %{Result.error(error) | data: data, effects: effects, metadata: metadata}}
    else
      {:ok,
       Result.ok(String.trim_trailing(text), data: data, effects: effects, metadata: metadata)}
    end
  end

  defp head(entry, plan, results, :stopped) do
    "#{entry.name} stopped at step #{length(results)} of #{length(plan.steps)}, which gave an error."
  end

  defp head(entry, plan, results, :time),
    do:
      "#{entry.name} stopped after step #{length(results)} of #{length(plan.steps)}, for its time was over."

  defp head(entry, plan, results, :steps) do
    "#{entry.name} stopped after step #{length(results)} of #{length(plan.steps)}, for with the workflows that it is part " <>
      "of #{@max_all} steps have run."
  end

  defp head(entry, plan, results, nil) do
    failed = for {%{status: :error}, number} <- Enum.with_index(results, 1), do: number
    steps = if length(results) == 1, do: "its step", else: "its #{length(results)} steps"

    ran =
      case failed do
        [] -> "#{entry.name} ran #{steps}."
        [number] -> "#{entry.name} ran #{steps}; step #{number} gave an error."
        numbers -> "#{entry.name} ran #{steps}; steps #{Enum.join(numbers, ", ")} gave errors."
      end

    # First, for the end of a long report may be cut off.
    if plan.rest == "",
      do: ran,
      else: "#{ran} What its page says to do with the results:\n\n#{plan.rest}\n\nThe results:"
  end

  @doc """
  What a plan would run, a line a step, without running anything: values that only a step's result gives stay as they are
  written, and names that the view does not show are marked.
  """
  @spec preview(Entry.t(), plan(), View.t()) :: String.t()
  def preview(entry, plan, view) do
    lines =
      for step <- plan.steps do
        name = if step.name, do: " #{step.name}", else: ""

        {:ok, filled} =
          Placeholder.fill_page(step.command, &{:ok, Map.get(plan.values, &1, "{#{&1}}")})

        "[#{step.number}#{name}] #{filled.raw}#{unknown(view, step)}"
      end

    steps = if length(lines) == 1, do: "1 step", else: "#{length(lines)} steps"
    rest = if plan.rest == "", do: [], else: ["Then: #{plan.rest}"]

    Enum.join(
      ["#{entry.name} would run #{steps}, on_error: #{plan.on_error}:" | lines] ++ rest,
      "\n"
    )
  end

  defp unknown(view, step) do
    case Router.find(view, step.line) do
      {:error, error} -> "\n  " <> Exception.message(error)
      _ -> ""
    end
  end
end
