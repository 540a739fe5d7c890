defmodule Skillbook.Tool do
  @moduledoc """
  A tool for a model with native tool calls, as returned by `Skillbook.Tools.list/2`.

  `Skillbook.Tools.shape/2` writes it in the format of a vendor.

  ## Fields

    * `:name` - the name for the model: 1 to 64 letters, digits, `_` and `-`, the first one a
      letter or `_`
    * `:title` - a title for people, or `nil`
    * `:description` - text for the model, at most 1,024 characters
    * `:schema` - the arguments as JSON Schema, draft 2020-12: a map with string keys. The formats
      of some vendors have less of it
    * `:renamed` - other names of its properties, for vendors that do not allow their own
    * `:reads` - whether it only reads; calls of such tools may run at the same time
    * `:entry` - the name of its entry; `nil` for `get_skill` and `run_command`

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> [_get_skill, tool] = Skillbook.Tools.list(view, names: ["tasks.get"])
      iex> {tool.name, tool.entry, tool.reads, tool.schema["required"]}
      {"tasks__get", "tasks.get", true, ["id"]}
  """

  @type t :: %__MODULE__{
          name: String.t(),
          title: String.t() | nil,
          description: String.t(),
          schema: map(),
          renamed: %{optional(String.t()) => String.t()},
          reads: boolean(),
          entry: String.t() | nil
        }

  @enforce_keys [:name, :description, :schema]
  defstruct [:name, :title, :description, :schema, :entry, renamed: %{}, reads: false]
end
