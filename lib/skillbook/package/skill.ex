defmodule Skillbook.Package.Skill do
  @moduledoc """
  A skill found in a folder, an archive or a git repository, before it is installed.

  ## Fields

    * `:name` - the name of the folder that it is installed as: letters `a` to `z`, digits and single hyphens
    * `:title` - its name as its `SKILL.md` has it
    * `:description` - what it is for; `""` if `:problem` is there
    * `:path` - its folder below the source, `""` for the source itself
    * `:problem` - why it cannot be installed, or `nil`
    * `:items` - its files, not read yet
  """

  alias Skillbook.Package.Item

  @type t :: %__MODULE__{
          name: String.t(),
          title: String.t(),
          description: String.t(),
          path: String.t(),
          problem: String.t() | nil,
          items: [Item.t()]
        }

  @enforce_keys [:name, :title, :description, :path, :items]
  defstruct [:name, :title, :description, :path, :items, :problem]

  @longest 64

  @doc false
  # The name in the Agent Skills format that is closest to a text, or `nil`.
  def normalize(text) do
    name =
      text
      |> String.normalize(:nfkd)
      |> String.downcase()
      |> String.replace(~r/\p{Mn}/u, "")
      |> String.replace(~r/[^a-z0-9]+/, "-")
      |> String.slice(0, @longest)
      |> String.trim("-")

    # A folder of that name could not be made everywhere.
    cond do
      name == "" -> nil
      match?(:ok, Item.check([%Item{path: name, type: :file}])) -> name
      true -> name <> "-skill"
    end
  end
end
