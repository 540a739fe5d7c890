defmodule Skillbook.Agent.Result do
  @moduledoc """
  The result of `Skillbook.Agent.run/3`.

  ## Fields

    * `:status` - how the run ended:
      * `:done` - the last reply has no commands; it is the answer
      * `:cut_off` - as `:done`, but the reply is incomplete: it reached its limit of tokens, or
        the server withheld the rest
      * `:empty` - the model answered twice in a row with neither text nor a command
      * `:pending` - a command waits for an approval, see `:pending`. The model was asked once
        more, and its last reply tells the user
      * `:max_turns`, `:max_time`, `:max_tokens`, `:max_cost` - the run reached this limit
      * `:over_budget` - a daily limit of the book's `:budget` is used up; `:error` is a
        `Skillbook.BudgetError`, which tells which one
      * `:refused` - a `Skillbook.Hook` refused the input or a call of the model; its text is the
        answer
      * `:invalid_output` - the answer did not match the `:output` of the run, also after the
        model was told; `:error` says why
      * `:stuck` - the same command failed with the same error in `:max_repeats` replies in a row,
        or replies gave no new result, although the model was told
      * `:error` - the model failed. `Skillbook.Agent.run/3` returns it in a
        `Skillbook.AgentError`
    * `:text` - the text of the last reply, without command blocks. If its connection broke and
      the model went on, it has all parts
    * `:transcript` - the `Skillbook.Transcript`. It can be continued whatever the status
    * `:leader` - the id of the profile that leads the conversation: that of the run, or the one
      that it was handed over to
    * `:pending` - the `Skillbook.Approval`s for which commands of the run wait, also those in the
      results of calls that were decided since the run before.
      `Skillbook.approve/3` can resume the conversation with their results
    * `:output` - with the option `:output`, the object of the answer in its types; otherwise
      `nil`
    * `:usage` - the tokens of all turns, as in `t:Skillbook.Model.usage/0`, and whether some of
      them are `:estimated`
    * `:cost` - what the calls of models have cost by the book's `:prices`, with those of agents
      that the run dispatched; `nil` if the price of one of the models is unknown
    * `:turns` - how often the model was called
    * `:error` - the failure of the model, a `Skillbook.ModelError`, or `nil`. With `:max_time` it
      is the call that the time limit ended; with `:pending`, why the model did not tell the user

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :result_example, store: ":memory:")
      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> "Hello." end)
      iex> {:ok, result} = Skillbook.Agent.run(:result_example, "Hi", model: model)
      iex> {result.status, result.text, result.turns}
      {:done, "Hello.", 1}
  """

  alias Skillbook.{ModelError, Transcript}

  @type status ::
          :done
          | :cut_off
          | :empty
          | :pending
          | :max_turns
          | :max_time
          | :max_tokens
          | :max_cost
          | :over_budget
          | :refused
          | :invalid_output
          | :stuck
          | :error
  @type usage :: %{
          prompt_tokens: non_neg_integer(),
          completion_tokens: non_neg_integer(),
          cached_tokens: non_neg_integer(),
          cache_write_tokens: non_neg_integer(),
          estimated: boolean()
        }
  @type t :: %__MODULE__{
          status: status(),
          text: String.t(),
          transcript: Transcript.t(),
          output: map() | nil,
          usage: usage(),
          cost: float() | nil,
          turns: non_neg_integer(),
          pending: [Skillbook.Approval.t()],
          leader: String.t() | nil,
          error: ModelError.t() | Exception.t() | nil
        }

  @enforce_keys [:status, :text, :transcript, :usage, :turns]
  defstruct [:status, :text, :transcript, :output, :usage, :cost, :turns, :error, :leader] ++
              [pending: []]
end
