# Measures the local embedder, beside sentence-transformers in the same run:
#
#     SKILLBOOK_EMBED=1 bin/bench embeddings MODEL_FOLDER [PYTHON]
#
# PYTHON is an interpreter that has sentence-transformers. Prints the median time of one sentence
# with one thread, and the time of 1,000 sentences with all cores. The two alternate, and the
# fastest of several rounds counts, because other programs only ever make them slower.

defmodule Bench.Embeddings do
  @moduledoc false

  alias Skillbook.Embedder
  alias Skillbook.Embedder.Local

  @rounds 3
  @sentence "Which invoices are overdue, and who has to pay them?"

  def run([folder | python]) do
    {time, embedder} = :timer.tc(fn -> Local.new!(folder) end)
    IO.puts("reading the model: #{div(time, 1000)} ms")

    rounds =
      for _ <- 1..@rounds do
        {one(embedder), many(embedder), Enum.map(python, &peer(&1, folder))}
      end

    report("Skillbook", for({one, many, _} <- rounds, do: {one, many}))
    if python != [], do: report("sentence-transformers", for({_, _, [peer]} <- rounds, do: peer))
  end

  defp report(name, times) do
    {ones, manys} = Enum.unzip(times)

    IO.puts(
      "#{name}: one sentence on one core #{Float.round(Enum.min(ones) / 1000, 1)} ms, " <>
        "1,000 sentences on #{cores()} cores #{Float.round(Enum.min(manys) / 1.0e6, 2)} s"
    )
  end

  defp one(embedder) do
    embedder = %{embedder | threads: 1}
    times = for _ <- 1..50, do: elem(:timer.tc(fn -> embed(embedder, [@sentence]) end), 0)
    times |> Enum.sort() |> Enum.at(25)
  end

  defp many(embedder), do: elem(:timer.tc(fn -> embed(embedder, sentences()) end), 0)

  defp embed(embedder, texts), do: {:ok, _} = Embedder.embed(embedder, texts)

  defp sentences do
    for n <- 1..1000 do
      "Request #{n}: which invoices are overdue, and who has to pay them by #{rem(n, 28)} May?"
    end
  end

  @peer """
  import json, sys, time, torch
  from sentence_transformers import SentenceTransformer
  one, many, cores = json.load(sys.stdin)
  model = SentenceTransformer(sys.argv[1], device="cpu")
  def timed(texts):
      start = time.perf_counter()
      model.encode(texts)
      return (time.perf_counter() - start) * 1e6
  torch.set_num_threads(1)
  ones = sorted(timed([one]) for _ in range(50))
  torch.set_num_threads(cores)
  print(ones[25], timed(many))
  """

  defp peer(python, folder) do
    input = Path.join(System.tmp_dir!(), "skillbook_bench_embeddings_#{System.pid()}.json")
    File.write!(input, Skillbook.Support.JSON.encode([@sentence, sentences(), cores()]))
    # A shell, because ports cannot give a program the end of its input.
    command = ~s(exec "$0" -c "$1" "$2" <"$3" 2>/dev/null)
    {output, 0} = System.cmd("sh", ["-c", command, python, @peer, folder, input])
    File.rm!(input)
    [one, many] = output |> String.split() |> Enum.map(&String.to_float/1)
    {one, many}
  end

  defp cores, do: System.schedulers_online()
end

Bench.Embeddings.run(System.argv())
