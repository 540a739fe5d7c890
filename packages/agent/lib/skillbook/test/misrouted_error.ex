defmodule Skillbook.MisroutedError do
  @moduledoc """
  Raised by `Skillbook.Test` for a request that leads to another entry than expected.

  ## Fields

    * `:request`, `:name` - the request, and the entry that it should or should not lead to
    * `:expected` - `{:first, n}`, among the first `n`; `:picked` by the router; or `:not_picked`
    * `:picks` - the names that the router picked instead, for `:picked`
    * `:rank` - the place of the entry, from 1; `nil` if it is not among the first ten
    * `:ranking` - the first entries, each a `t:Skillbook.Test.ranked/0`

  `message/1` shows the ranking, with the words of the request that find each entry:

      iex> error = %Skillbook.MisroutedError{
      ...>   request: "Will it rain?",
      ...>   name: "weather",
      ...>   expected: {:first, 1},
      ...>   rank: 2,
      ...>   ranking: [
      ...>     %{rank: 1, name: "poems", score: 3.5, words: [%{word: "rain", part: 3.5}],
      ...>       similarity: nil, sentence: nil},
      ...>     %{rank: 2, name: "weather", score: 1.25, words: [], similarity: nil, sentence: nil}
      ...>   ]
      ...> }
      iex> error |> Exception.message() |> String.split("\\n")
      [
        "expected \\"Will it rain?\\" to lead to `weather` first, got it in place 2",
        "  1  poems    3.500  rain 3.5",
        "  2  weather  1.250"
      ]
  """

  alias Skillbook.Support.Hidden
  alias Skillbook.Test
  alias Skillbook.Test.Ranking

  @type t :: %__MODULE__{
          request: String.t(),
          name: String.t(),
          expected: {:first, pos_integer()} | :picked | :not_picked,
          picks: [String.t()],
          rank: pos_integer() | nil,
          ranking: [Test.ranked()]
        }

  defexception [:request, :name, :expected, :rank, picks: [], ranking: []]

  @impl true
  def message(error) do
    Hidden.visible(Enum.join([headline(error) | Ranking.lines(error.ranking)], "\n"))
  end

  defp headline(%{expected: :not_picked} = error),
    do: "expected #{inspect(error.request)} not to lead to `#{error.name}`, but it is picked"

  defp headline(%{expected: :picked} = error) do
    got = if error.picks == [], do: "nothing", else: Enum.map_join(error.picks, ", ", &"`#{&1}`")
    "expected the router to pick `#{error.name}` for #{inspect(error.request)}, it picks #{got}"
  end

  defp headline(%{expected: {:first, first}} = error) do
    where = if first == 1, do: "first", else: "among the first #{first}"

    got =
      cond do
        error.rank -> "got it in place #{error.rank}"
        error.ranking == [] -> "got no entry"
        true -> "got others"
      end

    "expected #{inspect(error.request)} to lead to `#{error.name}` #{where}, #{got}"
  end
end
