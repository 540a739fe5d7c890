defmodule Skillbook.Workflow.Plan do
  @moduledoc false
  # Turns a page into the steps of a run: reads its lines, checks the names of steps and all
  # placeholders, and fills in the values that are known before the run.

  alias Skillbook.Reply.Placeholder
  alias Skillbook.Support.{Count, JSON, Number}
  alias Skillbook.{Command, Context, Declaration, Entry, Flag, Flags, Native, Router, View}
  alias Skillbook.WorkflowError

  @max_steps 100
  @built_in ~w(today yesterday now user last)

  @doc "As `Skillbook.Workflow.plan/3`."
  def new(entry, command, context) do
    with {:ok, declaration} <- View.flags(context.view, entry.name),
         do: new(entry, declaration, command, context)
  end

  @doc "The same for a page that need not be in the view, with its declaration."
  @spec new(Entry.t(), Declaration.t() | nil, Command.t(), Context.t()) ::
          {:ok, Skillbook.Workflow.plan()} | {:error, Exception.t()}
  def new(entry, declaration, command, context) do
    with {:ok, page} <- read(entry, declaration),
         {:ok, flags} <- cast_flags(command, declaration, context),
         values = values(declaration, flags, context),
         :ok <- check_values(entry, page.steps, values),
         do: {:ok, Map.put(page, :values, values)}
  end

  @doc "As `Skillbook.Workflow.read/2`."
  def read(%Entry{} = entry, declaration) do
    with {:ok, lines, rest} <- lines(entry),
         {:ok, on_error} <- on_error(entry),
         {:ok, steps} <- steps(entry, lines),
         flags = flag_values(declaration, %{}),
         :ok <- check_names(entry, steps, flags),
         :ok <- check_placeholders(entry, steps, flags),
         do: {:ok, %{steps: steps, on_error: on_error, rest: rest}}
  end

  # The page

  @doc "As `Skillbook.Workflow.lines/1`."
  def lines(entry) do
    case Native.behavior_steps(entry.body) do
      {:ok, lines, _rest} when length(lines) > @max_steps ->
        count = length(lines)

        page_error(
          entry,
          nil,
          "it has #{count} steps, more than the limit of #{@max_steps}; split it into two " <>
            "workflows"
        )

      {:ok, lines, rest} ->
        {:ok, lines, rest}

      {:error, error} ->
        page_error(entry, nil, Exception.message(error))
    end
  end

  defp on_error(%Entry{data: data} = entry) do
    case data["on_error"] || entry.metadata["skillbook-on-error"] do
      nil ->
        {:ok, :stop}

      "stop" ->
        {:ok, :stop}

      "continue" ->
        {:ok, :continue}

      other ->
        page_error(entry, nil, "expected on_error to be stop or continue, got: #{inspect(other)}")
    end
  end

  defp steps(entry, lines) do
    steps =
      for {{name, line}, number} <- Enum.with_index(lines, 1) do
        case Command.parse(line) do
          {:ok, command} ->
            %{
              number: number,
              name: name,
              line: line,
              command: command,
              uses: Placeholder.names(command)
            }

          {:error, error} ->
            {number, error}
        end
      end

    case Enum.find(steps, &is_tuple/1) do
      nil ->
        {:ok, steps}

      {number, error} ->
        message = Exception.message(error)
        page_error(entry, number, "step #{number} cannot be read: #{message}")
    end
  end

  defp check_names(entry, steps, flags) do
    named = Enum.filter(steps, & &1.name)

    named
    |> Enum.with_index()
    |> Enum.find_value(:ok, fn {step, index} ->
      earlier = named |> Enum.take(index) |> Enum.map(& &1.name)
      problem = name_problem(step.name, earlier, flags)
      problem && page_error(entry, step.number, "the name of step #{step.number} #{problem}")
    end)
  end

  defp name_problem(name, earlier, flags) do
    cond do
      not (name =~ ~r/\A[a-z][a-z0-9_-]{0,63}\z/) ->
        "must be one word of lower-case letters, digits, - and _ that begins with a letter, " <>
          "got: #{inspect(name)}"

      name in @built_in ->
        "cannot be #{name}: {#{name}} is built in"

      is_map_key(flags, name) ->
        "cannot be #{name}: {#{name}} is the flag --#{name}"

      name in earlier ->
        "is #{name}, which is the name of an earlier step"

      true ->
        nil
    end
  end

  defp check_placeholders(entry, steps, flags) do
    all = for %{name: name} when name != nil <- steps, do: name

    Enum.find_value(steps, :ok, fn step ->
      earlier =
        for %{name: name, number: number} when name != nil <- steps,
            number < step.number,
            do: name

      Enum.find_value(step.uses, fn name ->
        problem = placeholder_problem(name, step.number, earlier, all, flags)
        problem && page_error(entry, step.number, "step #{step.number} #{problem}")
      end)
    end)
  end

  defp placeholder_problem(name, step, earlier, all, flags) do
    number = number(name)

    cond do
      name == "last" and step == 1 ->
        "cannot use {last}: there is no step before it"

      is_map_key(flags, name) or name in @built_in or name in earlier ->
        nil

      number in 1..(step - 1)//1 ->
        nil

      name in all or number != nil ->
        "cannot use {#{name}}: only earlier steps have a result"

      true ->
        names =
          Enum.map_join(Enum.sort(Map.keys(flags)) ++ @built_in ++ earlier, ", ", &"{#{&1}}")

        "has the unknown placeholder {#{name}}; known are #{names} and the numbers of earlier " <>
          "steps. For a literal brace, write {{"
    end
  end

  defp number(name) do
    case Number.integer(name) do
      {number, ""} -> number
      _ -> nil
    end
  end

  defp page_error(entry, step, text),
    do: {:error, %WorkflowError{kind: :page, name: entry.name, step: step, text: text}}

  # Values

  @doc "The values of placeholders that are known before a run; `:none` for a missing flag."
  @spec values(Declaration.t() | nil, map(), Context.t()) ::
          %{String.t() => Skillbook.Reply.Placeholder.value()}
  def values(declaration, flags, context),
    do: Map.merge(flag_values(declaration, flags), built_in_values(context))

  @doc "Converts the flags of a call. A page without declared flags takes none."
  @spec cast_flags(Command.t(), Declaration.t() | nil, Context.t()) :: Flags.cast()
  def cast_flags(command, declaration, context) do
    options = [args: command.args, json: command.json, today: DateTime.to_date(context.now)]
    Flags.cast_declared(command.flags, declaration || %Declaration{}, options)
  end

  # A missing switch is false. Another missing flag without a default is `:none`.
  defp flag_values(nil, _flags), do: %{}

  defp flag_values(declaration, flags) do
    for flag <- declaration.flags, name <- flag.names, into: %{} do
      missing = if flag.type == :switch, do: false, else: :none
      {name, flags |> Map.get(Flag.key(flag), missing) |> to_value(flag.type)}
    end
  end

  # Commands given as JSON may have numbers, booleans and objects as values.
  defp to_value(value, _type) when value in [true, :none], do: value

  defp to_value(values, type) when is_list(values) and type != :json,
    do: Enum.map(values, &to_text/1)

  defp to_value(value, _type), do: to_text(value)

  defp to_text(text) when is_binary(text), do: text
  defp to_text(%Date{} = day), do: Date.to_iso8601(day)
  defp to_text(%DateTime{} = time), do: DateTime.to_iso8601(time)
  # A whole number of the type number is written as people write it: 7, not 7.0.
  defp to_text(number) when is_float(number) and abs(number) < 1.0e15 and trunc(number) == number,
    do: Integer.to_string(trunc(number))

  defp to_text(other), do: JSON.encode(other)

  defp built_in_values(%Context{now: now, profile: profile}) do
    today = DateTime.to_date(now)

    %{
      "today" => Date.to_iso8601(today),
      "yesterday" => today |> Date.add(-1) |> Date.to_iso8601(),
      "now" => now |> DateTime.truncate(:second) |> DateTime.to_iso8601(),
      "user" => profile.id
    }
  end

  defp check_values(entry, steps, values) do
    missing? = &(values[&1] == :none)

    Enum.find_value(steps, :ok, fn step ->
      # A flag whose whole value is missing is left out.
      left = step.command |> Placeholder.without(missing?) |> Placeholder.names()
      name = Enum.find(left, missing?)

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

  # Preview

  @doc "As `Skillbook.Workflow.preview/3`."
  def preview(entry, plan, view) do
    lines = Enum.map(plan.steps, &preview_step(&1, plan.values, view))
    steps = Count.text(length(lines), "step")
    rest = if plan.rest == "", do: [], else: ["Then: #{plan.rest}"]
    head = "#{entry.name} would run #{steps}, on_error: #{plan.on_error}:"
    Enum.join([head | lines] ++ rest, "\n")
  end

  defp preview_step(step, values, view) do
    name = if step.name, do: " #{step.name}", else: ""
    {:ok, filled} = Placeholder.fill_page(step.command, &{:ok, Map.get(values, &1, "{#{&1}}")})

    unknown =
      with {:error, error} <- Router.find(view, step.line),
           do: "\n  " <> Exception.message(error),
           else: (_ -> "")

    "[#{step.number}#{name}] #{filled.raw}#{unknown}"
  end
end
