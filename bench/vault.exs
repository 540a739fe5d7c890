# Measures a vault of 10,000 generated notes: indexing, the delay of one change, and search by
# words and by meaning. The peers are a plain read of the files and ripgrep over the folder, in
# the same run. Without SKILLBOOK_POSTGRES, only SQLite is measured:
#
#     bin/bench vault [NOTES, default 10000]
#     bin/postgres-for-tests run bin/bench vault
#
# The notes resemble real ones: 20 to 2,000 words, mostly short; few frequent words and many
# rare ones, with suffixes; tags, links and frontmatter.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Vault do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.Embedding.{Documents, Vectors}
  alias Skillbook.{Book, Embedder, Profile, SQL, Vault, View}

  @rounds 7
  @changes 15
  @titles 50
  @hidden 5

  def run(notes) do
    Logger.configure(level: :error)
    grep = grep()
    head()
    root = Path.join(System.tmp_dir!(), "skillbook_bench_vault_#{System.pid()}")
    folder = Path.join(root, "notes")

    try do
      {bytes, words} = generate(folder, notes)
      IO.puts("#{notes} notes, #{Float.round(bytes / 1_000_000, 1)} MB, #{words} different words")

      peers =
        if grep,
          do:
            Map.new(queries(), fn {label, _, patterns, _} -> {label, grep(patterns, folder)} end)

      if grep,
        do:
          print("ripgrep alone, its start included: --version", nil, [
            best(fn -> rg(["--version"]) end)
          ])

      database("SQLite", Path.join(root, "skillbook.db"), folder, notes, peers)

      case System.get_env("SKILLBOOK_POSTGRES") do
        nil -> IO.puts("PostgreSQL: skipped, SKILLBOOK_POSTGRES is not set")
        url -> database("PostgreSQL", {SQL.Postgres, url: url, ssl: false}, folder, notes, peers)
      end
    after
      File.rm_rf!(root)
    end
  end

  defp grep do
    grep = System.find_executable("rg")

    unless grep,
      do:
        IO.puts(
          "ripgrep (rg) is not installed, so searches have no peer: apt-get install ripgrep\n"
        )

    grep
  end

  defp database(label, store, folder, notes, peers) do
    # A first read, so that the page cache has the files for both.
    read(folder)
    {indexed, book} = time(fn -> start(store, folder) end)
    {:ok, %{total: ^notes}} = Vault.search(View.all(book), nil)
    read = best(fn -> read(folder) end, 3)

    print(
      "#{label}: indexed from nothing, #{round(notes / indexed * 1.0e9)} notes/s",
      "a read of the files",
      [
        indexed,
        read
      ]
    )

    # Modification times are in seconds, so files that were just written are read again.
    {:ok, %{indexed: 0}} = Vault.sync(book, "notes")
    Supervisor.stop(book)
    {again, book} = time(fn -> start(store, folder) end)
    print("#{label}: started again, nothing changed", "a read of the files", [again, read])
    changes(label, book, folder)
    for query <- queries(), do: search(label, book, query, peers)
    hidden(label, book, notes)
    titles(label, book)
    Supervisor.stop(book)
    meaning(label, store)
  end

  # With vectors of 384 numbers for every piece of a note. Their values do not matter here.
  defp meaning(label, store) do
    book = :"bench_vault_#{System.unique_integer([:positive])}"
    options = [name: book, builtins: false, store: store, vaults: [[name: "notes"]]]
    {:ok, _} = Skillbook.start_link(options ++ [embedder: embedder(), embedder_timeout: 5_000])
    {embedded, count} = time(fn -> await(Book.fetch!(book)) end)
    print("#{label}: #{count} pieces embedded by a function", nil, [embedded])
    Supervisor.stop(book)
    {:ok, _} = Skillbook.start_link(options ++ [embedder: embedder(), embedder_timeout: 5_000])
    {read, ^count} = time(fn -> await(Book.fetch!(book)) end)
    print("#{label}: started again, their vectors read from the database", nil, [read])
    queries = [{"a sentence", "who paid for the budget of the last project", [], []} | queries()]

    for {kind, query, _, options} <- queries,
        do: search_meaning(label, book, kind, query, options)

    Supervisor.stop(book)
  end

  defp search_meaning(label, book, kind, query, options) do
    view = View.all(book)
    {:ok, %{total: total}} = Vault.search(view, query, options)
    ours = best(fn -> {:ok, _} = Vault.search(view, query, options) end)
    print("#{label}: search of #{kind} by meaning too, #{total} notes", nil, [ours])
  end

  defp embedder do
    Embedder.Function.new("random", fn texts ->
      for text <- texts do
        :rand.seed(:exsss, :erlang.phash2(text))
        for _ <- 1..384, do: :rand.normal()
      end
    end)
  end

  defp await(book) do
    case Documents.follow(book, 0) do
      {[], _} ->
        Vectors.count(book.document_vectors)

      _ ->
        Process.sleep(20)
        await(book)
    end
  end

  defp start(store, folder) do
    book = :"bench_vault_#{System.unique_integer([:positive])}"
    {:ok, _} = Skillbook.start_link(name: book, builtins: false, store: store, vaults: [folder])
    {:ok, _} = Vault.sync(book, "notes")
    book
  end

  # The time from the write of a file to the search that finds it.
  defp changes(label, book, folder) do
    :ok = Vault.subscribe(book)

    times =
      for round <- 1..@changes do
        word = "changed#{System.unique_integer([:positive])}"
        flush()

        {time, :ok} =
          time(fn ->
            File.write!(
              Path.join(folder, "f3/note 3.md"),
              "# Note 3\n\nA line, #{round}: #{word}.\n"
            )

            visible(book, word)
          end)

        time
      end

    print("#{label}: one file changed, until a search finds it (median)", nil, [median(times)])
    print("#{label}: the same, the longest of #{@changes}", nil, [Enum.max(times)])
  end

  defp visible(book, word) do
    receive do
      {:skillbook_vault, ^book, _, _} ->
        {:ok, %{total: total}} = Vault.search(View.all(book), word)
        if total == 1, do: :ok, else: visible(book, word)
    end
  end

  defp flush do
    receive do
      {:skillbook_vault, _, _, _} -> flush()
    after
      0 -> :ok
    end
  end

  # The kind of a query, its text, the patterns for ripgrep, and options.
  defp queries do
    [
      {"a rare word", "zanzibar", ["zanzibar"], []},
      {"a common word", "project", ["project"], []},
      {"two words", "budget strategy", ["budget", "strategy"], []},
      {"two common words", "project people", ["project", "people"], []},
      {"a phrase", ~s("quarterly plan"), ["quarterly plan"], []},
      {"a prefix", "strat*", ["strat"], []},
      {"a short prefix", "pr*", ["\\bpr"], []},
      {"a word within a tag", "project", ["project"], [tags: ["t7"]]},
      {"a word within a folder", "project", ["project"], [folder: "f7"]}
    ]
  end

  defp search(label, book, {kind, query, _patterns, options}, peers) do
    view = View.all(book)
    {:ok, %{total: total}} = Vault.search(view, query, options)
    ours = best(fn -> {:ok, _} = Vault.search(view, query, options) end)
    name = "#{label}: search of #{kind}, #{total} notes"

    case peers && peers[kind] do
      nil -> print(name, nil, [ours])
      {theirs, files} -> print(name, "rg -l -i, #{files} files", [ours, theirs])
    end
  end

  # The files with all patterns.
  defp grep(patterns, folder) do
    files = fn ->
      Enum.reduce(patterns, [folder], fn pattern, paths ->
        ["--files-with-matches", "--ignore-case", "--", pattern | paths]
        |> rg()
        |> String.split("\n", trim: true)
      end)
    end

    {best(files), length(files.())}
  end

  defp rg(arguments), do: elem(System.cmd("rg", arguments), 0)

  # The same number of notes that the reader cannot see, with five sets of labels.
  defp hidden(label, book, notes) do
    for set <- 1..@hidden do
      labels = ["team#{set}"]

      for batch <- Enum.chunk_every(1..div(notes, @hidden), 500) do
        read =
          for number <- batch do
            id = "hidden #{set}-#{number}"
            {:ok, note, _} = Vault.Note.read(id, id, "The project of people, #{number}.", labels)
            note
          end

        {:ok, _} = Vault.Indexer.put(book, hd(Book.fetch!(book).of_parts.vaults), read)
      end
    end

    view = Skillbook.view(book, %Profile{id: "bench", grants: []})
    {:ok, %{total: total}} = Vault.search(view, "project people")
    time = best(fn -> Vault.search(view, "project people") end)
    print("#{label}: two common words, #{total} notes, #{notes} more hidden", nil, [time])
  end

  # Queries for a word in titles: a note with it in its title should be first.
  defp titles(label, book) do
    {:ok, %{hits: hits}} = Vault.search(View.all(book), nil, limit: 100, tags: ["titled"])
    words = for hit <- hits, do: hit.title |> String.split() |> List.last()
    words = words |> Enum.uniq() |> Enum.take(@titles)

    first =
      Enum.count(words, fn word ->
        {:ok, %{hits: [hit | _]}} = Vault.search(View.all(book), word)
        hit.title =~ word
      end)

    IO.puts(
      "#{label}: #{first} of #{length(words)} queries for a title word have such a note first"
    )
  end

  # The notes

  @beginnings ~w(b br c ch d f g gr h l m n p pl r s st t tr v)
  @vowels ~w(a e i o u ea ou)
  @ends ~w(n r s t l m nd st ck p)
  @endings ["", "", "", "s", "ing", "ed", "er", "ation", "ly", "ness"]
  @vocabulary 30_000
  @known ~w(project people budget strategy quarterly plan planning meeting) ++
           ~w(process progress problem)

  defp generate(folder, notes) do
    :rand.seed(:exsss, {1, 2, 3})
    vocabulary = List.to_tuple(vocabulary())
    for number <- 0..99, do: File.mkdir_p!(Path.join(folder, "f#{number}"))

    {bytes, words} =
      Enum.reduce(1..notes, {0, MapSet.new()}, fn number, {bytes, all} ->
        # Log-uniform: as many notes with 20 to 63 words as with 63 to 200.
        count = round(20 * :math.pow(100, :rand.uniform()))
        words = for _ <- 1..count, do: word(vocabulary)
        text = note(number, words, vocabulary)
        File.write!(Path.join(folder, "f#{rem(number, 100)}/note #{number}.md"), text)
        {bytes + byte_size(text), Enum.reduce(words, all, &MapSet.put(&2, &1))}
      end)

    {bytes, MapSet.size(words)}
  end

  defp note(number, words, vocabulary) do
    {title, tags} =
      if rem(number, 40) == 0,
        do:
          {"Notes on #{elem(vocabulary, rem(number * 7, 3000))}",
           ["t#{rem(number, 20)}", "titled"]},
        else: {"Note #{number}", ["t#{rem(number, 20)}"]}

    rare = if rem(number, 2_000) == 0, do: ["zanzibar"], else: []

    body =
      (words ++ rare)
      |> Enum.shuffle()
      |> Enum.chunk_every(12)
      |> Enum.map(&sentence/1)
      |> Enum.chunk_every(5)
      |> Enum.map_join("\n\n", &Enum.join(&1, " "))

    """
    ---
    title: #{title}
    tags: [#{Enum.join(tags, ", ")}]
    status: #{Enum.at(~w(open done), rem(number, 2))}
    ---
    # #{title}

    #{body}

    See [[Note #{rem(number, 97)}]] and [[Note #{rem(number, 89)}|another]]. \
    #inline#{rem(number, 50)}
    """
  end

  defp sentence([first | rest]), do: Enum.join([String.capitalize(first) | rest], " ") <> "."

  # Zipf: the word of rank r has a frequency of about 1/r.
  defp word(vocabulary), do: elem(vocabulary, trunc(:math.pow(@vocabulary, :rand.uniform())) - 1)

  defp vocabulary do
    made =
      Stream.repeatedly(fn ->
        Enum.map_join(1..Enum.random([1, 2, 2, 3]), fn _ ->
          Enum.random(@beginnings) <> Enum.random(@vowels)
        end) <>
          Enum.random(@ends) <> Enum.random(@endings)
      end)
      |> Stream.uniq()
      |> Enum.take(@vocabulary - length(@known))

    # The words of queries are neither the most frequent nor rare.
    {frequent, others} = Enum.split(made, 20)
    {next, rest} = Enum.split(others, 20)

    frequent ++
      Enum.flat_map(Enum.zip(@known, next), &Tuple.to_list/1) ++
      Enum.drop(next, length(@known)) ++ rest
  end

  # Nanoseconds

  defp read(folder) do
    for path <- Path.wildcard(folder <> "/**/*.md"),
        reduce: 0,
        do: (bytes -> bytes + byte_size(File.read!(path)))
  end

  defp best(fun, rounds \\ @rounds), do: for(_ <- 1..rounds, do: elem(time(fun), 0)) |> Enum.min()
  defp median(times), do: times |> Enum.sort() |> Enum.at(div(length(times), 2))

  defp time(fun) do
    {time, result} = :timer.tc(fun)
    {time * 1000, result}
  end
end

System.argv() |> List.first("10000") |> String.to_integer() |> Bench.Vault.run()
