defmodule Skillbook.Handlers.Agent.HandOver do
  @moduledoc false
  # `agent.hand_over`: another profile leads the conversation from the next reply on.

  @behaviour Skillbook.Handler

  alias Skillbook.Agent

  @impl true
  def execute(%{"profile" => profile} = flags, context),
    do: Agent.hand_over(context, profile, flags["reason"] || "")
end
