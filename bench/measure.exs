defmodule Bench.Measure do
  @moduledoc false
  # Measures functions and prints rows: the time of Skillbook, the time of a peer, and their
  # ratio.

  alias Skillbook.View

  def head do
    IO.write(:erlang.system_info(:system_version))
    IO.puts("#{System.schedulers_online()} schedulers, Elixir #{System.version()}\n")

    IO.puts(row(["work", "Skillbook", "peer", "ratio", "the peer"]))
  end

  def corpus, do: Path.wildcard(Path.join(corpus_folder(), "**/*.md"))

  def corpus_folder do
    shared = Path.expand("../../shared/corpus/skills", __DIR__)
    corpus = System.get_env("SKILLBOOK_CORPUS", shared)
    if File.dir?(corpus), do: corpus, else: Application.app_dir(:skillbook, "priv/skills")
  end

  # Looks at the memory, 100 ms apart: so many in turn that show no less, and how many at most.
  @steady 15
  @looks 100

  # The memory of the process without mapped files, in bytes, once it no longer falls: the virtual
  # machine gives back what earlier measurements took, but not at once.
  def resident do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)

    Enum.reduce_while(1..@looks, {:infinity, 0}, fn _, {least, steady} ->
      Skillbook.Native.memory_give_back()
      Process.sleep(100)
      now = rss()

      cond do
        now < least -> {:cont, {now, 0}}
        steady < @steady -> {:cont, {least, steady + 1}}
        true -> {:halt, {least, steady}}
      end
    end)
    |> elem(0)
  end

  defp rss do
    with {:ok, status} <- File.read("/proc/self/status"),
         [_, kilobytes] <- Regex.run(~r/^RssAnon:\s+(\d+) kB$/m, status) do
      String.to_integer(kilobytes) * 1024
    else
      _ -> 0
    end
  end

  def memory(name, bytes, peer) do
    [ours, theirs] = for size <- [bytes, peer], do: "#{Float.round(size / 1_000_000, 1)} MB"

    IO.puts(
      row([
        name,
        ours,
        theirs,
        "#{Float.round(bytes / peer, 2)}x",
        "the size of the files; ratio: ours to the files"
      ])
    )
  end

  @doc "The nanoseconds of an insert and of a read by prepared statements of the driver."
  def driver(place, writes, reads) do
    arguments =
      ~w(run --quiet --release -p skillbook_drivers --example peer --) ++
        ~w(#{place} #{writes} #{reads})

    {output, 0} = System.cmd("cargo", arguments)
    [write, read] = output |> String.split() |> Enum.map(&String.to_float/1)
    [write * 1_000_000_000 / writes, read * 1_000_000_000 / reads]
  end

  # Ranking quality. A query is three words of an entry's description. Prints how often the
  # entry is among the first three results (hit@3), and the mean reciprocal rank (MRR, 0 beyond
  # the first ten). One row is for the words themselves, one with the last word cut to four
  # letters, and one with two letters of the first word swapped, which FTS5 does not correct.
  def quality(view, peers) do
    described = view |> View.entries() |> Enum.filter(&(length(long_words(&1.description)) >= 6))
    chosen = Enum.take_every(described, max(div(length(described), 60), 1)) |> Enum.take(60)
    ours = fn query -> view |> Skillbook.search(query) |> Enum.map(& &1.name) end

    kinds = [
      {"unchanged", & &1},
      {"last word cut",
       fn [first, second, third] -> [first, second, String.slice(third, 0, 4)] end},
      {"with a typo", fn [first | rest] -> [typo(first) | rest] end}
    ]

    for {kind, change} <- kinds,
        {engine, find} <- [{"Skillbook", ours} | peers] do
      places =
        for entry <- chosen do
          words = long_words(entry.description)

          query =
            for(place <- [1, 3, 5], do: Enum.at(words, place)) |> change.() |> Enum.join(" ")

          query |> find.() |> Enum.find_index(&(&1 == entry.name))
        end

      hits = Enum.count(places, &(&1 in 0..2)) / length(places)

      mrr =
        Enum.sum(for place <- places, do: if(place, do: 1 / (place + 1), else: 0)) /
          length(places)

      label = String.pad_trailing("ranking, #{length(places)} queries #{kind}, #{engine}", 66)
      IO.puts("#{label}  hit@3 #{Float.round(hits, 3)}  MRR #{Float.round(mrr, 3)}")
    end
  end

  defp long_words(text),
    do: ~r/[[:alpha:]]{4,}/ |> Regex.scan(text) |> List.flatten() |> Enum.uniq()

  defp typo(word) do
    {start, <<a, b>> <> rest} = String.split_at(word, 2)
    start <> <<b, a>> <> rest
  end

  # The runs of a pair alternate, so that other load affects both. Prints the best run of each.
  def compare(name, peer, funs, bytes \\ nil) do
    times = for fun <- funs, do: {fun, repeat(fun)}
    rounds = for _ <- 1..9, do: Enum.map(times, fn {fun, count} -> time(fun, count) end)
    best = rounds |> Enum.zip_with(& &1) |> Enum.map(&Enum.min/1)

    print(name, peer, best, fn ns ->
      if bytes && ns == hd(best),
        do: duration(ns) <> " #{Float.round(bytes / ns, 2)} GB/s",
        else: duration(ns)
    end)
  end

  @doc "Prints the row of one or two figures in nanoseconds, formatted by `text`."
  def print(name, peer, figures, text \\ &duration/1) do
    case {figures, Enum.map(figures, text)} do
      {[ours, theirs], [a, b]} -> IO.puts(row([name, a, b, ratio(theirs / ours), peer]))
      {[_], [a]} -> IO.puts(row([name, a, "", "", peer || ""]))
    end
  end

  defp ratio(ratio) when ratio < 1, do: "#{Float.round(ratio, 3)}x"
  defp ratio(ratio), do: "#{Float.round(ratio, 1)}x"

  # The number of calls that take about 20 milliseconds.
  defp repeat(fun) do
    fun.()
    max(1, round(20_000_000 / max(time(fun, 3), 1)))
  end

  defp time(fun, count) do
    :erlang.garbage_collect()
    {time, _} = :timer.tc(fn -> loop(fun, count) end)
    time * 1000 / count
  end

  defp loop(_fun, 0), do: :ok

  defp loop(fun, count) do
    fun.()
    loop(fun, count - 1)
  end

  def duration(ns)

  def duration(ns) when ns < 10_000, do: "#{round(ns)} ns"

  def duration(ns) when ns < 10_000_000,
    do: "#{:erlang.float_to_binary(ns / 1000, decimals: 1)} µs"

  def duration(ns), do: "#{:erlang.float_to_binary(ns / 1_000_000, decimals: 1)} ms"

  @doc "The rate per second, from the nanoseconds of one call."
  def rate(ns), do: "#{round(1_000_000_000 / ns)}/s"

  def row([work, ours, theirs, ratio, peer] = row) do
    # For `bench/figures.exs`.
    with path when path != nil <- System.get_env("SKILLBOOK_BENCH_ROWS"),
         do: File.write!(path, Enum.join(row, "\t") <> "\n", [:append])

    String.pad_trailing(work, 56) <>
      String.pad_leading(ours, 20) <>
      String.pad_leading(theirs, 12) <> String.pad_leading(ratio, 9) <> "  " <> peer
  end
end
