defmodule Skillbook.Support.Count do
  @moduledoc false
  # Numbers of things, for texts.

  @doc """
  A number with its noun.

      iex> Skillbook.Support.Count.text(1, "task")
      "1 task"
      iex> Skillbook.Support.Count.text(2, "memory", "memories")
      "2 memories"
  """
  @spec text(non_neg_integer(), String.t(), String.t() | nil) :: String.t()
  def text(number, one, many \\ nil)
  def text(1, one, _many), do: "1 #{one}"
  def text(number, one, many), do: "#{number} #{many || one <> "s"}"

  @doc """
  The last lines of a list: one if there is more than it shows, up to the maximum of `--limit`.

      iex> Skillbook.Support.Count.more(3, 100)
      ["3 more; narrow the search, or raise --limit (at most 100)"]
      iex> Skillbook.Support.Count.more(0, 100)
      []

  With the place after which the list goes on, the line names it; the number may be unknown.

      iex> Skillbook.Support.Count.more(3, 100, "M-7")
      ["3 more; narrow the search, or add --after M-7 to list them"]
      iex> Skillbook.Support.Count.more(nil, 100, "M-7")
      ["More follow; add --after M-7 to list them"]
  """
  @spec more(integer() | nil, pos_integer() | nil, String.t() | pos_integer() | nil) :: [
          String.t()
        ]
  def more(left, max, next \\ nil)
  def more(nil, _max, nil), do: []
  def more(nil, _max, next), do: ["More follow; add --after #{next} to list them"]

  def more(left, _max, next) when left > 0 and next != nil,
    do: ["#{left} more; narrow the search, or add --after #{next} to list them"]

  def more(left, max, nil) when left > 0,
    do: ["#{left} more; narrow the search, or raise --limit (at most #{max})"]

  def more(_left, _max, _next), do: []

  @doc """
  Adds the place after which a list goes on to the data of a result, if it does.

      iex> Skillbook.Support.Count.with_next(%{total: 7}, "M-7")
      %{total: 7, next: "M-7"}
      iex> Skillbook.Support.Count.with_next(%{total: 7}, nil)
      %{total: 7}
  """
  @spec with_next(map(), String.t() | pos_integer() | nil) :: map()
  def with_next(data, nil), do: data
  def with_next(data, next), do: Map.put(data, :next, next)
end
