defmodule Skillbook.Test.Reflection do
  @moduledoc false
  # The public functions of all packages that are loaded, as their docs and specs tell them.

  # Modules of tests and of the command line.
  @others ~r/\ASkillbook\.(CLI|SQLConformance|StoreConformance)/

  @doc "The modules with docs."
  def modules do
    for module <- Skillbook.Test.Checkout.modules(),
        match?("Elixir.Skillbook" <> _, Atom.to_string(module)),
        inspect(module) not in ["Skillbook.Test.Reflection"],
        not Regex.match?(@others, inspect(module)),
        {:docs_v1, _, _, _, doc, _, _} <- [Code.fetch_docs(module)],
        doc != :hidden,
        do: module
  end

  @doc "Each public function: module, name, arity, the names of its arguments."
  def functions do
    for module <- modules(),
        {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(module),
        {{:function, name, arity}, _, [signature], doc, _} <- docs,
        doc != :hidden,
        do: {module, name, arity, arguments(signature)}
  end

  defp arguments(signature) do
    {_name, _, arguments} = Code.string_to_quoted!(signature)

    Enum.map(arguments || [], fn
      {:\\, _, [{name, _, _}, _default]} -> Atom.to_string(name)
      {name, _, _} when is_atom(name) -> Atom.to_string(name)
      _pattern -> "_"
    end)
  end

  @doc "Each public function and the type of its result: module, name, arity, type."
  def results do
    specs =
      for module <- modules(), {:ok, specs} <- [Code.Typespec.fetch_specs(module)], into: %{} do
        {module, Map.new(specs)}
      end

    for {module, name, arity, _arguments} <- functions(),
        spec <- Map.get(specs[module] || %{}, {name, arity}, []),
        do: {module, name, arity, result(spec)}
  end

  defp result({:type, _, :bounded_fun, [function, _constraints]}), do: result(function)
  defp result({:type, _, :fun, [_arguments, result]}), do: result

  @doc "The sizes of the tuples that a result may be."
  def tuple_sizes(type), do: type |> alternatives() |> Enum.flat_map(&size/1) |> Enum.uniq()

  defp size({:type, _, :tuple, :any}), do: []
  defp size({:type, _, :tuple, types}), do: [length(types)]
  defp size(_type), do: []

  @doc "The atoms at the start of tuples that a result may be, in order."
  def outcomes(type) do
    atoms = for {:type, _, :tuple, [{:atom, _, atom} | _]} <- alternatives(type), do: atom
    atoms |> Enum.uniq() |> Enum.sort()
  end

  defp alternatives({:type, _, :union, types}), do: Enum.flat_map(types, &alternatives/1)
  defp alternatives({:ann_type, _, [_name, type]}), do: alternatives(type)
  defp alternatives(type), do: [type]
end
