defmodule Skillbook.SQL.Postgres.Reply do
  @moduledoc false
  # What the driver sends, one message a call.

  alias Skillbook.SQL.Error

  @doc "Waits without a time limit: a reply comes for each call, whatever happens, since the driver has limits of its own."
  def await(reference) do
    receive do
      {^reference, reply} -> result(reply)
    end
  end

  def result({:error, error}) when is_tuple(error), do: {:error, error(error)}
  def result(done), do: done

  def error({kind, constraint, message, sql}) do
    %Error{kind: kind, constraint: constraint, message: message, sql: sql}
  end
end
