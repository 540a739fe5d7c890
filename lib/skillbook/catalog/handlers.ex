defmodule Skillbook.Catalog.Handlers do
  @moduledoc false
  # Looks up the handlers of a catalog before a generation is published, so that no model is
  # offered a command that cannot run. The core cannot do it: modules belong to the program.
  #
  # `bin/skillbook` has the code of Skillbook alone. There a handler of another application is
  # `:unchecked`, which is neither an error nor hidden.

  alias Skillbook.Entry
  alias Skillbook.Source.Code
  alias Skillbook.Support.Closest

  @type problem :: {:missing, close :: String.t() | nil} | :not_a_handler | :unchecked

  # A suggestion compares a name with many modules, so many missing handlers get none.
  @max_suggestions 20
  # Similar names whose modules are loaded, to find out whether they are handlers.
  @max_loaded 5

  @doc """
  Returns the handlers that cannot run, each with its problem. `functions` are the catalog's.
  """
  @spec problems([String.t()], Code.functions()) :: [{String.t(), problem()}]
  def problems(handlers, functions) do
    failed = fn handler -> match?({:error, _}, Entry.fetch_handler(handler, functions)) end

    case Enum.filter(handlers, failed) do
      [] ->
        []

      failed ->
        modules = modules()
        suggest? = length(failed) <= @max_suggestions
        for handler <- failed, do: {handler, problem(handler, modules, suggest?)}
    end
  end

  @doc "Declares that the program is `bin/skillbook`, which has no application's code."
  @spec standalone() :: :ok
  def standalone, do: Application.put_env(:skillbook, :standalone, true)

  defp problem(handler, modules, suggest?) do
    name = String.replace_prefix(handler, "Elixir.", "")

    cond do
      name in modules -> :not_a_handler
      unknown_application?(name, modules) -> :unchecked
      suggest? -> {:missing, close(name, modules)}
      true -> {:missing, nil}
    end
  end

  defp unknown_application?(name, modules) do
    Application.get_env(:skillbook, :standalone, false) and
      not Enum.any?(modules, &(root(&1) == root(name)))
  end

  # Modules of the same application, and those with the same last part.
  defp close(name, modules) do
    modules
    |> Enum.filter(&(root(&1) == root(name) or last(&1) == last(name)))
    |> then(&Closest.several(name, &1, @max_loaded))
    |> Enum.find(&match?({:ok, _module}, Entry.fetch_handler(&1)))
  end

  # In interactive mode a module is loaded when it is first used, so those of applications are not
  # all loaded.
  defp modules do
    applications =
      for {application, _description, _version} <- Application.loaded_applications(),
          module <- Application.spec(application, :modules) || [],
          do: module

    for module <- applications ++ Enum.map(:code.all_loaded(), &elem(&1, 0)),
        "Elixir." <> name <- [Atom.to_string(module)],
        uniq: true,
        do: name
  end

  defp root(name), do: name |> String.split(".", parts: 2) |> hd()
  defp last(name), do: name |> String.split(".") |> List.last()
end
