defmodule Skillbook.ApprovalError do
  @moduledoc """
  Returned when a call cannot be approved or denied. It has not run.

  ## Fields

    * `:kind` - the reason:
      * `:store` - the book has no database
      * `:unknown` - no approval has this reference
      * `:decided` - it was decided before, or has expired: see `:status`, `:by` and `:at`
      * `:profile` - the book has no such profile any more, or its rights no longer fit the call
      * `:entry` - the profile does not see the skill any more
      * `:changed` - the page has changed since the call
      * `:assigns` - the stored assigns cannot be read
      * `:transcript` - the call has no conversation to resume
      * `:agent` - no model is known to resume the conversation with
      * `:stopping` - the book is stopping; the call still waits
      * `:in_transaction` - the calling process is in a transaction of the book's database
    * `:ref` - the reference
    * `:name`, `:profile` - the skill and the id of the profile, or `nil`
    * `:status`, `:by`, `:at` - for `:decided`

  ## Examples

      iex> error = %Skillbook.ApprovalError{kind: :changed, ref: "A-1", name: "mail.send"}
      iex> error |> Exception.message() |> String.split("; ")
      [
        "`mail.send` was not run: its page has changed since the call of A-1",
        "look at it again, and approve with force: true"
      ]
  """

  @type t :: %__MODULE__{
          kind:
            :store
            | :unknown
            | :decided
            | :profile
            | :entry
            | :changed
            | :assigns
            | :transcript
            | :agent
            | :stopping
            | :in_transaction,
          ref: String.t() | nil,
          name: String.t() | nil,
          profile: String.t() | nil,
          status: Skillbook.Approval.status() | nil,
          by: String.t() | nil,
          at: DateTime.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :ref, :name, :profile, :status, :by, :at]

  @doc false
  @spec new(kind :: atom(), Skillbook.Approval.t()) :: t()
  def new(kind, approval),
    do: struct!(%__MODULE__{kind: kind}, Map.take(approval, [:ref, :name, :profile]))

  @doc false
  # For an approval that does not wait any more.
  @spec decided(Skillbook.Approval.t()) :: t()
  def decided(approval) do
    error = new(:decided, approval)

    %{
      error
      | status: approval.status,
        by: approval.by,
        at: approval.decided_at || approval.expires_at
    }
  end

  @impl true
  def message(%{kind: :store}) do
    "expected a book with a database, which stores approvals; set the option `store`, for " <>
      "example store: \"skillbook.db\""
  end

  def message(%{kind: :unknown, ref: ref}),
    do: "expected the reference of an approval, got: #{inspect(ref, printable_limit: 100)}"

  def message(%{kind: :decided, status: :expired} = error),
    do: "#{error.ref} expired on #{time(error.at)}; the command must be called again"

  def message(%{kind: :decided, status: :running} = error),
    do: "#{error.ref} was approved#{by(error)} on #{time(error.at)}, and runs"

  def message(%{kind: :decided, status: :denied} = error),
    do: "#{error.ref} was denied#{by(error)} on #{time(error.at)}"

  def message(%{kind: :decided, status: :interrupted} = error) do
    "#{error.ref} was approved#{by(error)} on #{time(error.at)}, and interrupted while it " <>
      "ran; a part of its work may be done, so it does not run again"
  end

  def message(%{kind: :decided} = error),
    do: "#{error.ref} was approved#{by(error)} on #{time(error.at)}, and has run"

  def message(%{kind: :profile} = error) do
    "`#{error.name}` was not run: the profile #{inspect(error.profile)} of #{error.ref} does " <>
      "not exist any more, or lacks rights that the call had"
  end

  def message(%{kind: :entry} = error) do
    "`#{error.name}` was not run: the profile #{inspect(error.profile)} of #{error.ref} does " <>
      "not see it any more"
  end

  def message(%{kind: :changed} = error) do
    "`#{error.name}` was not run: its page has changed since the call of #{error.ref}; look " <>
      "at it again, and approve with force: true"
  end

  def message(%{kind: :assigns} = error),
    do: "`#{error.name}` was not run: the assigns stored with #{error.ref} cannot be read"

  def message(%{kind: :transcript, ref: ref}) do
    "#{ref} has no conversation to resume: it was not called in a run of Skillbook.Agent, or " <>
      "the run was killed; decide without resume:"
  end

  def message(%{kind: :agent, ref: ref}) do
    "expected a model to resume the conversation of #{ref} with; write " <>
      "resume: [model: model], or give the book the option agent: [model: model]"
  end

  def message(%{kind: :stopping, ref: ref}),
    do: "#{ref} still waits: its book is stopping; approve it on another node, or later"

  def message(%{kind: :in_transaction, ref: ref}) do
    "#{ref} was not decided: the calling process is in a transaction of the book's database; " <>
      "decide after the transaction"
  end

  defp by(%{by: nil}), do: ""
  defp by(%{by: by}), do: " by #{by}"

  defp time(time), do: Calendar.strftime(time, "%Y-%m-%d %H:%M:%S UTC")
end
