defmodule Skillbook.Connections.TenantsTest do
  # Several people share a book, each with a connection of their own. Nobody uses the
  # connection of another, and without one no command is listed.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Connections
  alias Skillbook.Test.Connections, as: TestConnections
  alias Skillbook.Test.Services

  @moduletag :tmp_dir
  @now ~U[2026-03-03 08:00:00Z]
  @people ["ann", "bob"]

  @seed %{
    gmail: %{
      messages:
        Map.new(@people, fn name ->
          {"#{name}@example.com",
           [
             %{
               from: "dan@example.org",
               to: "#{name}@example.com",
               subject: "word of #{name}sword",
               text: String.duplicate("A line with #{name}sword.\n", 40),
               date: 1_772_524_800
             }
           ]}
        end)
    },
    calendar: %{
      events:
        for name <- @people do
          %{
            calendar: "#{name}@example.com",
            summary: "meet #{name}sword",
            start: %{dateTime: "2026-03-03T10:00:00Z"},
            end: %{dateTime: "2026-03-03T11:00:00Z"}
          }
        end
    },
    drive: %{
      files:
        for name <- @people do
          %{
            id: "file-#{name}",
            name: "plan #{name}sword",
            owner: "#{name}@example.com",
            mimeType: "text/plain",
            text: "Text of #{name}sword"
          }
        end
    }
  }

  @reads [
    "email.search --after yesterday",
    "calendar.list --date today",
    "drive.search plan",
    "drive.list"
  ]

  setup %{tmp_dir: folder} do
    world = TestConnections.world(Map.to_list(@seed))

    book =
      book(
        builtins: true,
        watch: false,
        store: Path.join(folder, "skills.db"),
        profiles: [[id: "ann"], [id: "bob"], [id: "eve"]],
        connections: [
          key: fn -> TestConnections.key() end,
          google: [profiles: @people] ++ Services.google_client(world)
        ]
      )

    for name <- @people do
      Services.browser(world, user: name <> "@example.com")
      {:ok, _connection} = TestConnections.connect(book, :google, profile: name)
    end

    %{world: world, book: book}
  end

  defp run(book, profile, line, options \\ []) do
    view = Skillbook.view(book, profile)
    [result] = Skillbook.run(view, "```cmd\n#{line}\n```", [now: @now] ++ options).results
    result
  end

  test "each reads with their own connection, however many do at once", context do
    for(_ <- 1..15, line <- @reads, name <- @people, do: {name, line})
    |> Enum.shuffle()
    |> Task.async_stream(
      fn {name, line} -> {name, line, run(context.book, name, line)} end,
      max_concurrency: 30,
      timeout: 120_000
    )
    |> Enum.each(fn {:ok, {name, line, result}} ->
      [other] = @people -- [name]
      assert {name, line, result.status} == {name, line, :ok}, result.content
      assert result.content =~ "#{name}sword", "#{name}: #{line}: #{result.content}"
      refute result.content =~ "#{other}sword", "#{name}: #{line}: #{result.content}"
    end)

    # By the vendor's log, too.
    for %{"user" => user, "method" => "drive." <> _} = entry <- Services.log(context.world),
        do: assert(user in ["ann@example.com", "bob@example.com"], inspect(entry))
  end

  test "ids of another's mails and files lead nowhere", %{book: book} do
    for {line, missing} <- [
          {"drive.read file-ann", "drive.read file-nobody"},
          {"email.read m1", "email.read m99"}
        ] do
      assert run(book, "ann", line).status == :ok
      found = run(book, "bob", line)
      unknown = run(book, "bob", missing)
      [id] = Regex.run(~r/\S+$/, line)
      [other] = Regex.run(~r/\S+$/, missing)
      assert {found.status, unknown.status} == {:error, :error}
      assert found.content == String.replace(unknown.content, other, id)
    end
  end

  test "without a connection nothing is listed, and nothing runs", %{book: book, world: world} do
    without = book(builtins: true, watch: false, profiles: [[id: "eve"]])
    Services.clear_log(world)

    for options <- [[], [max_tokens: 900], [protocol: :tools]] do
      assert Skillbook.prompt(Skillbook.view(book, "eve"), options) ==
               Skillbook.prompt(Skillbook.view(without, "eve"), options)
    end

    for line <- @reads ++ ["email.send --to bob@example.com --subject A --body B"] do
      result = run(book, "eve", line, ask: fn _ -> :allow end)
      assert {line, result.status} == {line, :error}
      assert result.content =~ "the profile eve has no connection for "
    end

    # Somebody who may connect it is told how.
    {:ok, _} = Connections.disconnect(book, :google, profile: "bob")

    assert run(book, "bob", hd(@reads)).content ==
             "the profile bob has no connection for mail; a person can make it with " <>
               "`bin/skillbook connect google --profile bob --for email.search`"

    refute Skillbook.prompt(Skillbook.view(book, "bob")) =~ "email"
    assert run(book, "ann", hd(@reads)).content =~ "annsword"
    for entry <- Services.log(world), do: refute(entry["user"] == "eve@example.com")
  end

  test "a stored result of one is not read by another", %{book: book} do
    long = run(book, "ann", "email.read m1", max_result: 400)
    assert [_, ref] = Regex.run(~r/results\.read --id (\S+)/, long.content)
    mine = run(book, "ann", "results.read --id #{ref}")
    assert {mine.status, mine.content =~ "annsword"} == {:ok, true}
    others = run(book, "bob", "results.read --id #{ref}")
    missing = run(book, "bob", "results.read --id nothere1nothere1")
    assert others.status == :error
    assert others.content == String.replace(missing.content, "nothere1nothere1", ref)
  end

  test "an approved call acts with the connection of its profile", context do
    %{book: book, world: world} = context
    waiting = run(book, "ann", "email.send --to bob@example.com --subject Hi --body Hello")
    assert waiting.status == :pending
    {:ok, [%{ref: ref}]} = Skillbook.approvals(book)
    assert {:ok, []} = Skillbook.approvals(Skillbook.view(book, "bob"))
    {:ok, %{status: :done}} = Skillbook.approve(book, ref, by: "bob")

    assert [%{"headers" => %{"from" => [from]}}] =
             Services.judge(world, "gmail.messages", user: "bob@example.com", q: "subject:Hi")

    assert from =~ "ann@example.com"
  end
end
