defmodule Skillbook.OutOfServiceError do
  @moduledoc """
  A command whose handler failed several times in a row, and is left alone for a while. Nothing was done.

  ## Fields

    * `:name` - the skill's name
    * `:failures` - how many times in a row it failed
    * `:since` - since when it is out of service, a `DateTime` in UTC
    * `:retry_in` - after how many seconds one call will be let through to try it, or `nil` while that call runs

  ## Examples

      iex> error = %Skillbook.OutOfServiceError{name: "email.send", failures: 5, since: ~U[2026-02-17 12:00:10Z], retry_in: 18}
      iex> Exception.message(error)
      "`email.send` was not run: it failed 5 times in a row and is out of service since 2026-02-17 12:00:10 UTC. Try again in 18 s, and go on without it until then, or tell the user."
  """

  @type t :: %__MODULE__{
          name: String.t(),
          failures: pos_integer(),
          since: DateTime.t(),
          retry_in: pos_integer() | nil
        }

  defexception [:name, :failures, :since, :retry_in]

  @impl true
  def message(error) do
    since =
      error.since |> DateTime.truncate(:second) |> Calendar.strftime("%Y-%m-%d %H:%M:%S UTC")

    times = if error.failures == 1, do: "once", else: "#{error.failures} times in a row"

    "`#{error.name}` was not run: it failed #{times} and is out of service since #{since}. " <>
      retry(error)
  end

  defp retry(%{retry_in: nil}) do
    "Another call is trying it right now: try again in a minute, and go on without it until then, or tell the user."
  end

  defp retry(%{retry_in: seconds}) do
    "Try again in #{seconds} s, and go on without it until then, or tell the user."
  end
end
