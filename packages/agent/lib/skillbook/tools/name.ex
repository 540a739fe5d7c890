defmodule Skillbook.Tools.Name do
  @moduledoc false
  # Converts between names of entries and names of tools: native/skillbook_core/src/tool/name.rs.

  alias Skillbook.{Entry, Native, View}

  @doc """
  Returns the name of the tool for the name of an entry.

      iex> Skillbook.Tools.Name.from("tasks.search")
      "tasks__search"
      iex> Skillbook.Tools.Name.from("notes/dinner plans")
      "notes_dinner_plans-ead3dab56d289268"
  """
  @spec from(String.t()) :: String.t()
  defdelegate from(name), to: Native, as: :tool_from

  @doc """
  Returns the name of the tool for an entry: the name that its page sets, or `from/1` of its name.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Tools.Name.of(view, Skillbook.View.fetch!(view, "tasks.get"))
      "tasks__get"
  """
  @spec of(View.t(), Entry.t()) :: String.t()
  def of(view, %Entry{name: name}), do: Native.tool_name(view.ref, name)

  @doc "Returns the name of the entry of a tool, or a name for the error if there is none."
  @spec resolve(View.t(), String.t()) :: String.t()
  def resolve(view, tool), do: Native.tool_entry(view.ref, tool)

  @doc """
  Returns what is left of a name that a model invented, as a name that vendors accept.

      iex> Enum.map(["tasks.find", "", "9 lives"], &Skillbook.Tools.Name.valid/1)
      ["tasks_find", "_", "_9_lives"]
  """
  @spec valid(String.t()) :: String.t()
  defdelegate valid(name), to: Native, as: :tool_valid
end
