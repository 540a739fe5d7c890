defmodule Skillbook.Handlers.Workflow.RunTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Profile

  @moduletag :tmp_dir
  @now ~U[2026-03-01 08:00:00Z]

  @flow """
  # x.flow

  ## Usage

  x.flow [--to <names>] [--loud]

  ## Flags

  --to    Who gets it (default: ann)
  --loud  Whether it is loud

  ## Behavior

  ```cmd
  # name: one
  tasks.create --title "For {to}: {loud}" --tags {to}
  tasks.search --tags {to}
  ```
  """

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/prose.md" => page("x.prose", [], "# x.prose\n\n## Behavior\n\nSay it.\n"),
      "x/flow.md" => page("x.flow", [], @flow)
    })

    profiles = [
      %Profile{id: "runs"},
      %Profile{id: "asked", writes: :ask},
      %Profile{id: "reads", writes: :deny}
    ]

    {:ok, book: book(sources: [folder], store: ":memory:", profiles: profiles)}
  end

  defp run(book, line, profile \\ "runs", options \\ []) do
    view = Skillbook.view(book, profile)

    [result] = Skillbook.run(view, "```cmd\n#{line}\n```", [now: @now] ++ options).results

    result
  end

  test "runs a workflow like its name does", %{book: book} do
    by_name = run(book, "x.flow --to bob eve --loud")
    assert %{status: :ok, effects: [:task_created]} = by_name

    assert String.starts_with?(
             by_name.content,
             "x.flow ran its 2 steps.\n\n" <>
               "[1] tasks.create --tags bob eve --title \"For bob, eve: true\"\nok\n"
           )

    result = run(book, "workflow.run x.flow --with to=bob \"to=eve\" loud")
    assert %{status: :ok, name: "workflow.run", effects: [:task_created]} = result
    assert result.content =~ "tasks.create --tags bob eve --title \"For bob, eve: true\""

    assert run(book, "workflow.run x.flow").content =~
             ~s(tasks.create --tags ann --title "For ann: false")

    assert %{status: :template, content: "# x.prose" <> _} = run(book, "workflow.run x.prose")
  end

  test "previews a run", %{book: book} do
    result = run(book, "workflow.run --name x.flow --with \"to=Bob Smith\" --dry-run", "reads")

    assert result.content == """
           x.flow would run 2 steps, on_error: stop:
           [1 one] tasks.create --tags "Bob Smith" --title "For Bob Smith: false"
           [2] tasks.search --tags "Bob Smith"\
           """

    assert %{status: :error} = run(book, "tasks.get T-1")

    assert run(book, "workflow.run x.prose --dry-run").content ==
             "x.prose is a page for a model to follow; it runs no commands itself. It names " <>
               "no commands.\nIn a conversation, calling it returns its text. Elsewhere it " <>
               "is not carried out, since this book has no agent."
  end

  test "gives no additional rights", %{book: book} do
    for line <- ["x.flow", "workflow.run x.flow"] do
      result = run(book, line, "reads")
      assert %{status: :error, effects: []} = result
      assert result.content =~ "x.flow stopped at step 1 of 2, which failed."
    end

    test = self()

    ask = fn request ->
      send(test, {:asked, request.command.raw})
      :allow
    end

    for line <- ["x.flow", "workflow.run x.flow"] do
      assert %{status: :ok} = run(book, line, "asked", ask: ask)
      assert_receive {:asked, "tasks.create --tags ann --title \"For ann: false\""}
      refute_received {:asked, _}
    end
  end

  test "errors", %{book: book} do
    for {line, text} <- [
          {"workflow.run", "--name is required and missing. Add it as: --name VALUE"},
          {"workflow.run x.flow --with =3",
           "--with must be flags of the workflow as NAME=VALUE, or NAME alone for one " <>
             "without a value, got \"=3\". Write for example: --with days=7"},
          {"workflow.run tasks.get",
           "--name must be the name of a workflow (`workflow.list` lists them), got " <>
             "\"tasks.get\". Write for example: --name workflows.report"},
          {"workflow.run x.flw",
           "unknown skill \"x.flw\"; did you mean x.flow? To list all skills, write: get_skill"}
        ] do
      assert {line, run(book, line).content} == {line, text}
    end

    assert run(book, "workflow.run x.flow --with who=me").content =~ "--who"
    assert run(book, "workflow.run x.flow --with who=me --dry-run").status == :error
  end

  test "a workflow with a handler is run, and not previewed", %{book: book} do
    assert run(book, "workflow.run workflows.daily_digest").content =~ "\n\nLeft out:\n"

    assert run(book, "workflow.run workflows.daily_digest --dry-run").content ==
             "workflows.daily_digest is run by its handler, which chooses its commands. Read: " <>
               "get_skill workflows.daily_digest"

    assert run(book, "workflow.show workflows.daily_digest").content =~
             "\nIts handler runs it; its page: get_skill workflows.daily_digest\n"
  end

  test "a built workflow runs in the same reply and later", %{tmp_dir: folder} do
    root = Path.join(folder, "built")
    book = book(store: ":memory:", write_to: root)

    reply = """
    ```cmd
    workflow.build --name noted --description "Keep what is late" --steps <<STEPS
    ```cmd
    # name: late
    tasks.search --overdue
    memory.save --content "Late on {today}: {late}" --category fact
    ```
    STEPS
    ```
    """

    view = Skillbook.view(book)
    call = "```cmd\nworkflows.noted\n```"
    assert [%{status: :ok}, same] = Skillbook.run(view, reply <> "\n" <> call).results
    assert [later] = Skillbook.run(Skillbook.view(book), call).results

    for result <- [same, later] do
      assert %{status: :ok, effects: [:memory_saved]} = result
      assert result.content =~ "workflows.noted ran its 2 steps."
    end

    # The caller's view keeps its generation.
    assert [%{status: :error}] = Skillbook.run(view, call).results

    # A deleted one is gone for the rest of the reply, and a narrow profile gains nothing.
    delete = "```cmd\nworkflow.delete workflows.noted\nworkflows.noted\n```"
    assert [%{status: :ok}, gone] = Skillbook.run(Skillbook.view(book), delete).results
    assert %Skillbook.UnknownSkillError{name: "workflows.noted"} = gone.error

    {:ok, narrow} =
      Skillbook.Profile.new(id: "default", skills: ["workflow.build", "workflows.other"])

    replies = for name <- ["noted", "other"], do: String.replace(reply <> call, "noted", name)

    results = for reply <- replies, do: Skillbook.run(Skillbook.view(book, narrow), reply).results

    assert [[%{status: :error}, %{status: :error}], [%{status: :ok}, other]] = results
    # Its steps need commands that the profile does not see.
    assert other.content =~ "workflows.other stopped at step 1 of 2"
  end
end
