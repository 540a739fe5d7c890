defmodule Skillbook.Store.Version do
  @moduledoc """
  One version of an entry of the store, as `Skillbook.Store.version/3` returns it.

  ## Fields

    * `:version` - its number
    * `:action` - `:create`, `:update`, `:enable`, `:disable`, `:delete` or `:restore`
    * `:by` - the kind of author: `:user`, `:agent` or `:import`
    * `:author` - the id of the profile that wrote it
    * `:at` - the time of the write, UTC, whole seconds
    * `:entry` - the `Skillbook.Stored` of that version; without its content in a history

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: StoreVersionExample, store: ":memory:")
      iex> view = Skillbook.view(StoreVersionExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.", by: :agent)
      iex> {:ok, version} = Skillbook.Store.version(view, "milk", 1)
      iex> {version.action, version.by, version.author, version.entry.content}
      {:create, :agent, "default", "Two bottles."}
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
