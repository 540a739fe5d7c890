defmodule Skillbook.Handlers.MemoryTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Handlers.Memory.Memory
end

for dialect <- [:sqlite, :postgres] do
  defmodule Module.concat(Skillbook.Handlers.MemoryTest, Macro.camelize("#{dialect}")) do
    use Skillbook.HandlerCase, async: true

    alias Skillbook.Handlers.Memory.Memory

    @moduletag :tmp_dir
    @moduletag dialect: dialect

    setup %{tmp_dir: folder, dialect: dialect} do
      {:ok, context: context(sql: database(folder, dialect))}
    end

    defp fresh_database(%{sql: sql}) do
      folder =
        Path.join(System.tmp_dir!(), "skillbook_memory_#{System.unique_integer([:positive])}")

      on_exit(fn -> File.rm_rf!(folder) end)
      database(folder, Skillbook.SQL.dialect(sql))
    end

    defp ids(context, line) do
      assert {:ok, result} = execute(context, line)
      Enum.map(result.data.memories, & &1.id)
    end

    test "saves a memory", %{context: context} do
      rows = [
        {~s(memory.save --content "Likes tea"), "Saved M-1 [general, 2026-02-17] Likes tea"},
        {"memory.save --content Likes green tea --category Preference --tags drinks, morning",
         "Saved M-2 [preference, 2026-02-17, #drinks #morning] Likes green tea"},
        {"memory.save", "error: --content is required and missing. Add it as: --content VALUE"},
        {"memory.save Likes tea",
         ~s(error: "Likes tea" has no flag. Put a flag in front: --FLAG "Likes tea")},
        {"memory.save --content x --kind fact",
         "error: unknown flag --kind. Known flags: --content, --category, --tags, --tag"}
      ]

      for {line, text} <- rows, do: assert({line, run(context, line)} == {line, text})

      assert run(context, "memory.save", %{"content" => " First line.\nSecond line. \n"}) ==
               "Saved M-3 [general, 2026-02-17] First line.\n  Second line."

      assert {:ok, %{data: memory, effects: [:memory_saved]}} =
               execute(context, "memory.save", %{"content" => "x", "tags" => ["b", "a"]})

      assert memory == %Memory{
               id: 4,
               content: "x",
               category: "general",
               tags: ["b", "a"],
               created_at: ~U[2026-02-17 12:00:00Z]
             }
    end

    describe "memory.search" do
      setup %{context: context} do
        for {days, line} <- [
              {0,
               ~s(memory.save --content "Prefers meetings in the afternoon" --category ) <>
                 ~s(preference)},
              {1,
               ~s(memory.save --content "The launch was moved to May because of the audit" ) <>
                 ~s(--category decision --tags launch)},
              {2,
               ~s(memory.save --content "Meets Carol for lunch on Fridays" --category person ) <>
                 ~s(--tags carol)},
              {3, ~s(memory.save --content "Carol is the auditor" --category person)}
            ],
            do: assert("Saved " <> _ = run(later(context, days), line))

        :ok
      end

      test "finds by words, category and both", %{context: context} do
        rows = [
          {"memory.search", [4, 3, 2, 1]},
          {"memory.search --limit 2", [4, 3]},
          {"memory.search --category person", [4, 3]},
          {"memory.search --category Person", [4, 3]},
          {"memory.search --category people", []},
          {"memory.search --query meeting", [1, 3]},
          {"memory.search --query audit", [4, 2]},
          {"memory.search --query audit --category decision", [2]},
          {"memory.search --query launch may", [2]},
          {"memory.search --query decision", [2]},
          {~s(memory.search --query "When is the launch?"), [2]},
          # No memory holds all the words of this question.
          {~s(memory.search --query "Who is Carol's dentist?"), [4, 3]},
          {~s(memory.search --query "the"), [1, 2, 4]},
          {"memory.search --query launch OR lunch", [3, 2]},
          {~s(memory.search --query "carol -lunch"), [4]},
          {~s(memory.search --query '"for lunch"'), [3]},
          {~s(memory.search --query '"lunch for"'), []},
          {"memory.search --query dentist", []}
        ]

        for {line, expected} <- rows,
            do: assert({line, Enum.sort(ids(context, line))} == {line, Enum.sort(expected)})
      end

      test "the best match comes first, without words the newest", %{context: context} do
        assert ids(context, "memory.search --query carol auditor") == [4]
        assert ids(context, "memory.search --query carol") == [3, 4]
        assert hd(ids(context, ~s(memory.search --query "tell me about the launch in May"))) == 2
        assert ids(context, "memory.search --limit 3") == [4, 3, 2]
      end

      test "pages hold each memory once, whatever is saved between them", %{context: context} do
        for number <- 1..5, do: run(context, "memory.save --content Same#{number}")
        all = ids(context, "memory.search")

        {pages, nil} =
          Enum.flat_map_reduce(0..9, "", fn
            _page, nil ->
              {[], nil}

            page, place ->
              {:ok, %{data: data}} = execute(context, "memory.search --limit 2" <> place)
              run(context, "memory.save --content New#{page}")
              {Enum.map(data.memories, & &1.id), data[:next] && " --after #{data.next}"}
          end)

        assert Enum.filter(pages, &(&1 in all)) == all

        for {line, text} <- [
              {"memory.search --after M-4 --limit 1",
               "Older memories: the newest first\n" <>
                 "M-3 [person, 2026-02-19, #carol] Meets Carol for lunch on Fridays\n" <>
                 "More follow; add --after M-3 to list them"},
              {"memory.search --category person --after M-3",
               "No older memories: the newest first; category person"},
              {"memory.search --after M-99",
               "error: there is no memory M-99; `memory.search` lists the memories with their " <>
                 "ids"},
              {"memory.search --after x",
               ~s(error: --after must be a memory's id, got "x". Write for example: ) <>
                 "--after M-12"},
              {"memory.search --query carol --after M-4",
               "error: --after and --query contradict each other: only a list without --query " <>
                 "has pages"}
            ] do
          assert {line, run(context, line)} == {line, text}
        end
      end

      test "reports the matches and how they match", %{context: context} do
        assert run(context, "memory.search --category person --limit 1") == """
               2 memories: the newest first; category person
               M-4 [person, 2026-02-20] Carol is the auditor
               1 more; narrow the search, or add --after M-4 to list them\
               """

        assert run(context, "memory.search --query may launch") == """
               1 memory: all of "may launch"
               M-2 [decision, 2026-02-18, #launch] The launch was moved to May because of \
               the audit\
               """

        assert run(context, "memory.search --query launch rocket") == """
               1 memory: none holds all of, these hold some of "launch rocket"
               M-2 [decision, 2026-02-18, #launch] The launch was moved to May because of \
               the audit\
               """

        assert run(context, "memory.search --query rocket --category fact") ==
                 ~s(No memories found: none holds any of "rocket"; category fact)

        assert run(context, "memory.search --category fact") ==
                 "No memories found: the newest first; category fact"
      end

      test "memories of other profiles are not found", %{context: context} do
        bob = %{context | profile: %Skillbook.Profile{id: "bob"}}
        assert ids(bob, "memory.search") == []

        assert run(bob, "memory.search --query launch") ==
                 ~s(No memories found: none holds any of "launch")

        # Each profile's memories are numbered from 1.
        assert run(bob, "memory.save --content Launch party") ==
                 "Saved M-1 [general, 2026-02-17] Launch party"

        assert ids(bob, "memory.search --query launch") == [1]
        assert ids(context, "memory.search --query launch") == [2]
      end

      test "memories of others change no number, count or order", %{context: context} do
        lines = [
          "memory.search --query carol friday auditor",
          ~s(memory.search --query "the launch of may and an audit"),
          "memory.search --query meet --limit 1",
          "memory.search",
          "memory.save --content Carol audits on Fridays",
          "memory.search --query carol friday auditor"
        ]

        bob = %{context | profile: %{context.profile | id: "bob"}}
        alone = for line <- lines, do: run(bob, line)

        for number <- 1..40 do
          saved =
            run(
              context,
              "memory.save --content Carol meets Carol on Friday #{number} --tags launch"
            )

          assert saved =~ "Saved M-#{number + 4} "
        end

        carol = %{context | profile: %{context.profile | id: "carol"}}
        assert alone == for(line <- lines, do: run(carol, line))

        # With memories of her own, in two databases of which one has those of others too.
        bare = context(sql: fresh_database(context))

        answers =
          for context <- [context, bare] do
            dan = %{context | profile: %{context.profile | id: "dan"}}

            for text <- [
                  "Carol on Friday",
                  "The audit of May",
                  "Launch in May, with Carol",
                  "A meeting"
                ],
                do: run(dan, "memory.save --content #{text}")

            for line <- lines, do: run(dan, line)
          end

        assert [same, same] = answers
        assert hd(same) =~ "2 memories: none holds all of"
      end

      test "any text is a valid query", %{context: context} do
        for query <- [
              ~s(launch" OR content:*),
              "content:launch",
              "launch AND",
              "--launch",
              "(launch",
              "NEAR(launch)",
              "launch*"
            ] do
          assert {:ok, _} = execute(context, "memory.search", %{"query" => query}),
                 "failed for #{query}"
        end

        for query <- ["?!", "-launch"],
            do:
              assert(
                run(context, "memory.search", %{"query" => query}) =~
                  "error: --query must be text with at least one word that is not excluded " <>
                    "by -, at most 32 words, and at most 4096 bytes"
              )
      end
    end

    test "without a database the error names the option" do
      for {name, line} <- [
            {"memory.save", "memory.save --content x"},
            {"memory.search", "memory.search"}
          ] do
        assert run(context(), line) ==
                 "error: `#{name}` needs a database, and this book has none. " <>
                   "To enable it, set the option `store:`, for example store: \"skillbook.db\""
      end
    end
  end
end
