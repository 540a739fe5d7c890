# Measures searches by meaning, among 10,000 entries with vectors of 384 numbers:
#
#     bin/bench vectors
#
# Prints the times of a search by words, by vectors and by both, and the start of a book with
# vectors in its database beside one without an embedder. The vectors are random, since their
# values do not matter here: bench/routing.exs measures how good the results are. The memory of
# vectors is counted by native/skillbook_core/tests/vectors.rs.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Vectors do
  @moduledoc false

  import Bench.Measure, only: [corpus: 0]

  alias Skillbook.Embedding.{Entries, Indexer}
  alias Skillbook.{Book, Embedder, Native}

  @entries 10_000
  @size 384
  @starts 9
  @searches 200
  @queries [
    "pdf",
    "send email",
    "extract the text",
    "review the pull request",
    "Can you look at the invoices of last month and tell me which of them are not paid yet?"
  ]

  def run do
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_vectors_#{System.pid()}")

    try do
      write(Path.join(folder, "skills"))
      starts(folder)
      searches(folder)
    after
      File.rm_rf!(folder)
    end
  end

  defp write(folder) do
    for {path, n} <- corpus() |> Stream.cycle() |> Stream.take(@entries) |> Stream.with_index() do
      copy = Path.join(folder, "skill-#{n}/SKILL.md")
      File.mkdir_p!(Path.dirname(copy))
      text = File.read!(path)
      name = ~r/^name: *"?([^"\n]*)"?$/m
      File.write!(copy, Regex.replace(name, text, "name: \\1-#{n}", global: false))
    end
  end

  defp options(folder, embedder) do
    [
      name: Bench.Skills,
      sources: [Path.join(folder, "skills")],
      builtins: false,
      store: Path.join(folder, "book.db"),
      watch: false,
      embedder: embedder
    ]
  end

  defp embedder do
    Embedder.Function.new("random", fn texts ->
      for text <- texts do
        :rand.seed(:exsss, :erlang.phash2(text))
        for _ <- 1..@size, do: :rand.normal()
      end
    end)
  end

  # In turns, so that both meet the same load of the machine.
  defp starts(folder) do
    {pid, _} = start(folder, embedder())
    {total, _} = :timer.tc(fn -> await() end)
    IO.puts("embedding of #{count()} entries by a function, stored in SQLite: #{ms(total)} ms")
    stop(pid)

    times =
      for n <- 1..@starts do
        orders = if rem(n, 2) == 0, do: [nil, embedder()], else: [embedder(), nil]

        orders
        |> Enum.map(fn embedder ->
          {pid, time} = start(folder, embedder)
          {rest, _} = if embedder, do: :timer.tc(fn -> await() end), else: {0, :ok}
          stop(pid)
          {embedder == nil, time, time + rest}
        end)
        |> Enum.sort()
        |> then(fn [{false, with, all}, {true, without, _}] -> {without, with, all} end)
      end

    [without, with, all] = for at <- 0..2, do: times |> Enum.map(&elem(&1, at)) |> median()
    IO.puts("start without an embedder: #{ms(without)} ms")
    IO.puts("start with known vectors: #{ms(with)} ms, #{Float.round(with / without, 2)} times")
    IO.puts("until all vectors are there: #{ms(all)} ms, #{Float.round(all / without, 2)} times")
  end

  defp start(folder, embedder) do
    {time, {:ok, pid}} = :timer.tc(fn -> Skillbook.start_link(options(folder, embedder)) end)
    {pid, time}
  end

  defp stop(pid) do
    Supervisor.stop(pid)
    :erlang.garbage_collect()
  end

  defp await do
    case Indexer.progress(Bench.Skills) do
      %{done: done, total: total} when done == total and total > 0 -> :ok
      _ -> Process.sleep(2) && await()
    end
  end

  defp count, do: Native.vectors_count(Book.fetch!(Bench.Skills).vectors)

  defp searches(folder) do
    {_pid, _} = start(folder, embedder())
    await()
    view = Skillbook.view(Bench.Skills)
    book = Book.fetch!(Bench.Skills)
    IO.puts("\n#{count()} vectors of #{Entries.progress(view).total} entries")
    IO.puts("#{pad("milliseconds, median of #{@searches}")} words  vectors  both")

    for query <- @queries do
      {:ok, [vector]} = Embedder.embed(book.embedder, [query])
      meaning = {book.vectors, vector}

      row =
        for {text, meaning} <- [{query, nil}, {"", meaning}, {query, meaning}] do
          search = fn -> Native.view_candidates(view.ref, text, 10, meaning) end
          search.()
          times = for _ <- 1..@searches, do: search |> :timer.tc() |> elem(0)
          times |> median() |> ms() |> to_string() |> String.pad_trailing(7)
        end

      words = length(String.split(query))
      IO.puts("#{pad("#{words} words")} #{Enum.join(row, "  ")}")
    end

    {:ok, [vector]} = Embedder.embed(book.embedder, ["x"])

    hits = fn ->
      Native.view_search(view.ref, hd(@queries), 10, nil, nil, [], {book.vectors, vector})
    end

    times = for _ <- 1..@searches, do: hits |> :timer.tc() |> elem(0)
    IO.puts("#{pad("both, with snippets, 1 word")} #{times |> median() |> ms()}")
  end

  defp pad(text), do: String.pad_trailing(text, 36)
  defp median(list), do: list |> Enum.sort() |> Enum.at(div(length(list), 2))
  defp ms(microseconds), do: Float.round(microseconds / 1000, 2)
end

Bench.Vectors.run()
