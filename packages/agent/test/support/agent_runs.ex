defmodule Skillbook.Test.AgentRuns do
  @moduledoc false
  # For tests that run agents.

  import ExUnit.Assertions

  alias Skillbook.{Agent, AgentError}

  @doc "The result of a run of `Skillbook.Agent`, also of one whose model failed."
  def ended({:ok, %Agent.Result{status: status} = result}) when status != :error, do: result

  def ended({:error, %AgentError{error: error, result: result}}) do
    assert %Agent.Result{status: :error, error: ^error} = result
    result
  end
end
