defmodule Skillbook.Flags do
  @moduledoc """
  Checks and conversions for the flags a handler receives.

  Every function takes the flags first. A conversion (`known/2` and the `cast_…` functions) gives
  `{:ok, flags}` with the value replaced; a check (`require/2`, `require_any/2`, `validate_enum/3`) gives `:ok`. Both give
  `{:error, %Skillbook.FlagError{}}` when a rule is broken. A flag that is absent passes every rule except
  `require/2` and `require_any/2`, so that a `with` chain reads as the list of a command's rules:

      iex> alias Skillbook.Flags
      iex> check = fn flags ->
      ...>   with {:ok, flags} <- Flags.known(flags, ~w(title priority due limit)),
      ...>        :ok <- Flags.require(flags, ["title"]),
      ...>        {:ok, flags} <- Flags.cast_text(flags, "title"),
      ...>        {:ok, flags} <- Flags.cast_keyword(flags, "priority"),
      ...>        :ok <- Flags.validate_enum(flags, "priority", ~w(high low)),
      ...>        {:ok, flags} <- Flags.cast_date(flags, "due"),
      ...>        {:ok, flags} <- Flags.cast_integer(flags, "limit", min: 1) do
      ...>     {:ok, Flags.apply_defaults(flags, %{"limit" => 20})}
      ...>   end
      ...> end
      iex> check.(%{"title" => ["Review", "the", "PR"], "priority" => "High", "due" => "2026-03-01"})
      {:ok, %{"title" => "Review the PR", "priority" => "high", "due" => ~D[2026-03-01], "limit" => 20}}
      iex> {:error, e} = check.(%{"priority" => "low"})
      iex> Exception.message(e)
      "--title is required and missing. Add it as: --title VALUE"

  ## What counts as absent

  `nil` and an empty list, which only a command written with a JSON object can hold: models that fill in every
  member of an object write these for the flags they do not use.

  ## What counts as one value

  A list with one item is that item. Text may be several words, because a forgotten pair of quotes in
  `--title Review the PR` leaves no doubt about what was meant; in `--limit 5 10` it does.
  """

  alias Skillbook.Support.Closest
  alias Skillbook.{Declaration, FlagError}

  @typedoc "Flags as `Skillbook.Handler` describes them; conversions put in dates, numbers and lists."
  @type t :: %{optional(String.t()) => term()}

  @type cast :: {:ok, t()} | {:error, FlagError.t()}
  @type check :: :ok | {:error, FlagError.t()}

  # A longer text of digits is no number anyone meant, and reading it takes time that grows with its square.
  @longest_integer 20

  @doc """
  Refuses flags that the command does not have, and gives each flag the name by which the command knows it.

  Case, `_` and `-` do not matter: `--due_before` and `--dueBefore` are `--due-before`. Two spellings of one flag add up, like a
  flag given twice. Absent flags (`nil`, `[]`) are taken out.

      iex> Skillbook.Flags.known(%{"due_before" => "2026-03-01", "query" => nil}, ["query", "due-before"])
      {:ok, %{"due-before" => "2026-03-01"}}

      iex> {:error, e} = Skillbook.Flags.known(%{"statsu" => "done"}, ["query", "status"])
      iex> Exception.message(e)
      "unknown flag --statsu; did you mean --status? Known flags: --query, --status"

  A known flag with one dash among the values of another is refused:

      iex> {:error, e} = Skillbook.Flags.known(%{"query" => ["report", "-status", "done"]}, ["query", "status"])
      iex> Exception.message(e)
      "a flag begins with two dashes: write --status, or put the value of --query that holds -status in quotes"
  """
  @spec known(t(), [String.t()]) :: cast()
  def known(flags, names) do
    by_key = Map.new(names, &{key(&1), &1})

    {known, unknown} =
      flags |> Enum.sort() |> Enum.split_with(fn {name, _} -> is_map_key(by_key, key(name)) end)

    case unknown do
      [] ->
        given = for {name, value} <- known, value not in [nil, []], do: {by_key[key(name)], value}

        case Enum.find_value(given, &one_dash(&1, by_key)) do
          nil ->
            {:ok,
             Enum.reduce(given, %{}, fn {name, value}, acc ->
               Map.update(acc, name, value, &add(&1, value))
             end)}

          {name, word} ->
            {:error, %FlagError{kind: :one_dash, flag: name, value: word}}
        end

      unknown ->
        unknown = Enum.map(unknown, &elem(&1, 0))
        suggestions = unknown |> Enum.flat_map(&closest(&1, names, 0.75)) |> Enum.uniq()

        {:error,
         %FlagError{
           kind: :unknown,
           flag: hd(unknown),
           flags: unknown,
           expected: names,
           suggestions: suggestions
         }}
    end
  end

  @doc """
  Reads the words before the first flag as the flags `names`, in order, and refuses any that are left over.

  With no names it refuses every word. A flag that is given by name is not looked for among the words.

      iex> Skillbook.Flags.cast_args(%{"status" => "done"}, ["T-12"], ["id"])
      {:ok, %{"id" => "T-12", "status" => "done"}}

      iex> {:error, e} = Skillbook.Flags.cast_args(%{}, ["weekly", "report"], [])
      iex> Exception.message(e)
      ~s("weekly report" stands without a flag. Put its flag in front: --FLAG "weekly report")
  """
  @spec cast_args(t(), [String.t()], [String.t()]) :: cast()
  def cast_args(flags, args, names) do
    open = Enum.reject(names, &given?(flags, &1))

    case Enum.split(args, length(open)) do
      {words, []} -> {:ok, open |> Enum.zip(words) |> Enum.into(flags)}
      {_, words} -> {:error, %FlagError{kind: :words, value: words, expected: names}}
    end
  end

  @doc """
  Checks that all of `names` are given; those missing are named together.

      iex> Skillbook.Flags.require(%{"to" => "bob@example.com"}, ["to"])
      :ok

      iex> {:error, e} = Skillbook.Flags.require(%{"to" => "bob@example.com"}, ["to", "subject", "body"])
      iex> Exception.message(e)
      "--subject and --body are required and missing. Add them as: --subject VALUE --body VALUE"
  """
  @spec require(t(), [String.t()]) :: check()
  def require(flags, names) do
    case Enum.reject(names, &given?(flags, &1)) do
      [] -> :ok
      missing -> {:error, %FlagError{kind: :missing, flag: hd(missing), flags: missing}}
    end
  end

  @doc """
  Checks that at least one of `names` is given.

      iex> Skillbook.Flags.require_any(%{"body" => "Hi"}, ["subject", "body"])
      :ok

      iex> {:error, e} = Skillbook.Flags.require_any(%{}, ["subject", "body"])
      iex> Exception.message(e)
      "one of --subject or --body is required. Add for example: --subject VALUE"
  """
  @spec require_any(t(), [String.t()]) :: check()
  def require_any(flags, names) do
    if Enum.any?(names, &given?(flags, &1)),
      do: :ok,
      else: {:error, %FlagError{kind: :missing_any, flags: names}}
  end

  @doc """
  Checks that a flag's value, or each of its values, is one of `allowed`.

  The comparison is exact; put `cast_keyword/2` before it to let `In-Progress` pass as `in_progress`.

      iex> Skillbook.Flags.validate_enum(%{"sort" => "name"}, "sort", ["name", "date"])
      :ok

      iex> {:error, e} = Skillbook.Flags.validate_enum(%{"sort" => "size"}, "sort", ["name", "date"])
      iex> Exception.message(e)
      ~s(--sort must be one of name, date, got "size". Write for example: --sort name)
  """
  @spec validate_enum(t(), String.t(), [term()]) :: check()
  def validate_enum(flags, name, allowed) do
    wrong = flags |> value(name) |> List.wrap() |> Enum.reject(&(&1 in allowed))

    case wrong do
      [] ->
        :ok

      [true | _] ->
        error(:no_value, name, true, example: example(hd(allowed)))

      wrong ->
        near = wrong |> Enum.filter(&is_binary/1) |> Enum.flat_map(&closest(&1, allowed, 0.9))
        expected = "one of #{Enum.join(allowed, ", ")}"
        invalid(name, one_or_all(wrong), expected, example(hd(near ++ allowed)))
    end
  end

  @doc """
  Brings a value that is a fixed word, or a list of such, into its usual spelling: small letters and `_`.

      iex> Skillbook.Flags.cast_keyword(%{"status" => ["In Progress", "on-hold"]}, "status")
      {:ok, %{"status" => ["in_progress", "on_hold"]}}
  """
  @spec cast_keyword(t(), String.t()) :: {:ok, t()}
  def cast_keyword(flags, name) do
    case flags do
      %{^name => values} when is_list(values) ->
        {:ok, %{flags | name => Enum.map(values, &keyword/1)}}

      %{^name => value} ->
        {:ok, %{flags | name => keyword(value)}}

      _ ->
        {:ok, flags}
    end
  end

  @doc """
  Reads one of the fixed words `allowed`, whatever its case and with `-` or blanks for `_`.

      iex> Skillbook.Flags.cast_one_of(%{"status" => "In Progress"}, "status", ["todo", "in_progress"])
      {:ok, %{"status" => "in_progress"}}

      iex> {:error, e} = Skillbook.Flags.cast_one_of(%{"sort" => ["name", "date"]}, "sort", ["name", "date"])
      iex> Exception.message(e)
      ~s(--sort takes one value, got 2: "name", "date". Write for example: --sort name)
  """
  @spec cast_one_of(t(), String.t(), [String.t()]) :: cast()
  def cast_one_of(flags, name, allowed) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      values when is_list(values) ->
        error(:too_many, name, values,
          expected: "one of #{Enum.join(allowed, ", ")}",
          example: example(hd(allowed))
        )

      value ->
        meant = meant(value, allowed)

        with :ok <- validate_enum(%{name => meant}, name, allowed),
             do: {:ok, Map.put(flags, name, meant)}
    end
  end

  @doc """
  Reads one value by a rule of the handler's own; `cast_integer/3` and its like are made of this.

  `expected` completes "must be ..." in the error, `example` is a right value as it stands in a command, and
  `cast` gives `{:ok, value}` for a right value and anything else for a wrong one.

      iex> size = fn text -> with true <- text in ~w(S M L), do: {:ok, text} end
      iex> Skillbook.Flags.cast(%{"size" => "M"}, "size", "a size", "M", size)
      {:ok, %{"size" => "M"}}
      iex> {:error, e} = Skillbook.Flags.cast(%{"size" => "XXL"}, "size", "a size", "M", size)
      iex> Exception.message(e)
      ~s(--size must be a size, got "XXL". Write for example: --size M)
  """
  @spec cast(t(), String.t(), String.t(), String.t(), (term() -> {:ok, term()} | term())) ::
          cast()
  def cast(flags, name, expected, example, cast) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      true ->
        error(:no_value, name, true, expected: expected, example: example)

      values when is_list(values) ->
        error(:too_many, name, values, expected: expected, example: example)

      value ->
        put(flags, name, value, cast.(value), expected, example)
    end
  end

  @doc """
  Reads a whole number.

  ## Options

    * `:min`, `:max` - the smallest and the largest number allowed

  ## Examples

      iex> Skillbook.Flags.cast_integer(%{"limit" => "20"}, "limit", min: 1)
      {:ok, %{"limit" => 20}}

      iex> {:error, e} = Skillbook.Flags.cast_integer(%{"limit" => "0"}, "limit", min: 1)
      iex> Exception.message(e)
      ~s(--limit must be a whole number from 1 on, got "0". Write for example: --limit 1)
  """
  @spec cast_integer(t(), String.t(), keyword()) :: cast()
  def cast_integer(flags, name, opts \\ []) do
    opts = Keyword.validate!(opts, [:min, :max])
    {min, max} = {opts[:min], opts[:max]}
    example = Integer.to_string(min || max || 10)

    cast(flags, name, "a whole number" <> range(min, max), example, fn value ->
      with {:ok, number} <- integer(value), true <- within?(number, min, max), do: {:ok, number}
    end)
  end

  @doc """
  Reads a number, with or without a fraction, as a float.

  ## Options

    * `:min`, `:max` - the smallest and the largest number allowed

  ## Examples

      iex> Skillbook.Flags.cast_number(%{"amount" => "12.50"}, "amount")
      {:ok, %{"amount" => 12.5}}

      iex> {:error, e} = Skillbook.Flags.cast_number(%{"amount" => "12,50"}, "amount")
      iex> Exception.message(e)
      ~s(--amount must be a number, got "12,50". Write for example: --amount 2.5)
  """
  @spec cast_number(t(), String.t(), keyword()) :: cast()
  def cast_number(flags, name, opts \\ []) do
    opts = Keyword.validate!(opts, [:min, :max])
    {min, max} = {opts[:min], opts[:max]}
    example = to_string(min || max || 2.5)

    cast(flags, name, "a number" <> range(min, max), example, fn value ->
      with {:ok, number} <- float(value), true <- within?(number, min, max), do: {:ok, number}
    end)
  end

  @doc """
  Reads a switch: alone it is `true`; `true`, `yes`, `on`, `1` and their opposites may follow.

      iex> Skillbook.Flags.cast_boolean(%{"overdue" => true, "unread" => "no"}, "unread")
      {:ok, %{"overdue" => true, "unread" => false}}

      iex> {:error, e} = Skillbook.Flags.cast_boolean(%{"overdue" => "report"}, "overdue")
      iex> Exception.message(e)
      ~s(--overdue must be a switch, alone or with true or false, got "report". Write it as: --overdue)
  """
  @spec cast_boolean(t(), String.t()) :: cast()
  def cast_boolean(flags, name) do
    case value(flags, name) do
      true -> {:ok, Map.put(flags, name, true)}
      _ -> cast(flags, name, "a switch, alone or with true or false", "", &boolean/1)
    end
  end

  @doc """
  Reads a day of the calendar, `YYYY-MM-DD`.

  ## Options

    * `:today` - a `Date`; with it the words `yesterday`, `today` and `tomorrow` are days too

  ## Examples

      iex> Skillbook.Flags.cast_date(%{"due" => "2026-02-28"}, "due")
      {:ok, %{"due" => ~D[2026-02-28]}}

      iex> Skillbook.Flags.cast_date(%{"due" => "Tomorrow"}, "due", today: ~D[2026-02-28])
      {:ok, %{"due" => ~D[2026-03-01]}}

      iex> {:error, e} = Skillbook.Flags.cast_date(%{"due" => "2026-02-30"}, "due")
      iex> Exception.message(e)
      ~s(--due must be a day as YYYY-MM-DD, got "2026-02-30". Write for example: --due 2026-03-01)
  """
  @spec cast_date(t(), String.t(), keyword()) :: cast()
  def cast_date(flags, name, opts \\ []) do
    opts = Keyword.validate!(opts, [:today])
    today = opts[:today]
    words = if today, do: ", yesterday, today or tomorrow", else: ""
    cast(flags, name, "a day as YYYY-MM-DD" <> words, "2026-03-01", &date(&1, today))
  end

  @doc """
  Reads a moment in time as ISO 8601 with its offset from UTC, and gives it in UTC.

      iex> Skillbook.Flags.cast_datetime(%{"start" => "2026-03-01T10:00:00+02:00"}, "start")
      {:ok, %{"start" => ~U[2026-03-01 08:00:00Z]}}

      iex> {:error, e} = Skillbook.Flags.cast_datetime(%{"start" => "2026-03-01 10:00"}, "start")
      iex> Exception.message(e)
      ~s(--start must be a date, a time and an offset in ISO 8601, got "2026-03-01 10:00". Write for example: --start 2026-03-01T10:00:00+01:00)
  """
  @spec cast_datetime(t(), String.t()) :: cast()
  def cast_datetime(flags, name) do
    expected = "a date, a time and an offset in ISO 8601"
    cast(flags, name, expected, "2026-03-01T10:00:00+01:00", &datetime/1)
  end

  @doc """
  Reads text. Several words are joined by blanks; a number becomes its digits.

  ## Options

    * `:max` - the greatest length in characters
    * `:line` - whether it must be a single line; `false` unless told
    * `:empty` - whether it may be empty or blank; `false` unless told

  ## Examples

      iex> Skillbook.Flags.cast_text(%{"title" => ["Review", "the", "PR"]}, "title")
      {:ok, %{"title" => "Review the PR"}}

      iex> {:error, e} = Skillbook.Flags.cast_text(%{"title" => true}, "title")
      iex> Exception.message(e)
      ~s(--title needs a value and has none. Write for example: --title "some text")
  """
  @spec cast_text(t(), String.t(), keyword()) :: cast()
  def cast_text(flags, name, opts \\ []) do
    opts = Keyword.validate!(opts, [:max, line: false, empty: false])
    {max, line, empty} = {opts[:max], opts[:line], opts[:empty]}
    kind = if line, do: "one line of text", else: "text"
    kind = if max, do: "#{kind} of at most #{max} characters", else: kind
    expected = if empty, do: kind, else: "#{kind}, not empty"

    flags = Map.replace(flags, name, flags |> value(name) |> words())

    cast(flags, name, expected, ~s("some text"), fn value ->
      with {:ok, text} <- text(value),
           true <- empty or String.trim(text) != "",
           true <- fits?(text, max, line),
           do: {:ok, text}
    end)
  end

  @doc """
  Reads one or more values as a list of strings. Commas separate values too; blanks around them and repetitions go,
  and so do the brackets and quotes of `[Q1, backend]` and `["Q1", "backend"]`.

      iex> Skillbook.Flags.cast_list(%{"tags" => "Q1"}, "tags")
      {:ok, %{"tags" => ["Q1"]}}

      iex> Skillbook.Flags.cast_list(%{"tags" => ["Q1,", "backend", "Q1"]}, "tags")
      {:ok, %{"tags" => ["Q1", "backend"]}}

      iex> Skillbook.Flags.cast_list(%{"tags" => ~s(["Q1", "backend"])}, "tags")
      {:ok, %{"tags" => ["Q1", "backend"]}}

      iex> {:error, e} = Skillbook.Flags.cast_list(%{"tags" => ","}, "tags")
      iex> Exception.message(e)
      ~s(--tags must be one or more values, each one line, got ",". Write for example: --tags one two)
  """
  @spec cast_list(t(), String.t()) :: cast()
  def cast_list(flags, name) do
    cast_all(flags, name, "one or more values, each one line", "one two", fn text ->
      if fits?(text, nil, true), do: {:ok, text}, else: :error
    end)
  end

  @doc """
  Reads one e-mail address.

      iex> Skillbook.Flags.cast_email(%{"to" => "bob@example.com"}, "to")
      {:ok, %{"to" => "bob@example.com"}}

      iex> {:error, e} = Skillbook.Flags.cast_email(%{"to" => "bob"}, "to")
      iex> Exception.message(e)
      ~s(--to must be an e-mail address, got "bob". Write for example: --to bob@example.com)
  """
  @spec cast_email(t(), String.t()) :: cast()
  def cast_email(flags, name) do
    cast(flags, name, "an e-mail address", "bob@example.com", fn value ->
      with {:ok, text} <- text(value), do: email(text)
    end)
  end

  @doc """
  Reads one or more e-mail addresses as a list; commas may separate them.

      iex> Skillbook.Flags.cast_emails(%{"to" => ["bob@example.com,", "ann@example.com"]}, "to")
      {:ok, %{"to" => ["bob@example.com", "ann@example.com"]}}

      iex> {:error, e} = Skillbook.Flags.cast_emails(%{"to" => ["bob@example.com", "Ann"]}, "to")
      iex> Exception.message(e)
      ~s(--to must be one or more e-mail addresses, got "Ann". Write for example: --to bob@example.com ann@example.com)
  """
  @spec cast_emails(t(), String.t()) :: cast()
  def cast_emails(flags, name) do
    cast_all(
      flags,
      name,
      "one or more e-mail addresses",
      "bob@example.com ann@example.com",
      &email/1
    )
  end

  @doc """
  Gives absent flags their default values.

      iex> Skillbook.Flags.apply_defaults(%{"limit" => "5", "sort" => nil}, %{"limit" => 20, "sort" => "name"})
      %{"limit" => "5", "sort" => "name"}
  """
  @spec apply_defaults(t(), t()) :: t()
  def apply_defaults(flags, defaults) do
    Map.merge(flags, defaults, fn name, value, default ->
      if given?(flags, name), do: value, else: default
    end)
  end

  @doc """
  Reads flags by what the command's page declares (`Skillbook.View.flags/2`), with the errors of the
  functions above.

  This is how a handler's flags are read before it runs. Unknown flags are refused, required ones
  must be there, and values become those of the declared type, whether they were written as text or
  in a JSON object: numbers, dates, booleans, the words of a list as the page spells them, lists
  where there may be several. Absent flags get the page's default, if it has one, and are else left
  out. A flag of which the page says no more than that it has a value keeps its text or texts.

  ## Options

    * `:args` - the words before the first flag, which become flags as the page declares; where
      Usage shows words of its own they are left alone
    * `:today` - a `Date`, for the words `yesterday`, `today` and `tomorrow` where the page allows
      them

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, declaration} = Skillbook.View.flags(Skillbook.View.all(catalog), "tasks.search")
      iex> flags = %{"status" => "In Progress", "due_before" => "tomorrow", "overdue" => true}
      iex> Skillbook.Flags.cast_declared(flags, declaration, today: ~D[2026-02-28])
      {:ok, %{"status" => ["in_progress"], "due-before" => ~D[2026-03-01], "overdue" => true, "limit" => 20}}
      iex> {:error, e} = Skillbook.Flags.cast_declared(%{"limit" => "500"}, declaration)
      iex> Exception.message(e)
      ~s(--limit must be a whole number from 1 to 100, got "500". Write for example: --limit 1)
  """
  @spec cast_declared(t(), Declaration.t(), args: [String.t()], today: Date.t()) :: cast()
  def cast_declared(flags, %Declaration{flags: declared} = declaration, opts \\ []) do
    opts = Keyword.validate!(opts, [:today, args: []])
    required = for flag <- declared, flag.required, do: flag.name

    with {:ok, flags} <- known(flags, Enum.flat_map(declared, & &1.names)),
         flags = own_names(flags, declared),
         {:ok, flags} <- positional(flags, declaration, opts[:args]),
         :ok <-
           if(declaration.words and opts[:args] != [],
             do: :ok,
             else: __MODULE__.require(flags, required)
           ),
         {:ok, others} <- choices(flags, declaration.choices) do
      defaults =
        for flag <- declared,
            flag.default != [],
            flag.name not in others,
            do: {flag.name, flag.default}

      flags = apply_defaults(flags, Map.new(defaults))
      reduce(declared, flags, &declared(&2, &1, opts[:today]))
    end
  end

  @doc """
  Checks flags by what the command's page declares, as `cast_declared/3` reads them; `args` are the
  words before the first flag.

      iex> declaration = Skillbook.Declaration.read("## Flags\\n\\n--limit  How many, from 1 to 9\\n")
      iex> Skillbook.Flags.check(%{"limit" => "5"}, declaration)
      :ok
  """
  @spec check(t(), Declaration.t(), [String.t()]) :: check()
  def check(flags, %Declaration{} = declaration, args \\ []) do
    # Which day it is makes no difference to whether a word is one.
    with {:ok, _} <- cast_declared(flags, declaration, args: args, today: ~D[2000-01-01]), do: :ok
  end

  defp own_names(flags, declared) do
    own =
      for %{name: name, names: [_, _ | _] = names} <- declared,
          other <- names,
          into: %{},
          do: {other, name}

    for {name, value} <- flags,
        reduce: %{},
        do: (acc -> Map.update(acc, Map.get(own, name, name), value, &add(&1, value)))
  end

  defp positional(flags, %{words: true}, _args), do: {:ok, flags}

  defp positional(flags, declaration, args) do
    taking =
      for %{positional: how, name: name} when how != nil <- declaration.flags, do: {name, how}

    open = Enum.reject(taking, fn {name, _} -> given?(flags, name) end)

    args =
      with {_, :all} <- List.last(open),
           {first, [_ | _] = rest} <- Enum.split(args, length(open) - 1),
           do: first ++ [Enum.join(rest, " ")],
           else: (_ -> args)

    cast_args(flags, args, Enum.map(taking, &elem(&1, 0)))
  end

  # The flags that the given ones of their choices exclude.
  defp choices(flags, choices) do
    reduce(choices, [], fn %{names: names, required: required}, others ->
      case Enum.filter(names, &given?(flags, &1)) do
        [_, _ | _] = given ->
          expected = "only one of them may be given"
          {:error, %FlagError{kind: :conflict, flag: hd(given), flags: given, expected: expected}}

        [given] ->
          {:ok, List.delete(names, given) ++ others}

        [] ->
          with :ok <- if(required, do: require_any(flags, names), else: :ok), do: {:ok, others}
      end
    end)
  end

  defp declared(flags, %{name: name}, _today) when not is_map_key(flags, name), do: {:ok, flags}

  # Each text stays as it is; other values may have commas between them, and count once.
  defp declared(flags, %{several: true, type: :text, name: name} = flag, today),
    do: each(flags, name, List.wrap(flags[name]), &declared(&1, %{flag | several: false}, today))

  defp declared(flags, %{several: true, type: :one_of, name: name, values: allowed}, _today) do
    with {:ok, flags} <- cast_list(flags, name),
         flags =
           Map.update!(flags, name, fn values ->
             values |> Enum.map(&meant(&1, allowed)) |> Enum.uniq()
           end),
         :ok <- validate_enum(flags, name, allowed),
         do: {:ok, flags}
  end

  defp declared(flags, %{several: true, name: name} = flag, today) do
    with {:ok, flags} <- cast_list(flags, name),
         {:ok, flags} <-
           each(flags, name, flags[name], &declared(&1, %{flag | several: false}, today)),
         do: {:ok, Map.update!(flags, name, &Enum.uniq/1)}
  end

  defp declared(flags, %{name: name} = flag, today) do
    case flag.type do
      :one_of ->
        cast_one_of(flags, name, flag.values)

      :integer ->
        cast_integer(flags, name, min: flag.min, max: flag.max)

      :number ->
        cast_number(flags, name, min: flag.min, max: flag.max)

      :date ->
        cast_date(flags, name, today: if(flag.values != [], do: today))

      :text ->
        cast_text(flags, name, max: flag.max, line: flag.line, empty: flag.empty)

      :switch ->
        cast_boolean(flags, name)

      :value ->
        if value(flags, name) == true, do: cast_text(flags, name), else: {:ok, plain(flags, name)}

      nil ->
        {:ok, plain(flags, name)}
    end
  end

  defp each(flags, name, values, cast) do
    result =
      collect(values, fn value ->
        with {:ok, %{^name => value}} <- cast.(%{name => value}), do: {:ok, value}
      end)

    with {:ok, values} <- result, do: {:ok, %{flags | name => values}}
  end

  # As a line would have it.
  defp plain(flags, name) do
    case value(flags, name) do
      values when is_list(values) -> %{flags | name => Enum.map(values, &plain/1)}
      value -> %{flags | name => plain(value)}
    end
  end

  defp plain(number) when is_number(number), do: to_string(number)
  defp plain(value), do: value

  defp reduce(items, acc, fun) do
    Enum.reduce_while(items, {:ok, acc}, fn item, {:ok, acc} ->
      case fun.(item, acc) do
        {:ok, _} = done -> {:cont, done}
        error -> {:halt, error}
      end
    end)
  end

  # Values

  defp value(flags, name) do
    case flags do
      %{^name => []} -> nil
      %{^name => [single]} -> single
      %{^name => value} -> value
      _ -> nil
    end
  end

  defp given?(flags, name), do: value(flags, name) != nil

  defp cast_all(flags, name, expected, example, cast) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      true ->
        error(:no_value, name, true, expected: expected, example: example)

      value ->
        cast = fn text -> with :error <- cast.(text), do: {:error, text} end

        result =
          with {:ok, texts} <- value |> List.wrap() |> collect(&text/1),
               parts =
                 texts
                 |> unbracket()
                 |> Enum.flat_map(&String.split(&1, ","))
                 |> Enum.map(&String.trim/1),
               [_ | _] = parts <- parts |> Enum.reject(&(&1 == "")) |> Enum.uniq() do
            collect(parts, cast)
          end

        put(flags, name, value, result, expected, example)
    end
  end

  # A list as programs write it. A bracket on one side only belongs to its value.
  defp unbracket([first | _] = texts) do
    with "[" <> _ <- first, true <- texts |> List.last() |> String.ends_with?("]") do
      inner = texts |> Enum.join(",") |> String.slice(1..-2//1)
      for part <- String.split(inner, ","), do: part |> String.trim() |> unquoted()
    else
      _ -> texts
    end
  end

  defp unbracket([]), do: []

  defp unquoted(text) do
    case Regex.run(~r/\A(["'])(.*)\1\z/su, text) do
      [_, _, inner] -> inner
      nil -> text
    end
  end

  defp put(flags, name, value, result, expected, example) do
    case result do
      {:ok, cast} -> {:ok, Map.put(flags, name, cast)}
      {:error, culprit} -> invalid(name, culprit, expected, example)
      _ -> invalid(name, value, expected, example)
    end
  end

  defp collect(items, cast) do
    Enum.reduce_while(items, {:ok, []}, fn item, {:ok, done} ->
      case cast.(item) do
        {:ok, value} -> {:cont, {:ok, [value | done]}}
        other -> {:halt, other}
      end
    end)
    |> then(fn
      {:ok, done} -> {:ok, Enum.reverse(done)}
      other -> other
    end)
  end

  # A word list becomes one text only if all of it is text: `[true, "x"]` and objects stay for the error to show.
  defp words(values) when is_list(values) do
    case collect(values, &text/1) do
      {:ok, texts} -> Enum.join(texts, " ")
      _ -> values
    end
  end

  defp words(value), do: value

  defp text(value) when is_binary(value), do: {:ok, value}
  defp text(value) when is_number(value), do: {:ok, to_string(value)}
  defp text(%Date{} = day), do: {:ok, Date.to_iso8601(day)}
  defp text(_), do: :error

  # Control characters would let a value redraw a terminal or end a line of YAML.
  defp fits?(text, max, line) do
    forbidden =
      if line,
        do: ~r/[\x{0}-\x{1F}\x{7F}-\x{9F}\x{2028}\x{2029}]/u,
        else: ~r/[\x{0}-\x{8}\x{B}\x{C}\x{E}-\x{1F}\x{7F}]/u

    String.valid?(text) and not Regex.match?(forbidden, text) and
      (max == nil or String.length(text) <= max)
  end

  defp integer(value) when is_integer(value), do: {:ok, value}
  defp integer(value) when is_float(value) and trunc(value) == value, do: {:ok, trunc(value)}

  defp integer(value) when is_binary(value) and byte_size(value) <= @longest_integer do
    case value |> String.trim() |> Integer.parse() do
      {number, ""} -> {:ok, number}
      _ -> :error
    end
  end

  defp integer(_), do: :error

  defp float(value) when is_float(value), do: {:ok, value}
  defp float(value) when is_integer(value) and abs(value) < 1.0e300, do: {:ok, value * 1.0}

  defp float(value) when is_binary(value) and byte_size(value) <= 64 do
    case value |> String.trim() |> Float.parse() do
      {number, ""} -> {:ok, number}
      _ -> :error
    end
  end

  defp float(_), do: :error

  defp boolean(value) when is_boolean(value), do: {:ok, value}

  defp boolean(value) do
    with {:ok, text} <- text(value) do
      case text |> String.trim() |> String.downcase() do
        yes when yes in ~w(true yes on 1) -> {:ok, true}
        no when no in ~w(false no off 0) -> {:ok, false}
        _ -> :error
      end
    end
  end

  defp date(%Date{} = date, _), do: {:ok, date}

  defp date(value, today) do
    with {:ok, text} <- text(value) do
      case {text |> String.trim() |> String.downcase(), today} do
        {"yesterday", %Date{}} -> {:ok, Date.add(today, -1)}
        {"today", %Date{}} -> {:ok, today}
        {"tomorrow", %Date{}} -> {:ok, Date.add(today, 1)}
        # The library also reads negative years, which here are a slip of the dash.
        {"-" <> _, _} -> :error
        {text, _} -> Date.from_iso8601(text)
      end
      |> ok_or_error()
    end
  end

  defp datetime(%DateTime{} = datetime), do: DateTime.shift_zone(datetime, "Etc/UTC")

  defp datetime(value) do
    with {:ok, text} <- text(value),
         {:ok, datetime, _offset} <- text |> String.trim() |> DateTime.from_iso8601() do
      {:ok, datetime}
    end
    |> ok_or_error()
  end

  # RFC 5321 allows far more; what people and models write is this.
  defp email(text) do
    text = String.trim(text)

    if byte_size(text) <= 254 and
         Regex.match?(
           ~r/\A[^\s@<>()\[\],;:"\\]+@[^\s@<>()\[\],;:"\\.]+(\.[^\s@<>()\[\],;:"\\.]+)+\z/u,
           text
         ),
       do: {:ok, text},
       else: :error
  end

  defp ok_or_error({:ok, value}), do: {:ok, value}
  defp ok_or_error(_), do: :error

  defp keyword(value) when is_binary(value),
    do: value |> String.trim() |> String.downcase() |> String.replace(["-", " "], "_")

  defp keyword(value), do: value

  # The allowed word that a value spells.
  defp meant(value, allowed) do
    spelled = value |> plain() |> keyword()
    Enum.find(allowed, value, &(keyword(&1) == spelled))
  end

  defp add(first, second), do: List.wrap(first) ++ List.wrap(second)

  defp key(name), do: name |> String.downcase() |> String.replace(["_", "-"], "")

  # `--title Foo -priority high`: the first value of a flag may begin with a dash, and a negative number may follow.
  defp one_dash({name, [_ | values]}, by_key) do
    Enum.find_value(values, fn
      "-" <> word = value when is_map_key(by_key, word) -> {name, value}
      _ -> nil
    end)
  end

  defp one_dash(_, _), do: nil

  defp closest(word, candidates, threshold) do
    word |> Closest.to(Enum.filter(candidates, &is_binary/1), threshold) |> List.wrap()
  end

  defp within?(number, min, max),
    do: (min == nil or number >= min) and (max == nil or number <= max)

  defp range(nil, nil), do: ""
  defp range(min, nil), do: " from #{min} on"
  defp range(nil, max), do: " up to #{max}"
  defp range(min, max), do: " from #{min} to #{max}"

  defp one_or_all([single]), do: single
  defp one_or_all(values), do: values

  defp example(value) do
    text = to_string(value)
    if text =~ ~r/\s/, do: inspect(text), else: text
  end

  # Errors

  defp invalid(name, value, expected, example),
    do: error(:invalid, name, value, expected: expected, example: example)

  defp error(kind, name, value, fields),
    do: {:error, struct!(%FlagError{kind: kind, flag: name, value: value}, fields)}
end
