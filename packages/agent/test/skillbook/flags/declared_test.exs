defmodule Skillbook.Flags.DeclaredTest do
  # For any declaration and any flags, a handler gets only values of the declared types, and the
  # same values from text, JSON and tool calls.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.Hidden
  alias Skillbook.{FlagError, Flags, Result, Tools, View}

  @moduletag :tmp_dir

  @now ~U[2026-02-28 12:00:00Z]
  @kinds [
    "One of: in_progress, done (default: done)",
    "Either a or b-c",
    "One or more of: low, high",
    "One or more of: low, high (default: low, high)",
    "How many, from 1 to 9 (default: 3)",
    "How many, from -2 on",
    "How many (integer, repeatable)",
    "How much (number)",
    "How much (number, at most 3, default: 2.5)",
    "When: YYYY-MM-DD",
    "When: YYYY-MM-DD, yesterday, today or tomorrow (default: today)",
    "When: YYYY-MM-DD (repeatable)",
    "At most 5 characters",
    "A title, one line of at most 12 characters (default: none)",
    "What to say (text); it may be empty",
    "One or more texts (text)",
    "One or more words",
    "Only those (a switch)",
    "Whatever <it> is",
    "A word (default: here)"
  ]
  # The same in the frontmatter, with all types and limits.
  @specs [
    "text",
    "{max_length: 5, line: true}",
    "{empty: true, default: ''}",
    "{pattern: '[a-z]+( [a-z]+)?'}",
    "{pattern: '\\d{1,3}', max_length: 2, repeatable: true}",
    "{repeatable: true}",
    "integer",
    "{type: integer, min: -2, max: 9, default: 3}",
    "{type: integer, max: 7, repeatable: true, default: [1, 2]}",
    "number",
    "{type: number, min: -1, max: 2.5, default: 0.5}",
    "{type: number, repeatable: true}",
    "boolean",
    "{type: boolean, default: true}",
    "{values: [in_progress, done, 7], default: done}",
    "{values: [low, high, b c], repeatable: true}",
    "date",
    "{type: date, words: true, default: tomorrow}",
    "{type: date, repeatable: true}",
    "datetime",
    "{type: datetime, default: '2026-03-01T10:00:00.5+01:00'}",
    "{type: email, default: a@b.de}",
    "{type: email, repeatable: true}",
    "{type: url, default: 'https://a.de/b,c?d=e#f'}",
    "{type: url, repeatable: true}",
    "{aliases: [subject, sub-ject2]}",
    "{positional: true}",
    "{positional: all}"
  ]
  @names ~w(to due-day limit mode tags note)
  @values [
            "7",
            "0",
            "-1",
            "10",
            "2.5",
            "1e3",
            "done",
            "In-Progress",
            "B_C",
            "low",
            "HIGH",
            "low,high",
            "[a, b]"
          ] ++
            [
              "2026-03-01",
              "2026-02-30",
              "Tomorrow",
              "soon",
              "true",
              "no",
              "x y",
              "a\nb",
              "",
              "  ",
              "longer text",
              "ü"
            ] ++
            [
              "-1x",
              "null",
              "9" <> String.duplicate("0", 30),
              "\u2028",
              "@me",
              "7.0",
              "7.5",
              "NaN",
              "1e400",
              "-0",
              "9223372036854775807",
              "9223372036854775808",
              "a@b.de",
              "a@b.de,b@c.de",
              "https://a.de/b,c",
              "http://",
              "2026-03-01T10:00:00+01:00",
              "2026-03-01T10:00:00",
              "here's \"it\" \\ $HOME"
            ]

  setup_all do
    # Printed with a failure, so that it can be run again: mix test --seed.
    :rand.seed(:exsss, ExUnit.configuration()[:seed])
    :ok
  end

  defp pick(list), do: Enum.random(list)

  # Values that only JSON has.
  @json [
    nil,
    true,
    false,
    0,
    -3,
    7.0,
    2.5,
    1.0e30,
    9_223_372_036_854_775_808,
    [],
    [[]],
    ["a", "b"],
    ["a", ["b"]],
    [1, 2.0],
    [nil],
    [true, "a"],
    %{},
    %{"a" => 1},
    [%{"a" => 1}],
    ""
  ]

  # A page that declares its flags in its frontmatter.
  defp random_frontmatter(name) do
    flags =
      for flag <- Enum.take_random(@names, :rand.uniform(5)) do
        spec = pick(@specs)
        required? = :rand.uniform(4) == 1 and not (spec =~ "default")

        spec =
          case {required?, spec} do
            {false, _} -> spec
            {true, "{" <> rest} -> "{required: true, " <> rest
            {true, type} -> "{required: true, type: #{type}}"
          end

        "  #{flag}: #{spec}\n"
      end

    # An alias twice would be a mistake.
    flags = if Enum.count(flags, &(&1 =~ "aliases")) > 1, do: ["  to: text\n"], else: flags

    "---\nname: #{name}\ndescription: Example\nhandler: Skillbook.TestHandlers.Call\n" <>
      "flags:\n#{flags}---\n# #{name}\n"
  end

  # A page's Usage and Flags.
  defp random_page(name) do
    flags = @names |> Enum.take_random(:rand.uniform(5)) |> Enum.map(&{&1, pick(@kinds)})

    shown =
      for {flag, kind} <- flags do
        value =
          if kind =~ "switch" or :rand.uniform(4) == 1,
            do: "",
            else: pick([" <x>", " <n>", " <x>..."])

        "[--#{flag}#{value}]"
      end

    lines =
      for {flag, kind} <- flags do
        more = pick(["", "", " (required)", "; it may also stand without the flag's name"])
        "--#{flag}  #{kind}#{more}"
      end

    usage = pick(["## Usage\n\n#{Enum.join([name | shown], " ")}\n\n", ""])
    "#{usage}## Flags\n\n#{Enum.join(lines, "\n")}\n"
  end

  # Flags with the words behind each, and the words before them. Most of them are right.
  defp random_call(declaration) do
    given =
      for flag <- declaration.flags,
          flag.required or :rand.uniform(2) == 1,
          :rand.uniform(8) > 1,
          into: %{},
          do: {pick(spellings(flag.name)), random_words(flag)}

    others = pick([[], [], [], [], [], [{"other", ["x"]}]])

    {Enum.into(others, given),
     pick([[], [], [], [], [pick(@values)], [pick(@values), pick(@values)]])}
  end

  defp spellings(name), do: [name, name, name, String.replace(name, "-", ""), String.upcase(name)]

  defp random_words(flag) do
    if :rand.uniform(3) > 1,
      do: for(_ <- 1..if(flag.several, do: 2, else: 1), do: pick(fitting(flag))),
      else: for(_ <- 1..pick([0, 1, 1, 2, 3])//1, do: pick(@values))
  end

  defp fitting(%{type: :one_of, values: values}), do: values ++ Enum.map(values, &String.upcase/1)

  defp fitting(%{type: :integer} = flag),
    do: Enum.map([flag.min || 4, flag.max || 5], &to_string/1)

  defp fitting(%{type: :number}), do: ["2.5", "-1", "3"]
  defp fitting(%{type: :date, values: words}), do: ["2026-03-01" | words]
  defp fitting(%{type: :datetime}), do: ["2026-03-01T10:00:00Z", "2026-03-01T10:00:00.25-05:30"]
  defp fitting(%{type: :email}), do: ["a@b.de", "c.d+e@f.example"]
  defp fitting(%{type: :url}), do: ["https://a.de", "http://b.de:80/c,d?e=f#g"]
  defp fitting(%{type: :switch}), do: ["true", "no", "on"]
  defp fitting(%{pattern: "[0-9]{1,3}"}), do: ["7", "12"]
  defp fitting(_flag), do: ["a", "b c", "done"]

  defp line(name, given, args) do
    flags =
      for {flag, words} <- given, do: Enum.join(["--" <> flag | Enum.map(words, &quoted/1)], " ")

    Enum.join([name | Enum.map(args, &quoted/1)] ++ flags, " ")
  end

  defp quoted(text) do
    escapes = %{"\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n"}
    ~s("#{String.replace(text, Map.keys(escapes), &escapes[&1])}")
  end

  defp object(given) do
    Map.new(given, fn
      {flag, []} -> {flag, true}
      {flag, [word]} -> {flag, word}
      {flag, words} -> {flag, words}
    end)
  end

  # Several words of a line are one text, which a JSON object has as one.
  defp one_text(object, declaration) do
    Map.new(object, fn {name, value} ->
      case find_flag(declaration, name) do
        %{type: :text, several: false} when is_list(value) -> {name, Enum.join(value, " ")}
        _ -> {name, value}
      end
    end)
  end

  defp find_flag(declaration, name) do
    plain = &(&1 |> String.downcase() |> String.replace(["-", "_"], ""))
    Enum.find(declaration.flags, &(plain.(&1.name) == plain.(name)))
  end

  # Writes a value of a declared type in the ways of a model.
  defp typed(object, declaration) do
    Map.new(object, fn {name, value} ->
      flag = Enum.find(declaration.flags, &(&1.name == name))
      {name, typed_value(value, flag && flag.type)}
    end)
  end

  defp typed_value("true", :switch), do: true
  defp typed_value("no", :switch), do: false

  defp typed_value(values, type) when is_list(values),
    do: Enum.map(values, &typed_value(&1, type))

  defp typed_value(text, type) when type in [:integer, :number, :text] do
    case Integer.parse(to_string(text)) do
      {number, ""} when abs(number) < 1000 and text != "-0" -> number
      _ -> text
    end
  end

  defp typed_value(value, _type), do: value

  defp outcome(view, line) do
    [result] = Skillbook.Reply.Pipeline.commands(view, [line], options())
    told(result)
  end

  defp options do
    [
      now: @now,
      assigns: %{
        call: fn flags, context -> {:ok, Result.ok("x", data: {flags, context.command})} end
      }
    ]
  end

  defp told(%{status: :ok, data: {flags, command}}), do: {:ok, flags, command}

  # A tool call has the same error, in terms of JSON.
  defp told(%{status: :error, error: %FlagError{json: true} = error, content: text}) do
    assert Hidden.visible(Exception.message(error)) == text
    {:error, Hidden.visible(Exception.message(%{error | json: false}))}
  end

  defp told(%{status: :error, content: text}), do: {:error, text}

  defp allowed?(flags, declaration) do
    names = Enum.map(declaration.flags, & &1.name)

    Enum.all?(Map.keys(flags), &(&1 in names)) and
      Enum.all?(declaration.flags, fn flag ->
        case flags do
          %{} when is_map_key(flags, flag.name) -> true
          _ -> not flag.required and flag.default == []
        end
      end) and
      Enum.all?(
        declaration.flags,
        &(not is_map_key(flags, &1.name) or values?(flags[&1.name], &1))
      )
  end

  defp values?(values, %{several: true} = flag),
    do: match?([_ | _], values) and Enum.all?(values, &value?(&1, flag))

  defp values?(values, %{type: type}) when type in [:value, nil] and is_list(values),
    do: match?([_, _ | _], values) and Enum.all?(values, &is_binary/1)

  defp values?(value, flag), do: value?(value, flag)

  defp value?(value, %{type: :one_of, values: values}), do: value in values

  defp value?(value, %{type: :integer} = flag),
    do: is_integer(value) and abs(value) <= 0x8000000000000000 and within?(value, flag)

  defp value?(value, %{type: :number} = flag), do: is_float(value) and within?(value, flag)
  defp value?(value, %{type: :date}), do: is_struct(value, Date)
  defp value?(value, %{type: :datetime}), do: is_struct(value, DateTime)
  defp value?(value, %{type: :email}), do: is_binary(value) and value =~ ~r/\A[^@ ]+@[^@ ]+\z/
  defp value?(value, %{type: :url}), do: is_binary(value) and value =~ ~r/\Ahttps?:\/\/[^ ]+\z/i
  defp value?(value, %{type: :switch}), do: is_boolean(value)
  defp value?(value, %{type: :value}), do: is_binary(value)
  defp value?(value, %{type: nil}), do: is_binary(value) or value == true

  defp value?(value, %{type: :text} = flag) do
    is_binary(value) and (flag.empty or String.trim(value) != "") and
      (flag.max == nil or String.length(value) <= flag.max) and
      (flag.pattern == nil or value =~ ~r/\A(?:#{flag.pattern})\z/) and
      not (flag.line and value =~ ~r/[\n\x{2028}]/u)
  end

  defp within?(number, flag),
    do: number >= (flag.min || number) and number <= (flag.max || number)

  test "a handler gets the declared types from text, JSON and tool calls", %{tmp_dir: folder} do
    names = for n <- 1..60, do: "x.p#{n}"
    given = for n <- 1..60, do: "x.f#{n}"
    handler = [handler: "Skillbook.TestHandlers.Call"]
    file = &(String.replace(&1, ".", "/") <> ".md")
    write(folder, Map.new(names, &{file.(&1), page(&1, handler, random_page(&1))}))
    write(folder, Map.new(given, &{file.(&1), random_frontmatter(&1)}))
    view = view(folder)
    assert for(%{severity: :error} = found <- View.diagnostics(view), do: found) == []

    ran =
      for name <- names ++ given,
          {:ok, declaration} = View.flags(view, name),
          :ok = closed(view, name, declaration),
          _ <- 1..40,
          {given, args} = random_call(declaration),
          {:ok, typed, _} = outcome <- [same(view, name, declaration, given, args)] do
        assert allowed?(typed, declaration),
               "#{line(name, given, args)}: #{inspect({typed, declaration})}"

        assert Flags.cast_declared(typed, declaration) == {:ok, typed}
        outcome
      end

    # Enough of them are right for this to mean anything.
    assert length(ran) > 1000
  end

  # With any JSON, by a line and by a tool call, a handler gets values of the declared types or
  # does not run, and defaults are values of their types.
  defp closed(view, name, declaration) do
    for _ <- 1..20 do
      object =
        for flag <- declaration.flags, :rand.uniform(2) == 1, into: %{} do
          {flag.name, pick(@json ++ [pick(fitting(flag))])}
        end

      encoded = IO.iodata_to_binary(Skillbook.Support.JSON.encode(object))
      line = outcome(view, "#{name} #{encoded}")
      call = %{"name" => Tools.Name.from(name), "arguments" => encoded}
      {result, _answer} = Tools.call(view, call, options())
      assert {name, object, values(told(result))} == {name, object, values(line)}

      with {:ok, typed, _} <- line,
           do: assert(allowed?(typed, declaration), "#{name} #{encoded}: #{inspect(typed)}")
    end

    :ok
  end

  # Returns the result of each way of writing, which must be the same.
  defp same(view, name, declaration, given, args) do
    text = outcome(view, line(name, given, args))

    if args == [] do
      object = given |> object() |> one_text(declaration)
      encoded = &IO.iodata_to_binary(Skillbook.Support.JSON.encode(&1))

      properties =
        Map.new(object, fn {flag, value} -> {String.replace(flag, "-", "_"), value} end)

      call = %{"name" => Tools.Name.from(name), "arguments" => encoded.(properties)}
      {result, _answer} = Tools.call(view, call, options())

      assert {name, object, values(outcome(view, "#{name} #{encoded.(object)}"))} ==
               {name, object, values(text)}

      assert {name, properties, values(told(result))} == {name, properties, values(text)}

      typed = outcome(view, "#{name} #{encoded.(typed(object, declaration))}")

      if match?({:ok, _, _}, text),
        do: assert({name, object, values(typed)} == {name, object, values(text)})
    end

    text
  end

  # An unknown flag has the name that was written, in the order of the names.
  defp values({:ok, flags, command}), do: {flags, command.flags, command.args}
  defp values({:error, text}), do: if(text =~ "unknown flag", do: :unknown, else: text)

  test "words become flags, and converted flags are not converted again", %{tmp_dir: folder} do
    pages = [
      {"x.one", "x.one --id <id> [--n <n>]",
       "--id  Which (text); it may also stand without the flag's name\n--n  How many"},
      {"x.many", "x.many [--title <t>]",
       "--title  A title (text); its words may also stand without the flag's name"},
      {"x.own", "x.own <file> [--n <n>]", "--n  How many"},
      {"x.none", "x.none [--n <n>]", "--n  How many (default: 3)"},
      # Too long to be read on a normal scheduler.
      {"x.long", "x.long [--n <n>]",
       "--n  How many (default: 3)\n\n" <> String.duplicate("and on\n", 10_000)}
    ]

    for {name, usage, flags} <- pages do
      body = "## Usage\n\n#{usage}\n\n## Flags\n\n#{flags}\n"

      write(folder, %{
        (String.replace(name, ".", "/") <> ".md") =>
          page(name, [handler: "Skillbook.TestHandlers.Call"], body)
      })
    end

    view = view(folder)

    rows = [
      {"x.one T-1 --n 7", {%{"id" => "T-1", "n" => 7}, []}},
      {"x.many a b c", {%{"title" => "a b c"}, []}},
      {"x.own a.md --n 2", {%{"n" => 2}, ["a.md"]}},
      {"x.none", {%{"n" => 3}, []}},
      {"x.long --n 7", {%{"n" => 7}, []}},
      {"x.one a b",
       ~s("b" is one word too many: only --id may be given without the flag's name, once. Put ) <>
         ~s(a flag in front: --FLAG "b")},
      {"x.many a --title b",
       ~s("a" is one word too many: only --title may be given without the flag's name, once. ) <>
         ~s(Put a flag in front: --FLAG "a")},
      {"x.none a", ~s("a" has no flag. Put a flag in front: --FLAG "a")}
    ]

    for {line, expected} <- rows do
      got =
        case outcome(view, line) do
          {:ok, flags, %{flags: flags, args: args}} -> {flags, args}
          {:error, text} -> text
        end

      assert {line, got} == {line, expected}
    end
  end

  test "a flag suppresses the default of a flag that it excludes" do
    declaration =
      Skillbook.Declaration.read(
        "## Usage\n\na.b (--x <x> | --y <y>)\n\n## Flags\n\n--x  X\n--y  Y\n"
      )

    [x, y] = declaration.flags
    declaration = %{declaration | flags: [x, %{y | default: ["2"]}]}
    assert Flags.cast_declared(%{"x" => "1"}, declaration) == {:ok, %{"x" => "1"}}
  end

  test "handlers that check flags themselves accept converted flags" do
    declaration =
      Skillbook.Declaration.read("""
      ## Usage

      a.b --name <name> [--limit <n>] [--due <day>] [--tags <tags>] [--loud] [--rate <x>]

      ## Flags

      --name   Who, one line of at most 40 characters (required)
      --limit  How many, from 1 to 9 (default: 5)
      --due    When: YYYY-MM-DD or tomorrow
      --tags   One or more words
      --loud   Whether it is loud (a switch)
      --rate   How much (number)
      """)

    given = %{"due" => "tomorrow", "tags" => "a,b", "loud" => "no", "rate" => 2}
    today = DateTime.to_date(@now)
    {:ok, flags} = Flags.cast_declared(given, declaration, args: ["Ann"], today: today)

    assert flags == %{
             "name" => "Ann",
             "limit" => 5,
             "due" => ~D[2026-03-01],
             "tags" => ["a", "b"],
             "loud" => false,
             "rate" => 2.0
           }

    again =
      with {:ok, flags} <- Flags.known(flags, ~w(name limit due tags loud rate)),
           {:ok, flags} <- Flags.cast_args(flags, [], ["name"]),
           :ok <- Flags.require(flags, ["name", "loud"]),
           {:ok, flags} <- Flags.cast_text(flags, "name", max: 40),
           {:ok, flags} <- Flags.cast_integer(flags, "limit", min: 1, max: 9),
           {:ok, flags} <- Flags.cast_date(flags, "due", today: ~D[2020-01-01]),
           {:ok, flags} <- Flags.cast_list(flags, "tags"),
           {:ok, flags} <- Flags.cast_boolean(flags, "loud"),
           {:ok, flags} <- Flags.cast_number(flags, "rate"),
           :ok <- Flags.validate_enum(flags, "limit", [5]),
           do: {:ok, Flags.apply_defaults(flags, %{"limit" => 7})}

    assert again == {:ok, flags}
  end
end
