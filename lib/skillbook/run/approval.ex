defmodule Skillbook.Approval do
  @moduledoc """
  A call that waits for an approval, or had one.

  It is stored in the book's database when the `:ask` callback answers `:pending`, or when a page
  with `approval: required` is called in a book without a callback. `Skillbook.approvals/2` lists
  them; `Skillbook.approve/3` and `Skillbook.deny/3` decide.

      iex> ask = fn _request -> :pending end
      iex> {:ok, _pid} = Skillbook.start_link(
      ...>   name: :approval_example,
      ...>   builtins: ["memory"],
      ...>   store: ":memory:",
      ...>   profiles: [[id: "ann", writes: :ask]],
      ...>   ask: ask
      ...> )
      iex> view = Skillbook.view(:approval_example, "ann")
      iex> reply = "```cmd\\nmemory.save --content tea\\n```"
      iex> %{results: [%{status: :pending, data: waiting}]} = Skillbook.run(view, reply)
      iex> {waiting.status, waiting.command, waiting.flags}
      {:pending, "memory.save --content tea", %{"category" => "general", "content" => "tea"}}
      iex> {:ok, approval} = Skillbook.approve(:approval_example, waiting.ref, by: "Bob")
      iex> {approval.status, approval.by, approval.result.status}
      {:done, "Bob", :ok}

  ## Fields

    * `:ref` - the reference that decides about it, a text that is unique in the database
    * `:book` - the name of the book
    * `:profile` - the id of the profile that made the call
    * `:tenant` - the tenant that it belongs to, or `nil`
    * `:name` - the name of the skill
    * `:command` - the command as it was asked for. Placeholders of a reply are filled in
    * `:flags` - the flags that its handler gets, with defaults and positional values; dates and
      times as text
    * `:status` - one of
      * `:pending` - it waits for a decision
      * `:running` - it was approved, and runs
      * `:done`, `:failed` - it was approved and has run; `:result` has the result
      * `:denied` - it was declined
      * `:expired` - nobody decided in time
      * `:interrupted` - its node or process died while it ran. A part of its work may be done, so
        it never runs again
    * `:asked_at`, `:expires_at` - when the call was made, and until when it can be approved, UTC
    * `:decided_at`, `:by`, `:reason` - when it was decided, the text of `by:`, and the reason; or
      `nil`
    * `:finished_at` - when its run ended, or `nil`
    * `:result` - the `Skillbook.Result` of the run, or `nil`. A stored one has the `:status` and
      the first 10,000 characters of the `:content`
    * `:conversation` - the `:run` of the `Skillbook.Transcript` in which it was called, once that
      is stored; or `nil`
    * `:resumable` - whether it has a conversation that can go on with the result
    * `:run` - after `resume:`, the `Skillbook.Agent.Result` of the conversation; otherwise `nil`
  """

  @type status ::
          :pending | :running | :done | :failed | :denied | :expired | :interrupted

  @type t :: %__MODULE__{
          ref: String.t(),
          book: atom(),
          profile: String.t(),
          tenant: String.t() | nil,
          name: String.t(),
          command: String.t(),
          flags: map(),
          status: status(),
          asked_at: DateTime.t(),
          expires_at: DateTime.t(),
          decided_at: DateTime.t() | nil,
          by: String.t() | nil,
          reason: String.t() | nil,
          finished_at: DateTime.t() | nil,
          result: Skillbook.Result.t() | nil,
          conversation: String.t() | nil,
          resumable: boolean(),
          run: Skillbook.Agent.Result.t() | nil
        }

  @enforce_keys [:ref, :book, :profile, :name, :command, :flags, :status, :asked_at, :expires_at]
  defstruct [
    :ref,
    :book,
    :profile,
    :name,
    :command,
    :flags,
    :status,
    :asked_at,
    :expires_at,
    :decided_at,
    :by,
    :reason,
    :finished_at,
    :result,
    :run,
    :tenant,
    :conversation,
    resumable: false
  ]

  @statuses ~w(pending running done failed denied expired interrupted)a

  @doc false
  @spec statuses() :: [status()]
  def statuses, do: @statuses
end
