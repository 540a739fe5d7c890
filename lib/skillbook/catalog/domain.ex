defmodule Skillbook.Domain do
  @moduledoc """
  A domain as a view shows it: the commands whose names begin with it, and its index.

  ## Fields

    * `:name` - its name
    * `:description` - its index's description, else the names of its first commands
    * `:body` - its index's text, with the table of its commands as this view has them and without lines that name
      entries which the view does not show; without an index, such a table alone
    * `:path` - its index's file, or `nil`
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
