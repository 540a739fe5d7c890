defmodule Skillbook.Grammar do
  @moduledoc """
  Writes a grammar that restricts a local model to existing commands, in llama.cpp's notation
  (GBNF).

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> grammar = Skillbook.Grammar.gbnf(Skillbook.View.all(catalog), names: ["tasks.get"])
      iex> grammar =~ ~S(command-1 ::= "tasks.get" )
      true
  """

  alias Skillbook.Support.Options
  alias Skillbook.{Declaration, Entry, Flag, Tools, View}

  # The common rules. Lines of text cannot open a fence, and values have no line breaks, so only
  # the rules of command blocks open and close blocks. A word in quotes begins neither with one
  # dash, which could be a flag, nor with a brace, which could be JSON.
  @rules ~S"""
  root ::= line* (tail | block ("\n" root)?)
  line ::= tail "\n"
  tail ::= [ \t]* (start [^\n\r]* | "`" "`"? | "~" "~"?)?
  start ::= [^ \t\n\r`~] | "`" "`"? [^`\n\r] | "~" "~"? [^~\n\r]
  block ::= "```cmd\n" (command "\n")+ "```"
  word ::= bare | "\"" head any* "\"" | "\"--" mark any* "\""
  item ::= bare | "\"" item-head char* "\"" | "\"--" mark char* "\""
  item-head ::= [^"'\\,[({\x00-\x20\x2DBLANK]
  text ::= bare | "\"" " "* mark any* "\""
  one-line ::= bare | "\"" " "* mark char* "\""
  bare ::= [a-zA-Z0-9] [a-zA-Z0-9_.,:@/+%-]*
  any ::= char | "\\" [nt]
  char ::= [^"\\\x00-\x1F\x7F-\x9F\u2028\u2029] | "\\" ["\\]
  mark ::= [^"\\\x00-\x20BLANK] | "\\" ["\\]
  head ::= [^"\\{\x00-\x20\x2DBLANK] | "\\" ["\\]
  any-10 ::= any{10}
  any-100 ::= any-10{10}
  any-1000 ::= any-100{10}
  char-10 ::= char{10}
  char-100 ::= char-10{10}
  char-1000 ::= char-100{10}
  number ::= "-"? [0-9]{1,15} ("." [0-9]{1,15})?
  day ::= year "-" month-day | [12] [0-9] ("0" [48] | [2468] [048] | [13579] [26]) "-02-29"
  month-day ::= long "-" ("29" | "3" [01]) | short "-" ("29" | "30") | month "-" day-28
  month ::= long | short | "02"
  long ::= "0" [13578] | "1" [02]
  short ::= "0" [469] | "11"
  year ::= [12] [0-9]{3}
  day-28 ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
  time ::= day "T" ([01] [0-9] | "2" [0-3]) ":" sixty ":" sixty ("Z" | [+-] offset ":" sixty)
  offset ::= "0" [0-9] | "1" [0-3]
  sixty ::= [0-5] [0-9]
  email ::= [a-zA-Z0-9] [a-zA-Z0-9._%+-]{0,60} "@" host
  host ::= [a-zA-Z0-9] [a-zA-Z0-9-]{0,40} ("." [a-zA-Z0-9] [a-zA-Z0-9-]{0,40}){1,3}
  url ::= "\"http" "s"? "://" host (":" [0-9]{1,5})? path? "\""
  path ::= [/?] [a-zA-Z0-9._~/?=&%+:@!;,*-]{0,500}
  json ::= "'" json-value "'"
  json-value ::= json-object | json-list | json-text | number | "true" | "false" | "null"
  json-object ::= "{" (json-pair (", " json-pair)*)? "}"
  json-list ::= "[" (json-value (", " json-value)*)? "]"
  json-pair ::= json-text ": " json-value
  json-text ::= "\"" [^"'\\\x00-\x1F\x7F-\x9F\u2028\u2029]* "\""
  any-flag ::= " --" [a-z] [a-z0-9_-]* (" " word)*
  """
  # Blanks, and other characters that cannot be seen, beside those of ASCII.
  @blank ~S"\x7F-\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF"
  @common String.replace(@rules, "BLANK", @blank)

  # The upper limit for integers with a minimum only.
  @largest 999_999_999_999_999

  # Required flags are only enforced up to this number, because each doubles the number of rules.
  @max_enforced 4

  # The most characters that a rule counts.
  @max_counted 10_000

  # The number of files that the page of a skill lists.
  @max_files 100

  @doc """
  Returns the grammar of replies: text and `cmd` blocks with the commands and skills of a view.

  Blocks contain `get_skill` with existing paths, and commands with their declared flags in any
  order. Values have the declared type: numbers in their range, dates that exist, keywords,
  addresses, texts of at most the declared length, and otherwise words or quoted text on one line.
  Required flags are enforced, unless a word is their value or may replace them, or a command has
  more than four. Commands without declared flags accept any flags.

  Every command that the grammar accepts can be extracted and has an entry. A flag that is written
  twice, flags that exclude each other and the pattern of a text are left to the command.

  ## Options

    * `:names` (list of globs) - the names of the commands and skills, as in
      `Skillbook.Tools.definitions/2`. Defaults to all
  """
  @spec gbnf(Skillbook.view_or_book(), Skillbook.options()) :: String.t()
  def gbnf(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Grammar.gbnf/2")

    with {:error, error} <- Options.validate(options, "a grammar", schema()), do: raise(error)

    commands =
      for {entry, at} <- view |> Tools.listed(options[:names]) |> Enum.with_index(1),
          word <- shell_word(entry.name),
          [_ | _] = rules <- [command(view, entry, literal(word), "command-#{at}")],
          do: rules

    names = for [{name, _} | _] <- commands, do: name

    rules =
      [{"command", alternatives(["get-skill" | names])}, {"get-skill", get_skill(view)}] ++
        List.flatten(commands)

    IO.iodata_to_binary([
      @common | Enum.map(rules, fn {name, rule} -> [name, " ::= ", rule, "\n"] end)
    ])
  end

  defp get_skill(view) do
    listed = View.listed(view)
    names = Enum.map(listed, & &1.name)

    files =
      for entry <- listed, file <- Enum.take(entry.files, @max_files), do: "#{entry.name}/#{file}"

    domains = for %{domain: domain} <- listed, domain != nil, uniq: true, do: domain
    paths = Enum.uniq(domains ++ Enum.map(domains, &"#{&1}.all") ++ names ++ files)

    case Enum.flat_map(paths, &shell_word/1) do
      [] ->
        literal("get_skill")

      words ->
        [
          literal("get_skill"),
          " (\":\"? \" \" (",
          alternatives(Enum.map(words, &literal/1)),
          "))?"
        ]
    end
  end

  # Returns the rule of this name and the rules that it uses.
  defp command(view, %Entry{} = entry, word, name) do
    case View.flags(view, entry.name) do
      {:ok, %Declaration{error: nil} = declaration} -> declared(word, declaration, name)
      {:ok, %Declaration{}} -> []
      _ when entry.kind == :command -> [{name, [word, " (\" \" word)* any-flag*"]}]
      _ -> [{name, word}]
    end
  end

  defp declared(word, %Declaration{flags: flags, words: words}, name) do
    # A flag without a value that can be written is left out.
    declared =
      for {flag, at} <- Enum.with_index(flags, 1),
          values(flag) != nil,
          do: {"#{name}-#{at}", flag}

    rules =
      for {rule, flag} <- declared,
          do: {rule, alternatives(Enum.map(flag.names, &[literal(" --" <> &1), values(flag)]))}

    all = Enum.map(declared, &elem(&1, 0))
    required = for {rule, %Flag{required: true}} <- declared, do: rule
    enforced = if length(required) <= @max_enforced, do: required, else: []

    # Words without a flag are the values of positional flags, or replace required ones.
    heads =
      if words,
        do: [{[], "", enforced}, {[], " (\" \" word)+", []}],
        else: for({given, values} <- positional(declared), do: {given, values, enforced -- given})

    {heads, needs} =
      heads
      |> Enum.with_index()
      |> Enum.map(fn {{given, values, missing}, at} ->
        kind = "#{<<?a + at>>}"
        {[values, " ", need(name, kind, missing)], needs(name, kind, all -- given, missing)}
      end)
      |> Enum.unzip()

    [{name, [word, " (", alternatives(heads), ")"]} | List.flatten(needs)] ++ rules
  end

  # The flags that words give, from none to all, and the rule of these words.
  defp positional(declared) do
    taking = Enum.filter(declared, fn {_rule, flag} -> flag.positional != nil end)

    for count <- 0..length(taking),
        given = Enum.take(taking, count),
        words = Enum.map(given, fn {_rule, flag} -> word_of(flag) end),
        nil not in words,
        do: {Enum.map(given, &elem(&1, 0)), words}
  end

  defp word_of(%Flag{type: :text, max: max}) when is_integer(max),
    do: [" \" \" [a-zA-Z0-9] [a-zA-Z0-9_.,:@/+%-]{0,", to_string(min(max, 64) - 1), "}"]

  defp word_of(%Flag{positional: :all, type: type}) when type in [:text, :value, nil],
    do: " (\" \" item)+"

  defp word_of(%Flag{type: type}) when type in [:text, :value, nil], do: " \" \" item"
  defp word_of(%Flag{type: :switch}), do: nil

  # A negative number, or a word that begins with a dash, would be read as a flag.
  defp word_of(%Flag{type: type, min: nil} = flag) when type in [:integer, :number],
    do: word_of(%{flag | min: 0})

  defp word_of(%Flag{type: type, min: min}) when type in [:integer, :number] and min < 0, do: nil

  defp word_of(%Flag{type: :one_of} = flag) do
    values = Enum.reject(flag.values, &(&1 =~ ~r/\A\s*[-{]/))
    with rule when rule != nil <- value(%{flag | values: values}), do: [" \" \" (", rule, ")"]
  end

  defp word_of(flag), do: [" \" \" (", value(flag), ")"]

  # One rule for each set of missing required flags: other flags in any order, one flag of the
  # set, and then the rule of the smaller set.
  defp needs(name, kind, all, required) do
    for missing <- subsets(required) do
      others =
        with [_ | _] = others <- all -- missing,
             do: ["(", alternatives(others), ")* "],
             else: (_ -> nil)

      next = for flag <- missing, do: [flag, " ", need(name, kind, missing -- [flag])]

      rule = [others || "" | if(next == [], do: [], else: ["(", alternatives(next), ")"])]
      # llama.cpp refuses an empty rule.
      {need(name, kind, missing), if(rule == [""], do: "\"\"", else: rule)}
    end
  end

  # `command-3-1` and `command-3-2` missing: `command-3-a-1-2`, where `a` is the kind of words.
  defp need(name, kind, missing) do
    numbers =
      Enum.map(
        missing,
        &["-", binary_part(&1, byte_size(name) + 1, byte_size(&1) - byte_size(name) - 1)]
      )

    IO.iodata_to_binary([name, "-", kind, numbers])
  end

  defp subsets([]), do: [[]]

  defp subsets([first | rest]),
    do: with(smaller <- subsets(rest), do: Enum.map(smaller, &[first | &1]) ++ smaller)

  # The values of a flag with the blank before them; `nil` if there is none that can be written.
  defp values(%Flag{type: :switch}), do: ~s{ (" true" | " false")?}
  defp values(%Flag{type: nil}), do: " (\" \" word)*"
  defp values(%Flag{type: :value, several: false}), do: " (\" \" word)+"

  defp values(%Flag{several: several} = flag) do
    case value(flag) do
      nil -> nil
      rule when several -> [" (\" \" (", rule, "))+"]
      rule -> [" \" \" (", rule, ")"]
    end
  end

  # Lists are split at commas, and lose brackets and quotes.
  defp value(%Flag{type: :one_of, values: values, several: several}) do
    values = if several, do: Enum.reject(values, &(&1 =~ ~r/,|\A\s*(["'\[-]|\z)/)), else: values

    case Enum.flat_map(values, &shell_word/1) do
      [] -> nil
      words -> words |> Enum.map(&literal/1) |> alternatives()
    end
  end

  defp value(%Flag{type: :date, values: words}),
    do: alternatives(["day" | Enum.map(words, &literal/1)])

  defp value(%Flag{type: :json}), do: "json"
  defp value(%Flag{type: :datetime}), do: "time"
  defp value(%Flag{type: :email}), do: "email"
  defp value(%Flag{type: :url}), do: "url"
  defp value(%Flag{type: :number, min: nil, max: nil}), do: "number"
  defp value(%Flag{type: :number} = flag), do: number(flag.min, flag.max)
  defp value(%Flag{type: :integer} = flag), do: integer(flag.min, flag.max)
  defp value(%Flag{type: :text, max: nil, line: true}), do: "one-line"
  defp value(%Flag{type: :text, max: nil}), do: "text"

  defp value(%Flag{type: :text, max: max, line: line}) do
    unit = if line, do: "char", else: "any"

    alternatives([
      "[a-zA-Z0-9] [a-zA-Z0-9_.,:@/+%-]{0,#{min(max, 64) - 1}}",
      ["\"\\\"\" mark ", at_most(unit, min(max, @max_counted) - 1), " \"\\\"\""]
    ])
  end

  defp value(%Flag{several: true}), do: "item"
  defp value(_flag), do: "word"

  # Counted in groups of ten, a hundred and a thousand, since long repetitions are refused.
  defp at_most(_unit, 0), do: ""
  defp at_most(unit, count) when count < 10, do: "#{unit}{0,#{count}}"
  defp at_most(unit, count) when count < 19, do: "#{unit}{0,9}"

  defp at_most(unit, count) do
    size = Enum.find([1_000, 100, 10], &(count >= 2 * &1 - 1))
    largest = div(count - size + 1, size)
    smaller = for one <- [100, 10], one < size, do: "#{unit}-#{one}{0,9} "
    "#{unit}-#{size}{0,#{min(largest, 9)}} #{smaller}#{unit}{0,9}"
  end

  # The whole numbers of a range, and fractions from 0 between them.
  defp number(min, max) do
    low = min && ceil(min)
    high = max && floor(max)
    first = Enum.max([low || 0, 0])

    cond do
      low != nil and high != nil and low > high ->
        literal(to_string(min))

      high != nil and first > high - 1 ->
        integer(low, high)

      true ->
        alternatives([
          integer(low, high),
          ["(", integer(first, high && high - 1), ") \".\" [0-9]{1,15}"]
        ])
    end
  end

  @doc false
  # The integers of a range.
  @spec integer(integer() | nil, integer() | nil) :: iodata()
  def integer(nil, nil), do: "\"-\"? [0-9]{1,15}"

  def integer(min, max) when min == nil or min < 0 do
    low = if min, do: -min, else: @largest
    high = if max && max < 0, do: -max, else: 1
    negative = ["\"-\" (", natural(high, low), ")"]
    if max && max < 0, do: negative, else: alternatives([natural(0, max), negative])
  end

  def integer(min, max), do: natural(min, max)

  defp natural(min, max) do
    max = min(max || @largest, @largest)
    min = min(min, max)

    for length <- digits(min)..digits(max)//1 do
      {low, high} =
        {if(length == 1, do: 0, else: Integer.pow(10, length - 1)), Integer.pow(10, length) - 1}

      between(Integer.digits(max(min, low)), Integer.digits(min(max, high)))
    end
    |> alternatives()
  end

  defp digits(number), do: length(Integer.digits(number))

  # The numbers between two numbers of the same length, digit by digit. Free digits are one rule,
  # so that the text grows with the digits' number only.
  defp between([low], [high]), do: range(low, high)

  defp between([first | low], [last | high]) do
    cond do
      Enum.all?(low, &(&1 == 0)) and Enum.all?(high, &(&1 == 9)) ->
        [range(first, last), " [0-9]{#{length(low)}}"]

      first == last ->
        [range(first, last), " (", between(low, high), ")"]

      true ->
        lowest = [range(first, first), " (", between(low, Enum.map(low, fn _ -> 9 end)), ")"]
        highest = [range(last, last), " (", between(Enum.map(high, fn _ -> 0 end), high), ")"]

        middle =
          if last - first > 1,
            do: [[range(first + 1, last - 1), " [0-9]{#{length(low)}}"]],
            else: []

        alternatives([lowest] ++ middle ++ [highest])
    end
  end

  defp range(low, low), do: "\"#{low}\""
  defp range(low, high), do: "[#{low}-#{high}]"

  @doc false
  @spec alternatives([iodata()]) :: iodata()
  def alternatives(rules), do: Enum.intersperse(rules, " | ")

  # A word as written in a command; a text with control characters has no form.
  defp shell_word(text) do
    cond do
      text =~ ~r/\A[\p{L}\p{N}][\p{L}\p{N}_.:@\/+-]*\z/u -> [text]
      text =~ ~r/[\x00-\x1f\x7f]/ -> []
      true -> [~s("#{String.replace(text, ["\\", "\""], &("\\" <> &1))}")]
    end
  end

  @doc false
  @spec literal(String.t()) :: String.t()
  def literal(text), do: ~s("#{String.replace(text, ["\\", "\""], &("\\" <> &1))}")

  defp schema, do: [names: {"a list of globs or nil", &(is_nil(&1) or Options.texts?(&1))}]
end
