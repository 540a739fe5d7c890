# Measures how often a search finds the right skill for a request:
#
#     bin/bench routing FOLDER [--python PYTHON] [--embedder MODEL] [SET...]
#
# FOLDER has a folder for each set, with two files of one JSON object per line:
#
#     skills.jsonl     {"name": "send_email", "description": "Sends an email."}
#     requests.jsonl   {"text": "Tell Ann that I am late", "skill": "send_email"}
#
# "skill" may be a list of names that are all right, and "half" may be "tuning" or "untouched":
# then each half has a table. bench/routing_sets.py writes such a folder from public sets.
#
# Prints for each set how often the first hit is right (hit@1), how often a right one is among the
# first three and five, and the mean reciprocal rank (MRR, 0 beyond the first 1,000). With
# --python, the python of an environment for bench/routing_peers.py, the same for its peers. With
# --embedder, the folder of a sentence-transformers model, also for vectors and for both together.

defmodule Bench.Routing do
  @moduledoc false

  alias Skillbook.{Catalog, View}
  alias Skillbook.Search.Candidates
  alias Skillbook.Support.JSON

  @limit 1_000

  def run(arguments) do
    {options, rest, invalid} =
      OptionParser.parse(arguments, strict: [python: :string, embedder: :string])

    case {invalid, rest} do
      {[], [folder | names]} -> sets(folder, names, options)
      _ -> raise "expected FOLDER [--python PYTHON] [--embedder MODEL] [SET...]"
    end
  end

  defp sets(folder, names, options) do
    names = if names == [], do: folder |> File.ls!() |> Enum.sort(), else: names
    for name <- names, File.dir?(Path.join(folder, name)), do: set(folder, name, options)
  end

  defp set(folder, name, options) do
    set = Path.join(folder, name)
    requests = read(Path.join(set, "requests.jsonl"))
    skills = read(Path.join(set, "skills.jsonl"))
    IO.puts("#{name}: #{length(skills)} skills, #{length(requests)} requests")
    rankings = ours(skills, requests, options) ++ peers(set, options)

    for half <- requests |> Enum.map(& &1["half"]) |> Enum.uniq() |> Enum.sort() do
      IO.puts(row(half || "all", ["hit@1", "hit@3", "hit@5", "MRR"]))

      for {label, ranks} <- rankings do
        chosen =
          for {request, rank} <- Enum.zip(requests, ranks), request["half"] == half, do: rank

        IO.puts(row("  " <> label, figures(chosen)))
      end
    end

    IO.puts("")
  end

  defp read(path) do
    for line <- File.stream!(path) do
      {:ok, row} = JSON.decode(line)
      row
    end
  end

  defp figures(ranks) do
    hit = fn most -> 100 * Enum.count(ranks, &(&1 != nil and &1 <= most)) / length(ranks) end
    mean = Enum.sum(for rank <- ranks, do: if(rank, do: 1 / rank, else: 0)) / length(ranks)
    hits = for most <- [1, 3, 5], do: :erlang.float_to_binary(hit.(most), decimals: 1)
    hits ++ [:erlang.float_to_binary(mean / 1, decimals: 3)]
  end

  defp row(label, cells),
    do: String.pad_trailing(label, 28) <> Enum.map_join(cells, &String.pad_leading(&1, 8))

  defp ours(skills, requests, options) do
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_routing_#{System.pid()}")

    try do
      write(folder, skills)
      {:ok, catalog} = Catalog.load([folder])
      view = View.all(catalog)

      if View.count(view) != length(skills),
        do:
          raise(
            "expected #{length(skills)} skills with different names, got: #{View.count(view)}"
          )

      [{"words", ranks(requests, &names(view, &1))}] ++ meaning(folder, requests, options)
    after
      File.rm_rf!(folder)
    end
  end

  defp write(folder, skills) do
    for {%{"name" => name, "description" => description}, n} <- Enum.with_index(skills) do
      path = Path.join(folder, "skill-#{n}/SKILL.md")
      File.mkdir_p!(Path.dirname(path))
      [name, description] = Enum.map([name, description], &JSON.encode/1)
      File.write!(path, "---\nname: #{name}\ndescription: #{description}\n---\n")
    end
  end

  defp names(view, text),
    do: for(hit <- Skillbook.search(view, text, limit: @limit), do: hit.name)

  defp ranks(requests, search) do
    for %{"text" => text, "skill" => right} <- requests do
      right = List.wrap(right)
      found = Enum.find_index(search.(text), &(&1 in right))
      found && found + 1
    end
  end

  defp meaning(folder, requests, options) do
    case options[:embedder] do
      nil ->
        []

      model ->
        {:ok, pid} =
          Skillbook.start_link(
            name: Bench.Routing,
            sources: [folder],
            builtins: false,
            watch: false,
            embedder: Skillbook.Embedder.Local.new!(model),
            embedder_timeout: 60_000
          )

        view = Skillbook.view(Bench.Routing)
        :ok = Skillbook.Embedding.Entries.await(view, fn _progress -> :ok end)

        by_meaning = fn text ->
          view
          |> Candidates.find(text, @limit)
          |> Enum.sort_by(&{-(&1.similarity || -1.0), &1.name})
          |> Enum.map(& &1.name)
        end

        result = [
          {"vectors", ranks(requests, by_meaning)},
          {"both", ranks(requests, &names(view, &1))}
        ]

        Supervisor.stop(pid)
        result
    end
  end

  defp peers(set, options) do
    case options[:python] do
      nil ->
        []

      python ->
        script = Path.join(__DIR__, "routing_peers.py")
        {output, 0} = System.cmd(python, [script, set | List.wrap(options[:embedder])])

        for line <- String.split(output, "\n", trim: true) do
          {:ok, %{"name" => name, "ranks" => ranks}} = JSON.decode(line)
          {name, ranks}
        end
    end
  end
end

Bench.Routing.run(System.argv())
