defmodule Skillbook.ModelError do
  @moduledoc """
  A model that did not answer, or not to the end.

  ## Fields

    * `:kind` - what went wrong:
      * `:key` - there is no key, or none that can be sent
      * `:connection` - no connection, or it broke before there was an answer; a certificate that is not trusted
      * `:timeout` - a time limit is over
      * `:rate_limited` - too many requests (429)
      * `:server` - the server failed (5xx), or reported an error in its answer
      * `:refused` - the server refused the request (other 4xx)
      * `:bad_answer` - what came is no answer of a chat model
      * `:cut_off` - the connection ended in the middle of the answer
    * `:reason` - the same in words; a key is never in it
    * `:status` - the HTTP status, or `nil`
    * `:retry_after` - how many milliseconds the server asks to wait, or `nil`
    * `:text` - what the model had written until then

  ## Examples

      iex> Exception.message(%Skillbook.ModelError{kind: :rate_limited, status: 429, reason: "slow down", retry_after: 2_000})
      "the model's server takes no more requests for now (429), again in 2 s: slow down"

      iex> Exception.message(%Skillbook.ModelError{kind: :connection, reason: "localhost:8080: connection refused"})
      "no connection to the model's server: localhost:8080: connection refused"
  """

  @type kind ::
          :key
          | :connection
          | :timeout
          | :rate_limited
          | :server
          | :refused
          | :bad_answer
          | :cut_off

  @type t :: %__MODULE__{
          kind: kind(),
          reason: String.t(),
          status: pos_integer() | nil,
          retry_after: non_neg_integer() | nil,
          text: String.t()
        }

  @enforce_keys [:kind, :reason]
  defexception [:kind, :reason, :status, :retry_after, text: ""]

  @impl true
  def message(error),
    do: "#{what(error.kind)}#{status(error.status)}#{again(error.retry_after)}: #{error.reason}"

  defp what(:key), do: "no key for the model's server"
  defp what(:connection), do: "no connection to the model's server"
  defp what(:timeout), do: "the model took too long"
  defp what(:rate_limited), do: "the model's server takes no more requests for now"
  defp what(:server), do: "the model's server failed"
  defp what(:refused), do: "the model's server refused the request"
  defp what(:bad_answer), do: "the model's answer cannot be read"
  defp what(:cut_off), do: "the model's answer was cut off"

  defp status(nil), do: ""
  defp status(status), do: " (#{status})"

  defp again(nil), do: ""
  defp again(milliseconds), do: ", again in #{ceil(milliseconds / 1000)} s"
end
