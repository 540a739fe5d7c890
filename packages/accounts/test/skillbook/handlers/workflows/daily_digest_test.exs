defmodule Skillbook.Handlers.Workflows.DailyDigestTest do
  # `workflows.daily_digest` with and without the services that it reads.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.{GoogleVendor, Services}

  @moduletag :tmp_dir

  @ann "ann@example.com"
  @now ~U[2026-03-03 08:00:10Z]

  @seed %{
    calendar: %{
      events: [
        %{
          calendar: @ann,
          summary: "Review with Bob",
          start: %{dateTime: "2026-03-03T10:00:00Z"},
          end: %{dateTime: "2026-03-03T11:00:00Z"}
        }
      ]
    },
    gmail: %{
      messages: %{
        @ann => [
          %{
            from: "Bob <bob@example.com>",
            to: @ann,
            subject: "The bank called",
            text: "Call back.",
            labels: ["INBOX", "UNREAD", "IMPORTANT"],
            date: 1_772_488_800
          }
        ]
      }
    }
  }

  @profiles [
    [id: "ann", approved: ["email.send"]],
    [id: "careful"],
    [id: "reader", writes: :deny],
    [id: "narrow", skills: ["workflows.*"]]
  ]

  defp start(options) do
    defaults = [store: ":memory:", watch: false, profiles: @profiles]
    book = book(Keyword.merge(defaults, options))
    run(book, ~s(tasks.create --title "Call the bank" --due 2026-03-02 --assignee ann))
    run(book, ~s(tasks.create --title "Buy milk" --due 2026-03-05 --assignee ann))
    book
  end

  defp connected(services \\ [:mail, :calendar]) do
    world = Services.world(@seed)
    token = world.tokens[@ann]

    account = [
      vendor: GoogleVendor,
      token: fn -> token end,
      url: world.url,
      services: services
    ]

    {world, start(connections: [google: account])}
  end

  defp run(book, line, profile \\ "ann") do
    view = Skillbook.view(book, profile)
    %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```", now: @now)
    %{result | content: String.replace(result.content, ~r/T-\d{8}/, "T-1")}
  end

  @late """
  Late:
    1 task, by priority: status todo, in_progress or blocked; assigned to ann; due \
  before 2026-03-03
    T-1 [todo, medium, due 2026-03-02 (overdue), @ann] Call the bank

  Today:
    No tasks found: status todo, in_progress or blocked; assigned to ann; due up to \
  2026-03-03; due from 2026-03-03 on\
  """

  test "says what it left out and why" do
    book = start([])
    result = run(book, "workflows.daily_digest")

    assert result.content ==
             @late <>
               """


               Coming:
                 No tasks found: status todo, in_progress or blocked; assigned to ann; due up to \
               2026-03-04; due from 2026-03-04 on

               Left out:
                 Calendar: there is no command `calendar.list`
                 Mail: there is no command `email.search`\
               """

    assert result.effects == []
    assert run(book, "workflows.daily_digest --until 2026-03-05").content =~ "Buy milk"
    weather = run(book, "workflows.daily_digest --include-weather").content
    assert weather =~ "\n  Weather: there is no command `weather.today`"

    mailed = run(book, "workflows.daily_digest --recipient me").content
    assert String.ends_with?(mailed, "\n\nNot sent: there is no command `email.send`")

    # What is hidden is left out as what does not exist.
    narrow = run(book, "workflows.daily_digest", "narrow").content

    assert narrow ==
             "There is nothing to tell.\n\nLeft out:\n" <>
               "  Late, Today, Coming: there is no command `tasks.search`\n" <>
               "  Calendar: there is no command `calendar.list`\n" <>
               "  Mail: there is no command `email.search`"
  end

  test "without a connection it says how to make one" do
    book = start(builtins: ["*", "email", "calendar"])
    text = run(book, "workflows.daily_digest --recipient bob@example.com").content

    for service <- [
          "Calendar: the profile ann has no connection for calendar: ",
          "Mail: the profile ann has no connection for mail: ",
          "Not sent: the profile ann has no connection for mail: "
        ],
        do: assert(text =~ service)
  end

  test "reads what is connected, and sends it" do
    {world, book} = connected()
    run(book, ~s(memory.save --category preference --content "No small talk in the daily digest"))
    result = run(book, "workflows.daily_digest --recipient bob@example.com")
    assert {result.status, result.effects} == {:ok, [:mail_sent]}
    assert result.metadata.external
    assert result.content =~ "Calendar:\n  1 event"
    assert result.content =~ "Review with Bob"
    assert result.content =~ "Mail:\n  1 mail"
    assert result.content =~ "The bank called"
    refute result.content =~ "Left out:"
    assert result.content =~ "\n\nSent to bob@example.com. Its id is "
    assert result.content =~ "\n\nWishes of the user for the digest:\n"
    assert sent(world) == 1
    # The wishes are not mailed.
    assert result.data.parts |> Map.keys() |> Enum.sort() == ~w(Calendar Coming Late Mail Today)
  end

  test "sends only what the policy lets it send" do
    {world, book} = connected()

    for {profile, status, text} <- [
          {"careful", :ok,
           "\n\nNot sent: `email.send` has not run yet: it waits for the approval "},
          {"reader", :ok, "\n\nNot sent: `email.send` was not run: "}
        ] do
      result = run(book, "workflows.daily_digest --recipient bob@example.com", profile)
      assert {profile, result.status} == {profile, status}
      assert {profile, result.content =~ text} == {profile, true}

      assert length(Map.get(result.metadata, :pending, [])) ==
               if(profile == "careful", do: 1, else: 0)
    end

    assert sent(world) == 0
  end

  test "the weather is that of a command of the application", %{tmp_dir: folder} do
    page = page("weather.today", handler("Text") ++ [effects: "read"])
    write(folder, %{"weather/today.md" => page})
    book = start(sources: [folder])
    assert run(book, "workflows.daily_digest --include-weather").content =~ "\n\nWeather:\n  "
    refute run(book, "workflows.daily_digest").content =~ "Weather"
  end

  defp sent(world),
    do: Enum.count(Services.methods(world), &(&1 == "gmail.users.messages.send"))
end
