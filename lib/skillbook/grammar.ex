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
  # the rules of command blocks open and close blocks.
  @common ~S"""
  root ::= line* (tail | block ("\n" root)?)
  line ::= tail "\n"
  tail ::= [ \t]* (start [^\n\r]* | "`" "`"? | "~" "~"?)?
  start ::= [^ \t\n\r`~] | "`" "`"? [^`\n\r] | "~" "~"? [^~\n\r]
  block ::= "```cmd\n" (command "\n")+ "```"
  word ::= bare | quoted
  bare ::= [a-zA-Z0-9] [a-zA-Z0-9_.,:@/+%-]*
  quoted ::= "\"" ([^"\\\n\r] | "\\" ["\\nt])* "\""
  number ::= "-"? [0-9]{1,15} ("." [0-9]{1,15})?
  day ::= [0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])
  any-flag ::= " --" [a-z] [a-z0-9_-]* (" " word)*
  """

  # The upper limit for integers with a minimum only.
  @largest 999_999_999_999_999

  # Required flags are only enforced up to this number, because each doubles the number of rules.
  @max_enforced 4

  # The number of files that the page of a skill lists.
  @max_files 100

  @doc """
  Returns the grammar of replies: text and `cmd` blocks with the commands and skills of a view.

  Blocks contain `get_skill` with existing paths, and commands with their declared flags in any
  order. Values have the declared type: numbers in their range, dates, keywords, and otherwise
  words or quoted text on one line. Required flags are enforced, unless words without a flag can
  replace them or a command has more than four. Commands without declared flags accept any flags.

  Every command that the grammar accepts can be extracted and has an entry.

  ## Options

    * `:names` (list of globs) - the names of the commands and skills, as in
      `Skillbook.Tools.definitions/2`. Defaults to all
  """
  @spec gbnf(View.t(), keyword()) :: String.t()
  def gbnf(%View{} = view, options \\ []) do
    with {:error, error} <- Options.validate(options, "a grammar", schema()), do: raise(error)

    commands =
      for {entry, at} <- view |> Tools.listed(options[:names]) |> Enum.with_index(1),
          word <- shell_word(entry.name),
          do: command(view, entry, literal(word), "command-#{at}")

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
      {:ok, %Declaration{} = declaration} -> declared(word, declaration, name)
      _ when entry.kind == :command -> [{name, [word, " (\" \" word)* any-flag*"]}]
      _ -> [{name, word}]
    end
  end

  defp declared(word, %Declaration{flags: flags, words: words}, name) do
    declared = for {flag, at} <- Enum.with_index(flags, 1), do: {"#{name}-#{at}", flag}

    rules =
      for {rule, flag} <- declared,
          do: {rule, alternatives(Enum.map(flag.names, &[literal(" --" <> &1), values(flag)]))}

    all = Enum.map(declared, &elem(&1, 0))
    required = for {rule, %Flag{required: true}} <- declared, do: rule
    enforced = if length(required) <= @max_enforced, do: required, else: []

    needs = needs(name, all, enforced)
    flags = [" ", need(name, enforced)]
    # Words without a flag may replace required flags.
    either = &[" (", flags, " | (\" \" word)", &1, " ", need(name, []), ")"]

    places = for {_, %Flag{positional: how}} when how != nil <- declared, do: how

    head =
      cond do
        words or :all in places -> either.("+")
        places == [] -> flags
        true -> either.("{1,#{length(places)}}")
      end

    [{name, [word | head]} | needs ++ rules]
  end

  # One rule for each set of missing required flags: other flags in any order, one flag of the
  # set, and then the rule of the smaller set.
  defp needs(name, all, required) do
    for missing <- subsets(required) do
      others = with [_ | _] = others <- all -- missing, do: ["(", alternatives(others), ")* "]
      next = for flag <- missing, do: [flag, " ", need(name, missing -- [flag])]

      {need(name, missing),
       [others | if(next == [], do: [], else: ["(", alternatives(next), ")"])]}
    end
  end

  # `command-3-1` and `command-3-2` missing: `command-3-need-1-2`
  defp need(name, missing) do
    numbers =
      Enum.map(
        missing,
        &["-", binary_part(&1, byte_size(name) + 1, byte_size(&1) - byte_size(name) - 1)]
      )

    IO.iodata_to_binary([name, "-need", numbers])
  end

  defp subsets([]), do: [[]]

  defp subsets([first | rest]),
    do: with(smaller <- subsets(rest), do: Enum.map(smaller, &[first | &1]) ++ smaller)

  defp values(%Flag{type: :switch}), do: ~s{ (" true" | " false")?}
  defp values(%Flag{type: nil}), do: " (\" \" word)*"
  defp values(%Flag{type: :value}), do: " (\" \" word)+"
  defp values(%Flag{several: true} = flag), do: [" (\" \" (", value(flag), "))+"]
  defp values(flag), do: [" \" \" (", value(flag), ")"]

  defp value(%Flag{type: :one_of, values: values}) do
    case Enum.flat_map(values, &shell_word/1) do
      [] -> "word"
      words -> words |> Enum.map(&literal/1) |> alternatives()
    end
  end

  defp value(%Flag{type: :date, values: words}),
    do: alternatives(["day" | Enum.map(words, &literal/1)])

  defp value(%Flag{type: :number}), do: "number"
  defp value(%Flag{type: :integer} = flag), do: integer(flag.min, flag.max)
  defp value(%Flag{}), do: "word"

  @doc false
  # The integers of a range. Negative limits are checked by the command only.
  @spec integer(integer() | nil, integer() | nil) :: iodata()
  def integer(min, max)
  def integer(nil, nil), do: "\"-\"? [0-9]{1,15}"
  def integer(min, _max) when is_integer(min) and min < 0, do: "\"-\"? [0-9]{1,15}"
  def integer(_min, max) when is_integer(max) and max < 0, do: "\"-\" [0-9]{1,15}"

  def integer(min, max) do
    {min, max} = {min || 0, min(max || @largest, @largest)}

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
