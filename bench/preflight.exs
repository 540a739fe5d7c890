# Shows how well the router tells requests from remarks that need no skill: the curve of false
# alarms (a remark gets a skill) against misses (a request gets none), at each threshold, for
# words alone and with vectors.
#
#     mix run bench/preflight.exs FOLDER [--embedder MODEL] [--fit]
#
# FOLDER has sets of requests in the format of bench/routing.exs: FOLDER/SET/skills.jsonl and
# requests.jsonl. Each set is also made into a catalog of 15 skills. 300 requests of the untouched
# halves are taken, the same number of each catalog; the 300 remarks are in bench/remarks.txt.
# MODEL is the folder of a sentence-transformers model.
#
# `--fit` prints the weights of `Skillbook.Preflight.Confidence`, fitted on the tuning halves of
# the requests and of the remarks, and how reliable they are on the others.

defmodule Bench.Preflight do
  @moduledoc false

  alias Skillbook.Embedder
  alias Skillbook.Embedding.Entries
  alias Skillbook.Preflight
  alias Skillbook.Preflight.Confidence
  alias Skillbook.Search.Candidates
  alias Skillbook.Support.JSON
  alias Skillbook.View

  @requests 300
  # The skills of the small catalog that is made of each set, since scores depend on their number.
  @few 15
  # The requests of each set for fitting.
  @fitted 200
  @iterations 30
  @ridge 1.0e-3
  @thresholds [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]

  def run([folder | arguments]) do
    {options, []} = OptionParser.parse!(arguments, strict: [embedder: :string, fit: :boolean])
    Logger.configure(level: :error)
    root = Path.join(System.tmp_dir!(), "skillbook_bench_preflight_#{System.pid()}")
    remarks = File.read!(Path.join(__DIR__, "remarks.txt")) |> String.split("\n", trim: true)
    sets = folder |> Path.join("*/skills.jsonl") |> Path.wildcard() |> Enum.map(&Path.dirname/1)

    try do
      :ets.new(__MODULE__, [:named_table, :public])
      model = options[:embedder] && embedder(options[:embedder])

      sets =
        for set <- Enum.sort(sets),
            size <- [:all, @few],
            do: load(set, size, root, model)

      kinds = if model, do: [:words, :vectors], else: [:words]

      if options[:fit] do
        for kind <- kinds, do: fit(kind, sets, remarks)
      else
        for kind <- kinds, do: curve(kind, sets, remarks)
      end
    after
      File.rm_rf!(root)
    end
  end

  # A book for words, one with vectors, and the requests of a set.
  defp load(set, size, root, model) do
    name = "#{Path.basename(set)}_#{size}"
    pages = Path.join(root, name)
    {skills, requests} = part(size, lines(set, "skills.jsonl"), lines(set, "requests.jsonl"))

    for {skill, number} <- Enum.with_index(skills) do
      page =
        "---\nname: #{JSON.encode(skill["name"])}\n" <>
          "description: #{JSON.encode(skill["description"])}\n---\n"

      path = Path.join(pages, "s#{number}.md")
      File.mkdir_p!(pages)
      File.write!(path, page)
    end

    view = fn name, options ->
      {:ok, _} =
        Skillbook.start_link(
          [name: name, sources: [pages], builtins: false, watch: false] ++ options
        )

      View.all(name)
    end

    words = view.(:"#{name}_words", [])
    options = [embedder: model, embedder_timeout: 60_000]
    vectors = model && view.(:"#{name}_vectors", options)
    if vectors, do: wait(vectors)
    %{name: name, views: %{words: words, vectors: vectors}, requests: requests}
  end

  defp part(:all, skills, requests), do: {skills, requests}

  # Skills that have requests, and these.
  defp part(count, skills, requests) do
    names =
      requests
      |> Enum.flat_map(&List.wrap(&1["skill"]))
      |> Enum.uniq()
      |> Enum.sort_by(&hash/1)
      |> Enum.take(count)

    {Enum.filter(skills, &(&1["name"] in names)),
     Enum.filter(requests, fn request -> Enum.any?(names, &right?(request, &1)) end)}
  end

  # The books share many texts, so each one is embedded once.
  defp embedder(model) do
    {:ok, local} = Embedder.Local.new(model)

    Embedder.Function.new("shared", fn texts ->
      with [_ | _] = new <- Enum.reject(Enum.uniq(texts), &:ets.member(__MODULE__, &1)) do
        {:ok, vectors} = Embedder.embed(local, new, timeout: 600_000)
        :ets.insert(__MODULE__, Enum.zip(new, vectors))
      end

      Enum.map(texts, fn text ->
        [{_, vector}] = :ets.lookup(__MODULE__, text)
        for <<number::float-32-little <- vector>>, do: number
      end)
    end)
  end

  defp wait(view) do
    with %{done: done, total: total} when done < total <- Entries.progress(view) do
      Process.sleep(200)
      wait(view)
    end
  end

  defp lines(set, file) do
    for line <- File.stream!(Path.join(set, file)), String.trim(line) != "" do
      {:ok, value} = JSON.decode(line)
      value
    end
  end

  # The same texts in each run.
  defp some(requests, count), do: requests |> Enum.sort_by(&hash(&1["text"])) |> Enum.take(count)
  defp hash(text), do: :crypto.hash(:md5, text)
  defp tuning?(remark), do: rem(:binary.first(hash(remark)), 2) == 0
  defp right?(request, name), do: name in List.wrap(request["skill"])

  # The curve

  defp curve(kind, sets, remarks) do
    each = div(@requests, length(sets))

    asked =
      for set <- sets,
          requests = Enum.filter(set.requests, &(&1["half"] != "tuning")),
          request <- some(requests, each),
          do: {request, picks(set, kind, request["text"])}

    # A remark is made to each set, so its false alarms are shares.
    said = for set <- sets, remark <- remarks, do: {remark, picks(set, kind, remark)}

    untouched = for {remark, picks} <- said, not tuning?(remark), do: {remark, picks}
    best = &Enum.max(Enum.map(&1, fn pick -> pick.confidence end), fn -> 0.0 end)
    default = %Preflight.Settings{}.threshold

    IO.puts(
      "\n#{kind}: #{length(remarks)} remarks, #{length(asked)} requests of #{length(sets)} sets"
    )

    IO.puts("threshold  false alarms  (untouched)  misses  right among 3  first right")

    for threshold <- Enum.uniq(Enum.sort([default | @thresholds])) do
      above = fn picks -> Enum.filter(picks, &(&1.confidence >= threshold)) end
      alarms = share(said, fn {_, picks} -> best.(picks) >= threshold end)
      alarms_untouched = share(untouched, fn {_, picks} -> best.(picks) >= threshold end)
      misses = share(asked, fn {_, picks} -> above.(picks) == [] end)

      among = fn count ->
        share(asked, fn {request, picks} ->
          above.(picks) |> Enum.take(count) |> Enum.any?(&right?(request, &1.name))
        end)
      end

      mark = if threshold == default, do: " <- default", else: ""

      IO.puts(
        Enum.map_join(
          [{threshold, 9}, {alarms, 14}, {alarms_untouched, 13}, {misses, 8}, {among.(3), 15}] ++
            [{among.(1), 13}],
          fn {value, width} -> String.pad_leading(to_string(value), width) end
        ) <> mark
      )
    end

    false_alarms =
      for {remark, [pick | _]} <- said, pick.confidence >= default, do: {remark, pick}

    IO.puts("\nthe surest false alarms:")

    for {remark, pick} <-
          false_alarms |> Enum.sort_by(&(-elem(&1, 1).confidence)) |> Enum.take(8),
        do: IO.puts("  #{pick.confidence} #{inspect(remark)}: #{pick.name} (#{pick.reason})")
  end

  defp picks(set, kind, text) do
    Preflight.run(set.views[kind], text,
      stages: [:keywords, :retrieval],
      threshold: 0,
      timeout: 10_000,
      explain: true
    ).picks
  end

  defp share([], _fun), do: "-"

  defp share(items, fun),
    do: "#{Float.round(100 * Enum.count(items, fun) / length(items), 1)}%"

  # Fitting

  defp fit(kind, sets, remarks) do
    rows = fn requests?, tuning? ->
      for set <- sets,
          text <- texts(set, remarks, requests?, tuning?),
          row <- row(set, kind, text, requests?),
          do: row
    end

    tuning = [rows.(true, true), rows.(false, true)]
    # Half of the messages are requests.
    weighted = for rows <- tuning, row <- rows, do: {row, 1 / length(rows)}
    scale = length(weighted) / 2
    weights = newton(for {row, weight} <- weighted, do: {row, weight * scale})
    IO.puts("\n#{kind}: #{inspect(Enum.map(weights, &Float.round(&1, 2)))}")

    rest = [rows.(true, false), rows.(false, false)]

    rated =
      for rows <- rest, {features, needed} <- rows do
        {Confidence.logistic(weights, tl(features)), needed, 1 / length(rows)}
      end

    IO.puts("on the other halves, by confidence: predicted, true, messages")

    for low <- 0..9 do
      bin =
        for {p, _, _} = row <- rated, p >= low / 10 and (p < (low + 1) / 10 or low == 9), do: row

      if bin != [] do
        weight = bin |> Enum.map(&elem(&1, 2)) |> Enum.sum()
        mean = fn value -> Enum.sum(Enum.map(bin, &(value.(&1) * elem(&1, 2)))) / weight end
        [predicted, true_share] = for at <- 0..1, do: Float.round(mean.(&elem(&1, at)) * 1.0, 2)
        IO.puts("  #{predicted}  #{true_share}  #{length(bin)}")
      end
    end
  end

  defp texts(set, _remarks, true, tuning?) do
    requests = Enum.filter(set.requests, &(&1["half"] == "tuning" == tuning?))
    for request <- some(requests, @fitted), do: request["text"]
  end

  defp texts(_set, remarks, false, tuning?),
    do: for(remark <- remarks, tuning?(remark) == tuning?, do: remark)

  # The features of the best candidate, with 1 for the constant, and whether a skill is needed. A
  # message without candidates needs none in any case.
  defp row(set, kind, text, needed?) do
    candidates = Candidates.find(set.views[kind], text, 1)

    for {^kind, features} <- Confidence.features(candidates, text, View.count(set.views[kind])),
        do: {[1.0 | features], if(needed?, do: 1, else: 0)}
  end

  # Newton's method for a logistic function, with a little ridge.
  defp newton(rows) do
    size = length(elem(elem(hd(rows), 0), 0))

    Enum.reduce(1..@iterations, List.duplicate(0.0, size), fn _, weights ->
      zero = {List.duplicate(0.0, size), List.duplicate(List.duplicate(0.0, size), size)}

      {gradient, hessian} =
        for {{x, y}, weight} <- rows, reduce: zero do
          {gradient, hessian} ->
            p = 1 / (1 + :math.exp(-max(min(dot(weights, x), 30.0), -30.0)))
            h = weight * max(p * (1 - p), 1.0e-6)
            gradient = zip(gradient, x, fn g, x -> g + weight * (y - p) * x end)

            hessian =
              zip(hessian, x, fn row, a -> zip(row, x, fn cell, b -> cell + h * a * b end) end)

            {gradient, hessian}
        end

      gradient = zip(gradient, weights, fn g, w -> g - @ridge * w end)

      hessian =
        for {row, i} <- Enum.with_index(hessian),
            do:
              for(
                {cell, j} <- Enum.with_index(row),
                do: if(i == j, do: cell + @ridge, else: cell)
              )

      zip(weights, solve(hessian, gradient), &(&1 + &2))
    end)
  end

  # Gauss, with pivots.
  defp solve([], []), do: []

  defp solve(matrix, values) do
    rows = Enum.zip(matrix, values)
    {[pivot | row], value} = best = Enum.max_by(rows, fn {[cell | _], _} -> abs(cell) end)

    {matrix, values} =
      for {[cell | rest], other} <- List.delete(rows, best) do
        factor = cell / pivot
        {zip(rest, row, fn a, b -> a - factor * b end), other - factor * value}
      end
      |> Enum.unzip()

    solved = solve(matrix, values)
    [(value - dot(row, solved)) / pivot | solved]
  end

  defp dot(a, b), do: Enum.sum(zip(a, b, &(&1 * &2)))
  defp zip(a, b, fun), do: Enum.zip_with(a, b, fun)
end

Bench.Preflight.run(System.argv())
