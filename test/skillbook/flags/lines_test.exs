defmodule Skillbook.Flags.LinesTest do
  # The flags of a page as fields of a form: what is one, what is left to the text, and that a
  # change reaches nothing else.
  use ExUnit.Case, async: true

  alias Skillbook.{Declaration, Frontmatter}
  alias Skillbook.Flags.Lines
  alias Skillbook.Support.Scaffold

  doctest Lines

  @flag %{
    name: "to",
    type: "text",
    values: "",
    min: "",
    max: "",
    required: false,
    repeatable: false,
    default: "",
    description: ""
  }

  defp page(flags), do: "---\nname: mail.send\n#{flags}effects: write\n---\nSend it.\n"

  defp flags(text) do
    {:ok, items} = Lines.read(text)
    items
  end

  describe "read/1" do
    # The lines of the flag `to`, and the fields that differ from those of a text.
    for {lines, fields} <- [
          {"to: text", %{}},
          {"\"to\": text", %{}},
          {"to : text", %{}},
          {"to: {required: true}", %{required: true}},
          {"to: {required: false, repeatable: true}", %{repeatable: true}},
          {"to: {type: email, description: Whom}", %{type: "email", description: "Whom"}},
          {"to: {values: [a, 'b c']}", %{type: "one_of", values: "a, b c"}},
          {"to: {type: one_of, values: [1, true]}", %{type: "one_of", values: "1, true"}},
          {"to: {type: integer, min: -1, max: 9, default: 3}",
           %{type: "integer", min: "-1", max: "9", default: "3"}},
          {"to: {type: number, default: 0.5}", %{type: "number", default: "0.5"}},
          {"to: {type: boolean, default: true}", %{type: "boolean", default: "true"}},
          {"to:\n    type: email\n    required: true", %{type: "email", required: true}},
          {"to:\n    values:\n      - a\n      - b", %{type: "one_of", values: "a, b"}},
          {"to:\n\n    type: date", %{type: "date"}},
          {"to: {\n    type: url,\n    default: 'https://a.b/#c'}",
           %{type: "url", default: "https://a.b/#c"}},
          {"to: {description: \"#1, *all* & \\\"more\\\"! it's > |\"}",
           %{description: "#1, *all* & \"more\"! it's > |"}},
          {"to: {description: 'it''s'}", %{description: "it's"}},
          {"to:\n    description: Whom,\n      or what", %{description: "Whom, or what"}}
        ] do
      test "the fields of #{inspect(lines)}" do
        page = page("flags:\n  #{unquote(lines)}\n")
        flag = Map.merge(@flag, unquote(Macro.escape(fields)))
        assert flags(page) == [{:flag, flag, Scaffold.flag_line(flag)}]
      end
    end

    for {lines, reason} <- [
          {"to: text # whom", "it has a comment"},
          {"to:\n    # whom\n    type: text", "it has a comment"},
          {"to:\n    type: text\n    # required: true", "it has a comment"},
          {"to: {type: text, # whom\n    required: true}", "it has a comment"},
          {"to: {description: the 'a # b' # c\n    }", "it has a comment"},
          {"to: {description: \"\\x23\", # c\n    required: true}", :lost},
          {"to: &to text", "it has an anchor, an alias or a tag"},
          {"to: {description: !x Whom}", "it has an anchor, an alias or a tag"},
          {"to: {type: text, pattern: a+}", "it has `pattern`, for which the form has no field"},
          {"to: {aliases: [a], line: true}",
           "it has `aliases`, `line`, for which the form has no field"},
          {"to: {schema: {type: array}}", "it has `schema`, for which the form has no field"},
          {"to: string", "it has a type that the form lacks"},
          {"to: {type: json}", "it has a type that the form lacks"},
          {"to:", :lost},
          {"to: 5", :lost},
          {"to: [text]", :lost},
          {"to: {type: text, default: ''}", :lost},
          {"to: {type: text, default: [a, b], repeatable: true}", :lost},
          {"to: {values: ['a, b']}", :lost},
          {"to: {values: [' a']}", :lost},
          {"to: {values: [a, a]}", :lost},
          {"to: {type: text, values: [a]}", :lost},
          {"to: {type: text, min: 1}", :lost},
          {"to: {required: 'yes'}", :lost},
          {"to: {type: integer, default: 0x1f}", :lost},
          {"to: {description: \"a\\tb\"}", :lost},
          {"to:\n    description: |\n      Whom", :lost},
          {"to:\n    description: >-\n      Whom", :lost},
          {"to: {description: #{String.duplicate("x", 1001)}}", :lost},
          {"to: {description: Note: short}", :lost},
          {"to:\n    ? type\n    : text", :lost}
        ] do
      test "why the text alone has #{String.slice(lines, 0, 60)}" do
        page = page("flags:\n  #{unquote(lines)}\n  n: integer\n")
        lost = "it is written in a form that a new line would lose"
        reason = if unquote(reason) == :lost, do: lost, else: unquote(reason)
        assert [{:text, "to", ^reason}, {:flag, %{name: "n"}, _line}] = flags(page)
      end
    end

    @other "its flags are written in another form of YAML than one below the other"
    for {flags, reason} <- [
          {"", nil},
          {"flags:\n", nil},
          {"flags: {}\n", nil},
          {"flags: { }  # none yet\n", nil},
          {"flags: # below\n\n  # a: text\n", nil},
          {"flags: {to: text}\n", @other},
          {"flags: &a\n  to: text\n", @other},
          {"flags: {\n  to: text\n  }\n", @other},
          {"\"flags\":\n  to: text\n", @other},
          {"flags:\n\tto: text\n", @other},
          {"flags:\n  to: text\n  to: email\n", @other},
          {"flags:\n  to: text\nflags:\n  to: text\n", @other},
          {"flags:\n  - to\n", @other},
          {"flags: text\n", @other},
          {"flags: ~\n", @other},
          {"flags:\n  &a to: text\n", @other},
          {"flags:\n  ? to\n  : text\n", @other},
          {"base: &b {type: text}\nflags:\n  <<: {to: *b}\n", @other},
          {"flags:\r\n  to: text\r\n", "its lines do not all end alike"},
          {"flags: {to: text\n", "its frontmatter cannot be read"},
          {"flags:\n" <> Enum.map_join(1..51, &"  f#{&1}: text\n"), "it has more than 50 flags"},
          {"input_schema: {type: object, properties: {to: {type: string}}}\n",
           "its flags are declared elsewhere in the page, not in the field `flags`"},
          {"flag:\n  to: text\n",
           "its flags are declared elsewhere in the page, not in the field `flags`"}
        ] do
      test "the whole block #{inspect(String.slice(flags, 0, 60))}" do
        expected = if unquote(reason), do: {:error, unquote(reason)}, else: {:ok, []}
        assert Lines.read(page(unquote(flags))) == expected
      end
    end

    test "pages without a field" do
      assert {:error, "its flags are declared elsewhere" <> _} =
               Lines.read(page("") <> "\n## Flags\n\n--to  Whom\n")

      for text <- ["", "# Hello\n", "---\nflags:\n", "---\nname: \xFF\n---\n"],
          do:
            assert({text, Lines.read(text)} == {text, {:error, "its frontmatter cannot be read"}})
    end
  end

  describe "put/2" do
    @before "flags:\n  # Whom\n  to: {type: email}  \n\n" <>
              "  n:\n    type: integer\n    min: 1\n  # End\n\n"
    @to "to: {type: email}"
    @n "n: {type: integer, min: 1}"

    # The changes of a page, and its block then.
    for {title, before, changes, expected} <- [
          {"nothing", @before, [{@to, %{name: "to", type: "email"}}, {nil, nil}], @before},
          {"a type", @before, [{@to, %{name: "to", type: "url"}}],
           String.replace(@before, "{type: email}  ", "{type: url}")},
          {"a name", @before, [{@n, %{name: "count", type: "integer", min: "1"}}],
           String.replace(
             @before,
             "n:\n    type: integer\n    min: 1",
             "count: {type: integer, min: 1}"
           )},
          {"two names", "flags:\n  a: text\n  b: url\n",
           [
             {"a: {type: text}", %{name: "b", type: "text"}},
             {"b: {type: url}", %{name: "a", type: "url"}}
           ], "flags:\n  b: {type: text}\n  a: {type: url}\n"},
          {"a flag less", @before, [{@to, nil}],
           String.replace(@before, "  to: {type: email}  \n", "")},
          {"no flag left", "flags: # all\n  to: {type: email}\n  # End\n", [{@to, nil}],
           "flags: {} # all\n  # End\n"},
          {"a flag more", @before, [{nil, %{name: "cc", type: "email", repeatable: true}}],
           String.replace(
             @before,
             "min: 1\n",
             "min: 1\n  cc: {type: email, repeatable: true}\n"
           )},
          {"the first one", "flags: {} # none\n", [{nil, %{name: "cc", type: "email"}}],
           "flags: # none\n  cc: {type: email}\n"},
          {"a field", "", [{nil, %{name: "cc", type: "email"}}], :last},
          {"another depth", "flags:\n     to: {type: email}\n",
           [{nil, %{name: "cc", type: "email"}}],
           "flags:\n     to: {type: email}\n     cc: {type: email}\n"},
          {"texts that YAML would read as others", "flags: {}\n",
           [{nil, %{name: "a", type: "text", default: "yes", description: "- x: #1 \"y\""}}],
           "flags:\n  a: {type: text, default: \"yes\", description: \"- x: #1 \\\"y\\\"\"}\n"}
        ] do
      test title do
        before = page(unquote(before))

        expected =
          case unquote(expected) do
            :last -> String.replace(before, "write\n", "write\nflags:\n  cc: {type: email}\n")
            block -> page(block)
          end

        changes = unquote(Macro.escape(changes))
        assert Lines.put(before, changes) == {:ok, expected}

        # Line ends are those of the page.
        crlf = String.replace("\uFEFF" <> before, "\n", "\r\n")
        assert {:ok, text} = Lines.put(crlf, changes)
        assert text == String.replace("\uFEFF" <> expected, "\n", "\r\n")
      end
    end

    for {changes, error} <- [
          {[{@to, %{name: "To", type: "text"}}],
           {{0, :name},
            "expected a flag of lowercase letters, digits and hyphens, such as due-before, " <>
              "got: To"}},
          {[{@to, nil}, {nil, %{name: "n", type: "text"}}],
           {{1, :name}, "expected another name, got --n again"}},
          {[{@to, %{name: "to", type: "one_of"}}],
           {{0, :values}, "expected the values of --to, such as: open, closed"}},
          {[{@n, %{name: "n", type: "integer", min: "1.5"}}],
           {{0, :min}, "expected a whole number as the min of --n, got: 1.5"}},
          {[{@n, %{name: "n", type: "number", max: "many"}}],
           {{0, :max}, "expected a number as the max of --n, got: many"}},
          {[{nil, %{name: "x", type: "boolean", default: "on"}}],
           {{0, :default}, "expected true or false as the default of --x, got: on"}},
          {[{@to, %{name: "to", type: "text", required: true, default: "a"}}],
           {{0, :default}, "expected no default for --to, which every call needs"}},
          {[{"to: {type: text}", %{name: "to", type: "url"}}],
           {{0, :name}, "expected --to to be in the text as it was, got another text"}},
          {[{@to, nil}, {@to, nil}],
           {{1, :name}, "expected --to to be in the text as it was, got another text"}},
          {for(n <- 1..49, do: {nil, %{name: "f#{n}", type: "text"}}),
           {nil, "expected at most 50 flags, got 51"}}
        ] do
      test "an error: #{elem(error, 1)} #{length(changes)}" do
        assert Lines.put(page(@before), unquote(Macro.escape(changes))) ==
                 {:error, unquote(Macro.escape(error))}
      end
    end

    test "a change that would reach other fields is refused" do
      added = [{nil, %{name: "to", type: "text"}}]

      # Its repair depends on the line above.
      broken = "flags:\n  a: email\n  \"b\": {\"c\":\"x\",\"re\"d\":true}\n"
      reason = "expected flags that a form can change, but the change would reach other fields"
      assert Lines.put(page(broken), [{"a: {type: email}", nil}]) == {:error, {nil, reason}}

      for {page, reason} <- [
            {"---\n{name: x.y}\n---\n", "the change would reach other fields"},
            {"---\nname: x.y\nlast: [a,\n b\n---\n", "its frontmatter cannot be read"},
            {"Text.\n", "its frontmatter cannot be read"}
          ] do
        reason = "expected flags that a form can change, but " <> reason
        assert {page, Lines.put(page, added)} == {page, {:error, {nil, reason}}}
      end

      # Another field has the value of the flag.
      page = page("flags:\n  to: {type: email}\n  cc: &cc {type: email}\nmore: *cc\n")
      assert [{:flag, %{name: "to"}, _line}, {:text, "cc", _reason}] = flags(page)
    end
  end

  describe "any page" do
    setup do
      :rand.seed(:exsss, {20, 26, 11})
      :ok
    end

    test "a change gives the changed flag, and all others as they were" do
      changed =
        for _ <- 1..200, page = random_page(), {:ok, items} <- [Lines.read(page)] do
          forms = for {:flag, flag, line} <- items, do: {line, flag}
          assert Lines.put(page, forms) == {:ok, page}
          if forms != [], do: assert_changed(page, Enum.random(forms))
          assert_added(page, length(items))
          length(forms)
        end

      # Pages of all kinds were there.
      assert length(changed) > 120 and Enum.count(changed, &(&1 > 2)) > 20
    end

    test "odd YAML is refused or unharmed" do
      results =
        for _ <- 1..500, page = damaged(random_page()), {:ok, items} <- [Lines.read(page)] do
          for {:flag, flag, line} <- items, change <- [nil, random_flag(flag.name)] do
            case Lines.put(page, [{line, change}]) do
              {:ok, text} ->
                assert_others(page, text, flag.name)
                assert comments(text) == comments(page)
                :ok

              {:error, {_place, reason}} ->
                assert is_binary(reason)
                :error
            end
          end
        end

      assert Enum.count(List.flatten(results), &(&1 == :ok)) > 200
    end
  end

  defp assert_changed(page, {line, %{name: name}}) do
    new = random_flag(Enum.random([name, "renamed"]))
    assert {:ok, text} = Lines.put(page, [{line, new}])
    assert_others(page, text, name, new.name)

    # The declaration is that of a new page with this flag alone.
    alone = Declaration.read("---\nflags:\n  #{Scaffold.flag_line(new)}\n---\n").flags
    assert Enum.filter(declared(text), &(&1.name == new.name)) == alone

    assert Enum.map(declared(page), &if(&1.name == name, do: new.name, else: &1.name)) ==
             Enum.map(declared(text), & &1.name)

    assert {:ok, text} = Lines.put(page, [{line, nil}])
    assert_others(page, text, name)
    refute name in Enum.map(declared(text), & &1.name)
  end

  defp assert_added(page, count) do
    new = random_flag("added")
    assert {:ok, text} = Lines.put(page, [{nil, new}])
    assert_others(page, text, "added")
    assert %{name: "added"} = List.last(declared(text))
    assert length(declared(text)) == count + 1
  end

  defp declared(text), do: Declaration.read(text).flags

  # All fields but the flag are as before, and the lines of others have the same bytes.
  defp assert_others(page, text, name, new_name \\ nil) do
    {:ok, before} = Frontmatter.parse(page)
    {:ok, now} = Frontmatter.parse(text)
    assert now.body === before.body
    assert Map.delete(now.data, "flags") === Map.delete(before.data, "flags")

    assert Map.drop(now.data["flags"] || %{}, [name, new_name]) ===
             Map.drop(before.data["flags"] || %{}, [name, new_name])

    # One stretch of lines is another one.
    {old, new} = {String.split(page, "\n"), String.split(text, "\n")}
    same = fn one, other -> one |> Enum.zip(other) |> Enum.take_while(fn {a, b} -> a == b end) end
    top = length(same.(old, new))
    bottom = length(same.(Enum.reverse(old), Enum.reverse(new)))
    stretch = Enum.slice(new, top, max(length(new) - top - bottom, 0))
    assert length(stretch) <= 2, "#{inspect(stretch)} in #{text}"
  end

  # Their number: marks that are in no value.
  defp comments(text) do
    {:ok, %{data: data, body: body}} = Frontmatter.parse(text)
    head = binary_part(text, 0, byte_size(text) - byte_size(body))
    count(head) - count(inspect(data, limit: :infinity, printable_limit: :infinity))
  end

  defp count(text), do: length(Regex.scan(~r/# [a-zA-Z]/, text))

  # Pages

  @words [
    "Whom",
    "a, b",
    "it's #1",
    "\"quoted\"",
    "x: y",
    "é日本",
    "- dash",
    "{a}",
    "<b>&amp;",
    "yes"
  ]

  defp random_page do
    {around, eol, indent} =
      {Enum.random(["", "# First\n", "description: >-\n  Long: text\n  # no comment\n"]),
       Enum.random(["\n", "\n", "\r\n"]), Enum.random(["  ", " ", "    "])}

    flags = for n <- 1..:rand.uniform(6)//1, do: lines("f#{n}", indent)

    between =
      Enum.map_join(flags, fn flag ->
        Enum.random(["", "", "\n", "#{indent}# between\n", "# at the left\n"]) <> flag
      end)

    first = Enum.random(["flags:", "flags :", "flags: # all"])
    last = Enum.random(["", "\n# Last\n", "tags: [a, b]\n", "more:\n  flags: no\n"])
    page = "---\n#{around}name: x.y\n#{first}\n#{between}#{last}---\nText.\n\n--f1  Text\n"
    Enum.random(["", "\uFEFF"]) <> String.replace(page, "\n", eol)
  end

  defp lines(name, indent) do
    flag = random_flag(name)
    line = Scaffold.flag_line(flag)
    {:ok, %{data: data}} = Frontmatter.parse("---\n#{line}\n---\n")
    deep = indent <> indent

    case :rand.uniform(8) do
      1 -> "#{indent}#{name}: #{Enum.random(~w(text email date))}\n"
      2 -> "#{indent}\"#{name}\": #{inspect_yaml(data[name])}\n"
      3 -> indent <> line <> Enum.random(["", " # why", "   "]) <> "\n"
      4 -> "#{indent}#{name}: {type: text, pattern: 'a+'}\n"
      5 -> "#{indent}#{name}:\n#{deep}description: |\n#{deep} Two\n#{deep} # lines\n"
      6 -> "#{indent}#{name}: &#{name} #{inspect_yaml(data[name])}\n"
      _block -> "#{indent}#{name}:\n" <> block(data[name], deep)
    end
  end

  defp block(spec, deep) do
    for {key, value} <- Enum.shuffle(spec), into: "" do
      Enum.random(["", "", "", "\n", "#{deep}# inside\n"]) <>
        "#{deep}#{key}: #{inspect_yaml(value)}\n"
    end
  end

  # JSON is YAML.
  defp inspect_yaml(value), do: Skillbook.Support.JSON.encode(value)

  defp random_flag(name) do
    type = Enum.random(Scaffold.types())
    required = :rand.uniform(3) == 1

    Map.merge(@flag, %{
      name: name,
      type: type,
      values: if(type == "one_of", do: "low, high", else: ""),
      min: if(type == "integer", do: Enum.random(["", "0", "-3"]), else: ""),
      required: required,
      repeatable: type != "boolean" and :rand.uniform(4) == 1,
      default: if(required, do: "", else: default(type)),
      description: Enum.random(["" | @words])
    })
  end

  defp default("text"), do: Enum.random(["", "#1", "no", "a: b"])
  defp default("integer"), do: Enum.random(["", "7"])
  defp default("one_of"), do: Enum.random(["", "low"])
  defp default("boolean"), do: Enum.random(["", "true"])
  defp default(_type), do: ""

  # Parts of YAML at any place of the frontmatter.
  @parts ["#", " # x", "&a ", "*a", "!t ", "'", "\"", "{", "}", "[", "]", ":", ": ", "- ", ","] ++
           ["\n", "\t", "|", ">", "? ", "\n  # y\n", "  ", "\nflags:\n", "---\n", "\\", "<<: "]

  defp damaged(page) do
    at = :rand.uniform(div(String.length(page) * 3, 4))
    {before, behind} = String.split_at(page, at)
    before <> Enum.random(@parts) <> String.slice(behind, Enum.random([0, 0, 1])..-1//1)
  end
end
