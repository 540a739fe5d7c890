defmodule Skillbook.Embedding.QueryVectorsTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Embedding.{Entries, Indexer, QueryVectors}
  alias Skillbook.Search.Candidates
  alias Skillbook.{Book, Embedder, Embedders, EmbedderError, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  setup %{tmp_dir: folder} do
    write(folder, %{
      "forecast/SKILL.md" => "---\nname: forecast\ndescription: How the sky will be\n---\nx\n",
      "letters/SKILL.md" => "---\nname: letters\ndescription: Write to somebody\n---\nx\n"
    })

    %{folder: folder}
  end

  # The embedder answers for the pages, and queries are answered by `answer`.
  defp start(folder, answer, options \\ []) do
    before = fn texts -> if hd(texts) =~ ":", do: :ok, else: answer.(texts) end
    options = [sources: [folder], builtins: false, watch: false] ++ options
    book = book([embedder: Embedders.topics("m", before)] ++ options)
    :telemetry.listen(book)
    assert eventually(fn -> match?(%{done: 2, total: 2}, Indexer.progress(book)) end)
    Embedders.calls()
    book
  end

  test "a query is embedded once", %{folder: folder} do
    book = start(folder, fn _ -> :ok end)
    view = Skillbook.view(book)
    for _ <- 1..3, do: assert(hd(Skillbook.search(view, "rain today or not")).name == "forecast")
    assert Embedders.calls() == [["rain today or not"]]
    assert_receive {[:skillbook, :embedding, :query], %{duration: _}, %{kind: nil}}
    refute_received {[:skillbook, :embedding, :query], _, _}
    # Nothing to embed.
    for text <- ["", "  \n", <<255>>], do: assert(Skillbook.search(view, text) == [])
    assert Embedders.calls() == []
  end

  test "the cache has a limit and keeps no text", %{folder: folder} do
    book = start(folder, fn _ -> :ok end)
    struct = Book.fetch!(book)
    for n <- 1..300, do: QueryVectors.vector(struct, "secret number #{n}")
    table = Module.concat(book, "QueryVectors")
    # A slot and a vector for each of 256 queries, and the count.
    assert :ets.info(table, :size) == 2 * 256 + 1
    refute inspect(:ets.tab2list(table), limit: :infinity) =~ "secret"
    assert length(Embedders.calls()) == 300
    QueryVectors.vector(struct, "secret number 300")
    assert Embedders.calls() == []
    QueryVectors.vector(struct, "secret number 1")
    assert Embedders.calls() == [["secret number 1"]]
  end

  test "words alone answer if the embedder fails or is slow", %{folder: folder} do
    error = fn kind -> {:error, %EmbedderError{kind: kind, reason: "r"}} end

    for {answer, kind, again} <- [
          {fn _ -> Process.sleep(:infinity) end, :timeout, 0},
          {fn _ -> error.(:connection) end, :connection, 0},
          # Another query may be answered.
          {fn _ -> error.(:refused) end, :refused, 1},
          {fn _ -> raise "broken" end, :failed, 1}
        ] do
      book = start(folder, answer, embedder_timeout: 100)
      view = Skillbook.view(book)
      began = System.monotonic_time(:millisecond)
      assert Enum.map(Skillbook.search(view, "the sky over us"), & &1.name) == ["forecast"]
      assert System.monotonic_time(:millisecond) - began < 5_000
      assert_receive {[:skillbook, :embedding, :query], _, %{kind: ^kind, book: ^book}}
      assert length(Embedders.calls()) == 1
      assert [%{similarity: nil, name: "forecast"}] = Candidates.find(view, "a blue sky", 3)
      assert length(Embedders.calls()) == again
    end
  end

  test "candidates have the parts of their scores", %{folder: folder} do
    view = Skillbook.view(start(folder, fn _ -> :ok end))
    [best | _] = found = Candidates.find(view, "will it rain from the sky", 5)
    assert %{name: "forecast", words: words, similarity: similarity, score: score} = best
    assert words > 0 and similarity > 0.9 and score > 90
    assert Enum.map(found, & &1.score) == found |> Enum.map(& &1.score) |> Enum.sort(:desc)

    assert Enum.map(found, &{&1.name, &1.score}) ==
             view
             |> Skillbook.search("will it rain from the sky")
             |> Enum.map(&{&1.name, &1.score})
  end

  test "names, prefixes and slips find the same first with any vectors" do
    # Each text has a vector that says nothing about it.
    digests =
      Embedder.Function.new("digests", fn texts ->
        for text <- texts, do: for(<<byte <- :crypto.hash(:sha256, text)>>, do: byte - 100)
      end)

    book = book(embedder: digests, embedder_timeout: 60_000, watch: false)
    assert eventually(fn -> match?({[], _}, Entries.follow(Book.fetch!(book), nil)) end)
    view = Skillbook.view(book)
    words = View.all(Book.fetch!(book).catalog)
    entries = View.entries(words)
    names = for entry <- entries, name <- [entry.name | entry.aliases], do: {name, entry.name}

    queries =
      for {name, meant} <- names,
          query <- [
            name,
            String.upcase(name),
            String.replace(name, [".", "_", "-"], " "),
            String.slice(name, 0..-2//1),
            slip(name)
          ],
          length(String.split(query)) <= 3,
          do: {query, meant}

    assert length(queries) > 100
    first = fn view, query -> view |> Skillbook.search(query, limit: 1) |> Enum.map(& &1.name) end

    other =
      for {query, meant} <- queries,
          # Without a hit by words there is nothing to come first.
          [by_words] <- [first.(words, query)],
          [found] = first.(view, query),
          # Words may take a slip for another name.
          found not in [meant, by_words],
          do: {query, meant, found}

    assert other == []
  end

  # Two letters in the middle change places.
  defp slip(name) do
    {start, <<a, b, rest::binary>>} = String.split_at(name, div(String.length(name), 2))
    start <> <<b, a>> <> rest
  end

  test "a view of a stopped book searches by words", %{folder: folder} do
    book = start(folder, fn _ -> :ok end)
    view = Skillbook.view(book)
    stop_supervised!(book)
    assert Enum.map(Skillbook.search(view, "the sky over us"), & &1.name) == ["forecast"]
  end
end
