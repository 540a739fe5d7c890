defmodule Skillbook.Flags.JSONTest do
  # Tool calls: errors in terms of the JSON object that the caller wrote, and empty lists.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Context, FlagError, Result, Tools}

  @moduletag :tmp_dir

  defmodule Handler do
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"title" => "conflict"}, %Context{}) do
      {:error,
       %FlagError{
         kind: :conflict,
         flag: "add-tags",
         flags: ["add-tags", "tags"],
         expected: "--add-tags is not for --tags"
       }}
    end

    def execute(flags, %Context{}), do: {:ok, inspect(flags)}
  end

  defp command(folder) do
    write(folder, %{
      "x/edit.md" =>
        page("x.edit", [handler: inspect(Handler)], """
        ## Flags

        --title     The title, one line (required)
        --limit     How many, from 1 to 9
        --due       The day: YYYY-MM-DD
        --urgent    At once (a switch)
        --level     One of: low, high
        --tags      One or more tags
        --add-tags  One or more tags
        --notes     One or more notes (text)
        --clear     Fields to empty, one or more of: tags, notes, due
        """)
    })

    view(folder)
  end

  defp call(view, arguments) do
    {%Result{content: text}, _} =
      Tools.call(view, %{"name" => "x__edit", "arguments" => arguments})

    text
  end

  defp line(view, line) do
    [%Result{content: text}] = Skillbook.run(view, "```cmd\nx.edit #{line}\n```").results
    text
  end

  test "the same mistake in a tool call and in a line", %{tmp_dir: folder} do
    view = command(folder)

    for {object, in_json, line, in_line} <- [
          {%{}, ~s("title" is required and missing. Add it as: "title": "VALUE"), "",
           "--title is required and missing. Add it as: --title VALUE"},
          {%{"title" => "x", "limit" => 10},
           ~s("limit" must be a whole number from 1 to 9, got 10. Write for example: "limit": 1),
           "--title x --limit 10",
           ~s(--limit must be a whole number from 1 to 9, got "10". ) <>
             "Write for example: --limit 1"},
          {%{"title" => "x", "limit" => [1, 2]},
           ~s("limit" takes one value, got 2: 1, 2. Write for example: "limit": 1),
           "--title x --limit 1 2",
           ~s(--limit takes one value, got 2: "1", "2". Write for example: --limit 1)},
          {%{"title" => true},
           ~s("title" needs a value and has none. Write for example: "title": "some text"),
           "--title",
           ~s(--title needs a value and has none. Write for example: --title "some text")},
          {%{"title" => "x", "urgent" => "maybe"},
           ~s("urgent" must be true or false, got "maybe". Write for example: "urgent": true),
           "--title x --urgent maybe",
           ~s(--urgent must be a switch, alone or with true or false, got "maybe". ) <>
             "Write it as: --urgent"},
          {%{"title" => "x", "due" => "soon"},
           ~s("due" must be a day as YYYY-MM-DD, got "soon". ) <>
             ~s(Write for example: "due": "2026-03-01"), "--title x --due soon",
           ~s(--due must be a day as YYYY-MM-DD, got "soon". ) <>
             "Write for example: --due 2026-03-01"},
          {%{"title" => "x", "level" => "hi"},
           ~s("level" must be one of low, high, got "hi". Write for example: "level": "low"),
           "--title x --level hi",
           ~s(--level must be one of low, high, got "hi". Write for example: --level low)},
          {%{"title" => "x", "add_tags" => ","},
           ~s("add_tags" must be one or more values, each one line, got ",". ) <>
             ~s(Write for example: "add_tags": ["one","two"]), "--title x --add-tags ,",
           ~s(--add-tags must be one or more values, each one line, got ",". ) <>
             "Write for example: --add-tags one two"},
          {%{"titel" => "x", "zzz" => 1},
           ~s(unknown properties "titel", "zzz"; did you mean "title"? Known properties: ) <>
             ~s("title", "limit", "due", "urgent", "level", "tags", "add_tags", "notes", "clear"),
           "--titel x --zzz 1",
           "unknown flags --titel and --zzz; did you mean --title? Known flags: " <>
             "--title, --limit, --due, --urgent, --level, --tags, --add-tags, --notes, --clear"},
          {%{"title" => "conflict"},
           ~s("add_tags" and "tags" contradict each other: "add_tags" is not for "tags"),
           "--title conflict",
           "--add-tags and --tags contradict each other: --add-tags is not for --tags"}
        ] do
      assert {object, call(view, object)} == {object, in_json}
      assert {line, line(view, line)} == {line, in_line}
      refute call(view, object) =~ "--"
    end

    many = %FlagError{kind: :missing, flag: "a", flags: ["a", "b-c"]}

    assert Exception.message(%{many | json: true}) ==
             ~s("a" and "b_c" are required and missing. Add them as: "a": "VALUE", "b_c": "VALUE")

    any = %FlagError{kind: :missing_any, flags: ["a", "b"]}

    assert Exception.message(%{any | json: true}) ==
             ~s(one of "a" or "b" is required. Add for example: "a": "VALUE")
  end

  test "an empty list clears a field that the command can clear, null does not", context do
    view = command(context.tmp_dir)

    for {object, flags} <- [
          {%{"tags" => []}, %{"clear" => ["tags"]}},
          {%{"tags" => [], "notes" => []}, %{"clear" => ["tags", "notes"]}},
          {%{"tags" => [], "clear" => ["due"]}, %{"clear" => ["due", "tags"]}},
          {%{"tags" => nil}, %{}},
          # Not a field of `--clear`, and not a list
          {%{"add_tags" => []}, %{}},
          {%{"due" => []}, %{}},
          {%{"tags" => ["a"]}, %{"tags" => ["a"]}}
        ] do
      assert {object, call(view, Map.put(object, "title", "x"))} ==
               {object, inspect(Map.put(flags, "title", "x"))}
    end
  end

  test "tasks.update and skills.update clear lists", %{tmp_dir: folder} do
    name = :"json_#{System.unique_integer([:positive])}"
    store = Path.join(folder, "a.db")
    options = [builtins: ["tasks", "skills"], store: store, scheduler: false]
    start_supervised!({Skillbook, [name: name] ++ options})
    call = &elem(Tools.call(Skillbook.view(name), %{"name" => &1, "arguments" => &2}), 0)

    created = call.("tasks__create", %{"title" => "Milk", "tags" => ["a", "b"]})
    assert created.status == :ok
    id = Regex.run(~r/T-\w+/, created.content) |> hd()

    assert call.("tasks__update", %{"id" => id, "tags" => []}).content =~ "tags: a, b -> none"

    fields = %{"title" => "Tea", "description" => "Tea", "content" => "Tea", "tags" => ["a"]}
    assert call.("create_skill", Map.put(fields, "name", "tea")).status == :ok
    assert call.("update_skill", %{"name" => "tea", "tags" => []}).content =~ "tags: a -> none"
  end
end
