defmodule Skillbook.SQL.Postgres.Reply do
  @moduledoc false
  # Receives the driver's reply to a call. The driver sends one message per call.

  alias Skillbook.SQL.Error

  @doc "Waits without a time limit: the driver has limits, and always replies."
  def await(reference) do
    receive do
      {^reference, reply} -> Error.result(reply)
    end
  end
end
