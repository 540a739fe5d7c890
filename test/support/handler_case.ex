defmodule Skillbook.HandlerCase do
  @moduledoc false
  # For tests that run command lines against their handlers, with a database of their own.
  #
  # `run/3` gives what a model would read: the content of the result, or "error: " and the error's message.

  use ExUnit.CaseTemplate

  alias Skillbook.{Context, SQL}

  @handlers %{
    "agent.dispatch" => Skillbook.Handlers.Agent.Dispatch,
    "tasks.create" => Skillbook.Handlers.Tasks.Create,
    "tasks.search" => Skillbook.Handlers.Tasks.Search,
    "tasks.get" => Skillbook.Handlers.Tasks.Get,
    "tasks.update" => Skillbook.Handlers.Tasks.Update,
    "tasks.delete" => Skillbook.Handlers.Tasks.Delete,
    "markdown.create" => Skillbook.Handlers.Markdown.Create,
    "markdown.edit" => Skillbook.Handlers.Markdown.Edit,
    "markdown.search" => Skillbook.Handlers.Markdown.Search,
    "memory.save" => Skillbook.Handlers.Memory.Save,
    "memory.search" => Skillbook.Handlers.Memory.Search,
    "notes.add" => Skillbook.Handlers.Notes.Add,
    "notes.delete" => Skillbook.Handlers.Notes.Delete,
    "notes.get" => Skillbook.Handlers.Notes.Get,
    "notes.list" => Skillbook.Handlers.Notes.List,
    "results.read" => Skillbook.Handlers.Results.Read,
    "skills.create" => Skillbook.Handlers.Skills.Create,
    "skills.delete" => Skillbook.Handlers.Skills.Delete,
    "skills.diff" => Skillbook.Handlers.Skills.Diff,
    "skills.disable" => Skillbook.Handlers.Skills.Disable,
    "skills.enable" => Skillbook.Handlers.Skills.Enable,
    "skills.history" => Skillbook.Handlers.Skills.History,
    "skills.list" => Skillbook.Handlers.Skills.List,
    "skills.load" => Skillbook.Handlers.Skills.Load,
    "skills.read" => Skillbook.Handlers.Skills.Read,
    "skills.restore" => Skillbook.Handlers.Skills.Restore,
    "skills.update" => Skillbook.Handlers.Skills.Update,
    "workflow.build" => Skillbook.Handlers.Workflow.Build,
    "workflow.delete" => Skillbook.Handlers.Workflow.Delete,
    "workflow.list" => Skillbook.Handlers.Workflow.List,
    "workflow.run" => Skillbook.Handlers.Workflow.Run,
    "workflow.show" => Skillbook.Handlers.Workflow.Show
  }

  using do
    quote do
      import Skillbook.HandlerCase
    end
  end

  @doc "A context whose time is noon of the 17th of February 2026 and whose user is alice."
  def context(fields \\ []) do
    struct!(
      %Context{
        view: nil,
        profile: %Skillbook.Profile{id: "alice"},
        entry: nil,
        command: nil,
        now: ~U[2026-02-17 12:00:00.123456Z]
      },
      fields
    )
  end

  @doc "A handle for a new database with all tables; that of SQLite is in `folder`."
  def database(folder, dialect \\ :sqlite) do
    sql = start_database(folder, dialect)
    {:ok, _} = SQL.Migrations.run(sql)
    sql
  end

  defp start_database(_folder, :postgres), do: Skillbook.PostgresCase.start()

  defp start_database(folder, :sqlite) do
    name = :"handlers_#{System.unique_integer([:positive])}"
    start_supervised!({SQL.SQLite, path: Path.join(folder, "skillbook.db"), name: name}, id: name)
    SQL.SQLite.handle(name)
  end

  @doc "Runs a command line, or a name with a map of flags."
  def execute(context, line_or_name, flags \\ nil)

  def execute(context, line, nil) do
    command = Skillbook.Command.parse!(line)
    @handlers[command.name].execute(command.flags, %{context | command: command})
  end

  def execute(context, name, flags) do
    command = %Skillbook.Command{name: name, flags: flags, raw: name}
    @handlers[name].execute(flags, %{context | command: command})
  end

  @doc "As `execute/3`, but gives the text that goes to the model."
  def run(context, line_or_name, flags \\ nil) do
    case execute(context, line_or_name, flags) do
      {:ok, result} -> result.content
      {:error, text} when is_binary(text) -> "error: " <> text
      {:error, e} -> "error: " <> Exception.message(e)
    end
  end

  @doc "The context, the given days later."
  def later(context, days), do: %{context | now: DateTime.add(context.now, days * 86_400)}
end
