defmodule Skillbook.ScheduleError do
  @moduledoc """
  A schedule or a time zone that cannot be read.

  ## Fields

    * `:part` - `:expression` or `:timezone`
    * `:expected` - what was expected
    * `:got` - what came, in quotes, or `nothing`
    * `:hint` - what to write instead

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
