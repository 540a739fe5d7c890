# A vault of 10,000 generated notes: time to index it, to see one change, and to search it, next to what one would use
# instead in the same run: a plain read of the files, and ripgrep (or grep) over the folder.
#
#     MIX_ENV=prod mix run bench/vault.exs
#     MIX_ENV=prod bin/postgres-for-tests run mix run bench/vault.exs

defmodule Skillbook.VaultBench do
  alias Skillbook.{SQL, Vault, View}

  @notes 10_000
  @rounds 5

  def run do
    Logger.configure(level: :warning)
    root = Path.join(System.tmp_dir!(), "skillbook-vault-#{System.unique_integer([:positive])}")
    folder = Path.join(root, "notes")

    try do
      bytes = generate(folder)
      IO.puts("#{@notes} notes, #{Float.round(bytes / 1_000_000, 1)} MB")
      {read, _} = best(fn -> read(folder) end)
      IO.puts("plain read of the files: #{ms(read)}")
      database("SQLite", Path.join(root, "skillbook.db"), folder, read)

      case System.get_env("SKILLBOOK_POSTGRES") do
        nil -> IO.puts("\nPostgreSQL: left out, SKILLBOOK_POSTGRES names no server")
        url -> database("PostgreSQL", {SQL.Postgres, url: url}, folder, read)
      end
    after
      File.rm_rf!(root)
    end
  end

  defp database(name, store, folder, read) do
    IO.puts("\n#{name}")
    {indexed, book} = time(fn -> start(store, folder) end)
    {:ok, %{total: @notes}} = Vault.search(View.all(book), nil)

    IO.puts(
      "  first index: #{ms(indexed)}, #{ratio(indexed, read)} of the read, #{round(@notes / indexed * 1_000_000)} notes/s"
    )

    {again, {:ok, %{indexed: 0}}} = time(fn -> Vault.sync(book, "notes") end)
    IO.puts("  index again, nothing changed: #{ms(again)}, #{ratio(again, read)} of the read")
    changes(book, folder)

    for {query, pattern} <- [
          {"rareword", ["rareword"]},
          {"budget", ["budget"]},
          {"budget strategy", ["budget", "strategy"]},
          {~s("w12 w7"), ["w12 w7"]},
          {"w10*", ["\\bw10"]}
        ],
        do: search(book, folder, query, pattern)

    titles(book)
    Supervisor.stop(book)
  end

  defp start(store, folder) do
    book = :"vault_#{System.unique_integer([:positive])}"
    {:ok, _} = Skillbook.start_link(name: book, builtins: false, store: store, vaults: [folder])
    {:ok, _} = Vault.sync(book, "notes")
    book
  end

  # From the write of a file to the message that it can be found.
  defp changes(book, folder) do
    :ok = Vault.subscribe(book)
    flush()

    times =
      for round <- 1..@rounds do
        {time, :ok} =
          time(fn ->
            File.write!(Path.join(folder, "f3/changed.md"), "changed word#{book}#{round}")
            visible(book, "word#{book}#{round}")
          end)

        time
      end

    IO.puts(
      "  one change until it is found: median #{ms(Enum.at(Enum.sort(times), div(@rounds, 2)))}, most #{ms(Enum.max(times))}"
    )
  end

  defp visible(book, word) do
    receive do
      {:skillbook_vault, ^book, _, _} ->
        {:ok, %{total: total}} = Vault.search(View.all(book), ~s("#{word}"))
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

  defp search(book, folder, query, patterns) do
    {ours, {:ok, found}} = best(fn -> Vault.search(View.all(book), query) end)
    {tool, theirs, files} = grep(folder, patterns)

    IO.puts(
      "  search #{query}: #{ms(ours)} (#{found.total} notes), #{tool} #{ms(theirs)} (#{files} files): #{ratio(ours, theirs)}"
    )
  end

  # Files with the first pattern, and of these those with the next.
  defp grep(folder, patterns) do
    {tool, arguments} =
      if System.find_executable("rg"),
        do: {"rg", ["--files-with-matches", "--ignore-case", "--word-regexp"]},
        else: {"grep", ["--recursive", "--files-with-matches", "--ignore-case", "--word-regexp"]}

    arguments =
      if match?(["\\b" <> _], patterns), do: List.delete(arguments, "--word-regexp"), else: arguments

    {time, files} =
      best(fn ->
        Enum.reduce(patterns, [folder], fn pattern, paths ->
          {output, _} = System.cmd(tool, arguments ++ ["--", pattern | paths])
          String.split(output, "\n", trim: true)
        end)
      end)

    {tool, time, length(files)}
  end

  # Which of the hits have the word in their titles: they must come first.
  defp titles(book) do
    {:ok, %{hits: hits}} = Vault.search(View.all(book), "budget", limit: 100)
    titled = Enum.map(hits, &(&1.title =~ "budget"))
    count = Enum.count(titled, & &1)
    true = Enum.all?(Enum.take(titled, count))
    IO.puts("  of the first 100 for budget, #{count} have it in the title, and these are the first #{count}")
  end

  defp generate(folder) do
    :rand.seed(:exsss, {1, 2, 3})
    for number <- 0..99, do: File.mkdir_p!(Path.join(folder, "f#{number}"))

    for number <- 1..@notes, reduce: 0 do
      bytes ->
        special =
          for {word, one_in} <- [{"budget", 10}, {"strategy", 12}, {"rareword", 2_000}],
              rem(number, one_in) == 0,
              do: word

        title = if rem(number, 400) == 0, do: "Note #{number} on the budget", else: "Note #{number}"
        words = for _ <- 1..(50 + :rand.uniform(300)), do: "w#{trunc(:math.pow(:rand.uniform(), 3) * 5_000)}"

        body =
          (words ++ special)
          |> Enum.shuffle()
          |> Enum.chunk_every(12)
          |> Enum.map_join("\n", &Enum.join(&1, " "))

        text =
          "---\ntitle: #{title}\ntags: [t#{rem(number, 20)}]\n---\n# #{title}\n\n#{body}\n\nSee [[Note #{rem(number, 97)}]] #inline\n"

        File.write!(Path.join(folder, "f#{rem(number, 100)}/note #{number}.md"), text)
        bytes + byte_size(text)
    end
  end

  defp read(folder) do
    for path <- Path.wildcard(folder <> "/**/*.md"),
        reduce: 0,
        do: (bytes -> bytes + byte_size(File.read!(path)))
  end

  defp best(fun), do: for(_ <- 1..@rounds, do: time(fun)) |> Enum.min_by(&elem(&1, 0))
  defp time(fun), do: :timer.tc(fun)
  defp ms(time), do: "#{Float.round(time / 1000, 1)} ms"
  defp ratio(ours, theirs), do: "#{Float.round(ours / theirs, 2)}x"
end

Skillbook.VaultBench.run()
