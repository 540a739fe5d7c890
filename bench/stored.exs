# What one change of the store costs where it holds many entries, and what it costs to take all of them in:
#
#     MIX_ENV=prod mix run bench/stored.exs [entries, 10000 if left out]

alias Skillbook.{Catalog, Source, Stored}

count = System.argv() |> List.first("10000") |> String.to_integer()

stored = fn id, version ->
  %Stored{
    id: id,
    name: "entry-#{id}",
    kind: :skill,
    title: "Entry #{id}",
    description: "What the entry #{id} is for, in some words",
    content: String.duplicate("A line of the entry #{id} in version #{version}.\n", 20),
    tags: ["tag-#{rem(id, 50)}"],
    source: :user,
    version: version
  }
end

time = fn work ->
  {microseconds, _} = :timer.tc(work)
  microseconds / 1000
end

{:ok, catalog} = Catalog.load([Source.builtin(), Source.stored()])
all = Enum.map(1..count, &stored.(&1, 1))
IO.puts("all of #{count}: #{time.(fn -> Catalog.put_stored(catalog, all, []) end)} ms")

times =
  for n <- 1..50,
      do: time.(fn -> Catalog.put_stored(catalog, [stored.(rem(n * 997, count) + 1, n + 1)], []) end)

[best, middle, worst] = for place <- [0, 24, 49], do: times |> Enum.sort() |> Enum.at(place)
IO.puts("one of them changed: #{middle} ms (#{best} to #{worst})")
