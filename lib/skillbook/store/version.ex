defmodule Skillbook.Store.Version do
  @moduledoc """
  One version of an entry of the store.

  ## Fields

    * `:version` - its number
    * `:action` - what made it: `:create`, `:update`, `:enable`, `:disable`, `:delete` or `:restore`
    * `:by` - on whose word: `:user`, `:agent` or `:import`
    * `:author` - the id of the profile for which it was made
    * `:at` - when, UTC, whole seconds
    * `:entry` - the `Skillbook.Stored` as it was then; in a history without its content
  """

  alias Skillbook.Stored

  @type action :: :create | :update | :enable | :disable | :delete | :restore
  @type t :: %__MODULE__{
          version: pos_integer(),
          action: action(),
          by: :user | :agent | :import,
          author: String.t(),
          at: DateTime.t(),
          entry: Stored.t()
        }

  @enforce_keys [:version, :action, :by, :author, :at, :entry]
  defstruct [:version, :action, :by, :author, :at, :entry]
end
