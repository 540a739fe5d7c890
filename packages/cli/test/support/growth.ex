defmodule Skillbook.Growth do
  @moduledoc false
  # Whether the time of a call grows with its text, and no faster: twice the text takes at most
  # 2.6 times as long, on the average of two doublings.

  alias Skillbook.Cost

  @largest_ratio 2.6
  # Microseconds. A call is measured if its first text takes so much longer than a short one.
  @shortest 4_000
  # A call that takes longer is measured with shorter texts instead of longer ones.
  @long 40_000
  # Below this time a ratio says more about the measurement than about the call.
  @measured 1_000
  # A processor may be slow for most of the time, while its other threads are busy.
  @attempts 16
  # Milliseconds of a first look, and of a measurement. The clock of processor times may tick
  # every ten milliseconds, so a first look may find a time that is too short, and is not kept.
  @look 10
  @measurement 100
  # The pieces of which a text of nearly a megabyte is made, and its time in microseconds: a
  # second on a fast and quiet machine, and up to three elsewhere. Calls that grow faster than
  # their texts take minutes.
  @large ["9", "0.", "a ", "a: b\n", "\""]
  @megabyte 1_000_000 - 1_000
  @second 3_000_000

  @doc """
  The size of the longest text to measure a call with, from a text of a first look and the time of
  a short one; `nil` for a quick call, as most are.
  """
  @spec size((String.t() -> term()), String.t(), non_neg_integer()) :: pos_integer() | nil
  def size(call, text, least) do
    most = least + @shortest

    shortest =
      Enum.reduce_while(1..3, nil, fn _, _ ->
        time = Cost.time(fn -> call.(text) end, 1)
        {if(time > most, do: :cont, else: :halt), time}
      end)

    cond do
      shortest <= most -> nil
      shortest <= @long -> min(64_000, 4 * byte_size(text))
      true -> byte_size(text)
    end
  end

  @doc """
  The processor times at an eighth, a quarter and a half of a size and at all of it, as text, if
  they grow too much; `nil` as soon as they do not.
  """
  @spec superlinear((String.t() -> term()), (pos_integer() -> String.t()), pos_integer() | nil) ::
          String.t() | nil
  def superlinear(_call, _text, nil), do: nil

  def superlinear(call, text, size),
    do: superlinear(call, text, size, @attempts, [nil, nil, nil, nil])

  # Other programs make times longer, never shorter, so the shortest of all attempts count.
  defp superlinear(call, text, size, attempts, before) do
    times =
      for {part, before} <- Enum.zip([8, 4, 2, 1], before) do
        text = text.(div(size, part))
        while = if(attempts == @attempts, do: @look, else: @measurement)
        min(Cost.cpu(fn -> call.(text) end, while), before)
      end

    # One doubling alone may cost more, where longer texts go to another reader or to another
    # scheduler. Two together must not.
    grows? =
      times
      |> Enum.chunk_every(3, 1, :discard)
      |> Enum.any?(fn [one, _two, four] ->
        one > @measured and four > @largest_ratio * @largest_ratio * one
      end)

    cond do
      not grows? -> nil
      attempts == @attempts -> superlinear(call, text, size, attempts - 1, before)
      attempts > 1 -> superlinear(call, text, size, attempts - 1, times)
      true -> Enum.map_join(times, ", ", &round/1) <> " µs"
    end
  end

  @doc "Texts of nearly a megabyte for which a call takes longer than a second, as text."
  @spec slow_megabytes((String.t() -> term())) :: [String.t()]
  def slow_megabytes(call) do
    for piece <- @large,
        text = String.duplicate(piece, div(@megabyte, byte_size(piece))),
        time = longer(call, text),
        do: "#{inspect(piece)}: #{round(time)} µs"
  end

  # The processor time of a call, if it is longer, also without the time of other programs, which
  # share its caches.
  defp longer(call, text) do
    if Cost.time(fn -> call.(text) end, 1) > @second do
      time = Enum.min(for _ <- 1..3, do: Cost.cpu(fn -> call.(text) end, 1))
      if time > @second, do: time
    end
  end
end
