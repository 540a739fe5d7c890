defmodule Skillbook.Schedule.Clock do
  @moduledoc false
  # The clock of a book's schedules, which the option `schedules: [clock: ...]` replaces.

  # Seconds after which a firing counts as missed.
  @max_delay 60

  @spec now(Skillbook.Book.t()) :: DateTime.t()
  def now(book) do
    case book.schedules[:clock] do
      nil -> DateTime.utc_now()
      {module, function} -> apply(module, function, [])
      clock -> clock.()
    end
  end

  @doc "The seconds after which a firing counts as missed."
  @spec max_delay() :: pos_integer()
  def max_delay, do: @max_delay
end
