defmodule Skillbook.Flags.Declared do
  @moduledoc false
  # Checks the flags of a command against the declaration of its page, and converts the values to
  # the declared types. `Skillbook.Flags` documents these functions.

  alias Skillbook.{Declaration, FlagError, Flags}
  alias Skillbook.Flags.{Cast, Given}

  @spec cast(Flags.t(), Declaration.t(), args: [String.t()], today: Date.t()) :: Flags.cast()
  def cast(flags, %Declaration{flags: declared} = declaration, opts) do
    opts = Keyword.validate!(opts, [:today, args: []])
    required = for flag <- declared, flag.required, do: flag.name

    with {:ok, flags} <- Given.known(flags, Enum.flat_map(declared, & &1.names)),
         flags = resolve_aliases(flags, declared),
         {:ok, flags} <- positional(flags, declaration, opts[:args]),
         :ok <- require_flags(flags, required, declaration.words and opts[:args] != []),
         {:ok, excluded} <- choices(flags, declaration.choices) do
      defaults =
        for flag <- declared,
            flag.default != [],
            flag.name not in excluded,
            do: {flag.name, flag.default}

      flags = Given.apply_defaults(flags, Map.new(defaults))
      reduce(declared, flags, &cast_flag(&2, &1, opts[:today]))
    end
  end

  @spec check(Flags.t(), Declaration.t(), [String.t()]) :: Flags.check()
  def check(flags, %Declaration{} = declaration, args) do
    # Whether a word is a date does not depend on the current day.
    with {:ok, _} <- cast(flags, declaration, args: args, today: ~D[2000-01-01]), do: :ok
  end

  # Other words may stand for required flags.
  defp require_flags(_flags, _required, true), do: :ok
  defp require_flags(flags, required, false), do: Given.require(flags, required)

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

  defp positional(flags, %{words: true}, _args), do: {:ok, flags}

  defp positional(flags, declaration, args) do
    taking =
      for %{positional: how, name: name} when how != nil <- declaration.flags, do: {name, how}

    open = Enum.reject(taking, fn {name, _} -> Given.given?(flags, name) end)

    args =
      with {_, :all} <- List.last(open),
           {first, [_ | _] = rest} <- Enum.split(args, length(open) - 1),
           do: first ++ [Enum.join(rest, " ")],
           else: (_ -> args)

    Given.cast_args(flags, args, Enum.map(taking, &elem(&1, 0)))
  end

  # Returns the flags that are excluded by a given flag of the same choice.
  defp choices(flags, choices) do
    reduce(choices, [], fn %{names: names, required: required}, excluded ->
      case Enum.filter(names, &Given.given?(flags, &1)) do
        [_, _ | _] = given ->
          expected = "only one of them may be given"
          {:error, %FlagError{kind: :conflict, flag: hd(given), flags: given, expected: expected}}

        [given] ->
          {:ok, List.delete(names, given) ++ excluded}

        [] ->
          with :ok <- if(required, do: Given.require_any(flags, names), else: :ok),
               do: {:ok, excluded}
      end
    end)
  end

  defp cast_flag(flags, %{name: name}, _today) when not is_map_key(flags, name), do: {:ok, flags}

  # Texts are not split at commas. Other values are, and duplicates are removed.
  defp cast_flag(flags, %{several: true, type: :text, name: name} = flag, today),
    do: each(flags, name, List.wrap(flags[name]), &cast_flag(&1, %{flag | several: false}, today))

  defp cast_flag(flags, %{several: true, type: :one_of, name: name, values: allowed}, _today) do
    with {:ok, flags} <- Cast.list(flags, name),
         flags =
           Map.update!(flags, name, fn values ->
             values |> Enum.map(&Cast.find_allowed(&1, allowed)) |> Enum.uniq()
           end),
         :ok <- Cast.validate_enum(flags, name, allowed),
         do: {:ok, flags}
  end

  defp cast_flag(flags, %{several: true, name: name} = flag, today) do
    with {:ok, flags} <- Cast.list(flags, name),
         {:ok, flags} <-
           each(flags, name, flags[name], &cast_flag(&1, %{flag | several: false}, today)),
         do: {:ok, Map.update!(flags, name, &Enum.uniq/1)}
  end

  defp cast_flag(flags, %{name: name} = flag, today) do
    case flag.type do
      :one_of ->
        Cast.one_of(flags, name, flag.values)

      :integer ->
        Cast.integer(flags, name, min: flag.min, max: flag.max)

      :number ->
        Cast.number(flags, name, min: flag.min, max: flag.max)

      :date ->
        Cast.date(flags, name, today: if(flag.values != [], do: today))

      :text ->
        Cast.text(flags, name, max: flag.max, line: flag.line, empty: flag.empty)

      :switch ->
        Cast.boolean(flags, name)

      :value ->
        if Cast.value(flags, name) == true,
          do: Cast.text(flags, name, []),
          else: {:ok, to_text(flags, name)}

      nil ->
        {:ok, to_text(flags, name)}
    end
  end

  defp each(flags, name, values, cast) do
    result =
      Cast.collect(values, fn value ->
        with {:ok, %{^name => value}} <- cast.(%{name => value}), do: {:ok, value}
      end)

    with {:ok, values} <- result, do: {:ok, %{flags | name => values}}
  end

  # Writes numbers as text, as in a line.
  defp to_text(flags, name) do
    case Cast.value(flags, name) do
      values when is_list(values) -> %{flags | name => Enum.map(values, &Cast.to_text/1)}
      value -> %{flags | name => Cast.to_text(value)}
    end
  end

  defp reduce(items, acc, fun) do
    Enum.reduce_while(items, {:ok, acc}, fn item, {:ok, acc} ->
      case fun.(item, acc) do
        {:ok, _} = done -> {:cont, done}
        error -> {:halt, error}
      end
    end)
  end
end
