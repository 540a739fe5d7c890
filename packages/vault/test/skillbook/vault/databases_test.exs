defmodule Skillbook.Vault.DatabasesTest do
  # The same documents have the same hits, scores and order on both databases, for any history and
  # query.
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  alias Skillbook.{SQL, Vault, View}

  @words ~w(plan planning plans planned budget strategy strategies quarter quarterly Ann café
            cafés meeting meet rare Straße 日本 x1)
  @rounds 25
  @searches 12

  @hostile [
    "",
    " ",
    "*",
    "\"",
    "\"\"",
    "plan\" OR \"1\"=\"1",
    "'; drop table skillbook_documents; --",
    "plan' | !x & (y) <-> *:A \\",
    "NEAR(plan budget, 2)",
    "title : plan",
    "^plan",
    "plan AND NOT budget",
    "{plan budget} : x",
    "plan\0budget",
    "\0",
    <<255, 254>>,
    "pl\u{E000}an",
    "\u{E000}plan",
    "\u{10FFFF}*",
    "pla\u{301}n*",
    "PLAN*** plan*x",
    "%_$1 $2 ?1 :a @b",
    "ﬁ ＰＬＡＮ ǅ İ ß"
  ]

  setup do
    stores = [
      sqlite: ":memory:",
      postgres: {SQL.Postgres, url: Skillbook.PostgresCase.database()}
    ]

    books =
      for {_dialect, store} <- stores,
          do: book(store: store, vaults: [[name: "a"], [name: "b"]], watch: false)

    {:ok, books: books}
  end

  test "generated queries have the same results on both databases", %{books: books} do
    seed = :erlang.phash2(make_ref())
    :rand.seed(:exsss, {1, 2, seed})

    for _ <- 1..@rounds do
      change(books)

      for _ <- 1..@searches do
        {query, options} = {query(), options()}
        [one, other] = for book <- books, do: Vault.search(View.all(book), query, options)
        assert {seed, query, options, one} == {seed, query, options, other}
        {:ok, %{hits: hits, total: total, match: match}} = one
        assert length(hits) == min(total, options[:limit] || 10)
        order = Enum.map(hits, &{-&1.score, &1.vault, &1.path, &1.id})
        assert order == Enum.sort(order)
        for hit <- hits, do: assert_marked(hit)
        if match == :all and query != nil, do: assert_titles_first(query, hits)
      end
    end
  end

  # The set of hits of each part is that of a search for the part alone.
  test "operators are operations on sets of notes", %{books: [book, _]} do
    seed = :erlang.phash2(make_ref())
    :rand.seed(:exsss, {1, 2, seed})

    found = fn query ->
      {:ok, found} = Vault.search(View.all(book), query, limit: 100)
      {found.match, MapSet.new(found.hits, &{&1.vault, &1.id})}
    end

    for _ <- 1..@rounds do
      change([book])

      for _ <- 1..@searches do
        [one, other, third, out] = for _ <- 1..4, do: operand()
        [{_, a}, {_, b}, {_, c}, {_, d}] = for part <- [one, other, third, out], do: found.(part)
        all = a |> MapSet.union(b) |> MapSet.intersection(c) |> MapSet.difference(d)
        some = a |> MapSet.union(b) |> MapSet.union(c) |> MapSet.difference(d)
        query = "the #{one} OR #{other} -#{out} of #{third}"

        {match, ids} =
          cond do
            MapSet.size(all) > 0 -> {:all, all}
            MapSet.size(some) > 0 -> {:any, some}
            true -> {:all, some}
          end

        assert {seed, query, found.(query)} == {seed, query, {match, ids}}
      end
    end
  end

  defp operand do
    word = Enum.random(@words)

    Enum.random([
      word,
      String.slice(word, 0, Enum.random(1..3)) <> "*",
      ~s("#{word} #{Enum.random(@words)}"),
      "nowhere"
    ])
  end

  test "hostile queries are words or match nothing", %{books: books} do
    for book <- books do
      :ok = Vault.put(book, "a", %{id: "1", path: "Plan.md", content: "plan of the budget, ﬁ"})
      :ok = Vault.put(book, "a", %{id: "2", path: "x.md", content: "a b title drop table 1"})
    end

    long = [
      String.duplicate("plan ", 40),
      String.duplicate("x", 4_096),
      Enum.map_join(1..500, " ", &"w#{&1}")
    ]

    for query <- @hostile ++ long,
        options <- [[], [tags: [query]], [folder: "f", fields: [{query, query}]]] do
      options = if Skillbook.Support.Options.text?(query), do: options, else: []
      [one, other] = for book <- books, do: Vault.search(View.all(book), query, options)
      assert {query, options, one} == {query, options, other}
      assert {:ok, %{total: total}} = one
      assert total <= 2
    end

    for book <- books, do: assert({:ok, %{total: 2}} = Vault.search(View.all(book), nil))
  end

  # Puts, replaces, moves, labels and deletes documents.
  defp change(books) do
    for _ <- 1..4 do
      vault = Enum.random(["a", "b"])
      id = "d#{:rand.uniform(9)}"

      if :rand.uniform(4) == 1 do
        for book <- books, do: :ok = Vault.delete(book, vault, id)
      else
        document = %{
          id: id,
          path: "f#{:rand.uniform(2)}/#{Enum.random(["Plan", "Notes", "Café #{id}"])}.md",
          content: text(Enum.random([3, 30, 300])),
          labels: Enum.random([[], [], ["ann"]])
        }

        for book <- books, do: :ok = Vault.put(book, vault, document)
      end
    end
  end

  defp text(most) do
    words = fn count ->
      Enum.map_join(1..count, Enum.random([" ", "\n", ", "]), fn _ -> Enum.random(@words) end)
    end

    head =
      Enum.random([
        "",
        "---\ntags: [work]\n---\n",
        "---\ntitle: #{words.(2)}\nstatus: open\n---\n"
      ])

    head <> words.(:rand.uniform(most))
  end

  defp query do
    Enum.random([nil | List.duplicate(:words, 9)]) &&
      Enum.map_join(1..Enum.random([1, 1, 2, 3]), " ", fn _ -> unit() end)
  end

  defp unit do
    word = Enum.random(@words)

    Enum.random([
      word,
      word,
      String.slice(word, 0, Enum.random(1..3)) <> "*",
      ~s("#{word} #{Enum.random(@words)}"),
      "nowhere",
      "OR",
      "-" <> word,
      "-" <> String.slice(word, 0, 3) <> "*",
      ~s(-"#{word} #{Enum.random(@words)}")
    ])
  end

  defp options,
    do:
      Enum.random([
        [],
        [],
        [limit: 1],
        [limit: 3],
        [folder: "f1"],
        [tags: ["work"]],
        [fields: [{"status", "open"}]],
        [vault: "b"]
      ])

  # Each highlight is one or more words of the snippet, and they are in order.
  defp assert_marked(hit) do
    ends = for {start, length} <- hit.highlights, do: {start, start + length}
    assert ends == Enum.sort(ends)

    for {start, length} <- hit.highlights,
        do: assert(binary_part(hit.snippet, start, length) =~ ~r/\A[\p{L}\p{N}\p{M}]+\z/u)
  end

  # For one word, notes with that name come first.
  defp assert_titles_first(query, hits) do
    case Skillbook.Search.Query.parse(query) do
      {:ok, [with: [word: stem]]} ->
        called =
          for hit <- hits, do: stem in stems(hit.title <> " " <> Path.basename(hit.path, ".md"))

        assert {query, called} == {query, Enum.sort(called, :desc)}

      _ ->
        :ok
    end
  end

  defp stems(text) do
    [words] = Skillbook.Native.search_words([text])
    for {_form, stem, _function?} <- words, do: stem
  end
end
