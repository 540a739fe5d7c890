defmodule Skillbook.Flags.Given do
  @moduledoc false
  # Checks which flags and words a command has: unknown, missing and misspelled flags, words
  # without a flag, and defaults. `Skillbook.Flags` documents these functions.

  alias Skillbook.{FlagError, Flags}
  alias Skillbook.Flags.Cast

  @spec known(Flags.t(), [String.t()]) :: Flags.cast()
  def known(flags, names) do
    by_name = Map.new(names, &{normalize(&1), &1})
    known? = fn {name, _value} -> is_map_key(by_name, normalize(name)) end

    {known, unknown} = flags |> Enum.sort() |> Enum.split_with(known?)

    case unknown do
      [] ->
        given =
          for {name, value} <- known,
              value not in [nil, []],
              do: {by_name[normalize(name)], value}

        case Enum.find_value(given, &one_dash(&1, by_name)) do
          nil ->
            {:ok,
             Enum.reduce(given, %{}, fn {name, value}, acc ->
               Map.update(acc, name, value, &(List.wrap(&1) ++ List.wrap(value)))
             end)}

          {name, word} ->
            {:error, %FlagError{kind: :one_dash, flag: name, value: word}}
        end

      unknown ->
        unknown = Enum.map(unknown, &elem(&1, 0))
        suggestions = unknown |> Enum.flat_map(&Cast.closest(&1, names, 0.75)) |> Enum.uniq()

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
