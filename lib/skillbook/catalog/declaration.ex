defmodule Skillbook.Declaration do
  @moduledoc """
  The flags of a command, as declared in the Flags and Usage sections of its page.

  `Skillbook.View.flags/2` returns the declaration of an entry. Handlers' flags
  (`Skillbook.Flags.cast_declared/3`), tool definitions, grammars and lint all use it. The syntax
  is described in [writing skills](docs/skills.md).

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the order of the page
    * `:choices` - flags that exclude each other, written as `(--body <text> | --file <path>)` in
      Usage: a list of maps with their `:names` and whether one of them is `:required`
    * `:words` - whether the command accepts other words without a flag: Usage shows some, or its
      syntax is not recognized
  """

  alias Skillbook.{Flag, Native}

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean()
        }

  defstruct flags: [], choices: [], words: false

  @doc """
  Reads the declaration from the text of a page without its frontmatter; `nil` if it declares
  none.

      iex> page = "## Flags\\n\\n--to  The recipient (default: me)\\n"
      iex> declaration = Skillbook.Declaration.read(page)
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.default}
      [{"to", false, ["me"]}]
      iex> Skillbook.Declaration.read("## Flags\\n\\nNone.\\n")
      nil
  """
  @spec read(String.t()) :: t() | nil
  def read(text) when is_binary(text), do: Native.declaration_read(text)

  @doc false
  # Returns the flags that every call needs, as text; `nil` if there are none.
  @spec required(t() | nil) :: String.t() | nil
  def required(nil), do: nil

  def required(%__MODULE__{flags: flags, choices: choices}) do
    flags = for %{required: true, default: [], name: name} <- flags, do: "--#{name}"

    choices =
      for %{required: true, names: names} <- choices, do: Enum.map_join(names, " or ", &"--#{&1}")

    case flags ++ choices do
      [] -> nil
      all -> Enum.join(all, ", ")
    end
  end
end

defmodule Skillbook.Flag do
  @moduledoc """
  A flag of a command, as declared in its page (`Skillbook.Declaration`).

  ## Fields

    * `:name` - the name without dashes
    * `:names` - the name and its aliases, the name first
    * `:description` - the description on one line
    * `:required` - whether the command needs it
    * `:default` - the default values, a list of texts; empty without a default
    * `:type` - the type of its values:
      * `:one_of` - one of `:values`
      * `:integer` - an integer from `:min` to `:max`
      * `:number` - a number from `:min` to `:max`
      * `:date` - a date as `YYYY-MM-DD`, or one of the words in `:values`
      * `:text` - text of at most `:max` characters; on a single line if `:line` is true, and
        empty or blank only if `:empty` is true
      * `:switch` - no value
      * `:value` - one or more values of any kind
      * `nil` - not declared
    * `:several` - whether it takes several values
    * `:positional` - the words before the first flag that it takes: `:one`, `:all` (the rest) or
      `nil`
    * `:values` - a list of texts, for `:one_of` and `:date`
    * `:min`, `:max` - integers, or `nil` for no limit

  ## Examples

      iex> page = "## Flags\\n\\n--limit  Maximum number of hits, from 1 to 9\\n"
      iex> [flag] = Skillbook.Declaration.read(page).flags
      iex> {flag.name, flag.type, flag.min, flag.max}
      {"limit", :integer, 1, 9}
  """

  @type t :: %__MODULE__{
          name: String.t(),
          names: [String.t()],
          description: String.t(),
          required: boolean(),
          default: [String.t()],
          type: :one_of | :integer | :number | :date | :text | :switch | :value | nil,
          several: boolean(),
          positional: :one | :all | nil,
          values: [String.t()],
          min: integer() | nil,
          max: integer() | nil,
          line: boolean(),
          empty: boolean()
        }

  @enforce_keys [:name, :names]
  defstruct [
    :name,
    :names,
    :type,
    :min,
    :max,
    :positional,
    description: "",
    required: false,
    default: [],
    several: false,
    values: [],
    line: false,
    empty: false
  ]
end
