defmodule Skillbook.Agent.Result do
  @moduledoc """
  What a run of `Skillbook.Agent.run/3` came to.

  ## Fields

    * `:status` - how it ended:
      * `:done` - the model's last reply has no commands: it is the answer
      * `:cut_off` - the same, but the reply is not whole: it reached its limit of tokens, or the server withheld the rest
      * `:max_turns`, `:max_time`, `:max_tokens` - this limit was reached before
      * `:stuck` - the same command failed in the same way in `:max_repeats` replies, one after the other
      * `:error` - the model did not answer; `:error` says why
    * `:text` - the text of the last reply, without its blocks
    * `:transcript` - the whole `Skillbook.Transcript`, to go on from, however it ended
    * `:usage` - `:prompt_tokens` and `:completion_tokens` of all turns, and whether some are `:estimated`
    * `:turns` - how often the model was asked
    * `:error` - a `Skillbook.ModelError`, or `nil`
  """

  alias Skillbook.{ModelError, Transcript}

  @type status :: :done | :cut_off | :max_turns | :max_time | :max_tokens | :stuck | :error
  @type usage :: %{
          prompt_tokens: non_neg_integer(),
          completion_tokens: non_neg_integer(),
          estimated: boolean()
        }
  @type t :: %__MODULE__{
          status: status(),
          text: String.t(),
          transcript: Transcript.t(),
          usage: usage(),
          turns: non_neg_integer(),
          error: ModelError.t() | nil
        }

  @enforce_keys [:status, :text, :transcript, :usage, :turns]
  defstruct [:status, :text, :transcript, :usage, :turns, :error]
end
