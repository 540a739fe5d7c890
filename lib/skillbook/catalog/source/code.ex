defmodule Skillbook.Source.Code do
  @moduledoc false
  # Sources of code: the modules of an application that use `Skillbook.Skill`, some modules, a
  # skill made of a function, or an MCP server. Returns their pages for the core, which reads them
  # like files, and the functions behind them.

  alias Skillbook.Skill.Page
  alias Skillbook.{Part, Skill, Source}

  @type t :: Source.code()

  @typedoc "The path of a page, its text, and the lines of its code."
  @type page :: {String.t(), String.t(), {pos_integer(), pos_integer() | nil} | nil}

  @typedoc "The functions of a catalog, by the handlers of their pages."
  @type functions :: %{optional(String.t()) => function()}

  # All functions take sources of the kinds `:code` and `:mcp`.

  @doc "Returns the pages of each source, and the functions."
  @spec pages([Source.t()]) :: {[[page()]], functions()}
  def pages(sources) do
    Enum.map_reduce(sources, %{}, fn
      %Source{kind: :mcp, trust: :none}, functions ->
        {[], functions}

      %Source{kind: :mcp} = source, functions ->
        {pages, theirs} = Part.first(Part.installed(), :pages, [source])
        {pages, Map.merge(functions, theirs)}

      source, functions ->
        Enum.map_reduce(skills(source), functions, &page/2)
    end)
  end

  @doc "Returns the paths of the pages of sources."
  @spec paths([Source.t()]) :: [String.t()]
  def paths(sources) do
    {pages, _functions} = pages(sources)
    for source <- pages, {path, _text, _lines} <- source, do: path
  end

  # Another skill of the same name is another function.
  defp page(%Skill{handler: run} = skill, functions) when is_function(run) do
    handler =
      ["function #{skill.name}"]
      |> Stream.concat(Stream.map(Stream.iterate(2, &(&1 + 1)), &"function #{skill.name} ##{&1}"))
      |> Enum.find(&(not is_map_key(functions, &1)))

    {{handler, Page.render(skill, handler), nil}, Map.put(functions, handler, run)}
  end

  defp page(%Skill{handler: module} = skill, functions),
    do: {{skill.path, Page.render(skill, inspect(module)), skill.lines}, functions}

  defp skills(%Source{code: {:skill, skill}}), do: [skill]

  defp skills(%Source{code: code}),
    do: for(module <- modules(code), skill?(module), skill <- fetch(module), do: skill)

  defp fetch(module) do
    [module.__skillbook_skill__()]
  rescue
    UndefinedFunctionError -> []
  end

  defp modules({:modules, modules}), do: modules
  defp modules({:application, application}), do: Enum.sort(listed(application))

  # The application's file, since it also lists modules that were compiled after the start.
  defp listed(application) do
    with path when is_list(path) <- :code.where_is_file(~c"#{application}.app"),
         {:ok, [{:application, ^application, properties}]} <- :file.consult(path),
         modules when is_list(modules) <- properties[:modules] do
      modules
    else
      _ -> Application.spec(application, :modules) || []
    end
  end

  @doc "Returns whether a module uses `Skillbook.Skill`. Other modules are not loaded."
  @spec skill?(module()) :: boolean()
  def skill?(module), do: attributes(module)[:skillbook_skill] == [true]

  # The code of a module may be replaced at any time.
  defp attributes(module) do
    if :erlang.module_loaded(module), do: module.module_info(:attributes), else: stored(module)
  rescue
    UndefinedFunctionError -> []
  end

  defp stored(module) do
    with {^module, binary, _path} <- :code.get_object_code(module),
         {:ok, {^module, [attributes: attributes]}} <- :beam_lib.chunks(binary, [:attributes]) do
      attributes
    else
      _ -> []
    end
  end

  @doc "Returns the folders of the compiled modules, to watch."
  @spec folders(Source.t()) :: [Path.t()]
  def folders(%Source{code: {:application, application}}) do
    [Application.app_dir(application, "ebin")]
  rescue
    # An archive has no folder.
    ArgumentError -> []
  end

  def folders(%Source{code: {:modules, modules}}) do
    # Modules of scripts have no file.
    for module <- modules,
        path when is_list(path) and path != [] <- [:code.which(module)],
        uniq: true,
        do: path |> Path.dirname() |> Path.expand()
  end

  def folders(%Source{code: {kind, _place}}) when kind in [:skill, :mcp], do: []

  @doc "Returns whether changed paths may change the pages of a source."
  @spec touched?([Source.t()], [Path.t()]) :: boolean()
  def touched?(sources, paths) do
    folders = Enum.flat_map(sources, &folders/1)
    Enum.any?(paths, &(&1 in folders or Path.dirname(&1) in folders))
  end
end
