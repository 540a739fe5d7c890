defmodule Skillbook.Flags.Check do
  @moduledoc false
  # Checks which flags and words a command has: unknown, missing, misspelled and conflicting
  # flags, words without a flag, and defaults; from the names that a handler knows, or from the
  # declaration of the page. `Skillbook.Flags` documents these functions.

  alias Skillbook.{Declaration, FlagError, Flags}
  alias Skillbook.Flags.{Cast, Structured}
  alias Skillbook.Support.{JSON, UntilError}

  # By names

  @spec known(Flags.t(), [String.t()]) :: Flags.cast()
  def known(flags, names) do
    by_name = by_name(names)

    case split(flags, by_name) do
      {known, []} -> with :ok <- dashes(known, by_name), do: {:ok, given(known)}
      {_known, unknown} -> {:error, unknown(unknown, names)}
    end
  end

  @doc "Renames flags to the names in `names`, and returns those that are none of them."
  @spec named(Flags.t(), [String.t()]) :: {Flags.t(), [String.t()]}
  def named(flags, names) do
    {known, unknown} = split(flags, by_name(names))
    {Enum.reduce(known, %{}, &add/2), unknown}
  end

  # The names by their spellings. The exact ones need no look at their letters.
  defp by_name(names),
    do: Enum.reduce(names, Map.new(names, &{normalize(&1), &1}), &Map.put(&2, &1, &1))

  # The known flags with their names, as they were given, and the unknown names.
  defp split(flags, by_name) do
    {known, unknown} =
      flags
      |> Enum.sort()
      |> Enum.reduce({[], []}, fn {name, value}, {known, unknown} ->
        case by_name do
          %{^name => name} -> {[{name, value} | known], unknown}
          _ -> spelled(by_name[normalize(name)], name, value, known, unknown)
        end
      end)

    {Enum.reverse(known), Enum.reverse(unknown)}
  end

  defp spelled(nil, given, _value, known, unknown), do: {known, [given | unknown]}
  defp spelled(name, _given, value, known, unknown), do: {[{name, value} | known], unknown}

  defp given(known) do
    for {_name, value} = flag <- known, value not in [nil, [], [nil]], reduce: %{} do
      given -> add(flag, given)
    end
  end

  # The values of two spellings are those of one flag.
  defp add({name, value}, flags) when is_map_key(flags, name),
    do: %{flags | name => List.wrap(flags[name]) ++ List.wrap(value)}

  defp add({name, value}, flags), do: Map.put(flags, name, value)

  defp dashes(known, by_name) do
    case Enum.find_value(known, &one_dash(&1, by_name)) do
      nil -> :ok
      {name, word} -> {:error, %FlagError{kind: :one_dash, flag: name, value: word}}
    end
  end

  @spec unknown([String.t()], [String.t()]) :: FlagError.t()
  def unknown(unknown, names) do
    suggestions = unknown |> Enum.flat_map(&Cast.closest(&1, names, 0.75)) |> Enum.uniq()

    %FlagError{
      kind: :unknown,
      flag: hd(unknown),
      flags: unknown,
      expected: names,
      suggestions: suggestions
    }
  end

  @spec cast_args(Flags.t(), [String.t()], [String.t()]) :: Flags.cast()
  def cast_args(flags, args, names) do
    open = Enum.reject(names, &given?(flags, &1))

    case Enum.split(args, length(open)) do
      {words, []} -> {:ok, open |> Enum.zip(words) |> Enum.into(flags)}
      {_, words} -> {:error, %FlagError{kind: :words, value: words, expected: names}}
    end
  end

  @spec require(Flags.t(), [String.t()]) :: Flags.check()
  def require(flags, names) do
    case Enum.reject(names, &given?(flags, &1)) do
      [] -> :ok
      missing -> {:error, %FlagError{kind: :missing, flag: hd(missing), flags: missing}}
    end
  end

  @spec require_any(Flags.t(), [String.t()]) :: Flags.check()
  def require_any(flags, names) do
    if Enum.any?(names, &given?(flags, &1)),
      do: :ok,
      else: {:error, %FlagError{kind: :missing_any, flags: names}}
  end

  @spec apply_defaults(Flags.t(), Flags.t()) :: Flags.t()
  def apply_defaults(flags, defaults) do
    Map.merge(flags, defaults, fn name, value, default ->
      if given?(flags, name), do: value, else: default
    end)
  end

  @doc "Whether a flag has a value. `nil` and an empty list count as absent."
  @spec given?(Flags.t(), String.t()) :: boolean()
  def given?(flags, name), do: Map.get(flags, name) not in [nil, [], [nil]]

  # By the declaration of a page

  @type options :: [args: [String.t()], json: boolean(), today: Date.t()]

  @spec declared(Flags.t(), Declaration.t(), options()) :: Flags.cast()
  def declared(_flags, %Declaration{error: error}, _opts) when error != nil,
    do: {:error, %FlagError{kind: :declaration, expected: error}}

  def declared(flags, %Declaration{} = declaration, opts) do
    opts = Keyword.validate!(opts, [:today, args: [], json: false])

    if declaration.schema,
      do: Structured.arguments(flags, declaration, opts),
      else: checked(flags, declaration, opts)
  end

  # All mistakes at once, so that the model corrects them in one reply.
  defp checked(flags, %Declaration{flags: declared} = declaration, opts) do
    names = Enum.flat_map(declared, & &1.names)
    by_name = by_name(names)
    {known, unknown} = split(flags, by_name)
    unknown = if unknown == [], do: [], else: [unknown(unknown, names)]

    with :ok <- dashes(known, by_name),
         given =
           known |> given() |> resolve_aliases(declared) |> clear_empty_lists(flags, declared),
         {:ok, given} <- positional(given, declaration, opts[:args]) do
      missing = missing(given, declared, unknown, declaration.words and opts[:args] != [])
      {excluded, conflicts} = excluded(given, declaration.choices, unknown)
      {flags, invalid} = given |> with_defaults(declared, excluded) |> cast_flags(declared, opts)

      case unknown ++ missing ++ conflicts ++ invalid do
        [] -> {:ok, flags}
        errors -> FlagError.all(errors)
      end
    else
      {:error, error} -> FlagError.all(unknown ++ [error])
    end
  end

  defp with_defaults(flags, declared, excluded) do
    defaults =
      for flag <- declared,
          flag.default != [],
          flag.name not in excluded,
          do: {flag.name, flag.default}

    apply_defaults(flags, Map.new(defaults))
  end

  # Other words may stand for required flags, and so may misspelt ones.
  defp missing(_flags, _declared, _unknown, true), do: []

  defp missing(flags, declared, unknown, false) do
    meant = Enum.flat_map(unknown, & &1.suggestions)
    required = for %{required: true, name: name} <- declared, name not in meant, do: name
    with {:error, error} <- __MODULE__.require(flags, required), do: [error], else: (:ok -> [])
  end

  defp excluded(flags, choices, unknown) do
    case choices(flags, choices) do
      {:ok, excluded} -> {excluded, []}
      {:error, %{kind: :missing_any}} when unknown != [] -> {[], []}
      {:error, error} -> {[], [error]}
    end
  end

  defp cast_flags(flags, declared, opts) do
    {flags, errors} =
      Enum.reduce(declared, {flags, []}, fn flag, {flags, errors} ->
        with :ok <- if(opts[:json], do: check_list(flags, flag), else: :ok),
             {:ok, flags} <- cast_flag(flags, flag, opts) do
          {flags, errors}
        else
          {:error, error} -> {flags, [error | errors]}
        end
      end)

    {flags, Enum.reverse(errors)}
  end

  # Several words of a line are one text, but a list of a JSON object was meant as a list.
  defp check_list(flags, %{several: false, type: :text, schema: nil, name: name}) do
    with [_, _ | _] = values <- flags[name] do
      example = ~s("some text")
      {:error, %FlagError{kind: :too_many, flag: name, value: values, example: example}}
    else
      _ -> :ok
    end
  end

  defp check_list(_flags, _flag), do: :ok

  @spec check(Flags.t(), Declaration.t(), [String.t()]) :: Flags.check()
  def check(flags, %Declaration{} = declaration, args) do
    # Whether a word is a date does not depend on the current day.
    with {:ok, _} <- declared(flags, declaration, args: args, today: ~D[2000-01-01]), do: :ok
  end

  defp resolve_aliases(flags, declared) do
    by_alias =
      for %{name: name, names: [_, _ | _] = names} <- declared,
          other <- names,
          into: %{},
          do: {other, name}

    for {name, value} <- flags, reduce: %{} do
      acc ->
        name = Map.get(by_alias, name, name)
        Map.update(acc, name, value, &(List.wrap(&1) ++ List.wrap(value)))
    end
  end

  # `"tags": []` means `--clear tags`, if the command can clear tags.
  defp clear_empty_lists(flags, given, declared) do
    with %{several: true, type: :one_of, values: fields} <-
           Enum.find(declared, &(&1.name == "clear")),
         empty = for({name, []} <- given, do: normalize(name)),
         [_ | _] = cleared <-
           for(
             %{several: true, name: name, names: names} <- declared,
             name in fields and not is_map_key(flags, name),
             Enum.any?(names, &(normalize(&1) in empty)),
             do: name
           ) do
      Map.update(flags, "clear", cleared, &(List.wrap(&1) ++ cleared))
    else
      _ -> flags
    end
  end

  @doc "Gives the words before the first flag to the flags that take them."
  @spec positional(Flags.t(), Declaration.t(), [String.t()]) :: Flags.cast()
  def positional(flags, %{words: true}, _args), do: {:ok, flags}

  def positional(flags, declaration, args) do
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

  # Returns the flags that are excluded by a given flag of the same choice.
  defp choices(flags, choices) do
    UntilError.reduce(choices, [], fn %{names: names, required: required}, excluded ->
      case Enum.filter(names, &given?(flags, &1)) do
        [_, _ | _] = given ->
          expected = "only one of them may be given"
          FlagError.conflict(given, expected)

        [given] ->
          {:ok, List.delete(names, given) ++ excluded}

        [] ->
          with :ok <- if(required, do: require_any(flags, names), else: :ok),
               do: {:ok, excluded}
      end
    end)
  end

  defp cast_flag(flags, %{name: name}, _opts) when not is_map_key(flags, name), do: {:ok, flags}

  defp cast_flag(flags, %{schema: schema} = flag, opts) when schema != nil,
    do: Structured.value(flags, flag, opts[:json])

  defp cast_flag(flags, flag, opts), do: cast_type(flags, flag, opts[:today])

  # Texts and addresses of the web are not split at commas. Other values are, and duplicates are
  # removed.
  defp cast_type(flags, %{several: true, type: type, name: name} = flag, today)
       when type in [:text, :url],
       do:
         each(
           flags,
           name,
           List.wrap(flags[name]),
           &cast_type(&1, %{flag | several: false}, today)
         )

  defp cast_type(flags, %{several: true, type: :one_of, name: name, values: allowed}, _today) do
    with {:ok, flags} <- Cast.list(flags, name),
         flags =
           Map.update!(flags, name, fn values ->
             values |> Enum.map(&Cast.find_allowed(&1, allowed)) |> Enum.uniq()
           end),
         :ok <- Cast.validate_enum(flags, name, allowed),
         do: {:ok, flags}
  end

  defp cast_type(flags, %{several: true, name: name} = flag, today) do
    with {:ok, flags} <- Cast.list(flags, name),
         {:ok, flags} <-
           each(flags, name, flags[name], &cast_type(&1, %{flag | several: false}, today)),
         do: {:ok, Map.update!(flags, name, &Enum.uniq/1)}
  end

  defp cast_type(flags, %{name: name} = flag, today) do
    case flag.type do
      :one_of ->
        Cast.one_of(flags, name, flag.values)

      :integer ->
        Cast.integer(flags, name, min: flag.min, max: flag.max)

      :number ->
        Cast.number(flags, name, min: flag.min, max: flag.max)

      :date ->
        Cast.date(flags, name, today: if(flag.values != [], do: today))

      :datetime ->
        Cast.datetime(flags, name)

      :email ->
        Cast.email(flags, name)

      :url ->
        Cast.url(flags, name)

      :text ->
        with {:ok, flags} <-
               Cast.text(flags, name, max: flag.max, line: flag.line, empty: flag.empty),
             do: Cast.pattern(flags, name, flag.pattern)

      :switch ->
        Cast.boolean(flags, name)

      :value ->
        if Cast.value(flags, name) == true,
          do: Cast.text(flags, name, []),
          else: Cast.texts(flags, name)

      nil ->
        if Cast.value(flags, name) == true,
          do: {:ok, %{flags | name => true}},
          else: Cast.texts(flags, name)
    end
  end

  defp each(flags, name, values, cast) do
    result =
      UntilError.map(values, fn
        # Alone, these are missing values.
        value when is_list(value) or is_nil(value) ->
          got = IO.iodata_to_binary(JSON.encode(value))
          expected = "a list of single values"
          FlagError.invalid(name, got, expected)

        value ->
          with {:ok, %{^name => value}} <- cast.(%{name => value}), do: {:ok, value}
      end)

    with {:ok, values} <- result, do: {:ok, %{flags | name => values}}
  end

  # Case, `-` and `_` do not matter in the names of flags.
  defp normalize(name), do: name |> String.downcase() |> String.replace(["_", "-"], "")

  # `--title Foo -priority high`: a word with one dash that is a known flag was meant as a flag.
  # The first value of a flag may begin with a dash, and so may a negative number.
  defp one_dash({name, [_ | values]}, by_name) do
    Enum.find_value(values, fn
      "-" <> word = value when is_map_key(by_name, word) -> {name, value}
      _ -> nil
    end)
  end

  defp one_dash(_, _), do: nil
end
