defmodule Skillbook.Handlers.Workflow.Run do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Workflow.Named
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Workflow.Prose
  alias Skillbook.{Command, Context, FlagError, Result, Workflow}

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, given} <- given(flags["with"]),
         {:ok, entry} <- Named.fetch(context.view, flags["name"]) do
      command = %Command{name: entry.name, raw: entry.name, flags: given}
      if flags["dry-run"], do: preview(entry, command, context), else: run(command, context)
    end
  end

  # `recipient=bob@co.com`; a name alone is a switch, and a name again adds a value.
  defp given(values) do
    Enum.reduce_while(List.wrap(values), {:ok, %{}}, fn value, {:ok, given} ->
      case is_binary(value) && Regex.run(~r/\A-{0,2}([[:alnum:]_][^\s=]*)(?:=(.*))?\z/su, value) do
        [_, name, text] ->
          {:cont, {:ok, Map.update(given, name, text, &(List.wrap(&1) ++ [text]))}}

        [_, name] ->
          {:cont, {:ok, Map.put(given, name, true)}}

        _ ->
          {:halt, wrong(value)}
      end
    end)
  end

  defp wrong(value) do
    expected = "flags of the workflow as NAME=VALUE, or NAME alone for one without a value"

    {:error,
     %FlagError{kind: :invalid, flag: "with", value: value, expected: expected, example: "days=7"}}
  end

  # Each step is asked for by itself, as if the workflow had been called by its name.
  defp run(command, context) do
    options =
      Map.take(context, [:now, :by, :assigns, :agent, :workflow, :ask])
      |> Map.to_list()
      |> Keyword.put(:max_result, :infinity)

    {result, _whole} = Pipeline.command(context.view, Command.line(command), &{:ok, &1}, options)
    {:ok, result}
  end

  defp preview(entry, command, context) do
    if Workflow.workflow?(entry) do
      with {:ok, plan} <- Workflow.plan(entry, command, context),
           do: {:ok, Result.ok(Workflow.preview(entry, plan, context.view), data: plan)}
    else
      {:ok, Result.ok(Prose.preview(entry, command, context))}
    end
  end
end
