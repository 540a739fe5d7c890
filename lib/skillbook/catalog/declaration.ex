defmodule Skillbook.Declaration do
  @moduledoc """
  The flags of a command, as declared in the frontmatter of its page, or in its Flags and Usage
  sections.

  `Skillbook.View.flags/2` returns the declaration of an entry. Handlers' flags
  (`Skillbook.Flags.cast_declared/3`), tool definitions, grammars and lint all use it. The syntax
  is described in [writing skills](docs/skills.md).

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the order of the page
    * `:choices` - flags that exclude each other, written as `(--body <text> | --file <path>)` in
      Usage: a list of maps with their `:names` and whether one of them is `:required`
    * `:words` - whether the command accepts other words without a flag: Usage shows some, or its
      syntax is not recognized
    * `:given` - whether the frontmatter declares the flags
    * `:schema` - the JSON Schema of all arguments, a map, if the frontmatter has `input_schema`;
      the flags are its properties
    * `:error` - the first mistake in `flags` or `input_schema` of the frontmatter, or `nil`. With
      one the command does not run
  """

  alias Skillbook.{Entry, Flag, Frontmatter, Native}

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean(),
          given: boolean(),
          schema: map() | nil,
          error: String.t() | nil
        }

  defstruct flags: [], choices: [], words: false, given: false, schema: nil, error: nil

  @doc """
  Reads the declaration from the text of a page, with or without frontmatter; `nil` if it declares
  none.

      iex> page = "## Flags\\n\\n--to  The recipient (default: me)\\n"
      iex> declaration = Skillbook.Declaration.read(page)
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.default}
      [{"to", false, ["me"]}]
      iex> page = "---\\nflags: {limit: {type: integer, max: 9}}\\n---\\n"
      iex> Skillbook.Declaration.read(page).given
      true
      iex> Skillbook.Declaration.read("## Flags\\n\\nNone.\\n")
      nil
  """
  @spec read(String.t()) :: t() | nil
  def read(text) when is_binary(text), do: Native.declaration_read(text)

  @doc false
  # The declaration of an entry that may not be in a view.
  @spec of(Entry.t()) :: t() | nil
  def of(%Entry{data: data, body: body}) do
    case Map.take(data, ["flags", "input_schema"]) do
      flags when flags == %{} -> read(body)
      flags -> flags |> Frontmatter.write(body) |> read()
    end
  end

  @doc false
  # Whether all of a text matches the pattern of a flag, else with a text that does, or `""`.
  @spec check_pattern(String.t(), String.t()) :: :ok | {:error, String.t()}
  def check_pattern(pattern, text) do
    with example when is_binary(example) <- Native.pattern_check(pattern, [text]),
         do: {:error, example},
         else: (true -> :ok)
  end

  @doc false
  # Returns the flags that every call needs, as text; `nil` if there are none.
  @spec required(t() | nil) :: String.t() | nil
  def required(nil), do: nil
  def required(%__MODULE__{error: error}) when error != nil, do: "correct flags (#{error})"

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
      * `:datetime` - a date, a time and an offset from UTC in ISO 8601
      * `:email` - an e-mail address
      * `:url` - an address of the web, with `http` or `https`
      * `:text` - text of at most `:max` characters; on a single line if `:line` is true, and
        empty or blank only if `:empty` is true. With a `:pattern`, all of it must match
      * `:switch` - no value
      * `:json` - a value in JSON, whose `:structure` is written in short: `list of {name: text}`
      * `:value` - one or more values of any kind
      * `nil` - not declared
    * `:several` - whether it takes several values
    * `:positional` - the words before the first flag that it takes: `:one`, `:all` (the rest) or
      `nil`
    * `:values` - a list of texts, for `:one_of` and `:date`
    * `:schema` - the JSON Schema of its value, or `nil`
    * `:property` - its name in the schema of the whole declaration, or `nil`
    * `:min`, `:max` - integers, for `:number` also floats, or `nil` for no limit
    * `:pattern` - a regular expression without anchors, or `nil`. It has only literals, classes,
      groups, alternatives and repetitions, which all readers of JSON Schema share

  ## Examples

      iex> page = "## Flags\\n\\n--limit  Maximum number of hits, from 1 to 9\\n"
      iex> [flag] = Skillbook.Declaration.read(page).flags
      iex> {flag.name, flag.type, flag.min, flag.max}
      {"limit", :integer, 1, 9}
  """

  @type type ::
          :one_of
          | :integer
          | :number
          | :date
          | :datetime
          | :email
          | :url
          | :text
          | :switch
          | :json
          | :value

  @type t :: %__MODULE__{
          name: String.t(),
          names: [String.t()],
          description: String.t(),
          required: boolean(),
          default: [String.t()],
          type: type() | nil,
          several: boolean(),
          positional: :one | :all | nil,
          values: [String.t()],
          min: number() | nil,
          max: number() | nil,
          pattern: String.t() | nil,
          schema: map() | nil,
          property: String.t() | nil,
          structure: String.t() | nil,
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
    :pattern,
    :schema,
    :property,
    :structure,
    :positional,
    description: "",
    required: false,
    default: [],
    several: false,
    values: [],
    line: false,
    empty: false
  ]

  @doc false
  # The key of its value in the map that a handler gets.
  @spec key(t()) :: String.t()
  def key(%__MODULE__{property: property, name: name}), do: property || name

  @doc false
  # Whether vendors of models allow the name of a property.
  @spec allowed?(String.t()) :: boolean()
  def allowed?(name), do: name =~ ~r/\A[a-zA-Z0-9_.-]{1,64}\z/

  @doc false
  # Its name as a property of a tool.
  # Its name as a property of JSON.
  @spec in_json(t() | String.t()) :: String.t()
  def in_json(name) when is_binary(name), do: String.replace(name, "-", "_")
  def in_json(%__MODULE__{property: nil, name: name}), do: in_json(name)

  def in_json(%__MODULE__{property: property, names: names}),
    do: Enum.find([property | names], property, &allowed?/1)
end
