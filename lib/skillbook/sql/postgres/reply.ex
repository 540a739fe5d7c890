defmodule Skillbook.SQL.Postgres.Reply do
  @moduledoc false
  # What the driver sends, one message a call.

  alias Skillbook.SQL.Error

  @doc "Waits without a time limit: a reply comes for each call, whatever happens, since the driver has limits of its own."
  def await(reference) do
    receive do
      {^reference, reply} -> Error.result(reply)
    end
  end
end
