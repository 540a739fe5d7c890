defmodule Skillbook.Embedding.DocumentsTest do
  # Notes of vaults and memories, searched by words and by meaning, on both databases.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Embedding.{Documents, Indexer, Vectors}
  alias Skillbook.{Book, Embedder, Embedders, EmbedderError, PostgresCase, Profile, SQL, Vault}

  @moduletag :tmp_dir
  @moduletag :capture_log

  for dialect <- [:sqlite, :postgres] do
    describe "#{dialect}:" do
      @describetag dialect: dialect

      setup %{tmp_dir: folder, dialect: dialect} do
        store =
          case dialect do
            :sqlite -> Path.join(folder, "book.db")
            :postgres -> {SQL.Postgres, url: PostgresCase.database()}
          end

        {:ok, store: store}
      end

      test "memories are found by meaning, and only by their owner", context do
        book = start(context, [])
        save(book, "ann", ["Wants stew for dinner", "Has a dry garden", "Her bank is in town"])
        save(book, "bob", ["Bob is hungry and will eat and cook dinner"])
        assert embedded?(book)

        assert memories(book, "ann", "what would she like to eat") ==
                 {"by words and by meaning,", ["Wants stew for dinner"]}

        # All words come first.
        assert {"by words and by meaning,", ["Her bank is in town" | _]} =
                 memories(book, "ann", "bank town eat")
                 |> then(fn {how, found} -> {how, Enum.sort(found)} end)

        assert memories(book, "ann", "her bank") == {"all of", ["Her bank is in town"]}
        assert memories(book, "ann", "--category other hungry") == :none
        assert memories(book, "cid", "hungry") == :none
      end

      test "notes are found by meaning within the filters", context do
        book = start(context, [])

        put(book, %{
          "food/stew.md" => "---\ntags: [home]\n---\nA recipe to cook.",
          "food/bread.md" => "Eat it warm. #draft",
          "work/bill.md" => "---\ntags: [home]\n---\nThe invoice of the bank.",
          "work/plan.md" => "The plan of the quarter."
        })

        assert embedded?(book)

        rows = [
          {"hungry", [], {:meaning, ["food/bread.md", "food/stew.md"]}},
          {"hungry", [tags: ["home"]], {:meaning, ["food/stew.md"]}},
          {"hungry", [folder: "work"], {:all, []}},
          {"hungry -draft", [], {:meaning, ["food/stew.md"]}},
          {"hungry -recipe -warm", [], {:all, []}},
          # Operators keep their meaning: nothing else is brought back.
          {~s("hungry"), [], {:all, []}},
          {~s("eat it" hungry), [], {:any, ["food/bread.md"]}},
          {"hungry OR warm", [], {:all, ["food/bread.md"]}},
          {"warm* hungry", [], {:any, ["food/bread.md"]}},
          {"plan", [], {:all, ["work/plan.md"]}},
          {"-draft", [], {:all, []}},
          {"the price of the plan", [], {:meaning, ["work/plan.md", "work/bill.md"]}}
        ]

        for {query, options, {match, paths}} <- rows do
          {:ok, found} = Vault.search(Skillbook.view(book, "ann"), query, options)
          assert {query, found.match} == {query, match}

          assert {query, Enum.sort(for(hit <- found.hits, do: hit.path))} ==
                   {query, Enum.sort(paths)}

          assert found.total == length(paths)
        end
      end

      test "the command says how notes were found", context do
        book = start(context, [])
        put(book, %{"stew.md" => "A recipe."})
        assert embedded?(book)

        assert run(book, "ann", "markdown.search --query hungry") ==
                 "1 note: text \"hungry\", by words and by meaning\n" <>
                   "- stew.md: stew (2 words)\n  A recipe."
      end

      test "a replaced note is no longer found by its former meaning", context do
        # Texts with `zzz` are never embedded.
        wait = fn texts ->
          if Enum.any?(texts, &(&1 =~ "zzz")), do: Process.sleep(:infinity), else: :ok
        end

        book = start(context, embedder: Embedders.topics("t", wait))
        put(book, %{"a.md" => "A recipe to cook.", "b.md" => "A bill"})
        assert embedded?(book)
        assert paths(book, "hungry") == ["a.md"]
        put(book, %{"a.md" => "Something zzz"})
        assert paths(book, "hungry") == []
        assert paths(book, "something") == ["a.md"]
      end

      test "words decide alone without an embedder, or if it fails", context do
        documents = %{"a.md" => "A recipe of a plan.", "b.md" => "A plan", "c.md" => "Stew"}

        fails = fn texts ->
          if Enum.any?(texts, &(&1 =~ "plan?")),
            do: {:error, %EmbedderError{kind: :unavailable, reason: "down"}},
            else: :ok
        end

        book = start(context, embedder: Embedders.topics("t", fails))
        put(book, documents)
        save(book, "ann", Map.values(documents))
        assert embedded?(book)
        {:ok, failing} = Vault.search(Skillbook.view(book, "ann"), "recipe plan?")
        memories = memories(book, "ann", "recipe plan?")
        stop_supervised!(book)
        plain = start(context, embedder: nil)
        assert Vault.search(Skillbook.view(plain, "ann"), "recipe plan?") == {:ok, failing}
        assert memories(plain, "ann", "recipe plan?") == memories
        assert failing.match == :all and length(failing.hits) == 1
      end

      test "a restart and unchanged notes embed nothing", context do
        book = start(context, [])
        long = Enum.map_join(1..8, "\n", &"# Part #{&1}\n#{String.duplicate("word#{&1} ", 70)}")
        put(book, %{"long.md" => long, "stew.md" => "A recipe."})
        save(book, "ann", ["Likes stew"])
        assert embedded?(book)
        # Without the built-in commands.
        texts = Enum.filter(Enum.concat(Embedders.calls()), &(&1 =~ ~r/^(long|stew|Likes)/))
        assert length(texts) == 10
        assert "stew\nA recipe." in texts
        assert "Likes stew\ngeneral" in texts
        assert Enum.all?(texts, &(byte_size(&1) <= 1_010))

        put(book, %{"stew.md" => "A recipe."})
        put(book, %{"new.md" => "A bill", "long.md" => long <> "\nThe end."})
        assert embedded?(book)
        assert [one, two] = Enum.sort(Enum.concat(Embedders.calls()))

        # Only the last piece has changed.
        assert String.starts_with?(one, "long, Part 1\n# Part 8\nword8 word8 ")
        assert String.ends_with?(one, "word8 \nThe end.")
        assert two == "new\nA bill"
        stop_supervised!(book)

        again = start(context, [])
        assert embedded?(again)
        assert Embedders.calls() == []
        assert paths(again, "hungry") == ["stew.md"]
        # Vectors of texts that no document has any more are dropped.
        assert eventually(fn ->
                 count = Vectors.count(Book.fetch!(again).document_vectors)
                 {[], _} = Documents.follow(Book.fetch!(again), nil)
                 Vectors.count(Book.fetch!(again).document_vectors) == count
               end)
      end

      test "vectors are in memory while somebody searches their texts", context do
        book = start(context, [])
        save(book, "ann", ["Wants stew for dinner", "Has a dry garden"])
        save(book, "bob", for(n <- 1..4, do: "Bob is hungry #{n}"))
        put(book, %{"stew.md" => "A recipe to cook.", "bill.md" => "The bank."})
        assert embedded?(book)
        assert {held(book), Vectors.count(vectors(book))} == {0, 8}

        found = {"by words and by meaning,", ["Wants stew for dinner"]}
        assert memories(book, "ann", "what would she like to eat") == found
        assert held(book) == 2
        assert paths(book, "hungry") == ["stew.md"]
        assert held(book) == 4

        # Those that were searched since the last time stay.
        rest(book)
        assert held(book) == 4
        assert paths(book, "hungry") == ["stew.md"]
        rest(book)
        assert held(book) == 2
        rest(book)
        assert {held(book), Vectors.count(vectors(book))} == {0, 8}
        assert memories(book, "ann", "what would she like to eat") == found
        assert Embedders.calls() |> Enum.concat() |> Enum.count(&(&1 =~ "stew for dinner")) == 1
      end

      test "vectors make room for others", context do
        book = start(context, store_memory: 1)
        save(book, "ann", ["Wants stew for dinner", "Has a dry garden"])
        save(book, "bob", for(n <- 1..4, do: "Bob is hungry #{n}"))
        assert embedded?(book)

        for _ <- 1..5, {profile, count} <- [{"ann", 1}, {"bob", 4}] do
          assert {_how, found} = memories(book, profile, "what to eat")
          assert length(found) == count
          # Those of this search and the one before.
          assert held(book) in [2, 4, 6]
        end
      end

      test "a vector that is gone from the database is made again", context do
        book = start(context, [])
        put(book, %{"stew.md" => "A recipe to cook.", "bill.md" => "The bank."})
        assert embedded?(book)
        Embedders.calls()
        sql = Book.sql(Book.fetch!(book))
        {:ok, _} = SQL.query(sql, "delete from skillbook_vectors", [])
        assert paths(book, "hungry cook") == ["stew.md"]
        assert eventually(fn -> paths(book, "hungry") == ["stew.md"] end)
        assert "stew\nA recipe to cook." in Enum.concat(Embedders.calls())
      end

      test "vectors of two sizes, as a stop in the middle leaves them, are made again", context do
        book = start(context, [])
        put(book, %{"stew.md" => "A recipe.", "bread.md" => "To eat.", "bill.md" => "The bank."})
        assert embedded?(book)
        stop_supervised!(book)

        wider =
          Embedder.Function.new("topics", &Enum.map(&1, fn t -> Embedders.vector(t) ++ [0.0] end))

        book = start(context, embedder: wider)
        sql = Book.sql(Book.fetch!(book))
        [_ | _] = vector = Embedders.vector("bread\nTo eat.") ++ [0.0]
        vector = for number <- vector, into: <<>>, do: <<number::float-32-little>>
        hash = hash("bread\nTo eat.")

        update = "update skillbook_vectors set size = $1, vector = $2 where hash = $3"
        params = [div(byte_size(vector), 4), {:blob, vector}, hash]
        {:ok, _} = SQL.query(sql, update, params)
        assert eventually(fn -> Enum.sort(paths(book, "hungry")) == ["bread.md", "stew.md"] end)
      end
    end
  end

  test "documents of many pieces are as near as their nearest one", context do
    book = start(Map.put(context, :store, ":memory:"), [])
    filler = String.duplicate("Nothing about it at all here, only words. ", 30)
    put(book, %{"a.md" => filler <> "\n# Dinner\nstew stew recipe\n" <> filler, "b.md" => filler})
    assert embedded?(book)
    assert paths(book, "hungry") == ["a.md"]
  end

  test "a model with vectors of another size embeds documents again", context do
    context = Map.put(context, :store, Path.join(context.tmp_dir, "size.db"))
    book = start(context, [])
    put(book, %{"a.md" => "A recipe."})
    assert embedded?(book)
    stop_supervised!(book)

    wider =
      Embedder.Function.new("topics", &Enum.map(&1, fn t -> Embedders.vector(t) ++ [0.0] end))

    book = start(context, embedder: wider)
    put(book, %{"b.md" => "A bill."})

    assert eventually(fn ->
             paths(book, "hungry") == ["a.md"] and paths(book, "money") == ["b.md"]
           end)
  end

  defp start(context, options) do
    profiles = for id <- ["ann", "bob", "cid"], do: %Profile{id: id, grants: []}
    defaults = [embedder: Embedders.topics(), store: context.store, vaults: [[name: "v"]]]
    options = Keyword.merge(defaults, options)
    book([sources: [], watch: false, profiles: profiles, embedder_timeout: 5_000] ++ options)
  end

  defp put(book, documents) do
    for {path, text} <- documents,
        do: :ok = Vault.put(book, "v", %{id: path, path: path, content: text})
  end

  defp save(book, profile, texts) do
    for text <- texts, do: run(book, profile, ~s(memory.save --content "#{text}"))
  end

  defp run(book, profile, line) do
    [result] = Skillbook.run(Skillbook.view(book, profile), "```cmd\n#{line}\n```").results
    result.content
  end

  # How the memories match, and their texts.
  defp memories(book, profile, query) do
    flags = if query =~ ~r/^--/, do: query, else: "--query #{inspect(query)}"
    flags = String.replace(flags, ~r/^(--category \w+) (.*)$/, "\\1 --query \\2")

    case String.split(run(book, profile, "memory.search " <> flags), "\n") do
      ["No memories found" <> _] ->
        :none

      [head | lines] ->
        [_, how] = Regex.run(~r/: (.+?) "/, head)
        {how, for(line <- lines, do: String.replace(line, ~r/^M-\d+ \[.*?\] /, ""))}
    end
  end

  defp paths(book, query) do
    {:ok, found} = Vault.search(Skillbook.view(book, "ann"), query)
    Enum.map(found.hits, & &1.path)
  end

  defp vectors(book), do: Book.fetch!(book).document_vectors

  # How many vectors are in memory.
  defp held(book), do: Vectors.forget(vectors(book), 1_000_000_000)

  # As every five minutes.
  defp rest(book) do
    send(Module.concat(book, Embedding), :rest)
    Indexer.progress(book)
  end

  # As the native library makes digests.
  defp hash(text) do
    <<digest::binary-size(16), _::binary>> = :crypto.hash(:sha256, text)
    Base.encode16(digest, case: :lower)
  end

  defp embedded?(book) do
    eventually(fn ->
      book = Book.fetch!(book)
      match?({[], _}, Documents.follow(book, 0)) and Vectors.count(book.document_vectors) > 0
    end)
  end
end
