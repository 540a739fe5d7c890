defmodule Skillbook.Agent.Result do
  @moduledoc """
  The result of `Skillbook.Agent.run/3`.

  ## Fields

    * `:status` - how the run ended:
      * `:done` - the last reply has no commands; it is the answer
      * `:cut_off` - as `:done`, but the reply is incomplete: it reached its limit of tokens, or
        the server withheld the rest
      * `:max_turns`, `:max_time`, `:max_tokens` - the run reached this limit
      * `:stuck` - the same command failed with the same error in `:max_repeats` replies in a row
      * `:error` - the model failed, see `:error`
    * `:text` - the text of the last reply, without command blocks
    * `:transcript` - the `Skillbook.Transcript`. It can be continued whatever the status
    * `:usage` - `:prompt_tokens` and `:completion_tokens` of all turns, and whether some of them
      are `:estimated`
    * `:turns` - how often the model was called
    * `:error` - a `Skillbook.ModelError`, or `nil`

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :result_example, store: ":memory:")
      iex> error = %Skillbook.ModelError{kind: :timeout, reason: "no answer within 5 s"}
      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> {:error, error} end)
      iex> result = Skillbook.Agent.run(:result_example, "Hi", model: model)
      iex> {result.status, Exception.message(result.error)}
      {:error, "the model took too long: no answer within 5 s"}
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
