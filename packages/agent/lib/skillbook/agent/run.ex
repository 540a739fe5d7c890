defmodule Skillbook.Agent.Run do
  @moduledoc """
  A durable run of an agent, as `Skillbook.Agent.Runs` returns it.

  ## Fields

    * `:ref` - identifies the run
    * `:book` - the name of the book
    * `:run` - the id of its conversation in hooks, approvals and stored conversations
    * `:conversation` - the id of its `Skillbook.Conversation`, or `nil`
    * `:profile`, `:tenant` - on whose behalf it runs; `:tenant` is `nil` without one
    * `:title` - the first line of its input
    * `:status` - `:running`; `:interrupted`, its process or node is gone and it can be continued;
      `:stopped` by `Skillbook.Agent.Runs.stop/3`; `:failed`, it was given up, with the `:reason`;
      otherwise the status of its `Skillbook.Agent.Result`
    * `:turns` - how often the model has answered
    * `:continued` - how often it was continued after its process or node was gone
    * `:started_at`, `:ended_at` - times in UTC; `:ended_at` is `nil` until it has ended
    * `:text` - the text of the last reply of a run that has ended, or `nil`
    * `:reason` - why it failed, or `nil`
  """

  @type t :: %__MODULE__{
          ref: String.t(),
          book: atom(),
          run: String.t(),
          conversation: String.t() | nil,
          profile: String.t(),
          tenant: String.t() | nil,
          title: String.t(),
          status: :running | :interrupted | :stopped | :failed | Skillbook.Agent.Result.status(),
          turns: non_neg_integer(),
          continued: integer(),
          started_at: DateTime.t(),
          ended_at: DateTime.t() | nil,
          text: String.t() | nil,
          reason: String.t() | nil
        }

  @enforce_keys [:ref, :book, :run, :profile, :title, :status, :turns, :continued, :started_at]
  defstruct @enforce_keys ++ [:conversation, :tenant, :ended_at, :text, :reason]
end
