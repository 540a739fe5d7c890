# A vault of 10,000 generated notes: time to index it, to see one change, and to search it, next to what one would use
# instead in the same run: a plain read of the files, and ripgrep over the folder. Without PostgreSQL its part is left out:
#
#     MIX_ENV=prod mix run bench/vault.exs [notes, 10000 if left out]
#     MIX_ENV=prod bin/postgres-for-tests run mix run bench/vault.exs
#
# The notes are as people have them: 20 to 2,000 words, most of them short, of which few are frequent and most are rare;
# words have endings, and there are tags, links and frontmatter.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Vault do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.{Book, Profile, SQL, Vault, View}

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

      found =
        if grep,
          do:
            Map.new(queries(), fn {label, _, patterns, _} -> {label, grep(patterns, folder)} end)

      if grep,
        do:
          show("ripgrep alone, its start included: --version", nil, [
            best(fn -> rg(["--version"]) end)
          ])

      database("SQLite", Path.join(root, "skillbook.db"), folder, notes, found)

      case System.get_env("SKILLBOOK_POSTGRES") do
        nil -> IO.puts("PostgreSQL: left out, SKILLBOOK_POSTGRES names no server")
        url -> database("PostgreSQL", {SQL.Postgres, url: url, ssl: false}, folder, notes, found)
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
          "There is no ripgrep (rg): searches are printed without it. Install it: apt-get install ripgrep\n"
        )

    grep
  end

  defp database(label, store, folder, notes, found) do
    # Once before, so that the files are in the system's memory for both.
    read(folder)
    {indexed, book} = time(fn -> start(store, folder) end)
    {:ok, %{total: ^notes}} = Vault.search(View.all(book), nil)
    read = best(fn -> read(folder) end, 3)

    show(
      "#{label}: indexed from nothing, #{round(notes / indexed * 1.0e9)} notes/s",
      "a read of the files",
      [
        indexed,
        read
      ]
    )

    # Times of files are of whole seconds, so what was just written is read once more.
    {:ok, %{indexed: 0}} = Vault.sync(book, "notes")
    Supervisor.stop(book)
    {again, book} = time(fn -> start(store, folder) end)
    show("#{label}: started again, nothing changed", "a read of the files", [again, read])
    changes(label, book, folder)
    for query <- queries(), do: search(label, book, query, found)
    hidden(label, book, notes)
    titles(label, book)
    Supervisor.stop(book)
  end

  defp start(store, folder) do
    book = :"bench_vault_#{System.unique_integer([:positive])}"
    {:ok, _} = Skillbook.start_link(name: book, builtins: false, store: store, vaults: [folder])
    {:ok, _} = Vault.sync(book, "notes")
    book
  end

  # From the write of a file to the search that finds it.
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

    show("#{label}: one file changed, until a search finds it (median)", nil, [median(times)])
    show("#{label}: the same, the longest of #{@changes}", nil, [Enum.max(times)])
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

  # What is looked for, how, and what ripgrep is asked.
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

  defp search(label, book, {what, query, _patterns, options}, found) do
    view = View.all(book)
    {:ok, %{total: total}} = Vault.search(view, query, options)
    ours = best(fn -> {:ok, _} = Vault.search(view, query, options) end)
    name = "#{label}: search of #{what}, #{total} notes"

    case found && found[what] do
      nil -> show(name, nil, [ours])
      {theirs, files} -> show(name, "rg -l -i, #{files} files", [ours, theirs])
    end
  end

  # Files with the first pattern, and of these those with the next.
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

  # As many documents again that the reader does not see, with five sets of labels.
  defp hidden(label, book, notes) do
    sql = Book.sql(Book.fetch!(book))

    for set <- 1..@hidden do
      labels = ["team#{set}"]

      for batch <- Enum.chunk_every(1..div(notes, @hidden), 500) do
        read =
          for number <- batch do
            id = "hidden #{set}-#{number}"
            {:ok, note, _} = Vault.Note.read(id, id, "The project of people, #{number}.", labels)
            note
          end

        {:ok, _} = Vault.Indexer.put(sql, hd(Book.fetch!(book).vaults), read)
      end
    end

    view = Skillbook.view(book, %Profile{id: "bench", grants: []})
    {:ok, %{total: total}} = Vault.search(view, "project people")
    time = best(fn -> Vault.search(view, "project people") end)
    show("#{label}: two common words, #{total} notes, #{notes} more hidden", nil, [time])
  end

  # Queries of a word that titles have: a note with it in the title must come first.
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
      "#{label}: of #{length(words)} queries of a word that titles have, #{first} have such a note first"
    )
  end

  # The notes

  @beginnings ~w(b br c ch d f g gr h l m n p pl r s st t tr v)
  @vowels ~w(a e i o u ea ou)
  @ends ~w(n r s t l m nd st ck p)
  @endings ["", "", "", "s", "ing", "ed", "er", "ation", "ly", "ness"]
  @vocabulary 30_000
  @known ~w(project people budget strategy quarterly plan planning meeting process progress problem)

  defp generate(folder, notes) do
    :rand.seed(:exsss, {1, 2, 3})
    vocabulary = List.to_tuple(vocabulary())
    for number <- 0..99, do: File.mkdir_p!(Path.join(folder, "f#{number}"))

    {bytes, words} =
      Enum.reduce(1..notes, {0, MapSet.new()}, fn number, {bytes, all} ->
        # As many notes between 20 and 63 words as between 63 and 200, and so on.
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

    See [[Note #{rem(number, 97)}]] and [[Note #{rem(number, 89)}|another]]. #inline#{rem(number, 50)}
    """
  end

  defp sentence([first | rest]), do: Enum.join([String.capitalize(first) | rest], " ") <> "."

  # The word of rank r comes about as often as 1/r.
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

    # The known ones are neither the most frequent nor rare.
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
