defmodule Skillbook.Test.Match do
  @moduledoc false
  # Compares calls with those that a test expects: a line of a command, or a name with flags.
  #
  # Values are compared as texts and as numbers, because expectations are written before values
  # are cast. `_` and `-` in names of flags are the same, as in commands.

  alias Skillbook.Support.Number
  alias Skillbook.{Command, Native, View}

  @type expected :: Skillbook.Test.Evaluation.expected()

  @typedoc "A call, with the values that the handler got."
  @type call :: %{name: String.t(), flags: map(), args: [String.t()]}

  @doc "Reads the line of an expected call. The error is a text."
  @spec line(String.t()) :: {:ok, expected()} | {:error, String.t()}
  def line(line) do
    case Command.parse(line) do
      {:ok, command} ->
        {:ok, %{name: command.name, flags: command.flags, args: command.args, exact: false}}

      {:error, error} ->
        {:error, Exception.message(error)}
    end
  end

  @doc "An expected call of a name with flags."
  @spec named(String.t(), map() | keyword(), boolean()) :: expected()
  def named(name, flags, exact \\ false),
    do: %{
      name: name,
      flags: Map.new(flags, fn {k, v} -> {to_string(k), v} end),
      args: [],
      exact: exact
    }

  @doc "Replaces an alias by the name of its entry, as the view resolves it."
  @spec resolve(expected(), View.t()) :: expected()
  def resolve(expected, view) do
    case View.fetch(view, expected.name) do
      {:ok, entry} -> %{expected | name: entry.name}
      {:error, _} -> expected
    end
  end

  @doc "Whether a call is the expected one. The expected name may be a glob."
  @spec call?(expected(), call()) :: boolean()
  def call?(expected, call) do
    actual = Map.new(call.flags, fn {name, value} -> {key(name), value} end)
    wanted = Map.new(expected.flags, fn {name, value} -> {key(name), value} end)
    # Positional words become flags when they are cast.
    rest = call.args ++ (actual |> Map.drop(Map.keys(wanted)) |> Map.values())

    name?(expected.name, call.name) and
      Enum.all?(wanted, fn {name, value} ->
        Map.has_key?(actual, name) and value?(value, actual[name])
      end) and
      Enum.all?(expected.args, fn arg -> Enum.any?(rest, &value?(arg, &1)) end) and
      (not expected.exact or length(rest) == length(expected.args))
  end

  @doc "Whether a glob matches a name."
  @spec name?(String.t(), String.t()) :: boolean()
  def name?(name, name), do: true
  def name?(glob, name), do: match?({:ok, [_]}, Native.globs_filter([glob], [name]))

  defp key(name), do: name |> to_string() |> String.replace("_", "-")

  @doc "Whether a value is the expected one: equal, equal as text or number, or of a pattern."
  @spec value?(term(), term()) :: boolean()
  def value?(%Regex{} = regex, values) when is_list(values),
    do: Enum.any?(values, &value?(regex, &1))

  def value?(%Regex{} = regex, value), do: Regex.match?(regex, text(value))

  def value?(expected, actual) when is_list(expected) and is_list(actual) do
    length(expected) == length(actual) and
      Enum.all?(Enum.zip(expected, actual), fn {one, other} -> value?(one, other) end)
  end

  # One value of a repeatable flag is a list of one.
  def value?(expected, [actual]) when not is_list(expected), do: value?(expected, actual)

  def value?(expected, actual) do
    expected == actual or text(expected) == text(actual) or
      (number(expected) != nil and number(expected) == number(actual))
  end

  defp number(value) when is_number(value), do: value * 1.0

  defp number(value) when is_binary(value) do
    with {number, ""} <- Number.float(value), do: number, else: (_ -> nil)
  end

  defp number(_value), do: nil

  defp text(value) when is_binary(value), do: value

  defp text(value) when is_list(value) or (is_map(value) and not is_struct(value)),
    do: inspect(value)

  defp text(value),
    do: if(String.Chars.impl_for(value), do: to_string(value), else: inspect(value))

  @doc "A call as a line for messages."
  @spec show(call() | expected()) :: String.t()
  def show(call) do
    flags = for {name, value} <- Enum.sort(call.flags), do: " --#{name} #{show_value(value)}"

    Enum.join([call.name | Enum.map(call.args, &(" " <> show_value(&1)))] ++ flags)
  end

  defp show_value(%Regex{} = regex), do: "/#{Regex.source(regex)}/"
  defp show_value(values) when is_list(values), do: Enum.map_join(values, " ", &show_value/1)

  defp show_value(value) do
    text = text(value)
    if text =~ ~r/^[\w.@:+\/-]+$/u, do: text, else: inspect(text)
  end
end
