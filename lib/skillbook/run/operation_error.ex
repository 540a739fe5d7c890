defmodule Skillbook.OperationError do
  @moduledoc """
  Returned when a schedule cannot be paused, resumed or run, or a circuit breaker not be reset.
  Nothing was changed.

  ## Fields

    * `:kind` - the reason:
      * `:no_schedule` - the skill has no schedule
      * `:no_handler` - the skill has no handler, so it has no circuit breaker
      * `:store` - the book has no database, without which no schedule runs
      * `:not_owner` - the skill runs as another profile than that of the view
      * `:common` - the skill is common to all tenants, and the profile belongs to one
      * `:no_job` - this book cannot run the skill by its schedule
      * `:full` - too many schedules are paused
      * `:in_transaction` - the calling process is in a transaction of the book's database
    * `:name` - the name of the skill
    * `:text` - for `:no_job`, the reason, if the caller may know it; or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.OperationError{kind: :no_schedule, name: "mail.send"})
      "expected a skill with a schedule, got `mail.send`, which has none; " <>
        "`skillbook schedule` and Skillbook.schedule/2 list those that have one"
  """

  @type t :: %__MODULE__{
          kind:
            :no_schedule
            | :no_handler
            | :store
            | :not_owner
            | :common
            | :no_job
            | :full
            | :in_transaction,
          name: String.t(),
          text: String.t() | nil
        }

  @enforce_keys [:kind, :name]
  defexception [:kind, :name, :text]

  @impl true
  def message(%{kind: :no_schedule} = error) do
    "expected a skill with a schedule, got `#{error.name}`, which has none; " <>
      "`skillbook schedule` and Skillbook.schedule/2 list those that have one"
  end

  def message(%{kind: :no_handler} = error) do
    "expected a skill with a handler, got `#{error.name}`, which has none, and so no circuit " <>
      "breaker; Skillbook.diagnostics/1 lists the skills that are out of service"
  end

  def message(%{kind: :store} = error) do
    "expected a book with a database, without which `#{error.name}` does not run by its " <>
      "schedule; set the option `store`, for example store: \"skillbook.db\""
  end

  def message(%{kind: :common} = error) do
    "`#{error.name}` is common to all tenants, so an operator of one tenant cannot change its " <>
      "schedule; one with tenant: :all can"
  end

  def message(%{kind: :not_owner} = error) do
    "expected the view of the profile that `#{error.name}` runs as, or an unrestricted one; " <>
      "an operator can do it with operator: true"
  end

  def message(%{kind: :no_job, text: nil} = error),
    do: "`#{error.name}` does not run by its schedule in this book; the book's log has the reason"

  def message(%{kind: :no_job} = error),
    do: "`#{error.name}` does not run by its schedule in this book: #{error.text}"

  def message(%{kind: :full} = error) do
    "`#{error.name}` was not paused: too many schedules of this database are paused; resume " <>
      "or delete some of them"
  end

  def message(%{kind: :in_transaction} = error) do
    "nothing was done to `#{error.name}`: the calling process is in a transaction of the " <>
      "book's database; do it after the transaction"
  end
end
