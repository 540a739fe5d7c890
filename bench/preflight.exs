# Shows how well the router tells requests from messages that need no skill, for words alone and
# with vectors: by the size of the catalog, and at each threshold.
#
#     bin/bench preflight [FOLDER] [--embedder MODEL] [--fit]
#
# FOLDER has sets of requests in the format of bench/routing.exs: FOLDER/SET/skills.jsonl and
# requests.jsonl. Each set is also cut into catalogs of 3, 7, 15 and 40 skills. Without FOLDER
# there are only the small catalogs of test/support/fixtures/routing, whose remarks are about the
# subjects of their skills. MODEL is the folder of a sentence-transformers model.
#
# Three kinds of messages are made to each catalog: its requests, the remarks of
# bench/remarks.txt, and, up to 40 skills, requests for skills of other catalogs ("strangers").
# Each has a tuning half and an untouched one; the figures are those of the untouched halves.
#
# `--fit` prints the weights of the core's `search/confidence.rs`, fitted on the tuning halves,
# and how reliable they are on the others. Those of the core are of a FOLDER with public sets; the
# small catalogs alone give larger ones.

defmodule Bench.Preflight do
  @moduledoc false

  alias Skillbook.Catalog.Search
  alias Skillbook.Embedder
  alias Skillbook.Embedding.Entries
  alias Skillbook.Support.JSON
  alias Skillbook.{Native, Preflight, View}

  @fixtures Path.expand("../test/support/fixtures/routing", __DIR__)
  # The sizes of the catalogs that are cut from each set, and how many there are of a size.
  @cuts [{3, 6}, {7, 4}, {15, 2}, {40, 1}]
  # The messages of each half that are made to a catalog.
  @requests 80
  @remarks 50
  @strangers 40
  # The requests of each set that are strangers to other sets.
  @lent 60
  # Catalogs that serve nearly all requests have no strangers.
  @most_with_strangers 40
  # The candidates that may be the best, by their confidence.
  @candidates 5
  # How many features a candidate has, by words and with a vector.
  @features %{words: 5, vectors: 7}
  @rounds 6
  @iterations 30
  @ridge 1.0e-3
  @thresholds [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]

  def run(arguments) do
    {options, folder} = OptionParser.parse!(arguments, strict: [embedder: :string, fit: :boolean])

    # Most skills of the sets have no text, which is an error of theirs.
    Logger.configure(level: :none)
    root = Path.join(System.tmp_dir!(), "skillbook_bench_preflight_#{System.pid()}")
    remarks = remarks()
    own = sets(@fixtures)
    public = Enum.flat_map(folder, &sets/1)
    strangers = Map.new([{:own, lent(own)}, {:public, lent(own) ++ lent(public)}])

    try do
      :ets.new(__MODULE__, [:named_table, :public])
      model = options[:embedder] && embedder(options[:embedder])

      catalogs =
        for({name, set} <- own, do: {:own, name, name, set}) ++
          for {name, set} <- public, cut <- cuts(name, set), do: cut

      catalogs = for catalog <- catalogs, do: load(catalog, remarks, strangers, root, model)

      for kind <- if(model, do: [:words, :vectors], else: [:words]),
          do: if(options[:fit], do: fit(kind, catalogs), else: show(kind, catalogs))
    after
      File.rm_rf!(root)
    end
  end

  # Messages have a text, a half, and the names of the skills that are right.
  defp remarks do
    for text <-
          Path.join(__DIR__, "remarks.txt") |> File.read!() |> String.split("\n", trim: true),
        do: %{
          text: text,
          half: if(rem(:binary.first(hash(text)), 2) == 0, do: :tuning, else: :rest)
        }
  end

  defp sets(folder) do
    for skills <- folder |> Path.join("*/skills.jsonl") |> Path.wildcard() |> Enum.sort() do
      set = Path.dirname(skills)

      {Path.basename(set),
       %{
         skills: lines(skills),
         requests: messages(Path.join(set, "requests.jsonl")),
         remarks: messages(Path.join(set, "remarks.jsonl"))
       }}
    end
  end

  defp messages(file) do
    for row <- lines(file) do
      half = if row["half"] == "tuning", do: :tuning, else: :rest
      %{text: row["text"], half: half, right: List.wrap(row["skill"])}
    end
  end

  defp lines(file) do
    if File.exists?(file) do
      for line <- File.stream!(file), String.trim(line) != "" do
        {:ok, value} = JSON.decode(line)
        value
      end
    else
      []
    end
  end

  # The catalogs of a set, with their group.
  defp cuts(name, set) do
    names = set.requests |> Enum.flat_map(& &1.right) |> Enum.uniq() |> Enum.sort_by(&hash/1)

    small =
      for {size, count} <- @cuts,
          {part, number} <-
            names
            |> Enum.chunk_every(size, size, :discard)
            |> Enum.take(count)
            |> Enum.with_index() do
        requests =
          Enum.filter(set.requests, fn %{right: right} -> Enum.any?(right, &(&1 in part)) end)

        {size, name, "#{name}_#{size}_#{number}",
         %{
           skills: Enum.filter(set.skills, &(&1["name"] in part)),
           requests: halves(requests, max(8, div(@requests, count))),
           remarks: []
         }}
      end

    small ++ [{:all, name, name, %{set | requests: halves(set.requests, @requests)}}]
  end

  # Requests that are made to other sets. One set has skills for nearly everything.
  defp lent(sets) do
    for {name, set} <- sets,
        length(set.skills) <= @most_with_strangers or not String.starts_with?(name, "mixed"),
        request <- halves(set.requests, @lent),
        do: Map.put(request, :from, name)
  end

  # So many of each half, the same in each run.
  defp halves(messages, count, salt \\ "") do
    for half <- [:tuning, :rest],
        message <-
          messages
          |> Enum.filter(&(&1.half == half))
          |> Enum.sort_by(&hash(salt <> &1.text))
          |> Enum.take(count),
        do: message
  end

  defp hash(text), do: :crypto.hash(:md5, text)

  # A book for words, one with vectors, and the messages to both.
  defp load({group, set, name, %{skills: skills} = content}, remarks, strangers, root, model) do
    pages = Path.join(root, name)
    File.mkdir_p!(pages)

    for {skill, number} <- Enum.with_index(skills) do
      page =
        "---\nname: #{JSON.encode(skill["name"])}\n" <>
          "description: #{JSON.encode(skill["description"])}\n---\n#{skill["body"]}\n"

      File.write!(Path.join(pages, "s#{number}.md"), page)
    end

    view = fn name, options ->
      {:ok, _} =
        Skillbook.start_link(
          [name: name, sources: [pages], builtins: false, watch: false] ++ options
        )

      View.all(name)
    end

    words = view.(:"#{name}_words", [])
    options = [embedder: model, embedder_timeout: 600_000]
    vectors = model && view.(:"#{name}_vectors", options)
    if vectors, do: wait(vectors)
    size = length(skills)
    few? = group != :own and size <= @most_with_strangers

    strangers =
      if size <= @most_with_strangers,
        do:
          strangers[if(group == :own, do: :own, else: :public)]
          |> Enum.reject(&related?(&1.from, set))
          |> halves(@strangers, name),
        else: []

    %{
      name: name,
      group: group,
      size: size,
      views: %{words: words, vectors: vectors},
      messages: %{
        requests: content.requests,
        remarks: if(few?, do: halves(remarks, @remarks, name), else: remarks),
        subjects: content.remarks,
        strangers: strangers
      }
    }
  end

  # Two sets of one project.
  defp related?(one, other),
    do: String.slice(one, 0, 8) == String.slice(other, 0, 8)

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

  # The figures

  defp show(kind, catalogs) do
    default = %Preflight.Settings{}.threshold

    rows =
      for catalog <- catalogs,
          {of, messages} <- catalog.messages,
          %{half: :rest} = message <- messages,
          do: %{
            catalog: catalog,
            of: of,
            message: message,
            picks: picks(catalog, kind, message.text)
          }

    IO.puts("\n#{kind}, threshold #{default}")

    IO.puts(
      cells(
        ["catalogs", "requests", "right", "wrong", "none", "first", "remarks", "picked"] ++
          ["subjects", "picked", "strangers", "picked"]
      )
    )

    groups = Enum.group_by(rows, &label(&1.catalog))
    own = Enum.filter(rows, &(&1.catalog.group == :own))
    few = Enum.filter(own, &(&1.catalog.size <= 20))

    for {{_order, label}, rows} <-
          Enum.sort(groups) ++ [{{0, "fixtures up to 20"}, few}, {{0, "fixtures"}, own}] do
      requests = of(rows, :requests)
      right = Enum.count(requests, &right?(&1, default, 3))
      none = Enum.count(requests, &(above(&1, default) == []))
      first = Enum.count(requests, &right?(&1, default, 1))

      picked = fn of ->
        rows = of(rows, of)
        [length(rows), share(rows, &(above(&1, default) != []))]
      end

      IO.puts(
        cells(
          [label, length(requests), right, length(requests) - right - none, none, first] ++
            picked.(:remarks) ++ picked.(:subjects) ++ picked.(:strangers)
        )
      )
    end

    curve(rows, default)
    IO.puts("\nthe surest remarks:")

    for %{picks: [pick | _], message: message} = row <-
          (of(rows, :remarks) ++ of(rows, :subjects))
          |> Enum.filter(&(above(&1, default) != []))
          |> Enum.sort_by(&(-hd(&1.picks).confidence))
          |> Enum.uniq_by(& &1.message.text)
          |> Enum.take(12),
        do:
          IO.puts(
            "  #{pick.confidence} #{inspect(message.text)}: #{row.catalog.name}, #{pick.name} " <>
              "(#{pick.reason})"
          )
  end

  defp label(%{group: :own, size: size, name: name}), do: {size, name}
  defp label(%{group: :all}), do: {1_000_001, "public, all"}
  defp label(%{group: size}), do: {1_000_000, "public, #{String.pad_leading("#{size}", 2)}"}

  # The fixtures count as much as the public catalogs of each size.
  defp curve(rows, default) do
    IO.puts("\nthreshold  remarks picked  strangers picked  misses  right among 3  first right")

    for threshold <- Enum.uniq(Enum.sort([default | @thresholds])) do
      picked = fn of -> mean(of(rows, of), &(above(&1, threshold) != [])) end
      misses = mean(of(rows, :requests), &(above(&1, threshold) == []))
      right = for most <- [3, 1], do: mean(of(rows, :requests), &right?(&1, threshold, most))
      mark = if threshold == default, do: " <- default", else: ""

      IO.puts(
        [threshold, picked.(:remarks), picked.(:strangers), misses | right]
        |> Enum.zip([9, 16, 18, 8, 15, 13])
        |> Enum.map_join(fn {value, width} -> String.pad_leading(to_string(value), width) end)
        |> Kernel.<>(mark)
      )
    end
  end

  defp mean(rows, fun) do
    shares =
      for {_group, rows} <- Enum.group_by(rows, & &1.catalog.group),
          do: Enum.count(rows, fun) / length(rows)

    percent(Enum.sum(shares) / length(shares))
  end

  defp of(rows, of), do: Enum.filter(rows, &(&1.of == of))
  defp above(row, threshold), do: Enum.filter(row.picks, &(&1.confidence >= threshold))

  defp right?(row, threshold, most),
    do: row |> above(threshold) |> Enum.take(most) |> Enum.any?(&(&1.name in row.message.right))

  defp cells([label | cells]),
    do: String.pad_trailing(label, 18) <> Enum.map_join(cells, &String.pad_leading("#{&1}", 10))

  defp percent(share), do: "#{Float.round(100.0 * share, 1)}%"

  defp picks(set, kind, text) do
    Preflight.run(set.views[kind], text,
      stages: [:keywords, :retrieval],
      threshold: 0,
      timeout: 10_000,
      explain: true
    ).picks
  end

  defp share([], _fun), do: "-"
  defp share(rows, fun), do: percent(Enum.count(rows, fun) / length(rows))

  # Fitting

  # How much the messages of a group weigh. The fixtures are requests as people write them to
  # their first skills.
  defp weight(:own), do: 3.0
  defp weight(_group), do: 1.0

  defp fit(kind, catalogs) do
    rows =
      for catalog <- catalogs,
          {of, messages} <- catalog.messages,
          message <- messages,
          features = features(catalog, kind, message.text),
          features != [],
          do: %{
            group: catalog.group,
            of: of,
            half: message.half,
            needed: if(of == :requests, do: 1, else: 0),
            features: features
          }

    {tuning, rest} = Enum.split_with(rows, &(&1.half == :tuning))
    tuning = weighted(tuning, kind)
    first = newton(for {row, weight} <- tuning, do: {{hd(row.features), row.needed}, weight})

    # Which candidate is the best depends on the weights.
    weights =
      Enum.reduce(1..@rounds, first, fn _, weights ->
        newton(for {row, weight} <- tuning, do: {{best(row, weights), row.needed}, weight})
      end)

    IO.puts("\n#{kind}: #{inspect(Enum.map(weights, &Float.round(&1, 2)))}")
    IO.puts("on the other halves, by confidence: predicted, true, messages")

    rated =
      for {row, weight} <- weighted(rest, kind),
          do: {logistic(weights, best(row, weights)), row.needed, weight}

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

  # People ask an assistant for something that it cannot do less often than they chat with it.
  # Chosen so that the router picks for about one of 20 remarks of the small catalogs, also of
  # their untouched halves.
  defp rarity(:strangers, :words), do: 0.3
  defp rarity(:strangers, :vectors), do: 0.2
  defp rarity(_of, _kind), do: 1.0

  # Half of the messages of each group are requests, but for the strangers. The kinds of remarks
  # weigh the same.
  defp weighted(rows, kind) do
    counts = Enum.frequencies_by(rows, &{&1.group, &1.of})
    kinds = Enum.frequencies_by(Map.keys(counts), fn {group, of} -> {group, of == :requests} end)

    weights =
      for row <- rows do
        rarity(row.of, kind) * weight(row.group) / counts[{row.group, row.of}] /
          kinds[{row.group, row.of == :requests}]
      end

    scale = length(rows) / Enum.sum(weights)
    for {row, weight} <- Enum.zip(rows, weights), do: {row, weight * scale}
  end

  defp best(row, weights), do: Enum.max_by(row.features, &dot(&1, weights))

  # The features of the candidates, with 1 for the constant. A message without candidates needs no
  # skill in any case.
  defp features(catalog, kind, text) do
    view = catalog.views[kind]
    meaning = Search.meaning(view, text)

    for features <- Native.view_features(view.ref, text, @candidates, meaning),
        length(features) == @features[kind],
        do: [1.0 | features]
  end

  defp logistic(weights, features),
    do: 1 / (1 + :math.exp(-max(min(dot(weights, features), 30.0), -30.0)))

  # Newton's method for a logistic function, with a little ridge.
  defp newton(rows) do
    size = length(elem(elem(hd(rows), 0), 0))

    Enum.reduce(1..@iterations, List.duplicate(0.0, size), fn _, weights ->
      zero = {List.duplicate(0.0, size), List.duplicate(List.duplicate(0.0, size), size)}

      {gradient, hessian} =
        for {{x, y}, weight} <- rows, reduce: zero do
          {gradient, hessian} ->
            p = logistic(weights, x)
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
