defmodule Skillbook.Support.Arguments do
  @moduledoc false
  # Checks the types of arguments of public functions. A wrong one is an `ArgumentError` that
  # names the argument and the value to pass, not a `FunctionClauseError` of an internal module.
  #
  # Functions that are called often check by their clauses, and call this in the last one.

  alias Skillbook.Support.Options
  alias Skillbook.{Catalog, View}

  @typedoc "A type below, or the module of a struct."
  @type type ::
          :view
          | :view_or_book
          | :book
          | :catalog
          | :text
          | :name
          | :map
          | :keyword
          | :options
          | :fields
          | :list
          | :integer
          | {:or_nil, type()}
          | module()

  @doc """
  Raises `ArgumentError` for the first argument of the wrong type. `function` is its name with the
  arity.
  """
  @spec check!(String.t(), [{argument :: atom(), {type(), term()}}]) :: :ok
  def check!(function, arguments) do
    Enum.each(arguments, fn {argument, {type, value}} ->
      unless is?(type, value),
        do: raise(ArgumentError, message(function, argument, type, value))
    end)
  end

  defp message(function, argument, type, value) do
    "expected #{expected(type)} as the argument `#{argument}` of #{function}, " <>
      "got: #{inspect(value, limit: 5, printable_limit: 100)}#{remedy(type, value)}"
  end

  defp is?({:or_nil, type}, value), do: is_nil(value) or is?(type, value)
  defp is?(:view, value), do: is_struct(value, View)

  defp is?(:view_or_book, value),
    do: is_struct(value, View) or (is_atom(value) and value not in [nil, true, false])

  defp is?(:book, value), do: is_atom(value) and value not in [nil, true, false]
  defp is?(:catalog, value), do: is_struct(value, Catalog)
  defp is?(:text, value), do: is_binary(value)
  defp is?(:name, value), do: is_binary(value) or is?(:book, value)
  defp is?(:map, value), do: is_map(value) and not is_struct(value)
  defp is?(:keyword, value), do: Keyword.keyword?(value)
  defp is?(:fields, value), do: is?(:map, value) or is?(:keyword, value)
  defp is?(:options, value), do: Options.options?(value)
  defp is?(:list, value), do: is_list(value)
  defp is?(:integer, value), do: is_integer(value)
  defp is?(module, value), do: is_struct(value, module)

  defp expected({:or_nil, type}), do: "#{expected(type)} or nil"
  defp expected(:view), do: "a Skillbook.View"
  defp expected(:view_or_book), do: "a Skillbook.View or the name of a book"
  defp expected(:book), do: "the name of a book"
  defp expected(:catalog), do: "a Skillbook.Catalog"
  defp expected(:text), do: "text"
  defp expected(:name), do: "a name, an atom or text"
  defp expected(:map), do: "a map"
  defp expected(:keyword), do: "a keyword list"
  defp expected(:fields), do: "a map or a keyword list"
  defp expected(:options), do: "a keyword list or a map with atoms as keys"
  defp expected(:list), do: "a list"
  defp expected(:integer), do: "an integer"
  defp expected(module), do: "a #{inspect(module)}"

  defp remedy({:or_nil, type}, value), do: remedy(type, value)

  defp remedy(:view, book) when is_atom(book) and book not in [nil, true, false],
    do: "; Skillbook.view(#{inspect(book)}) returns the view of a book"

  # A profile decides about none of its own calls.
  defp remedy(:book, %View{}), do: "; trusted code decides, with the name of the book"

  defp remedy(type, %Catalog{}) when type in [:view, :view_or_book],
    do: "; Skillbook.View.new/2 returns the view of a catalog"

  defp remedy(:map, [_ | _]), do: "; write %{key: value} instead of [key: value]"
  defp remedy(:keyword, %{}), do: "; write [key: value] instead of %{key: value}"
  defp remedy(:text, text) when is_atom(text), do: "; write it as a string"
  defp remedy(:text, [_ | _]), do: "; write it as a string in double quotes"
  defp remedy(_type, _value), do: ""
end
