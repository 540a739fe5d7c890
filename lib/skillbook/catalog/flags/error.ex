defmodule Skillbook.FlagError do
  @moduledoc """
  Returned when the flags of a command are invalid. The message tells the model how to correct
  them.

  ## Fields

    * `:kind` - one of
      * `:missing` - required flags are absent
      * `:missing_any` - none of several flags is given
      * `:no_value` - a flag needs a value and has none
      * `:too_many` - a flag takes one value and has several
      * `:invalid` - the value has the wrong type or is out of range
      * `:unknown` - the command has no such flag
      * `:words` - words without a flag
      * `:one_dash` - a known flag with one dash among the values of another
      * `:conflict` - flags that exclude each other
      * `:declaration` - the page declares its flags with a mistake, so the command does not run
    * `:flag` - the name of the flag without dashes; `nil` for `:words`, and for a mistake in what
      several arguments are together
    * `:path` - the place inside of a structured value, such as `[0].name`; `""` for the whole
      value, `nil` for values without a schema
    * `:flags` - all flags of the error, for `:missing`, `:missing_any`, `:unknown` and
      `:conflict`
    * `:value` - the value; for `:words` the words, for `:one_dash` the word with the dash
    * `:expected` - a description of valid values; for `:unknown` the list of known flags, for
      `:words` the list of flags whose names may be left out, for `:declaration` the mistake
    * `:example` - a valid value as written in a command, or `nil`
    * `:suggestions` - known flags that are similar to the unknown one
    * `:more` - up to four further mistakes of the same command, each an error like this one
    * `:json` - whether the caller wrote a JSON object, so that the message shows `"limit": 5`
      instead of `--limit 5`
    * `:properties` - the names of flags in such an object, where they are not those of the flags
      with `_` for dashes

  ## Examples

      iex> flags = %{"limit" => "many"}
      iex> {:error, e} = Skillbook.Flags.cast_integer(flags, "limit", min: 1, max: 9)
      iex> {e.kind, e.flag, e.value}
      {:invalid, "limit", "many"}
      iex> Exception.message(e)
      ~s(--limit must be a whole number from 1 to 9, got "many". Write for example: --limit 1)
      iex> Exception.message(%{e | json: true})
      ~s("limit" must be a whole number from 1 to 9, got "many". Write for example: "limit": 1)
  """

  alias Skillbook.Support.JSON

  @type kind ::
          :missing
          | :missing_any
          | :no_value
          | :too_many
          | :invalid
          | :unknown
          | :words
          | :one_dash
          | :conflict
          | :declaration

  @type t :: %__MODULE__{
          kind: kind(),
          flag: String.t() | nil,
          flags: [String.t()],
          value: term(),
          expected: String.t() | [String.t()] | nil,
          example: String.t() | nil,
          suggestions: [String.t()],
          path: String.t() | nil,
          more: [t()],
          json: boolean(),
          properties: %{optional(String.t()) => String.t()}
        }

  @enforce_keys [:kind]
  defexception [
    :kind,
    :flag,
    :value,
    :expected,
    :example,
    :path,
    flags: [],
    suggestions: [],
    more: [],
    json: false,
    properties: %{}
  ]

  # With the first one.
  @max_mistakes 5

  @doc false
  # One error for several mistakes of a command.
  @spec all([t(), ...]) :: {:error, t()}
  def all(errors) do
    [first | more] = errors |> Enum.flat_map(&[%{&1 | more: []} | &1.more]) |> Enum.uniq()
    {:error, %{first | more: Enum.take(more, @max_mistakes - 1)}}
  end

  @doc false
  @spec invalid(String.t(), term(), String.t(), String.t() | nil) :: {:error, t()}
  def invalid(flag, value, expected, example \\ nil) do
    {:error,
     %__MODULE__{kind: :invalid, flag: flag, value: value, expected: expected, example: example}}
  end

  @doc false
  @spec conflict([String.t(), ...], String.t() | nil) :: {:error, t()}
  def conflict([flag | _] = flags, expected \\ nil),
    do: {:error, %__MODULE__{kind: :conflict, flag: flag, flags: flags, expected: expected}}

  # A model that pasted a page into the wrong flag must not get the page back.
  @max_characters 60
  @max_items 5

  @impl true
  def message(%{more: [_ | _] = more} = e),
    do: Enum.map_join([%{e | more: []} | more], "\n", &message(%{&1 | json: e.json}))

  def message(%{kind: :missing, path: path} = e) when path != nil,
    do: "#{subject(e)} needs #{path}, which is missing"

  def message(%{kind: :unknown, path: path} = e) when path != nil do
    known = if e.expected in [[], ""], do: "", else: ". Known: #{Enum.join(e.expected, ", ")}"
    "#{subject(e)} has #{path}, which is unknown#{known}"
  end

  def message(%{kind: :invalid, path: path} = e) when path != nil do
    at = if path == "", do: "", else: " at #{path}"
    "#{subject(e)} must be #{e.expected}#{at}, got #{e.value}"
  end

  def message(%{kind: :missing, flags: [flag], example: nil} = e),
    do: "#{name(e, flag)} is required and missing. Add it as: #{pair(e, flag, "VALUE")}"

  def message(%{kind: :missing, flags: [flag]} = e),
    do: "#{name(e, flag)} is required and missing. " <> write(e)

  def message(%{kind: :missing, flags: flags} = e) do
    added = Enum.map_join(flags, if(e.json, do: ", ", else: " "), &pair(e, &1, "VALUE"))
    "#{names(e, flags, "and")} are required and missing. Add them as: #{added}"
  end

  def message(%{kind: :missing_any, flags: [first | _] = flags} = e),
    do:
      "one of #{names(e, flags, "or")} is required. " <>
        "Add for example: #{pair(e, first, "VALUE")}"

  def message(%{kind: :no_value} = e),
    do: "#{name(e, e.flag)} needs a value and has none. " <> write(e)

  def message(%{kind: :too_many} = e) do
    "#{name(e, e.flag)} takes one value, got #{length(e.value)}: #{show(e.value)}. " <> write(e)
  end

  def message(%{kind: :invalid} = e) do
    # A switch has no example in a command; in JSON it has a value.
    expected = if e.json and e.example == "", do: "true or false", else: e.expected

    String.trim_trailing(
      "#{name(e, e.flag)} must be #{expected}, got #{show(e.value)}. " <> write(e)
    )
  end

  def message(%{kind: :unknown} = e) do
    noun = if e.json, do: "property", else: "flag"
    nouns = if e.json, do: "properties", else: "flags"
    unknown = if match?([_], e.flags), do: "unknown #{noun} ", else: "unknown #{nouns} "
    flags = e.flags |> Enum.take(@max_items) |> Enum.map(&shorten/1)
    # As the caller wrote them.
    listed =
      if e.json, do: Enum.map_join(flags, ", ", &JSON.encode/1), else: names(e, flags, "and")

    guess =
      if e.suggestions == [],
        do: ". ",
        else: "; did you mean #{names(e, e.suggestions, "or")}? "

    known =
      if e.expected == [],
        do: "This command takes no #{nouns}",
        else: "Known #{nouns}: #{names(e, e.expected, "")}"

    unknown <> listed <> guess <> known
  end

  def message(%{kind: :one_dash} = e) do
    "a flag begins with two dashes: write -#{e.value}, " <>
      "or put the value of --#{e.flag} with #{e.value} in quotes"
  end

  def message(%{kind: :words, expected: [], value: words}) do
    text = words |> Enum.join(" ") |> inspect_short()
    "#{text} has no flag. #{in_front(words, text)}"
  end

  def message(%{kind: :words, expected: places, value: words} = e) do
    text = words |> Enum.join(" ") |> inspect_short()

    "#{text} is one word too many: only #{names(e, places, "and")} may be given without " <>
      "the flag's name, once. " <> in_front(words, text)
  end

  def message(%{kind: :declaration} = e) do
    "it cannot run: its page declares flags with a mistake (#{e.expected}). Another way of " <>
      "writing the command does not help; the page must be corrected"
  end

  def message(%{kind: :conflict} = e),
    do: "#{names(e, e.flags, "and")} contradict each other: #{explained(e)}"

  # Explanations name flags as a command does.
  defp explained(%{json: false} = e), do: e.expected

  defp explained(e),
    do: Regex.replace(~r/--([a-z][a-z-]*[a-z])/, e.expected, fn _, flag -> name(e, flag) end)

  # `-status todo`, `/status todo`, `status=todo`
  defp in_front([first | _], text) do
    case Regex.run(~r/\A(?:[-\/]+([a-z][a-z0-9_-]*)|([a-z][a-z0-9_-]*)=.*)\z/isu, first,
           capture: :all_but_first
         ) do
      nil -> "Put a flag in front: --FLAG #{text}"
      names -> "A flag begins with two dashes: --#{names |> List.last() |> shorten()}"
    end
  end

  defp write(%{example: nil}), do: ""
  defp write(%{json: true} = e), do: "Write for example: #{pair(e, e.flag, e.example)}"
  defp write(%{flag: flag, example: ""}), do: "Write it as: --#{flag}"
  defp write(%{flag: flag, example: example}), do: "Write for example: --#{flag} #{example}"

  # A flag with a value, as a caller writes it: `--limit 5`, or `"limit": 5` in an object.
  defp pair(%{json: false}, flag, example), do: "--#{flag} #{example}"
  defp pair(e, flag, ""), do: "#{name(e, flag)}: true"

  defp pair(e, flag, example) do
    value =
      case Skillbook.Command.parse!("x --x " <> example).flags["x"] do
        text when is_binary(text) ->
          if text =~ ~r/\A-?(0|[1-9][0-9]*)(\.[0-9]+)?\z/, do: text, else: JSON.encode(text)

        texts ->
          JSON.encode(texts)
      end

    "#{name(e, flag)}: #{value}"
  end

  defp subject(%{flag: nil}), do: "the whole of the arguments"
  defp subject(e), do: name(e, e.flag)

  # Properties have `_` for the dashes of flags, as in the tool's schema, or names of their own.
  defp name(%{json: true, properties: own}, flag),
    do: own |> Map.get_lazy(flag, fn -> String.replace(flag, "-", "_") end) |> JSON.encode()

  defp name(_error, flag), do: "--#{flag}"

  defp names(e, flags, ""), do: Enum.map_join(flags, ", ", &name(e, &1))
  defp names(e, [flag], _), do: name(e, flag)

  defp names(e, flags, joint) do
    {last, first} = List.pop_at(flags, -1)
    "#{names(e, first, "")} #{joint} #{name(e, last)}"
  end

  defp show(values) when is_list(values) do
    first = values |> Enum.take(@max_items) |> Enum.map_join(", ", &show/1)
    more = length(values) - @max_items
    if more > 0, do: "#{first} and #{more} more", else: first
  end

  defp show(value) when is_binary(value), do: inspect_short(value)
  defp show(value) when is_map(value) and not is_struct(value), do: "an object"
  defp show(value), do: inspect(value)

  defp inspect_short(text),
    do: text |> shorten() |> inspect(binaries: :as_strings, printable_limit: :infinity)

  defp shorten(text) do
    if String.length(text) > @max_characters,
      do: String.slice(text, 0, @max_characters) <> "...",
      else: text
  end
end
