defmodule Skillbook.Scheduler.Clock do
  @moduledoc false
  # The time as a book's schedules see it.

  # What comes so many seconds later than it should was missed.
  @late 60

  @spec now(Skillbook.Book.t()) :: DateTime.t()
  def now(book) do
    case book.schedules[:clock] do
      nil -> DateTime.utc_now()
      {module, function} -> apply(module, function, [])
      clock -> clock.()
    end
  end

  @spec late() :: pos_integer()
  def late, do: @late
end
