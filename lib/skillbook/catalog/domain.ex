defmodule Skillbook.Domain do
  @moduledoc """
  A domain: commands that share the first part of their names, and their index page.

  `Skillbook.View.domains/1` returns the domains of a view.

  ## Fields

    * `:name` - the name of the domain, such as `"tasks"`
    * `:description` - the description of the index, or the names of the first commands
    * `:body` - the text of the index. Its table lists the commands of this view, and lines that
      name hidden entries are left out. Without an index, a table of the commands
    * `:path` - the file of the index, or `nil`

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> domain = Enum.find(Skillbook.View.domains(view), &(&1.name == "tasks"))
      iex> domain.body =~ "tasks.search"
      true
  """

  @type t :: %__MODULE__{
          name: String.t(),
          description: String.t(),
          body: String.t(),
          path: String.t() | nil
        }

  @enforce_keys [:name, :description, :body]
  defstruct [:name, :description, :body, :path]
end
