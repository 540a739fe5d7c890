defmodule Skillbook.Handlers.Workflow.Run do
  @moduledoc false
  # `workflow.run`: calls a workflow with the flags in `--with`, or previews the call.

  @behaviour Skillbook.Handler

  alias Skillbook.Support.UntilError
  alias Skillbook.Workflow.Pages
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Agent.Prose
  alias Skillbook.{Command, Context, FlagError, Result, Workflow}

  @impl true
  def execute(flags, %Context{} = context) do
    with {:ok, given} <- parse_with(flags["with"]),
         {:ok, entry} <- Pages.fetch(context.view, flags["name"]) do
      command = %Command{name: entry.name, raw: entry.name, flags: given}
      if flags["dry-run"], do: preview(entry, command, context), else: run(command, context)
    end
  end

  # `NAME=VALUE` sets a flag, and again adds a value. `NAME` alone is a switch.
  @flag ~r/\A-{0,2}([[:alnum:]_][^\s=]*)(?:=(.*))?\z/su

  defp parse_with(values) do
    values
    |> List.wrap()
    |> UntilError.reduce(%{}, fn value, flags ->
      case is_binary(value) && Regex.run(@flag, value) do
        [_, name, text] -> {:ok, Map.update(flags, name, text, &(List.wrap(&1) ++ [text]))}
        [_, name] -> {:ok, Map.put(flags, name, true)}
        _ -> invalid(value)
      end
    end)
  end

  defp invalid(value) do
    expected = "flags of the workflow as NAME=VALUE, or NAME alone for one without a value"
    FlagError.invalid("with", value, expected, "days=7")
  end

  # Each step is approved on its own, as if the workflow had been called by its name.
  defp run(command, context) do
    options =
      Map.take(context, [:now, :by, :agent, :workflow, :ask])
      |> Map.to_list()
      |> Keyword.merge(assigns: context.call_assigns, max_result: :infinity)

    {result, _whole} = Pipeline.command(context.view, Command.line(command), &{:ok, &1}, options)
    {:ok, result}
  end

  defp preview(%{name: name, handler: handler}, _command, _context) when handler != nil do
    {:ok,
     Result.ok(
       "#{name} is run by its handler, which chooses its commands. Read: get_skill #{name}"
     )}
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
