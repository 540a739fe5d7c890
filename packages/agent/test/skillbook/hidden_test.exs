defmodule Skillbook.HiddenTest do
  # A hidden entry leaves no trace in any answer: all answers are the same with and without it.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, Grammar, Model, Profile, Tools}

  @moduletag :tmp_dir
  @moduletag :capture_log

  # A word in the name, an alias, a tag, a flag and so on of a hidden entry.
  @marker "zqx"

  @guest %Profile{id: "guest"}
  @trusted %Profile{id: "guest", grants: :all}

  @seen %{
    "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\nAbout mail\n",
    "haiku/SKILL.md" => "---\nname: haiku\ndescription: Poems\n---\nThree lines\n",
    "note.md" => "# Note\n\nA note.\n"
  }

  defp seen do
    Map.merge(@seen, %{
      "mail/send.md" =>
        page(
          "mail.send",
          handler("Text") ++ [strict: true],
          "## Flags\n\n- `--to ADDRESS` (required): to whom\n"
        ),
      "mail/fail.md" => page("mail.fail", handler("Raise")),
      "mail/long.md" => page("mail.long", handler("Call"))
    })
  end

  defp hidden do
    labels = [visibility_labels: "[secret]"]

    %{
      "mail/zqx.md" =>
        page(
          "mail.zqx",
          handler("Text") ++ labels ++ [aliases: "[mail.zqxsend, zqxmail]", tags: "[zqxtag]"]
        ),
      "mail/zqxfail.md" => page("mail.zqxfail", handler("Raise") ++ labels),
      "zqxd/SKILL.md" =>
        "---\ndomain: zqxd\ndescription: zqx things\nvisibility_labels: [secret]\n---\nAbout\n",
      "zqxd/act.md" =>
        page("zqxd.act", handler("Text") ++ labels, "## Flags\n\n- `--zqxflag a|b`: zqx\n"),
      "zqxskill/SKILL.md" =>
        "---\nname: zqxskill\ndescription: zqx\nvisibility_labels: [secret]\n---\nzqx lines\n",
      "zqxskill/zqxfile.md" => "zqx file\n",
      # Of names that a guest sees, first by path.
      "azqx/SKILL.md" =>
        "---\nname: haiku\ndescription: zqx\nvisibility_labels: [secret]\n---\nzqx lines\n",
      "mail/azqx.md" => page("mail.send", handler("Raise") ++ labels),
      "zqxodd.md" => page("zqx odd name", labels),
      "zqxnote.md" =>
        "---\nname: zqxnote\nvisibility_labels: [secret]\n---\n# zqx note\n\nA zqx note.\n"
    }
  end

  # Each with the name of something hidden, and with one that is nothing, of the same letters.
  defp lines(word) do
    for line <- [
          "mail.#{word}",
          "mail.#{word} --help",
          "mail.#{word} {\"to\": 1}",
          "mail.#{word}x --to a",
          "mail.#{word}send",
          "mail.#{word}fail",
          "MAIL.#{String.upcase(word)}",
          "mail #{word}",
          "#{word}mail",
          "#{word}d",
          "#{word}d.act --#{word}flag c",
          "#{word}skill",
          "#{word}skill/#{word}file.md",
          "\"#{word} odd name\"",
          "#{word}note",
          "get_skill: #{word}d",
          "get_skill: #{word}d.all",
          "get_skill: #{word}d.act",
          "get_skill: mail.#{word}",
          "get_skill: mail.#{word}sen",
          "get_skill: #{word}skill",
          "get_skill: #{word}skill/#{word}file.md",
          "get_skill: #{word}note",
          "get_skill: haiku mail.#{word}",
          "get_skill: haiku,#{word}skill",
          "skills.search --query #{word}",
          "results.read --id #{word}"
        ],
        do: line
  end

  @open [
    "get_skill",
    "get_skill: mail",
    "get_skill: mail.all",
    "mail.sen --to a",
    "mail.send",
    "mail.send --t a",
    "mail.fail",
    "mail.long",
    "haiku",
    "nothing"
  ]

  defp book(folder, files, options \\ []) do
    write(folder, files)

    profiles = [[id: "default"], [id: "helper", grants: :all]]
    breaker = [failures: 1, cooldown: 6_000_000]

    Skillbook.SkillsCase.book(
      [sources: [folder], breaker: breaker, max_result: 200, profiles: profiles] ++ options
    )
  end

  defp view(book, profile), do: Skillbook.view(book, profile)

  # Replaces the parts that differ between any two runs.
  defp same(term) do
    term
    |> inspect(limit: :infinity, printable_limit: :infinity, structs: false)
    |> String.replace(~r/#(Reference|PID|Function)<[^>]*>/, "#")
    |> String.replace(~r/:?book_\d+/, "BOOK")
    |> String.replace(~r/duration: \d+/, "duration: 0")
    |> String.replace(~r/--id [a-z2-7]{16}|id: "[a-z2-7]{16}"/, "ID")
    |> String.replace(~r/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|Try again in \d+ s/, "TIME")
    |> String.replace(
      ~r/(day|hour|microsecond|minute|month|second|year|retry_in): (\{\d+, \d\}|\d+)/,
      "TIME"
    )
  end

  defp assigns, do: [assigns: %{call: fn _, _ -> {:ok, String.duplicate("long ", 100)} end}]

  # All answers to these words.
  defp everything(book, profile, word) do
    view = view(book, profile)
    lines = @open ++ lines(word) ++ @open
    report = Skillbook.run(view, "```cmd\n#{Enum.join(lines, "\n")}\n```", assigns())

    calls =
      for line <- lines(word),
          tool = line |> String.split() |> hd() |> String.replace(".", "__"),
          call <- [
            %{
              "id" => 1,
              "function" => %{"name" => tool, "arguments" => "{\"path\": \"#{word}skill\""}
            },
            %{
              "id" => 1,
              "function" => %{"name" => tool, "arguments" => "{\"path\": \"#{word}skill\"}"}
            },
            %{"type" => "function_call", "call_id" => 1, "name" => tool, "arguments" => "[]"},
            %{"type" => "tool_use", "id" => 1, "name" => tool, "input" => %{"zz" => 1}},
            %{"name" => Tools.Name.from("#{word} odd name"), "arguments" => %{}}
          ],
          do: Tools.call(view, call, assigns())

    model =
      Model.Function.new(fn messages, _ ->
        if length(messages) < 3, do: "```cmd\n#{Enum.join(lines, "\n")}\n```", else: "Done."
      end)

    options = [model: model, profile: profile, commands: assigns()]
    {:ok, run} = Agent.run(book, "Hello", options)
    # The profile that leads sees everything; the one of the run does not.
    {:ok, led} = Agent.run(book, "Hello", [leader: "helper"] ++ options)

    {calls, report, to_string(report),
     for(
       shape <- [:openai, :anthropic, :mcp],
       limit <- [3, 128],
       do: Tools.definitions(view, shape: shape, limit: limit)
     ), Grammar.gbnf(view), Skillbook.prompt(view), Skillbook.prompt(view, format: :notes),
     Enum.map(Skillbook.search(view, "#{word} send"), & &1.name),
     for(
       run <- [run, led],
       do:
         {run.status, run.text, run.turns, run.leader,
          Enum.map(run.transcript.messages, &{&1.kind, &1.content, &1.activations})}
     )}
  end

  test "all answers are the same with and without a hidden entry", %{tmp_dir: folder} do
    # The folders' names are as long, since paths are part of answers.
    without = book(Path.join(folder, "a/skills"), seen())
    with = book(Path.join(folder, "b/skills"), Map.merge(seen(), hidden()))
    # The hidden entry fails for a profile that sees it, until it is out of service.
    for book <- [with, without], do: everything(book, @trusted, @marker)
    assert same(everything(with, @trusted, @marker)) =~ "zqxfail` was not run: it failed"

    [got, expected] =
      for {book, place} <- [{with, "b"}, {without, "a"}],
          do:
            book
            |> everything(@guest, @marker)
            |> same()
            |> String.replace("#{folder}/#{place}/", "")

    # Piece by piece, so that a difference can be read.
    [got, expected] = for text <- [got, expected], do: String.split(text, ~r/(?<=[,}]) /)
    differences = got |> Enum.zip(expected) |> Enum.reject(fn {a, b} -> a == b end)
    assert {differences, length(got)} == {[], length(expected)}
  end

  test "answers repeat only the name that was asked for", %{tmp_dir: folder} do
    book = book(folder, Map.merge(seen(), hidden()))
    # Answers to other questions do not mention it.
    refute book |> everything(@guest, "nil") |> same() |> String.replace(folder, "") =~ @marker
  end

  test "changes do not mention it", %{tmp_dir: folder} do
    book = book(folder, seen())
    old = view(book, @guest)
    write(folder, hidden())
    Skillbook.reload(book)
    assert Skillbook.changes(old, view(book, @guest)) == ""
  end
end
