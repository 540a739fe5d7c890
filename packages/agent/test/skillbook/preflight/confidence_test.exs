defmodule Skillbook.Preflight.ConfidenceTest do
  # The router without a model, on small catalogs: the requests and remarks of the untouched
  # halves of test/support/fixtures/routing, on which no weight was fitted. `bench/preflight.exs`
  # has the figures of each.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Embedder.Local
  alias Skillbook.Embedding.Entries
  alias Skillbook.Support.JSON
  alias Skillbook.{Preflight, TestModel, View}

  @moduletag :tmp_dir

  # More skills than these are no beginner's catalog.
  @few 20

  test "by words, 7 of 10 requests get their skill, and at most 1 of 20 remarks gets one",
       context do
    %{right: right, picked: picked} = measure(context, [])
    assert right >= 0.7
    assert picked <= 0.05
  end

  test "with vectors, 17 of 20 requests get their skill", context do
    embedder = Local.new!(TestModel.folder!())
    %{right: right, picked: picked} = measure(context, embedder: embedder)
    assert right >= 0.85
    assert picked <= 0.05
  end

  defp measure(%{tmp_dir: folder, test: test}, options) do
    outcomes =
      for set <- Path.wildcard(Skillbook.Test.Checkout.path("test/support/fixtures/routing/*")),
          skills = lines(set, "skills"),
          length(skills) <= @few do
        view = view(Path.join(folder, Path.basename(set)), :"#{test} #{set}", skills, options)

        picks =
          &Enum.map(Preflight.run(view, &1["text"], timeout: 10_000).picks, fn p -> p.name end)

        {for(
           row <- lines(set, "requests"),
           do: Enum.any?(picks.(row), &(&1 in List.wrap(row["skill"])))
         ), for(row <- lines(set, "remarks"), do: picks.(row) != [])}
      end

    {requests, remarks} = Enum.unzip(outcomes)
    %{right: share(requests), picked: share(remarks)}
  end

  defp share(outcomes) do
    outcomes = Enum.concat(outcomes)
    Enum.count(outcomes, & &1) / length(outcomes)
  end

  defp lines(set, file) do
    for line <- File.stream!(Path.join(set, file <> ".jsonl")),
        {:ok, row} = JSON.decode(line),
        row["half"] != "tuning",
        do: row
  end

  defp view(folder, name, skills, options) do
    files =
      for skill <- skills, into: %{} do
        description = JSON.encode(skill["description"])
        body = skill["body"] || "Do it."

        {"#{skill["name"]}.md",
         "---\nname: #{skill["name"]}\ndescription: #{description}\n---\n#{body}\n"}
      end

    write(folder, files)

    start_supervised!(
      {Skillbook,
       [name: name, sources: [folder], builtins: false, watch: false, embedder_timeout: 60_000] ++
         options},
      id: name
    )

    view = View.all(name)
    if options[:embedder], do: :ok = Entries.await(view, fn _progress -> :ok end)
    view
  end
end
