defmodule Skillbook.Test do
  @moduledoc ~S"""
  Tests that requests lead to the right skills, by their descriptions alone and without a model.

  `run/2` tests the [`examples`](skills.md#test-descriptions) in the frontmatter of all skills, as
  `bin/skillbook test` does. `assert_routes/4` and `refute_routes/3` test single requests, in
  ExUnit or any other program:

      test "requests for mail" do
        view = Skillbook.view(MyApp.Skills, "support")
        Skillbook.Test.assert_routes(view, "Tell Bob that I am late", "email.send")
        Skillbook.Test.assert_routes(view, "Any news from Ann?", "email.search", first: 3)
        Skillbook.Test.refute_routes(view, "Thank you!")
      end

  A request leads to the entries that search finds for it, in their order. Search is by words, and
  also by meaning if the view is of a book with an embedder; then the functions wait until the
  book has embedded its entries, and raise `Skillbook.EmbedderError` if it cannot. Search goes
  through the view: entries that the profile does not see neither compete nor appear.

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skills-#{System.unique_integer([:positive])}")
      iex> write = fn name, about, request ->
      ...>   page = "---\nname: #{name}\ndescription: #{about}\nexamples: [#{request}]\n---\n"
      ...>   {:ok, _} = Skillbook.Document.create(folder, name <> ".md", page <> "Text.\n")
      ...> end
      iex> write.("rain", "Forecasts of rain and wind", "Will there be rain?")
      iex> write.("poem", "Writes a poem about anything", "A poem for my sister")
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> File.rm_rf!(folder)
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.Test.assert_routes(view, "Is there wind in Rome?", "rain")
      :ok
      iex> test = Skillbook.Test.run(view)
      iex> {length(test.results), test.hit1, test.hit3}
      {2, 1.0, 1.0}

  ## Fields

    * `:results` - a `t:result/0` for each example, sorted by name, in the order of the page
    * `:hit1`, `:hit3` - the share of requests whose entry comes first, and of those whose entry
      is among the first three, from 0.0 to 1.0; `nil` without requests. Those after `not:` do not
      count
    * `:pairs` - the pairs of entries that compete most: a `t:pair/0` each
    * `:entries` - how many entries could have examples
    * `:unlisted` - the names of entries with examples to which no request leads, because models
      do not see them (`disable-model-invocation`)
    * `:vectors` - whether search was by meaning too
  """

  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.Test.{Examples, Ranking}
  alias Skillbook.{MisroutedError, View}

  @typedoc """
  The result of an example.

    * `:name`, `:request` - the entry, and what somebody asks for
    * `:not` - whether the request should not lead to the entry
    * `:passed` - whether the entry is among the first three; with `:not`, whether it is not
      picked
    * `:rank` - the place of the entry, from 1; `nil` if it is not among the first ten
    * `:ranking` - the entries up to its own, at most the first three, and its own. Empty if it is
      first and should be
  """
  @type result :: %{
          name: String.t(),
          request: String.t(),
          not: boolean(),
          passed: boolean(),
          rank: pos_integer() | nil,
          ranking: [ranked()]
        }

  @typedoc """
  An entry that search finds for a request.

    * `:rank`, `:name`, `:score` - its place and its relevance
    * `:words` - the words of the request that find it, the strongest first: `%{word:, part:}`.
      The part is what the score by words would lose without that word
    * `:similarity` - how similar the request is to the entry's description, from -1.0 to 1.0;
      `nil` without vectors
    * `:sentence` - the sentence of the description that is most similar to the request; `nil`
      without vectors
  """
  @type ranked :: %{
          rank: pos_integer(),
          name: String.t(),
          score: float(),
          words: [%{word: String.t(), part: float()}],
          similarity: float() | nil,
          sentence: String.t() | nil
        }

  @typedoc """
  Two entries that compete.

    * `:names` - their names, sorted
    * `:similarity` - how alike their descriptions are, from 0.0 to 1.0, by the words that both
      have. A rare word counts more than a common one
    * `:words` - these words, the rarest first
    * `:meaning` - how similar their descriptions are in meaning, from 0.6 to 1.0; `nil` if they
      are less similar, or without vectors
    * `:taken` - how many examples of the first entry have the second one before it, and the
      reverse
  """
  @type pair :: %{
          names: [String.t()],
          similarity: float(),
          words: [String.t()],
          meaning: float() | nil,
          taken: [non_neg_integer()]
        }

  @type t :: %__MODULE__{
          results: [result()],
          hit1: float() | nil,
          hit3: float() | nil,
          pairs: [pair()],
          entries: non_neg_integer(),
          unlisted: [String.t()],
          vectors: boolean()
        }

  defstruct [:hit1, :hit3, results: [], pairs: [], entries: 0, unlisted: [], vectors: false]

  @doc """
  Runs the examples of the entries that a view shows.

  ## Options

    * `:only` (list of names or `nil`) - test only the examples of these entries, and show only
      their pairs. All entries compete. Defaults to `nil`, all
    * `:pairs` (0 to 1,000) - the maximum number of pairs. Defaults to `10`
  """
  @spec run(View.t(), keyword()) :: t()
  def run(view, options \\ [])

  def run(%View{} = view, options) when is_list(options) do
    with {:error, error} <- Options.validate(options, "a test of examples", run_schema()),
         do: raise(error)

    Examples.run(view, options[:only], Keyword.get(options, :pairs, 10))
  end

  def run(view, options) do
    Arguments.check!("Skillbook.Test.run/2", view: {:view, view}, options: {:keyword, options})
  end

  @doc """
  Checks that a request leads to an entry, and returns `:ok`.

  Raises `Skillbook.MisroutedError` otherwise, which shows the entries that come first and the
  words that find them. Raises `Skillbook.UnknownSkillError` if the view has no entry of this name
  or alias.

  A view shows what its profile sees. The name of a book stands for all its entries.

  ## Options

    * `:first` (1 to #{Ranking.max()}) - how many entries may come up to it, itself included.
      Defaults to `1`: it comes first
  """
  @spec assert_routes(View.t() | atom(), String.t(), String.t(), keyword()) :: :ok
  def assert_routes(view_or_book, request, name, options \\ [])

  def assert_routes(%View{} = view, request, name, options)
      when is_binary(request) and is_binary(name) and is_list(options) do
    with {:error, error} <- Options.validate(options, "assert_routes/4", assert_schema()),
         do: raise(error)

    name = View.fetch!(view, name).name
    first = Keyword.get(options, :first, 1)
    ranking = Ranking.new(view, [request])
    rank = ranking |> Ranking.find(request) |> Ranking.rank(name)

    if rank != nil and rank <= first do
      :ok
    else
      raise MisroutedError,
        request: request,
        name: name,
        expected: {:first, first},
        rank: rank,
        ranking: explained(ranking, request, name, max(first, Ranking.shown()))
    end
  end

  def assert_routes(book, request, name, options)
      when is_atom(book) and not is_nil(book) and not is_boolean(book),
      do: assert_routes(View.all(book), request, name, options)

  def assert_routes(view, request, name, options) do
    Arguments.check!("Skillbook.Test.assert_routes/4",
      view_or_book: {:view, view},
      request: {:text, request},
      name: {:text, name},
      options: {:keyword, options}
    )
  end

  @doc """
  Checks that the router picks neither this entry for a request, nor any without a name, and
  returns `:ok`.

  Raises `Skillbook.MisroutedError` otherwise. An entry that does not exist is not picked.
  """
  @spec refute_routes(View.t() | atom(), String.t(), String.t() | nil) :: :ok
  def refute_routes(view_or_book, request, name \\ nil)

  def refute_routes(%View{} = view, request, name)
      when is_binary(request) and (is_binary(name) or is_nil(name)) do
    own =
      with name when is_binary(name) <- name,
           {:ok, entry} <- View.fetch(view, name),
           do: entry.name,
           else: (other -> other)

    ranking = Ranking.new(view, [request])

    with picked when is_binary(picked) <-
           Enum.find(Ranking.picked(ranking, request), &(own in [nil, &1])) do
      raise MisroutedError,
        request: request,
        name: picked,
        expected: :not_picked,
        rank: ranking |> Ranking.find(request) |> Ranking.rank(picked),
        ranking: explained(ranking, request, picked, Ranking.shown())
    else
      nil -> :ok
    end
  end

  def refute_routes(book, request, name)
      when is_atom(book) and not is_nil(book) and not is_boolean(book),
      do: refute_routes(View.all(book), request, name)

  def refute_routes(view, request, name) do
    Arguments.check!("Skillbook.Test.refute_routes/3",
      view_or_book: {:view, view},
      request: {:text, request},
      name: {{:or_nil, :text}, name}
    )
  end

  defp explained(ranking, request, name, count) do
    entries = Ranking.explained(ranking, request, name, count)
    [entries] = Ranking.explain_sentences(ranking, [{request, entries}])
    entries
  end

  defp run_schema do
    [
      only: {"a list of names or nil", &(is_nil(&1) or Options.texts?(&1))},
      pairs: {"an integer from 0 to 1000", &(is_integer(&1) and &1 in 0..1000)}
    ]
  end

  defp assert_schema do
    max = Ranking.max()
    [first: {"an integer from 1 to #{max}", &(is_integer(&1) and &1 in 1..max)}]
  end
end
