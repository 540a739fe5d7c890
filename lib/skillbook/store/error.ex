defmodule Skillbook.StoreError do
  @moduledoc """
  Why the store did not do what it was asked for. Nothing was changed.

  ## Fields

    * `:kind` - which rule was broken:
      * `:not_found` - it has no such entry
      * `:no_version` - the entry has no such version
      * `:is_file` - the name is that of a file's entry
      * `:exists` - the name is taken
      * `:version_conflict` - the entry is not at the version that was expected
      * `:text_not_found` - the text to replace or delete is not in the content
      * `:label_not_held` - labels that the profile does not hold
      * `:own_labels` - the entry is, or would be, without a label that all the profile writes carries
      * `:not_visible` - the profile would not see what it writes
      * `:missing`, `:unknown`, `:invalid` - a field that is needed, that does not exist, or whose value cannot be
      * `:too_often` - a schedule whose times are closer than the book allows
      * `:too_many` - there are as many entries with a schedule of one creator as the book allows
      * `:no_runner` - the profile sets a schedule, and is none that the book could run it as
      * `:no_store` - the view's book has no database
      * `:in_transaction` - the caller is in a transaction of the same database
    * `:name` - the entry's name as it was asked for, or `nil`
    * `:suggestions` - for `:not_found`, up to three names that the profile sees, the closest first
    * `:deleted_at` - for `:not_found`, when an entry of that name was deleted, or `nil`
    * `:expected` - the version expected; what a field must be; the least seconds between two times, the most entries
    * `:actual` - the version that it is at, or the last one that there is; the seconds between two times
    * `:author`, `:at` - for `:version_conflict`, the id of the profile that wrote the actual version, and when; for
      `:too_often` the first time after which another one follows too soon
    * `:nearest` - for `:text_not_found`, `{number, line}` of the line most like the text, or `nil`
    * `:labels` - the labels that are not held, or not there
    * `:field` - a field's name
    * `:value` - what came: a field's value, the text that was looked for
    * `:example` - a value to write instead, or `nil`

  ## Examples

      iex> error = %Skillbook.StoreError{kind: :not_found, name: "milc", suggestions: ["milk"]}
      iex> Exception.message(error)
      ~s(the store has no entry "milc"; did you mean milk?)

      iex> error = %Skillbook.StoreError{kind: :version_conflict, name: "milk", expected: 3, actual: 5}
      iex> Exception.message(%{error | author: "bob", at: ~U[2026-03-01 09:30:00Z]})
      ~s("milk" is at version 5, which "bob" wrote at 2026-03-01T09:30:00Z, not at the expected version 3. Read it again and make the change to what it is now)
  """

  @type kind ::
          :not_found
          | :no_version
          | :is_file
          | :exists
          | :version_conflict
          | :text_not_found
          | :label_not_held
          | :own_labels
          | :not_visible
          | :missing
          | :unknown
          | :invalid
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

  # Who pasted a page into the wrong place must not get the page back.
  @shown 60

  @impl true
  def message(%{kind: :not_found, deleted_at: nil} = error),
    do: "the store has no entry #{show(error.name)}#{offer(error.suggestions)}"

  def message(%{kind: :not_found} = error) do
    "the entry #{show(error.name)} was deleted at #{DateTime.to_iso8601(error.deleted_at)}. " <>
      "Restore one of its versions, or create it anew"
  end

  def message(%{kind: :no_version} = error) do
    "#{show(error.name)} has no version #{show(error.value)} that can be read here; its last one is #{error.actual}"
  end

  def message(%{kind: :is_file} = error) do
    "#{show(error.name)} comes from a file, which the store neither changes nor keeps versions of. " <>
      if(error.name =~ ".",
        do: "Change the file",
        else: "Create an entry of this name to replace it"
      )
  end

  def message(%{kind: :exists} = error),
    do: "the store has an entry #{show(error.name)} already. Update it, or take another name"

  def message(%{kind: :version_conflict} = error) do
    "#{show(error.name)} is at version #{error.actual}, which #{show(error.author)} wrote at " <>
      "#{DateTime.to_iso8601(error.at)}, not at the expected version #{error.expected}. " <>
      "Read it again and make the change to what it is now"
  end

  def message(%{kind: :text_not_found, nearest: nil} = error),
    do: "the text #{show(error.value)} is not in #{show(error.name)}, whose content is empty"

  def message(%{kind: :text_not_found, nearest: {number, line}} = error) do
    "the text #{show(error.value)} is not in #{show(error.name)}; the nearest line is line #{number}: #{show(line)}. " <>
      "Write the text exactly as it stands there"
  end

  def message(%{kind: :label_not_held} = error),
    do: "expected labels that this profile holds, got: #{list(error.labels)}. Leave them out"

  def message(%{kind: :own_labels, name: nil} = error) do
    "expected labels with #{list(error.labels)}, which all that this profile writes carries, got none of that. " <>
      "Write them too"
  end

  def message(%{kind: :own_labels} = error) do
    "#{show(error.name)} lacks #{list(error.labels)}, which all that this profile writes carries, so it cannot change it. " <>
      "Create an entry of another name"
  end

  def message(%{kind: :not_visible} = error) do
    "expected an entry that this profile sees itself, got #{show(error.name)}, which is outside of its skills or " <>
      "excludes it. Take another name, or leave the profile out of excluded_for"
  end

  def message(%{kind: :missing} = error),
    do: "an entry needs the #{error.field}: #{error.expected}" <> write(error)

  def message(%{kind: :unknown} = error) do
    close =
      Skillbook.Support.Closest.to(to_string(error.field), Enum.map(error.expected, &to_string/1))

    guess = if close, do: ", did you mean #{close}?", else: "."

    "unknown field #{show(to_string(error.field))} for an entry#{guess} The fields are #{Enum.join(error.expected, ", ")}"
  end

  def message(%{kind: :invalid} = error),
    do:
      "expected #{error.expected} as the #{error.field} of an entry, got: #{show(error.value)}" <>
        write(error)

  def message(%{kind: :too_often} = error) do
    "expected a schedule with at least #{span(error.expected)} between its times, got #{show(error.value)}, which runs at " <>
      "#{DateTime.to_iso8601(error.at)} and #{span(error.actual)} later" <> write(error)
  end

  def message(%{kind: :too_many} = error) do
    "expected at most #{error.expected} entries with a schedule of one creator, got one more. Take the schedule of another " <>
      "one away, or delete that"
  end

  def message(%{kind: :no_runner, value: ""}) do
    "expected a profile of the book to run as, got a view of all. Take the view of a profile, or give the book the option " <>
      ~s(schedules: [run_as: "default"])
  end

  def message(%{kind: :no_runner} = error) do
    "expected that a profile of the book sets a schedule, got #{show(error.value)}, which is none, or has fewer rights here than " <>
      "that profile. Leave the schedule out; who has the profile may add it"
  end

  def message(%{kind: :no_store}) do
    "the store needs a view of a running book that has a database. Start the book with the option store:, " <>
      ~s(for example store: "skillbook.db")
  end

  def message(%{kind: :in_transaction}) do
    "expected a write to the store outside of a transaction, got one inside: its entry could not be seen before that is over. " <>
      "Write when the transaction is done"
  end

  defp span(seconds) when rem(seconds, 60) == 0, do: counted(div(seconds, 60), "minute")
  defp span(seconds), do: counted(seconds, "second")

  defp counted(1, unit), do: "1 #{unit}"
  defp counted(count, unit), do: "#{count} #{unit}s"

  defp write(%{example: nil}), do: ""
  defp write(%{example: example}), do: ". Write for example: #{example}"

  defp offer([]), do: ""
  defp offer([name]), do: "; did you mean #{name}?"

  defp offer(names) do
    {last, others} = List.pop_at(names, -1)
    "; did you mean #{Enum.join(others, ", ")} or #{last}?"
  end

  defp list(texts), do: Enum.map_join(texts, ", ", &show/1)

  # Only the beginning of a text is looked at, however long it is.
  defp show(text) when is_binary(text) do
    if String.valid?(text) do
      case String.split_at(text, @shown) do
        {text, ""} -> quoted(text)
        {text, _rest} -> quoted(text <> "...")
      end
    else
      inspect(text, limit: 20)
    end
  end

  defp show(value), do: inspect(value, limit: 5, printable_limit: @shown)

  defp quoted(text), do: inspect(text, binaries: :as_strings, printable_limit: :infinity)
end
