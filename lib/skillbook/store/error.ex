defmodule Skillbook.StoreError do
  @moduledoc """
  An error of `Skillbook.Store`. Nothing was changed.

  ## Fields

    * `:kind` - the broken rule:
      * `:not_found` - the store has no entry with that name
      * `:ambiguous` - the name is another spelling of several entries
      * `:no_version` - the entry has no version with that number
      * `:is_file` - the name belongs to an entry of a file
      * `:exists` - the name is taken
      * `:version_conflict` - the entry is not at the expected version
      * `:text_not_found` - the text to replace or delete does not occur in the content
      * `:label_not_held` - the profile does not hold these labels
      * `:common` - the entry is common to all tenants, and the profile belongs to one
      * `:own_labels` - the entry lacks a label that the profile sets on all that it writes
      * `:not_visible` - the profile could not see the entry that it writes
      * `:missing`, `:unknown`, `:invalid` - a required field is missing, a field does not exist,
        or its value is not allowed
      * `:restriction` - a restriction in the content's frontmatter cannot be read or is misspelt
      * `:too_often` - the schedule runs more often than the book allows
      * `:too_many` - the creator has as many scheduled entries as the book allows
      * `:no_runner` - the book cannot run an entry as the profile that sets its schedule
      * `:no_store` - the view's book has no database
      * `:in_transaction` - the caller is in a transaction of the same database
    * `:name` - the requested name, or `nil`
    * `:suggestions` - for `:not_found`, up to three names that the profile sees, the closest
      first; for `:ambiguous`, the names
    * `:deleted_at` - for `:not_found`, when an entry of that name was deleted, or `nil`
    * `:expected` - the expected version; the rule for a field's value; for `:restriction`, the
      problem; the shortest interval in
      seconds; the largest number of entries
    * `:actual` - the entry's current or last version; the interval of the schedule in seconds
    * `:author`, `:at` - for `:version_conflict`, the id of the profile that wrote the current
      version, and when; for `:too_often`, `:at` is the first time that is followed too soon
    * `:nearest` - for `:text_not_found`, `{number, line}` of the most similar line, or `nil`
    * `:labels` - the labels that are not held, or that are missing
    * `:field` - a field's name
    * `:value` - the rejected value, or the text that does not occur
    * `:example` - a valid value, or `nil`

  ## Examples

      iex> error = %Skillbook.StoreError{kind: :not_found, name: "milc", suggestions: ["milk"]}
      iex> Exception.message(error)
      ~s(the store has no entry "milc"; did you mean milk?)

      iex> error = %Skillbook.StoreError{kind: :version_conflict, name: "milk", expected: 3}
      iex> error = %{error | actual: 5, author: "bob", at: ~U[2026-03-01 09:30:00Z]}
      iex> Exception.message(error)
      ~s("milk" is at version 5, which "bob" wrote at 2026-03-01T09:30:00Z, ) <>
        ~s(not at the expected version 3. Read it again and repeat the change)
  """

  alias Skillbook.Support.Count

  @type kind ::
          :not_found
          | :ambiguous
          | :no_version
          | :is_file
          | :exists
          | :version_conflict
          | :text_not_found
          | :label_not_held
          | :common
          | :own_labels
          | :not_visible
          | :missing
          | :unknown
          | :invalid
          | :restriction
          | :too_often
          | :too_many
          | :no_runner
          | :no_store
          | :in_transaction

  @type t :: %__MODULE__{
          kind: kind(),
          name: String.t() | nil,
          suggestions: [String.t()],
          deleted_at: DateTime.t() | nil,
          expected: pos_integer() | String.t() | [atom()] | nil,
          actual: pos_integer() | nil,
          author: String.t() | nil,
          at: DateTime.t() | nil,
          nearest: {pos_integer(), String.t()} | nil,
          labels: [String.t()],
          field: atom(),
          value: term(),
          example: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [
    :kind,
    :name,
    :deleted_at,
    :expected,
    :actual,
    :author,
    :at,
    :nearest,
    :field,
    :value,
    :example,
    suggestions: [],
    labels: []
  ]

  # A long value, such as a page in the wrong field, is not repeated in full.
  @max_quoted 60
  @max_names 20

  @impl true
  def message(%{kind: :not_found, deleted_at: nil} = error),
    do: "the store has no entry #{quoted(error.name)}#{offer(error.suggestions)}"

  def message(%{kind: :not_found} = error) do
    "the entry #{quoted(error.name)} was deleted at #{DateTime.to_iso8601(error.deleted_at)}. " <>
      "Restore one of its versions, or create a new entry"
  end

  def message(%{kind: :ambiguous} = error) do
    names = error.suggestions |> Enum.take(@max_names) |> Enum.join(", ")
    "#{quoted(error.name)} can mean several entries: #{names}. Write one of these names"
  end

  def message(%{kind: :no_version} = error) do
    "#{quoted(error.name)} has no version #{quoted(error.value)} that this profile can read; " <>
      "its last version is #{error.actual}"
  end

  def message(%{kind: :is_file} = error) do
    "#{quoted(error.name)} comes from a file: the store cannot change it and has no versions " <>
      "of it. " <>
      if(error.name =~ ".",
        do: "Change the file",
        else: "Create an entry with this name to replace it"
      )
  end

  def message(%{kind: :exists} = error),
    do: "the store already has an entry #{quoted(error.name)}. Update it, or choose another name"

  def message(%{kind: :version_conflict} = error) do
    "#{quoted(error.name)} is at version #{error.actual}, which #{quoted(error.author)} " <>
      "wrote at #{DateTime.to_iso8601(error.at)}, not at the expected version " <>
      "#{error.expected}. " <>
      "Read it again and repeat the change"
  end

  def message(%{kind: :text_not_found, nearest: nil} = error),
    do:
      "the text #{quoted(error.value)} does not occur in #{quoted(error.name)}; its content " <>
        "is empty"

  def message(%{kind: :text_not_found, nearest: {number, line}} = error) do
    "the text #{quoted(error.value)} does not occur in #{quoted(error.name)}; " <>
      "the closest line is line #{number}: #{quoted(line)}. Copy the text exactly"
  end

  def message(%{kind: :label_not_held} = error),
    do: "expected labels that this profile holds, got: #{list(error.labels)}. Leave them out"

  def message(%{kind: :common, field: :task} = error) do
    "#{error.name} is common to all tenants, so this profile cannot change it. Create another " <>
      "task"
  end

  def message(%{kind: :common} = error) do
    "#{quoted(error.name)} is common to all tenants, so this profile cannot change it. Create " <>
      "an entry with another name"
  end

  def message(%{kind: :own_labels, name: nil} = error) do
    "expected labels with #{list(error.labels)}, which this profile must set on every entry. " <>
      "Add them"
  end

  def message(%{kind: :own_labels, field: :task} = error) do
    "#{error.name} lacks #{list(error.labels)}, which this profile must set on every task, so " <>
      "the profile cannot change it. Create another task"
  end

  def message(%{kind: :own_labels} = error) do
    "#{quoted(error.name)} lacks #{list(error.labels)}, which this profile must set on every " <>
      "entry, so the profile cannot change it. Create an entry with another name"
  end

  def message(%{kind: :not_visible} = error) do
    "expected an entry that this profile can see, got #{quoted(error.name)}, which is not " <>
      "among its skills or excludes it. Choose another name, or leave the profile out of " <>
      "excluded_for"
  end

  def message(%{kind: :missing} = error),
    do: "an entry needs the #{error.field}: #{error.expected}" <> write(error)

  def message(%{kind: :unknown} = error) do
    "unknown field #{quoted(to_string(error.field))} for an entry#{instead(error)} " <>
      "The fields are #{Enum.join(error.expected, ", ")}"
  end

  def message(%{kind: :restriction} = error),
    do: "the frontmatter of the content: #{error.expected}"

  def message(%{kind: :invalid} = error),
    do:
      "expected #{error.expected} as the #{error.field} of an entry, got: " <>
        "#{quoted(error.value)}" <>
        write(error)

  def message(%{kind: :too_often} = error) do
    "expected a schedule with at least #{span(error.expected)} between its times, " <>
      "got #{quoted(error.value)}, which runs at #{DateTime.to_iso8601(error.at)} and " <>
      "#{span(error.actual)} later" <> write(error)
  end

  def message(%{kind: :too_many} = error) do
    "expected at most #{error.expected} entries with a schedule of one creator, got one more. " <>
      "Remove the schedule of another entry, or delete that entry"
  end

  def message(%{kind: :no_runner, value: ""}) do
    "expected a profile of the book to run as, got an unrestricted view. Use the view of a " <>
      "profile, " <>
      ~s(or give the book the option schedules: [run_as: "default"])
  end

  def message(%{kind: :no_runner} = error) do
    "expected a profile of the book to set the schedule, got #{quoted(error.value)}, which " <>
      "is not a profile of the book or has fewer rights here. Leave the schedule out; " <>
      "the profile itself can add it"
  end

  def message(%{kind: :no_store}) do
    "the store needs a view of a running book that has a database. " <>
      ~s(Start the book with the option store:, for example store: "skillbook.db")
  end

  def message(%{kind: :in_transaction}) do
    "expected a write to the store outside a transaction, got one inside: other readers " <>
      "could not see the entry before the transaction commits. Write after the transaction"
  end

  # The fields of the store for restrictions of frontmatter. The others stay in the content.
  @restrictions %{
    "visibility_labels" => "labels",
    "labels" => "labels",
    "exclude_from_prompt_profile_ids" => "excluded_for",
    "include_in_prompt" => "include_in_prompt",
    "include_in_prompt_default" => "include_in_prompt"
  }

  defp instead(%{field: field, expected: fields}) do
    case Skillbook.Frontmatter.restriction(to_string(field)) do
      nil ->
        close = Skillbook.Support.Closest.to(to_string(field), Enum.map(fields, &to_string/1))
        if close, do: ", did you mean #{close}?", else: "."

      restriction when is_map_key(@restrictions, restriction) ->
        ", did you mean #{@restrictions[restriction]}?"

      restriction ->
        "; write `#{restriction}` in the frontmatter of its content."
    end
  end

  defp span(seconds) when rem(seconds, 60) == 0,
    do: Count.text(div(seconds, 60), "minute")

  defp span(seconds), do: Count.text(seconds, "second")

  defp write(%{example: nil}), do: ""
  defp write(%{example: example}), do: ". Write for example: #{example}"

  defp offer([]), do: ""
  defp offer([name]), do: "; did you mean #{name}?"

  defp offer(names) do
    {last, others} = List.pop_at(names, -1)
    "; did you mean #{Enum.join(others, ", ")} or #{last}?"
  end

  defp list(texts), do: Enum.map_join(texts, ", ", &quoted/1)

  defp quoted(text) when is_binary(text) do
    if String.valid?(text) do
      case String.split_at(text, @max_quoted) do
        {text, ""} -> in_quotes(text)
        {text, _rest} -> in_quotes(text <> "...")
      end
    else
      inspect(text, limit: 20)
    end
  end

  defp quoted(value), do: inspect(value, limit: 5, printable_limit: @max_quoted)

  defp in_quotes(text), do: inspect(text, binaries: :as_strings, printable_limit: :infinity)
end
