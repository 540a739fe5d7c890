defmodule Skillbook.Declaration do
  @moduledoc """
  What a command takes, as the Flags and Usage sections of its page say. `Skillbook.View.flags/2` gives it.

  Only what is plainly written counts; `docs/skills.md` says what that is. The same declaration is
  behind the flags that handlers get (`Skillbook.Flags.cast_declared/3`), tool definitions, grammars
  and lint.

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the page's order
    * `:choices` - flags that exclude each other, as `(--body <text> | --file <path>)` in Usage: a list of maps with their
      `:names` and whether one of them is `:required`
    * `:words` - whether words of its own may stand without a flag: Usage shows some, or is no plain
      synopsis
  """

  alias Skillbook.{Flag, Native}

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean()
        }

  defstruct flags: [], choices: [], words: false

  @doc """
  What the text of a page declares, or `nil`, without its frontmatter.

      iex> declaration = Skillbook.Declaration.read("## Flags\\n\\n--to  Who gets it (default: me)\\n")
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.default}
      [{"to", false, ["me"]}]
      iex> Skillbook.Declaration.read("## Flags\\n\\nNone.\\n")
      nil
  """
  @spec read(String.t()) :: t() | nil
  def read(text) when is_binary(text), do: Native.declaration_read(text)
end

defmodule Skillbook.Flag do
  @moduledoc """
  A flag as a command's page declares it (`Skillbook.Declaration`).

  ## Fields

    * `:name` - its name without dashes
    * `:names` - all of its names, that one first
    * `:description` - what the page says of it, on one line
    * `:required` - whether it must be given
    * `:default` - the values that it has if it is not given, a list of texts; empty if none are written out
    * `:type` - what its values are:
      * `:one_of` - one of `:values`
      * `:integer` - a whole number from `:min` to `:max`
      * `:number` - a number from `:min` to `:max`
      * `:date` - a day as `YYYY-MM-DD`, or one of the words in `:values`
      * `:text` - one text of at most `:max` characters; `:line` says that it is a single line,
        `:empty` that it may be empty or blank
      * `:switch` - it has none
      * `:value` - it has a value, or several, of which no more is said
      * `nil` - nothing is said of it
    * `:several` - whether it may have several values
    * `:positional` - which words before the first flag stand for it: `:one`, `:all` that are left,
      or `nil` for none
    * `:values` - texts
    * `:min`, `:max` - integers, or `nil` for no bound
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
