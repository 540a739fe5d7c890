defmodule Skillbook.NotFoundError do
  @moduledoc """
  A command names something that is not there.

  ## Fields

    * `:kind` - what was looked for, a word such as `"task"`
    * `:id` - its id as people and models write it
    * `:find` - the command that lists such things, or `nil` if there is none
    * `:deleted_at` - when it was deleted, a `DateTime`, or `nil` if it never was there
    * `:available` - for notes and skills that are read: titles or names that there are, 20 at most

  ## Examples

      iex> Exception.message(%Skillbook.NotFoundError{kind: "task", id: "T-99", find: "tasks.search"})
      "there is no task T-99; `tasks.search` lists the tasks with their ids"

      iex> Exception.message(%Skillbook.NotFoundError{kind: "note", id: "Diner", find: nil, available: ["Dinner", "School"]})
      "Note 'Diner' not found. Available notes: Dinner, School"
  """

  @type t :: %__MODULE__{
          kind: String.t(),
          id: String.t(),
          find: String.t() | nil,
          deleted_at: DateTime.t() | nil,
          available: [String.t()] | nil
        }

  @enforce_keys [:kind, :id, :find]
  defexception [:kind, :id, :find, :deleted_at, :available]

  # An id can be as long as a whole command that went wrong.
  @shown 100

  @impl true
  def message(%{available: available} = error) when is_list(available) do
    names = if available == [], do: "none", else: Enum.join(available, ", ")
    id = String.slice(error.id, 0, @shown)
    "#{String.capitalize(error.kind)} '#{id}' not found. #{listed(error.kind)}: #{names}"
  end

  def message(%{kind: kind, id: id, find: nil}),
    do: "there is no #{kind} #{id}, or no longer; run the command that gave it again"

  def message(%{kind: kind, id: id, find: find, deleted_at: nil}),
    do: "there is no #{kind} #{id}; `#{find}` lists the #{kind}s with their ids"

  def message(%{kind: kind, id: id, find: find, deleted_at: deleted_at}) do
    "the #{kind} #{id} was deleted at #{DateTime.to_iso8601(deleted_at)} and stays as it is; " <>
      "`#{find}` lists the #{kind}s there are"
  end

  defp listed("note"), do: "Available notes"
  defp listed(_kind), do: "Available"
end
