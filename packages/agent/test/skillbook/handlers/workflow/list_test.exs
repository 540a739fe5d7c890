defmodule Skillbook.Handlers.Workflow.ListTest do
  use Skillbook.HandlerCase, async: true

  alias Skillbook.{Catalog, Source, View}

  @moduletag :tmp_dir

  setup %{tmp_dir: root} do
    {:ok, root: root, context: read(context(write_to: root))}
  end

  test "lists workflows with their schedules", %{context: context} do
    assert run(context, "workflow.list") == """
           2 workflows:
           workflows.daily_digest [0 8 * * 1-5, next 2026-02-18 08:00 +00:00] - Summarize \
           overdue tasks, tasks due today and tasks due soon, today's events and new mail
           workflows.weekly_review - Look back on the week, tidy the task list and plan the \
           next week\
           """

    run(
      context,
      "workflow.build --name close --description Close the month --domain finance " <>
        "--schedule @monthly --timezone europe/berlin"
    )

    context = read(context)

    assert run(context, "workflow.list --domain finance") ==
             "1 workflow in the domain finance:\nfinance.close [@monthly Europe/Berlin, " <>
               "next 2026-03-01 00:00 +01:00] - Close the month"

    assert {:ok, %{data: workflows}} = execute(context, "workflow.list")

    assert [
             %{
               name: "finance.close",
               description: "Close the month",
               schedule: "@monthly",
               timezone: "Europe/Berlin",
               next_run: ~U[2026-02-28 23:00:00Z]
             },
             %{name: "workflows.daily_digest", next_run: ~U[2026-02-18 08:00:00Z]},
             %{name: "workflows.weekly_review", schedule: nil, next_run: nil}
           ] = workflows
  end

  test "without workflows", %{context: context} do
    assert run(context, "workflow.list --domain tasks") ==
             "No workflows in the domain tasks; `workflow.build` writes one"

    {:ok, catalog} = Catalog.load([])

    assert run(%{context | view: View.all(catalog)}, "workflow.list") ==
             "No workflows; `workflow.build` writes one"

    assert run(context, "workflow.list all") =~ "error: \"all\" has no flag"
  end

  test "hidden workflows are not listed", %{context: context} do
    {:ok, catalog} = Catalog.load([Source.builtin(), Source.builtin(:agent)])

    {:ok, view} =
      View.new(catalog, id: "guest", skills: ["workflow.*", "workflows.weekly_review"])

    assert run(%{context | view: view}, "workflow.list") =~
             ~r/\A1 workflow:\nworkflows.weekly_review - /
  end
end
