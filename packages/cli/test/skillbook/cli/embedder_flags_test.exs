defmodule Skillbook.CLI.EmbedderFlagsTest do
  # Commands that search by meaning, with a real model in a folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.{SQL, TestModel}
  alias Skillbook.SQL.SQLite
  alias Skillbook.Support.JSON
  alias Skillbook.Test.EmbeddingServer

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    skills = [
      {"weather", "Tells how warm it gets. Forecasts of rain and wind for a city.",
       "Do I need an umbrella in Paris?"},
      {"poems", "Writes verse about any subject", "Some lines that rhyme for my sister"},
      {"billing", "Sends invoices to customers", "Charge them for October"}
    ]

    files =
      for {name, description, example} <- skills, into: %{} do
        fields = "name: #{name}\ndescription: #{description}\nexamples: [\"#{example}\"]"
        {"#{name}/SKILL.md", "---\n#{fields}\n---\nText.\n"}
      end

    write(Path.join(folder, "skills"), files)
    options = ["--no-builtins", "--db", Path.join(folder, "x.db")]
    %{options: options ++ ["--dir", Path.join(folder, "skills")]}
  end

  defp run(options, args), do: run_cli(options ++ args)

  test "test, route and search find what shares no word", %{options: options} do
    embedder = ["--embedder", TestModel.folder!()]
    assert {output, 1, ""} = run(options, ["test"])
    assert output =~ "not found"

    assert {output, 0, ""} = run(options, ["test", "--pairs", "0"] ++ embedder)

    assert output =~
             "3 of 3 skills with examples\n" <>
               "3 requests: first 100% (3), among the first three 100% (3), picked "

    request = "Do I need an umbrella?"
    assert {output, 0, ""} = run(options, ["route", request, "--json"] ++ embedder)
    {:ok, %{"stages" => [_keywords, retrieval]}} = JSON.decode(output)
    [first | _] = retrieval["candidates"]
    assert first["name"] == "weather"
    refute Enum.any?(first["words"], &(&1["word"] == "umbrella"))
    assert first["sentence"] == "Forecasts of rain and wind for a city."
    assert first["similarity"] > 0.1

    assert {"", 1, errors} = run(options, ["search", "umbrella"])
    assert errors =~ "nothing found"
    assert {output, 0, ""} = run(options, ["search", "umbrella", "--limit", "1"] ++ embedder)
    assert output =~ ~r/\Aweather  skill  /
  end

  # The first search too: it waits until the notes are indexed and have vectors.
  test "search finds notes of a vault that share no word", %{options: options, tmp_dir: folder} do
    notes = Path.join(folder, "notes")
    File.mkdir_p!(notes)
    File.write!(Path.join(notes, "cats.md"), "# Felines\n\nCats purr when they are content.\n")
    File.write!(Path.join(notes, "money.md"), "# Budget\n\nExpenses of the office.\n")
    search = ["search", "happy kittens", "--vault", notes]
    assert {"", 1, errors} = run(options, search)
    assert errors =~ "no note found"
    File.write!(Path.join(notes, "food.md"), "# Cooking\n\nBoil pasta in salted water.\n")

    for _time <- 1..2 do
      assert {output, 0, ""} = run(options, search ++ ["--embedder", TestModel.folder!()])
      assert output =~ ~r/\Acats\.md  Felines  /
    end

    server = ["--embedder", "http://127.0.0.1:1", "--embedder-model", "m"]
    File.write!(Path.join(notes, "new.md"), "# New\n")
    assert {"", 3, errors} = run(options, search ++ server)
    assert errors =~ "skillbook: the texts cannot be embedded: "
  end

  test "vectors are kept in the database, and read from it", %{options: options} = context do
    args = ["test", "--embedder", TestModel.folder!()]
    assert {_output, 0, ""} = run(options, args)

    # With the vectors of another text, requests lead elsewhere.
    name = :"#{context.test}"
    {:ok, pid} = SQLite.start_link(name: name, path: Path.join(context.tmp_dir, "x.db"))
    sql = SQLite.handle(name)
    assert [[3]] = SQL.query!(sql, "select count(*) from skillbook_vectors").rows
    one = "(select vector from skillbook_vectors order by hash limit 1)"
    SQL.query!(sql, "update skillbook_vectors set vector = #{one}")
    GenServer.stop(pid)
    assert {output, _status, ""} = run(options, args)
    refute output =~ "first 100%"
  end

  test "a folder without a model is wrong usage", %{options: options, tmp_dir: folder} do
    for command <- [["test"], ["search", "a"], ["route", "a"], ["shell"]] do
      assert {"", 2, errors} = run(options, command ++ ["--embedder", folder])
      assert errors =~ "skillbook: --embedder: "
      assert errors =~ folder
      assert errors =~ "See: skillbook #{hd(command)} --help"
    end

    chat = ~w(chat --url http://localhost:1 --model m --embedder) ++ [folder]
    assert {"", 2, errors} = run(options, chat)
    assert errors =~ "skillbook: --embedder: "
  end

  test "a server embeds the skills, then the request", %{options: options} do
    # In the order of their names.
    skills = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    answers = Enum.map([skills, [[0.1, 0.9]]], &EmbeddingServer.answer/1)
    {_pid, url} = EmbeddingServer.start(answers)
    System.put_env("SKILLBOOK_TEST_KEY", "sk-1")
    on_exit(fn -> System.delete_env("SKILLBOOK_TEST_KEY") end)
    server = ~w(--embedder-model m --embedder-key-env SKILLBOOK_TEST_KEY --embedder) ++ [url]
    assert {output, 0, ""} = run(options, ["search", "umbrella", "--limit", "1"] ++ server)
    assert output =~ ~r/\Aweather  skill  /

    assert_receive {:embed, %{headers: headers, body: %{"model" => "m", "input" => texts}}}
    assert headers["authorization"] == "Bearer sk-1"
    assert ["billing: Sends" <> _, "poems: Writes" <> _, "weather: Tells" <> _] = texts
    assert_receive {:embed, %{body: %{"input" => ["umbrella"]}}}
  end

  test "a server that does not answer stops the command", %{options: options} do
    server = ["--embedder", "http://127.0.0.1:1", "--embedder-model", "m"]

    for command <- [["test"], ["search", "a"], ["route", "a"]] do
      assert {"", 3, errors} = run(options, command ++ server)
      assert errors =~ "skillbook: the skills cannot be embedded: "
    end
  end
end
