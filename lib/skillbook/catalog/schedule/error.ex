defmodule Skillbook.ScheduleError do
  @moduledoc """
  Returned for an invalid cron expression or an unknown time zone.

  ## Fields

    * `:part` - the invalid part, `:expression` or `:timezone`
    * `:expected` - the expected value, as text
    * `:got` - the actual value in quotes, or `nothing`
    * `:hint` - a suggestion of a valid value

  ## Examples

      iex> {:error, error} = Skillbook.Schedule.parse("@daily", "Berlin")
      iex> {error.part, Exception.message(error)}
      {:timezone, ~s(expected the name of a time zone, got "Berlin"; write Europe/Berlin)}
  """

  @type t :: %__MODULE__{
          part: :expression | :timezone,
          expected: String.t(),
          got: String.t(),
          hint: String.t()
        }

  @enforce_keys [:part, :expected, :got, :hint]
  defexception [:part, :expected, :got, :hint]

  @impl true
  def message(error), do: "expected #{error.expected}, got #{error.got}; #{error.hint}"
end
