defmodule Skillbook.FrontmatterTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Diagnostic, Frontmatter, FrontmatterError}

  doctest Frontmatter
  doctest FrontmatterError
  doctest Skillbook.Diagnostic

  defp block(yaml), do: "---\n#{yaml}\n---\nbody"

  defp data(yaml), do: Frontmatter.parse!(block(yaml)).data

  defp diagnostics(yaml), do: yaml |> block() |> Frontmatter.parse!() |> Map.fetch!(:diagnostics)

  describe "parse/1" do
    test "types scalars as YAML's core schema does" do
      for {yaml, value} <- [
            {"", nil},
            {"~", nil},
            {"null", nil},
            {"true", true},
            {"false", false},
            {"yes", "yes"},
            {"12", 12},
            {"-12", -12},
            {"0x1f", 31},
            {"0o17", 15},
            {"007", "007"},
            {"9223372036854775807", 9_223_372_036_854_775_807},
            {"9223372036854775808", 9.223372036854775808e18},
            {"1.5", 1.5},
            {"1e3", 1000.0},
            {".inf", ".inf"},
            {".nan", ".nan"},
            {"1.2.3", "1.2.3"},
            {"2026-02-27", "2026-02-27"},
            {"\"12\"", "12"},
            {"'null'", "null"},
            {"[b, 1]", ["b", 1]},
            {"{b: {c: []}}", %{"b" => %{"c" => []}}},
            {"|\n  b\n  ---\n  c", "b\n---\nc\n"}
          ] do
        assert %{"a" => ^value} = data("a: #{yaml}"), yaml
      end
    end

    test "accepts all line ends, byte order marks and fences" do
      for {text, data, body} <- [
            {"---\r\na: 1\r\n---\r\nb\r\n", %{"a" => 1}, "b\r\n"},
            {"\uFEFF---\na: 1\n---\nb", %{"a" => 1}, "b"},
            {"--- \na: 1\n---\t\nb", %{"a" => 1}, "b"},
            {"---\na: 1\n---", %{"a" => 1}, ""},
            {"---\n---\nb", %{}, "b"},
            {"---\na: b --- c\n---\n---\n", %{"a" => "b --- c"}, "---\n"}
          ] do
        assert {:ok, %{data: ^data, body: ^body, present: true, diagnostics: []}} =
                 Frontmatter.parse(text)
      end
    end

    test "reads text without a block as body" do
      for text <- ["", "b", "\n---\na: 1\n---\n", "----\n", " ---\n"] do
        assert Frontmatter.parse(text) ==
                 {:ok, %{data: %{}, body: text, present: false, diagnostics: []}}
      end
    end

    test "repairs obvious mistakes and reports them" do
      for {yaml, value, line} <- [
            {"a: Use: it", "Use: it", ~s(a: "Use: it")},
            {"a: , b", ", b", ~s(a: ", b")},
            {"a: @b", "@b", ~s(a: "@b")},
            {"a: [b] [c]", "[b] [c]", ~s(a: "[b] [c]")},
            {"a: b\u0008c", "bc", "a: bc"},
            {"a: \"b", "b", ~s(a: "b")},
            {"a: b:", "b:", ~s(a: "b:")}
          ] do
        assert {:ok, %{data: %{"a" => ^value}, body: "body", diagnostics: [diagnostic]}} =
                 Frontmatter.parse(block(yaml))

        assert %Diagnostic{code: :frontmatter_repaired, severity: :warning, path: nil, line: 2} =
                 diagnostic

        assert String.ends_with?(diagnostic.message, "; read as: " <> line), diagnostic.message
        assert diagnostic.hint == "write the line like this"
      end
    end

    test "reads `. b` as text without repair" do
      assert {%{"a" => ". b"}, []} = {data("a: . b"), diagnostics("a: . b")}
    end

    test "reports several repaired lines, duplicates and tags" do
      assert ["2:4 frontmatter_repaired", "4:4 frontmatter_tag", "5:1 duplicate_key"] =
               for(
                 d <- diagnostics("a: b: c\nd: e\nf: !g h\nd: i"),
                 do: "#{d.line}:#{d.column} #{d.code}"
               )
    end

    test "returns the same for short and long documents" do
      head = "---\nname: a\n---\n"
      body = String.duplicate("é", 100_000)

      assert {:ok, %{data: %{"name" => "a"}, body: ^body}} = Frontmatter.parse(head <> body)

      assert {:error, %{kind: :encoding, offset: 200_016}} =
               Frontmatter.parse(head <> body <> "\xFF")

      assert {:error, %{kind: :too_large}} =
               Frontmatter.parse("---\n" <> String.duplicate("a: b\n", 300_000))
    end

    test "accepts binaries only" do
      for other <- [nil, ~c"text", :text, 1, <<1::3>>] do
        assert_raise FunctionClauseError, fn -> Frontmatter.parse(other) end
      end
    end

    test "rejects nesting beyond the limit" do
      nested = fn depth ->
        "a: " <> String.duplicate("[", depth) <> String.duplicate("]", depth)
      end

      assert %{"a" => [_]} = data(nested.(63))
      assert {:error, %{kind: :too_deep}} = Frontmatter.parse(block(nested.(64)))
      assert {:error, %{kind: :too_deep}} = Frontmatter.parse(block(nested.(200_000)))
    end
  end

  describe "errors" do
    test "show the line with a caret" do
      for {text, kind, message} <- [
            {"---\nname: a\n", :unclosed,
             """
             frontmatter: expected a closing `---` for the frontmatter opened here, \
             got the end of the text
               1 | ---
                 | ^
             hint: add a line that is only `---` after the last field\
             """},
            {"---\r\nname:\ta: b\r\n  c: d\r\n---\r\n", :invalid,
             """
             frontmatter: an unquoted value may not contain a colon followed by a space
               2 | name: a: b
                 |        ^
             hint: put the value in quotes\
             """},
            {"---\njust text\n---\n", :not_mapping,
             """
             frontmatter: expected `key: value` lines, got a single value or a list
               2 | just text
                 | ^
             hint: write `key: value` lines\
             """},
            {"---\nname: a\ntags: [é, b]]\n---\n", :invalid,
             """
             frontmatter: expected a line `key: value`
               3 | tags: [é, b]]
                 |             ^
             hint: check this line's indentation, and the quotes in the line before it\
             """},
            {"abc\n\xFFdef", :encoding,
             """
             frontmatter: expected UTF-8, got the byte 0xFF at offset 4
               at line 2
             hint: save the file as UTF-8\
             """}
          ] do
        assert {:error, %FrontmatterError{kind: ^kind} = error} = Frontmatter.parse(text)
        assert Exception.message(error) == message
      end
    end

    test "show a part of a long line" do
      long = String.duplicate("x", 500)
      {:error, error} = Frontmatter.parse(block("? [#{long}]\n: #{long}: #{long}"))
      [_, line, mark, _] = error |> Exception.message() |> String.split("\n")

      assert String.length(line) < 130
      assert String.length(mark) <= String.length(line)
      assert error.source in ["? [#{long}]", ": #{long}: #{long}"]
    end

    test "are raised by parse!/1" do
      assert_raise FrontmatterError, ~r/never closed|closing `---`/, fn ->
        Frontmatter.parse!("---\n")
      end
    end
  end

  describe "write/2" do
    test "writes documents that read the same" do
      for data <- [
            %{},
            %{"name" => "a"},
            %{
              "a" => nil,
              "b" => true,
              "c" => -1,
              "d" => 1.5,
              "e" => [],
              "f" => %{},
              "g" => [%{"h" => ["i"]}]
            },
            %{
              "text" => "a\n---\nb\n",
              "blanks" => "  a  ",
              "empty" => "",
              "emoji" => "😀",
              "control" => "a\0\e\r\n"
            },
            %{
              "null" => "null",
              "1" => "1",
              "yes" => "true",
              "a: b" => "c: d",
              "" => "#",
              "k\nk" => "- x"
            },
            %{"inf" => ".inf", "date" => "2026-02-27", "breaks" => "a\u0085b\u2028c\u2029d\uFEFF"}
          ],
          body <- ["", "body\n", "---\na: 1\n---\n", "\n\n"] do
        document = Frontmatter.write(data, body)

        assert {:ok, %{data: ^data, body: ^body, present: true, diagnostics: []}} =
                 Frontmatter.parse(document)
      end
    end

    test "keeps the order of a list and sorts a map" do
      assert Frontmatter.write([{"b", 1}, {"a", %{"d" => 1, "c" => 2}}], "") ==
               "---\nb: 1\na:\n  c: 2\n  d: 1\n---\n"

      assert Frontmatter.write(Map.new(1..40, &{"k#{&1 + 10}", &1}), "") ==
               "---\n" <> Enum.map_join(1..40, &"k#{&1 + 10}: #{&1}\n") <> "---\n"
    end

    test "rejects other terms" do
      deep = Enum.reduce(1..64, "x", fn _, inner -> [inner] end)

      for {data, shown} <- [
            {%{"a" => :b}, ":b"},
            {[a: "b"], ":a"},
            {%{"a" => {1}}, "{1}"},
            {%{"a" => 9_223_372_036_854_775_808}, "9223372036854775808"},
            {%{"a" => "\xFF"}, "<<255>>"},
            {%{"a" => %{1 => 2}}, "1"},
            {["a"], "\"a\""},
            {%{"a" => ["b" | "c"]}, "[\"b\" | \"c\"]"},
            {%{"a" => deep}, "[\"x\"]"}
          ] do
        assert_raise ArgumentError, ~r/up to 64 deep, got: #{Regex.escape(shown)}$/, fn ->
          Frontmatter.write(data, "")
        end
      end

      assert_raise ArgumentError, fn -> Frontmatter.write(%{}, "\xFF") end
      assert_raise FunctionClauseError, fn -> apply(Frontmatter, :write, [~D[2026-01-01], ""]) end
      assert_raise FunctionClauseError, fn -> apply(Frontmatter, :write, [%{}, nil]) end
    end
  end
end
