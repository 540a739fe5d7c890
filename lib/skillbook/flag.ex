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
      * `:number` - a number
      * `:date` - a day as `YYYY-MM-DD`, or one of the words in `:values`
      * `:text` - one text of at most `:max` characters
      * `:switch` - it has none
      * `:value` - it has a value, or several, of which no more is said
      * `nil` - nothing is said of it
    * `:several` - whether it may have several values
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
          values: [String.t()],
          min: integer() | nil,
          max: integer() | nil
        }

  @enforce_keys [:name, :names]
  defstruct [
    :name,
    :names,
    :type,
    :min,
    :max,
    description: "",
    required: false,
    default: [],
    several: false,
    values: []
  ]
end
