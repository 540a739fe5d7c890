defmodule Skillbook.CLI.RouteTest do
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.{CLI, Preflight}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.ChatServer

  @moduletag :tmp_dir

  @files for {name, description, more} <- [
               {"rain", "Forecasts rain, wind", "trigger_keywords: [wet]"},
               {"snow", "Forecasts snow, ice", ""},
               {"poem", "Writes a poem", ""},
               {"stew", "Cooks a stew of lamb and carrots for a winter evening", ""},
               {"secret", "Forecasts rain", "trigger_keywords: [wet]\nlabels: [own]"}
             ],
             into: %{},
             do:
               {"#{name}/SKILL.md",
                "---\nname: #{name}\ndescription: #{description}\n#{more}\n---\nText.\n"}

  # A request for which the search is neither surely right nor surely wrong, whatever the
  # calibration: it has some of a description's words.
  defp unsure(folder) do
    requests = [
      "A winter evening",
      "A winter evening with friends",
      "A winter evening with friends and neighbours",
      "I like a stew",
      "Lamb with carrots",
      "Carrots of the evening"
    ]

    Enum.find(requests, fn request ->
      [retrieval] = Preflight.run(view(folder), request, stages: [:retrieval]).stages
      match?([%{confidence: c} | _] when c > 0.15 and c < 0.85, retrieval.candidates)
    end) || flunk("no request is unsure")
  end

  setup %{tmp_dir: folder} do
    write(folder, @files)
    :ok
  end

  # Standard output with the numbers as N, the exit status, and standard error.
  defp run(folder, args) do
    {output, status, errors} = run_cli(["--no-builtins", "--dir", folder, "route" | args])
    {String.replace(output, ~r/\d+\.\d+/, "N"), status, errors}
  end

  test "shows each stage, and the picks", %{tmp_dir: folder} do
    assert run(folder, ["Wet", "forecasts?"]) ==
             {"""
              keywords  N ms
                rain  N  keyword: wet

              retrieval  N ms
                rain  N  words N: Wet N, forecasts N
                snow  N  words N: forecasts N

              Picked, from a confidence of N on
                rain  N  keywords
              """, 0, ""}
  end

  test "says that no skill is needed", %{tmp_dir: folder} do
    assert run(folder, ["Thank", "you"]) ==
             {"""
              keywords  N ms  nothing

              retrieval  N ms  nothing

              No skill needed: none has a confidence of N
              """, 0, ""}
  end

  test "a hidden skill is no candidate", %{tmp_dir: folder} do
    {output, 0, ""} = run(folder, ["wet"])
    refute output =~ "secret"
    {output, 0, ""} = run(folder, ["wet", "--grant", "own"])
    assert output =~ "secret  N  keyword: wet"
  end

  test "a model is asked, unless it could change nothing", %{tmp_dir: folder} do
    answer =
      JSON.encode(%{
        skills: [%{name: "stew", confidence: 0.8, reason: "it is\ncold"}],
        no_skill_needed: false
      })

    {_pid, url} = ChatServer.start([ChatServer.answer(answer)])
    model = ["--url", url, "--model", "m"]

    assert {output, 0, ""} = run(folder, [unsure(folder) | model])

    assert output =~
             ~r/\nmodel  N ms\n  stew  N  it is\\ncold\n\nPicked, from .*\n  stew  N  model\n/

    assert_receive {:chat, _request}

    # Nothing but a keyword.
    assert {output, 0, ""} = run(folder, ["wet" | model])
    assert output =~ "\nmodel  N ms  not needed\n"
    refute_received {:chat, _request}
  end

  test "a stage that fails is shown, and the status is 1", %{tmp_dir: folder} do
    model = ["--url", "http://127.0.0.1:1", "--model", "m"]
    assert {output, 1, ""} = run(folder, [unsure(folder) | model])
    assert output =~ ~r/\nmodel  N ms  no connection to the model's server: /
  end

  test "prints JSON", %{tmp_dir: folder} do
    args = ["--no-builtins", "--dir", folder, "route", "wet forecasts", "--json"]
    {:ok, report} = JSON.decode(capture_io(fn -> assert CLI.run(args) == 0 end))

    assert %{"needed" => true, "request" => "wet forecasts", "threshold" => threshold} = report
    assert threshold > 0

    assert [%{"name" => "rain", "stage" => "keywords", "confidence" => 0.95} | _] =
             report["picks"]

    [keywords, retrieval] = report["stages"]
    assert %{"stage" => "keywords", "status" => "ok", "error" => nil} = keywords
    assert is_integer(keywords["duration"])

    assert [%{"name" => "rain", "words" => words, "similarity" => nil, "sentence" => nil}, _] =
             retrieval["candidates"]

    assert Enum.sort(Enum.map(words, & &1["word"])) == ["forecasts", "wet"]
  end

  test "says what is wrong", %{tmp_dir: folder} do
    usage = "\nSee: skillbook route --help\n"

    for {args, message} <- [
          {[" "], "`route` expects a request, such as \"Is it going to rain tomorrow?\""},
          {["a", "--model", "m"],
           "`route` needs --url URL, the model's server, for example http://localhost:8080, " <>
             "or --api NAME for that of a vendor"},
          {["a", "--embedder-model", "m"],
           "--embedder-model needs --embedder URL, a server of embeddings"},
          {["a", "--embedder-key-env", "NO"],
           "--embedder-key-env needs --embedder URL, a server of embeddings"},
          {["a", "--embedder", "/none"],
           "--embedder expects the folder of an embedding model, or the URL of a server such " <>
             "as http://localhost:8080, got: /none"},
          {["a", "--embedder", folder, "--embedder-model", "m"],
           "--embedder-model is for a server; --embedder has a folder: #{folder}"},
          {["a", "--embedder", "http://localhost:1"],
           "--embedder URL needs --embedder-model NAME, the name of the model"},
          {["a", "--embedder", "http://localhost:1", "--embedder-model", "m"] ++
             ["--embedder-key-env", "SKILLBOOK_TEST_NO_KEY"],
           "--embedder-key-env expects an environment variable with a key; " <>
             "SKILLBOOK_TEST_NO_KEY is not set or empty"}
        ] do
      assert run(folder, args) == {"", 2, "skillbook: #{message}#{usage}"}
    end
  end
end
