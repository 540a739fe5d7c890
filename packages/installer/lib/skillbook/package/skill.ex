defmodule Skillbook.Package.Skill do
  @moduledoc """
  A skill found in a folder, an archive, a git repository or a website's index, before it is
  installed.

  ## Fields

    * `:name` - the name of its folder once installed: `a` to `z`, digits and single hyphens
    * `:title` - the name in its `SKILL.md`
    * `:description` - the description in its `SKILL.md`, `""` if there is a `:problem`
    * `:path` - its folder below the source, `""` for the source's root; its name in the index of
      a website
    * `:problem` - why it cannot be installed, or `nil`
    * `:items` - its files, not read yet; empty in the result of `Skillbook.Package.find/2`
  """

  alias Skillbook.Support.FileName

  @type t :: %__MODULE__{
          name: String.t(),
          title: String.t(),
          description: String.t(),
          path: String.t(),
          problem: String.t() | nil,
          items: [struct()]
        }

  @enforce_keys [:name, :title, :description, :path, :items]
  defstruct [:name, :title, :description, :path, :items, :problem]

  @max_name 64

  @doc false
  # Turns a text into a name of the Agent Skills format; `nil` if no character is left.
  def normalize(text) do
    name = if plain?(text), do: text, else: reduce(text)

    # Some systems cannot create a folder with a reserved name, for example `con` on Windows.
    cond do
      name == "" -> nil
      match?(:ok, FileName.check(name)) -> name
      true -> name <> "-skill"
    end
  end

  @doc false
  # Whether a text is a name of the Agent Skills format.
  def plain?(text),
    do: byte_size(text) <= @max_name and text =~ ~r/\A[a-z0-9]+(-[a-z0-9]+)*\z/

  defp reduce(text) do
    text
    |> String.normalize(:nfkd)
    |> String.downcase()
    |> String.replace(~r/\p{Mn}/u, "")
    |> String.replace(~r/[^a-z0-9]+/, "-")
    |> String.slice(0, @max_name)
    |> String.trim("-")
  end
end
