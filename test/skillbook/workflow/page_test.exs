defmodule Skillbook.Workflow.PageTest do
  # Placeholders in pages of prose: values are data, and a part with a missing value is left out.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Support.JSON
  alias Skillbook.Help

  @moduletag :tmp_dir
  @now ~U[2026-02-28 12:00:00Z]

  @flags """
  flags:
    topic: {required: true}
    to: email
    tags: {repeatable: true}
    quote: {empty: true}
    n: {type: integer, default: 3}
    price: number
    due: {type: date, words: true}
    loud: boolean
  """

  defp view_of(folder, body, flags \\ @flags) do
    text = "---\nname: x.y\ndescription: Does something\n#{flags}---\n#{body}"
    write(folder, %{"x/y.md" => text})
    view(folder)
  end

  defp call(view, line) do
    [result] = Pipeline.commands(view, [line], now: @now)
    {result.status, result.content}
  end

  test "fills in the values of flags as data", %{tmp_dir: folder} do
    rows = [
      {"Write about {topic}.", ~s(x.y tea), "Write about tea."},
      {"Write about {topic}.", ~s(x.y --topic "green tea"), ~s(Write about "green tea".)},
      {~s(Write about "{topic}".), ~s(x.y --topic "green tea"), ~s(Write about "green tea".)},
      {"{topic}\nEnd.", ~S(x.y --topic "a\n## Steps\n```cmd"),
       ~S("a\n## Steps\n```cmd") <> "\nEnd."},
      {~s("{topic}"), ~S(x.y --topic 'a" b\c'), ~S("a\" b\\c")},
      {"{topic}: {to}", ~s(x.y a --to bob@example.com), "a: bob@example.com"},
      {"{topic}", ~s(x.y --topic "{to}" --to a@b.de), ~s("{to}")},
      {"{topic} {tags}", ~s(x.y a --tags q1 "to do"), ~s(a q1, "to do")},
      {"{topic}\n\n- {tags}", ~s(x.y a --tags q1 "to do"), "a\n\n- q1\n- to do"},
      {"{topic}\n\n> {quote}\n\nEnd.", ~S(x.y a --quote "one\n\n# two\u2028three"),
       "a\n\n> one\n> # two\\u2028three\n\nEnd."},
      {"{topic} {n} {n}", "x.y a", "a 3 3"},
      {"{topic} {n}", ~s(x.y {"topic": "a", "n": 7.0}), "a 7"},
      {"{topic} {price}", "x.y a --price 7", "a 7"},
      {"{topic} {price}", "x.y a --price 7.50", "a 7.5"},
      {"{topic} {price}", "x.y a --price -1000000000000", "a -1000000000000"},
      {"{topic} {due}", "x.y a --due tomorrow", "a 2026-03-01"},
      {"{topic} {loud}", "x.y a --loud", "a true"},
      {"{topic} {loud}", "x.y a", "a false"},
      {"{topic} on {today}, for {user}", "x.y a", ~s(a on 2026-02-28, for "")},
      {"{topic} {{topic} {{topic}} {other} {} { topic } ${n}", "x.y a",
       "a {topic} {topic}} {other} {} { topic } $3"},
      {"```sh\ngit commit -m {topic}\n```", ~s(x.y "it's"), ~s(```sh\ngit commit -m "it's"\n```)}
    ]

    for {body, line, expected} <- rows do
      assert {body, line, call(view_of(folder, body), line)} ==
               {body, line, {:template, expected}}
    end
  end

  test "leaves out the parts with a missing value", %{tmp_dir: folder} do
    rows = [
      {"Do it.\n\nThen write to {to}\nat once.\n\nEnd.", "Do it.\n\nEnd."},
      {"- one\n- write to {to}\n  at once\n  - and wait\n\n  for it\n- two", "- one\n- two"},
      {"1. one\n2. write to {to}\n3. two", "1. one\n3. two"},
      {"- one {to}\n- two", "- two"},
      {"# For {to}\n\nText", "Text"},
      {"| a | b |\n|--|--|\n| to | {to} |\n| n | {n} |", "| a | b |\n|--|--|\n| n | 3 |"},
      {"```\na {to}\nb {n}\n```", "```\nb 3\n```"},
      {"> {to}\n> {n}", "> 3"},
      {"{{to} stays.", "{to} stays."},
      {"All {tags} {quote}", ""}
    ]

    for {body, expected} <- rows do
      assert {body, call(view_of(folder, body), "x.y a")} == {body, {:template, expected}}
    end
  end

  test "a call with wrong flags is refused, and help shows the page", %{tmp_dir: folder} do
    view = view_of(folder, "# x.y\n\nWrite to {to} about {topic}.\n")

    assert call(view, "x.y a --to bob") ==
             {:error,
              ~s(--to must be an e-mail address, got "bob". Write for example: ) <>
                "--to bob@example.com"}

    assert {:error, "--topic is required and missing" <> _} = call(view, "x.y --to a@b.de")
    assert {:ok, {"x.y", help}} = Help.find(view, "x.y")
    assert help =~ "Write to {to} about {topic}."
    assert {:help, help} = call(view, "x.y --help")
    assert help =~ "Write to {to} about {topic}."
  end

  test "only declared flags of commands are placeholders", %{tmp_dir: folder} do
    body = "## Flags\n\n--to  Whom (text)\n\n## Behavior\n\nWrite to {to}, {name}.\n"
    view = view_of(folder, body, "")
    assert {:template, text} = call(view, "x.y --to Bob")
    assert text =~ "Write to Bob, {name}."
    # The page uses a flag, so flags are checked.
    assert {:error, "unknown flag --cc" <> _} = call(view, "x.y --cc Bob")

    loose = "## Flags\n\n--to  Whom (text)\n\n## Behavior\n\nWrite to {name}.\n"
    assert {:template, _} = call(view_of(folder, loose, ""), "x.y --cc Bob")
    bare = "Write to {to} on {today}."
    assert call(view_of(folder, bare, ""), "x.y --to Bob") == {:template, bare}
  end

  test "the text of a page has a limit", %{tmp_dir: folder} do
    view = view_of(folder, String.duplicate("{topic} ", 100))
    topic = String.duplicate("a", 200_000)

    assert call(view, "x.y " <> JSON.encode(%{topic: topic})) ==
             {:error,
              "`x.y` was not run: with its flags the page would have more than 16 MiB; " <>
                "write a shorter --topic"}
  end
end
