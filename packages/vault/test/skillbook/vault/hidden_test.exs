defmodule Skillbook.Vault.HiddenTest do
  # Hidden documents do not exist for a profile: results of a vault are equal, including scores
  # and order, to those of a database without the hidden documents.
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  import Skillbook.Eventually

  alias Skillbook.Embedding.Documents
  alias Skillbook.{Book, Embedder, Profile, SQL, Vault}

  @words ~w(plan planning plans budget strategy strategies quarter Ann café meeting meet rare)
  @labels ~w(board ann)
  @rounds 4
  @searches 15

  for dialect <- [:sqlite, :postgres], by <- [:words, :meaning] do
    @tag dialect: dialect, by: by
    test "#{dialect}: searches by #{by} reveal nothing about hidden documents", context do
      :rand.seed(:exsss, {1, 2, 3})
      [whole, bare] = for _ <- 1..2, do: start(context)

      for round <- 1..@rounds do
        documents = for number <- 1..(4 + rem(round, 5)), do: document(round, number)
        # Row ids and index statistics differ between the two databases.
        for document <- Enum.shuffle(documents),
            do: :ok = Vault.put(whole, vault(document), Map.delete(document, :vault))

        for grants <- [[], ["board"], ["ann"]] do
          profile = %Profile{id: "p", grants: grants}
          rebuild(bare, grants)
          if context.by == :meaning, do: assert(Enum.all?([whole, bare], &embedded?/1))

          for {query, options} <- Enum.take_random(searches(), @searches) do
            assert {query, options, grants, answer(whole, profile, query, options)} ==
                     {query, options, grants, answer(bare, profile, query, options)}
          end

          for name <- ["Plan", "Notes 1", "Budgte", "hidden", "x1-1"] do
            edit = fn book -> Vault.edit(Skillbook.view(book, profile), name, {:append, "x"}) end
            assert {name, grants, edit.(whole)} == {name, grants, edit.(bare)}
          end
        end
      end
    end
  end

  # All documents put into `whole`, without those that the grants hide.
  defp rebuild(bare, grants) do
    kept = Process.get(:kept, %{})
    for {id, {vault, _}} <- Process.get(:bare, %{}), do: :ok = Vault.delete(bare, vault, id)

    seen =
      for {id, {vault, document}} <- kept,
          Enum.all?(labels(document), &(&1 in grants)),
          vault == "open" or "board" in grants,
          into: %{} do
        :ok = Vault.put(bare, vault, document)
        {id, {vault, document}}
      end

    Process.put(:bare, seen)
  end

  defp document(round, number) do
    id = "x#{:rand.uniform(5)}-#{number}"
    # It may replace a document with the same id and other labels.
    vault = if number == 1, do: "boards", else: "open"
    labels = Enum.take_random(@labels, Enum.random([0, 0, 1, 2]))

    frontmatter =
      if number == 2,
        do: "---\nvisibility_labels: [board]\ntitle: #{Enum.random(@words)}\nstatus: open\n---\n",
        else: ""

    text = 1..Enum.random(1..30) |> Enum.map_join(" ", fn _ -> Enum.random(@words) end)
    tag = if rem(round, 2) == 0, do: " #tag", else: ""

    document = %{
      id: id,
      path: "f#{rem(number, 2)}/#{Enum.random(["Plan", "Notes #{number}", "hidden"])}.md",
      content: frontmatter <> text <> tag,
      labels: labels
    }

    Process.put(:kept, Map.put(Process.get(:kept, %{}), id, {vault, document}))
    Map.put(document, :vault, vault)
  end

  defp vault(%{vault: vault}), do: vault

  defp labels(document),
    do: document.labels ++ if(document.content =~ "visibility_labels", do: ["board"], else: [])

  defp searches, do: for(query <- queries(), options <- filters(), do: {query, options})

  defp queries do
    [
      nil,
      "plan",
      "budget strategy",
      "rare",
      "mee*",
      ~s("plan budget"),
      "nowhere rare",
      "r* p* q*",
      ~s(cafe "ann plans" meet*),
      "plan OR rare -budget",
      "plan -ann",
      ~s(meet OR "plan budget" -"plan strategy" -qu*)
    ]
  end

  defp filters,
    do: [
      [],
      [limit: 2],
      [folder: "f1"],
      [tags: ["tag"]],
      [fields: [{"status", "open"}]],
      [vault: "boards"]
    ]

  defp answer(book, profile, query, options),
    do: Vault.search(Skillbook.view(book, profile), query, options)

  defp start(context) do
    book(
      store: store(context),
      vaults: [[name: "open"], [name: "boards", labels: ["board"]]],
      watch: false,
      embedder: if(context.by == :meaning, do: Embedder.Function.new("words", &vectors/1)),
      embedder_timeout: 5_000
    )
  end

  # A text is the sum of its words, each with numbers of its own.
  defp vectors(texts) do
    for text <- texts do
      words = text |> String.downcase() |> String.split(~r/\W+/u, trim: true)

      for place <- 1..12,
          do: Enum.sum(for word <- words, do: :erlang.phash2({word, place}, 100) - 49.5) + 0.1
    end
  end

  defp embedded?(book),
    do: eventually(fn -> match?({[], _}, Documents.follow(Book.fetch!(book), 0)) end)

  defp store(%{dialect: :sqlite}), do: ":memory:"
  defp store(%{dialect: :postgres}), do: {SQL.Postgres, url: Skillbook.PostgresCase.database()}
end
