defmodule Skillbook.NotFoundError do
  @moduledoc """
  A command names something that is not there.

  ## Fields

    * `:kind` - what was looked for, a word such as `"task"`
    * `:id` - its id as people and models write it
    * `:find` - the command that lists such things, or `nil` if there is none
    * `:deleted_at` - when it was deleted, a `DateTime`, or `nil` if it never was there

  ## Examples

      iex> Exception.message(%Skillbook.NotFoundError{kind: "task", id: "T-99", find: "tasks.search"})
      "there is no task T-99; `tasks.search` lists the tasks with their ids"
  """

  @type t :: %__MODULE__{
          kind: String.t(),
          id: String.t(),
          find: String.t() | nil,
          deleted_at: DateTime.t() | nil
        }

  @enforce_keys [:kind, :id, :find]
  defexception [:kind, :id, :find, :deleted_at]

  @impl true
  def message(%{kind: kind, id: id, find: nil}),
    do: "there is no #{kind} #{id}, or no longer; run the command that gave it again"

  def message(%{kind: kind, id: id, find: find, deleted_at: nil}),
    do: "there is no #{kind} #{id}; `#{find}` lists the #{kind}s with their ids"

  def message(%{kind: kind, id: id, find: find, deleted_at: deleted_at}) do
    "the #{kind} #{id} was deleted at #{DateTime.to_iso8601(deleted_at)} and stays as it is; " <>
      "`#{find}` lists the #{kind}s there are"
  end
end
