defmodule Skillbook.AgentError do
  @moduledoc """
  Returned by `Skillbook.Agent.run/3` when the model failed, or the run lost its profile, its book
  or its database.

  ## Fields

    * `:error` - the failure of the model, a `Skillbook.ModelError`; or
      * a `Skillbook.ProfileError`, if the application had no profile for the next turn
      * a `Skillbook.StoppedError`, if the book stops or has stopped
      * a `Skillbook.SQL.Error`, if the book's database has ended
    * `:result` - the `Skillbook.Agent.Result` up to the failure. Its `:transcript` has all turns
      before it and can be continued

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :agent_error, store: ":memory:")
      iex> error = %Skillbook.ModelError{kind: :timeout, reason: "no answer within 5 s"}
      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> {:error, error} end)
      iex> {:error, error} = Skillbook.Agent.run(:agent_error, "Hi", model: model)
      iex> Exception.message(error)
      "the run ended in turn 1: the model took too long: no answer within 5 s"
      iex> Enum.map(error.result.transcript.messages, & &1.kind)
      [:prompt, :input]
  """

  @type t :: %__MODULE__{
          error:
            Skillbook.ModelError.t()
            | Skillbook.ProfileError.t()
            | Skillbook.StoppedError.t()
            | Skillbook.SQL.Error.t(),
          result: Skillbook.Agent.Result.t()
        }

  @enforce_keys [:error, :result]
  defexception [:error, :result]

  @impl true
  def message(%{error: error, result: result}),
    do: "the run ended in turn #{result.turns}: #{Exception.message(error)}"
end
