defmodule Skillbook.Support.Options do
  @moduledoc false
  # Validates keyword lists of options. A schema is a keyword list of `option: {expected, check}`,
  # in the order in which errors list the options.

  alias Skillbook.OptionError
  alias Skillbook.SQL.Location

  @doc """
  Returns `:ok`, or the first unknown or invalid option. `subject` is the owner of the options,
  such as `"a book"`.
  """
  @spec validate(keyword() | term(), String.t(), keyword({String.t(), (term() -> boolean())})) ::
          :ok | {:error, OptionError.t()}
  def validate(options, subject, schema) do
    if Keyword.keyword?(options) do
      Enum.find_value(options, :ok, &problem(&1, subject, schema))
    else
      expected = "a keyword list or a map with atoms as keys"
      {:error, error(subject, schema, nil, {:invalid, expected, options})}
    end
  end

  defp problem({option, value}, subject, schema) do
    case Keyword.fetch(schema, option) do
      {:ok, {expected, check}} ->
        if not check.(value),
          do: {:error, error(subject, schema, option, {:invalid, expected, value})}

      :error ->
        {:error, error(subject, schema, option, :unknown)}
    end
  end

  @doc "Whether a value has the form of options: a keyword list, or a map with atoms as keys."
  @spec options?(term()) :: boolean()
  def options?(value) when is_map(value),
    do: not is_struct(value) and Enum.all?(value, fn {key, _} -> is_atom(key) end)

  def options?(value), do: Keyword.keyword?(value)

  @doc """
  Returns options as a keyword list, and so the options in those of the names `nested`.

  Other values, which a check refuses, are unchanged.
  """
  @spec keywords(keyword() | map() | term(), [atom()]) :: keyword() | term()
  def keywords(options, nested \\ [])
  def keywords(options, []) when is_list(options), do: options

  def keywords(options, nested) do
    options = if is_map(options) and options?(options), do: Map.to_list(options), else: options

    if nested != [] and Keyword.keyword?(options),
      do: Enum.map(options, fn {name, value} -> {name, nested(value, name in nested)} end),
      else: options
  end

  defp nested(value, true), do: keywords(value, [])
  defp nested(value, false), do: value

  @doc """
  Raises `ArgumentError` for an unknown option of a connection. The message has no values, which
  may be secret.
  """
  @spec known!(keyword() | term(), [atom()]) :: :ok
  def known!(options, known) do
    unless Keyword.keyword?(options),
      do: raise(ArgumentError, "expected the options to be a keyword list")

    with [unknown | _] <- Keyword.keys(options) -- known,
         do:
           raise(
             ArgumentError,
             "expected the options #{inspect(known)}, got: #{inspect(unknown)}"
           )

    :ok
  end

  defp error(subject, schema, option, problem) do
    %OptionError{subject: subject, option: option, problem: problem, known: Keyword.keys(schema)}
  end

  @doc "An option that is one of these atoms, for a schema."
  @spec one_of([atom(), ...]) :: {String.t(), (term() -> boolean())}
  def one_of(atoms) do
    {last, first} = atoms |> Enum.map(&inspect/1) |> List.pop_at(-1)
    {Enum.join(first, ", ") <> " or " <> last, &(&1 in atoms)}
  end

  @doc "Whether a value can be assigns: a map or a keyword list."
  @spec assigns?(term()) :: boolean()
  def assigns?(value), do: (is_map(value) and not is_struct(value)) or Keyword.keyword?(value)

  @spec positive?(term()) :: boolean()
  def positive?(value), do: is_integer(value) and value > 0

  @doc "The entry of a schema for an option that is a whole number from 1, or `nil`."
  @spec positive_or_nil() :: {String.t(), (term() -> boolean())}
  def positive_or_nil, do: {"a whole number from 1 or nil", &(is_nil(&1) or positive?(&1))}

  @doc "What the name of a process is, for errors; `process_name?/1` says whether a value is one."
  @spec process_name() :: String.t()
  def process_name, do: "an atom, {:global, term} or {:via, module, term}"

  @spec process_name?(term()) :: boolean()
  def process_name?({:global, _term}), do: true
  def process_name?({:via, module, _term}), do: atom_name?(module)
  def process_name?(name), do: atom_name?(name)

  defp atom_name?(name), do: is_atom(name) and name not in [nil, true, false]

  # The maximum of a timer of the virtual machine, about 49 days.
  @max_milliseconds 4_294_967_295

  @spec milliseconds?(term()) :: boolean()
  def milliseconds?(value), do: is_integer(value) and value in 1..@max_milliseconds

  @spec text?(term()) :: boolean()
  def text?(value), do: is_binary(value) and value != "" and String.valid?(value)

  @doc "Whether a value is the path of a file or a folder. A URL is not one."
  @spec path?(term()) :: boolean()
  def path?(value), do: text?(value) and not Location.url?(value)

  @spec texts?(term()) :: boolean()
  def texts?(value), do: is_list(value) and Enum.all?(value, &text?/1)
end
