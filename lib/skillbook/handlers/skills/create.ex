defmodule Skillbook.Handlers.Skills.Create do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Schedule, Store}
  alias Skillbook.Handlers.Skills.Written

  @required ~w(name title description content)
  @fields ["name", "content"] ++ Written.fields() ++ Written.times()

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, @fields),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, @required),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Flags.cast_text(flags, "content"),
         {:ok, flags} <- Written.cast_fields(flags),
         {:ok, flags} <- Written.cast_times(flags),
         fields = Written.taken(flags, @fields),
         replaced =
           Written.replaced(context.view, %Skillbook.Stored{name: flags["name"], title: flags["title"]}),
         {:ok, stored} <- Store.create(context.view, fields, Written.options(context)) do
      text =
        "Created the skill #{stored.name}, version #{stored.version}. `get_skill: #{stored.name}` reads it." <>
          runs(stored, context.now) <> instead(replaced, stored)

      {:ok, Result.ok(text, data: Map.take(stored, [:name, :version]), effects: [:skill_created])}
    end
  end

  defp runs(%{schedule: nil}, _now), do: ""

  defp runs(stored, now) do
    schedule = Written.schedule(stored)
    at = Schedule.local(schedule, Schedule.next(schedule, now))
    "\nIt runs #{Schedule.describe(schedule)}; the next time is #{at}."
  end

  defp instead(nil, _stored), do: ""

  defp instead(entry, stored) do
    "\nIt replaces the #{entry.kind} #{entry.name} of a file; `skills.delete #{stored.name}` brings that back."
  end
end
