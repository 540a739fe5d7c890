defmodule Skillbook.Flags.FrontmatterTest do
  # Flags that the frontmatter declares: the same declaration as from a Flags section, and no run
  # with a mistake in it.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Declaration, Entry, FlagError, Flags, View}

  @moduletag :tmp_dir

  defp read(flags, body \\ ""), do: Declaration.read("---\nflags:\n#{flags}\n---\n#{body}")

  test "both ways of declaring give the same declaration" do
    rows = [
      {"limit: {type: integer, min: 1, max: 100, default: 20}",
       "--limit  From 1 to 100 (default: 20)"},
      {"by: {values: [name, date], default: name}", "--by  One of: name, date (default: name)"},
      {"tags: {values: [a, b], repeatable: true}", "--tags  One or more of: a, b"},
      {"x: {type: number, min: 0, max: 5}", "--x  How much (number, from 0 to 5)"},
      {"due: {type: date, words: true}", "--due  YYYY-MM-DD, today or tomorrow"},
      {"all: boolean", "--all  (a switch)"},
      {"title: {max_length: 20, line: true, required: true}",
       "--title  One line of at most 20 characters (required)"},
      {"note: {empty: true}", "--note  Any (text); it may be empty"},
      {"id: {positional: true}", "--id  Which (text, positional)"},
      {"title: {positional: all}",
       "--title  A title (text). Its words may also stand without the flag's name"}
    ]

    for {yaml, line} <- rows do
      given = read("  " <> yaml)
      listed = Declaration.read("## Flags\n\n#{line}\n")
      assert {yaml, given.given, given.error} == {yaml, true, nil}

      assert {yaml, Enum.map(given.flags, &%{&1 | description: ""})} ==
               {yaml, Enum.map(listed.flags, &%{&1 | description: ""})}
    end
  end

  test "the Flags section describes the flags of the frontmatter and declares nothing" do
    body = "## Flags\n\n--limit  How many (required, text)\n--more  Other (text)\n"
    declaration = read("  limit: {type: integer, default: 5}", body)

    assert [%{name: "limit", type: :integer, required: false, default: ["5"]} = flag] =
             declaration.flags

    assert flag.description == "How many (required, text)"

    assert {:error, %FlagError{kind: :unknown, flag: "more"}} =
             Flags.cast_declared(%{"more" => "x"}, declaration)

    empty = Declaration.read("---\nflags: {}\n---\n")
    assert %Declaration{flags: [], given: true} = empty
    assert {:error, error} = Flags.cast_declared(%{"x" => "1"}, empty)
    assert Exception.message(error) == "unknown flag --x. This command takes no flags"
  end

  test "a schedule calls a command without flags" do
    entry = %Entry{name: "x.y", description: "", kind: :command, path: "", source: "", body: "X"}
    required = &(%{entry | data: &1} |> Declaration.of() |> Declaration.required())
    assert required.(%{}) == nil
    assert required.(%{"flags" => %{"to" => "email", "n" => %{"default" => 5}}}) == nil
    assert required.(%{"flags" => %{"to" => %{"required" => true}}}) == "--to"

    assert required.(%{"flags" => ["to"]}) ==
             "correct flags (expected a mapping of names for `flags`, got a list)"
  end

  test "a mistake in the declaration closes the command", %{tmp_dir: folder} do
    handler = [handler: "Skillbook.TestHandlers.Text"]

    rows = [
      {"x.key", handler, "flags: {limit: {type: integer, mx: 5}}",
       "expected a key of a flag for --limit, got `mx`"},
      {"x.name", handler, "flag: {limit: integer}", "expected `flags`, got `flag`"},
      {"x.page", [], "flags: {limit: {pattern: '(?=a)'}}",
       "expected a plain regular expression as the `pattern` of --limit, got \"(?=a)\": `(?` " <>
         "is not supported at character 1"}
    ]

    for {name, fields, flags, _} <- rows do
      text = String.replace(page(name, fields, "# X\n"), "---\n#", "#{flags}\n---\n#")
      write(folder, %{(String.replace(name, ".", "/") <> ".md") => text})
    end

    view = view(folder)

    for {name, _, _, mistake} <- rows, line <- [name, "#{name} --limit 1", "#{name} {}"] do
      [result] = Skillbook.Reply.Pipeline.commands(view, [line])

      assert {line, result.status, result.content} ==
               {line, :error,
                "it cannot run: its page declares flags with a mistake (#{mistake}). Another " <>
                  "way of writing the command does not help; the page must be corrected"}
    end

    found = for %{code: :flags_invalid} = found <- View.diagnostics(view), do: found.path
    assert found |> Enum.map(&Path.basename/1) |> Enum.sort() == ~w(key.md name.md page.md)
  end

  @handler [handler: "Skillbook.TestHandlers.Call"]

  test "values of each type, from a line and from JSON", %{tmp_dir: folder} do
    flags = """
      n: {type: integer, min: 0}
      rate: {type: number, max: 0.5}
      title: {max_length: 12}
      mode: {values: [open, closed]}
      loud: boolean
      due: date
      at: datetime
      to: {type: email, repeatable: true}
      page: url
      id: {pattern: '[A-Z]{2}-[0-9]+'}
    """

    text = page("x.y", @handler, "# X\n")
    text = String.replace(text, "---\n#", "flags:\n#{flags}---\n#")
    view = folder |> write(%{"x/y.md" => text}) |> view()

    rows = [
      {~s(--n 7), ~s({"n": 7}), {"n", 7}},
      {~s(--n 7.0), ~s({"n": 7.0}), {"n", 7}},
      {~s(--n -1), ~s({"n": -1}),
       {"--n must be a whole number from 0 on, got ", ~s("-1"), "-1",
        ". Write for example: --n 0"}},
      {~s(--n 7.5), ~s({"n": 7.5}),
       {"--n must be a whole number from 0 on, got ", ~s("7.5"), "7.5",
        ". Write for example: --n 0"}},
      {~s(--n NaN), ~s({"n": "NaN"}),
       {"--n must be a whole number from 0 on, got ", ~s("NaN"), ~s("NaN"),
        ". Write for example: --n 0"}},
      {~s(--n 9223372036854775808), ~s({"n": "9223372036854775808"}),
       {"--n must be a whole number from 0 on, got ", ~s("9223372036854775808"),
        ~s("9223372036854775808"), ". Write for example: --n 0"}},
      {~s(--n 1 2), ~s({"n": [1, 2]}),
       {"--n takes one value, got 2: ", ~s("1", "2"), "1, 2", ". Write for example: --n 0"}},
      {~s(--rate 0.25), ~s({"rate": 0.25}), {"rate", 0.25}},
      {~s(--rate 1e400), ~s({"rate": "1e400"}),
       {"--rate must be a number up to 0.5, got ", ~s("1e400"), ~s("1e400"),
        ". Write for example: --rate 0.5"}},
      {~s(--rate Infinity), ~s({"rate": "Infinity"}),
       {"--rate must be a number up to 0.5, got ", ~s("Infinity"), ~s("Infinity"),
        ". Write for example: --rate 0.5"}},
      {~s(--title "a b"), ~s({"title": "a b"}), {"title", "a b"}},
      {nil, ~s({"title": ["a", "b"]}),
       {"--title takes one value, got 2: ", "", ~s("a", "b"),
        ". Write for example: --title \"some text\""}},
      {nil, ~s({"title": {"a": 1}}),
       {"--title must be text of at most 12 characters, not empty, got ", "", "an object",
        ". Write for example: --title \"some text\""}},
      {nil, ~s({"mode": {"a": 1}}),
       {"--mode must be one of open, closed, got ", "", "an object",
        ". Write for example: --mode open"}},
      {nil, ~s({"to": [["a@b.de"], "c@d.de"]}),
       {"--to must be one or more values, each one line, got ", "", ~s("a@b.de", "c@d.de"),
        ". Write for example: --to one two"}},
      {~s(--mode Open), ~s({"mode": "OPEN"}), {"mode", "open"}},
      {~s(--loud), ~s({"loud": true}), {"loud", true}},
      {~s(--loud no), ~s({"loud": false}), {"loud", false}},
      {~s(--due 2026-03-01), ~s({"due": "2026-03-01"}), {"due", ~D[2026-03-01]}},
      {~s(--due today), ~s({"due": "today"}),
       {"--due must be a day as YYYY-MM-DD, got ", ~s("today"), ~s("today"),
        ". Write for example: --due 2026-03-01"}},
      {~s(--at 2026-03-01T10:00:00+02:00), ~s({"at": "2026-03-01T10:00:00+02:00"}),
       {"at", ~U[2026-03-01 08:00:00Z]}},
      {~s(--to a@b.de,c@d.de), ~s({"to": ["a@b.de", "c@d.de"]}), {"to", ["a@b.de", "c@d.de"]}},
      {~s(--page ftp://a.de), ~s({"page": "ftp://a.de"}),
       {"--page must be an address of the web with http or https, got ", ~s("ftp://a.de"),
        ~s("ftp://a.de"), ". Write for example: --page https://example.com/page"}},
      {~s(--id AB-12), ~s({"id": "AB-12"}), {"id", "AB-12"}},
      {~s(--id ab), ~s({"id": "ab"}),
       {"--id must be text in which all of it matches [A-Z]{2}-[0-9]+, got ", ~s("ab"), ~s("ab"),
        ". Write for example: --id AA-0"}}
    ]

    for {line, json, expected} <- rows, {way, text} <- [line: line, json: json], text != nil do
      [result] = Skillbook.Reply.Pipeline.commands(view, ["x.y " <> text], assigns: assigns())

      case expected do
        {name, value} ->
          assert {text, result.status, result.data[name]} == {text, :ok, value}

        {start, in_line, in_json, rest} ->
          got = if way == :line, do: in_line, else: in_json
          assert {text, result.status, result.content} == {text, :error, start <> got <> rest}
      end
    end
  end

  defp assigns,
    do: %{call: fn flags, _context -> {:ok, Skillbook.Result.ok("x", data: flags)} end}
end
