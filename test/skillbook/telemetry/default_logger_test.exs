defmodule Skillbook.Telemetry.DefaultLoggerTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{OptionError, Telemetry, TelemetryError}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Text")),
      "x/crash.md" => page("x.crash", handler("Raise")),
      "x/page.md" => page("x.page", [], "Boil water.")
    })

    book =
      book(
        sources: [folder],
        builtins: false,
        watch: false,
        telemetry_flags: true,
        breaker: false,
        profiles: [[id: "ann"]]
      )

    on_exit(&Telemetry.detach_default_logger/0)
    {:ok, book: book, view: Skillbook.view(book, "ann")}
  end

  # The lines of the logger about a book, without times and generation.
  defp lines(book, fun) do
    for line <- String.split(capture_log(fun), "\n"),
        [_, text] <- [Regex.run(~r/(skillbook\.\w+\.\w+ .*)/, line)],
        text =~ "book=" <> inspect(book) or text =~ "book=#{book} ",
        do: String.replace(text, ~r/ (duration=\d+\.\d+ms|generation=\d+)/, "")
  end

  test "writes a line for each event, without starts and flags", %{book: book, view: view} do
    :ok = Telemetry.attach_default_logger(books: [book], events: [:command, :policy])

    lines =
      lines(book, fn ->
        Skillbook.run(view, "```cmd\nx.run --a hunter2\nget_skill: x.page\nx.nope hunter2\n```")
      end)

    assert lines == [
             "skillbook.policy.decision book=#{book} profile=ann skill=x.run writes=run " <>
               "decision=ok",
             "skillbook.command.stop book=#{book} profile=ann skill=x.run effect=write status=ok",
             "skillbook.command.stop book=#{book} profile=ann status=help reads=x.page",
             "skillbook.command.stop book=#{book} profile=ann status=error"
           ]
  end

  test "groups, names, levels and books choose the lines", %{book: book, view: view} do
    start = [:skillbook, :command, :start]
    run = fn -> Skillbook.run(view, "```cmd\nx.run\nx.crash\n```") end
    stop = "skillbook.command.stop book=#{book} profile=ann skill=x.run effect=write status=ok"

    crash =
      "skillbook.command.exception book=#{book} profile=ann skill=x.crash effect=write " <>
        "status=error kind=crash"

    began = fn name ->
      "skillbook.command.start book=#{book} profile=ann skill=#{name} effect=write"
    end

    rows = [
      {[events: [:command]], [stop, crash]},
      {%{events: [[:skillbook, :command, :exception]]}, [crash]},
      {[events: [start]], [began.("x.run"), began.("x.crash")]},
      {[events: [:breaker, :model]], []},
      {[events: [:command], books: [Other]], []},
      {[events: [:command], level: :debug], [stop, crash]}
    ]

    for {options, expected} <- rows do
      :ok = Telemetry.attach_default_logger(options)
      assert {options, lines(book, run)} == {options, expected}
      :ok = Telemetry.detach_default_logger()
    end

    :ok = Telemetry.attach_default_logger(events: [:command], level: :warning)
    assert capture_log([level: :warning], run) =~ "[warning] skillbook.command.stop book=#{book}"
    assert lines(book, fn -> Telemetry.detach_default_logger() && run.() end) == []
  end

  test "a line shows the fields of its event, and a value cannot forge another" do
    rows = [
      {[:skillbook, :model, :stop], %{duration: 1_500_000, monotonic_time: 5},
       %{
         book: MyApp.Skills,
         profile: "ann\nforged=1 x",
         turn: 2,
         provider: "openai",
         model: "gpt 5",
         finish_reason: :stop,
         answered_by: nil,
         usage: %{prompt_tokens: 9, completion_tokens: 2}
       },
       ~S(skillbook.model.stop book=MyApp.Skills profile="ann\nforged=1 x" turn=2 ) <>
         ~S(provider=openai model="gpt 5" finish_reason=stop completion_tokens=2 ) <>
         ~S(prompt_tokens=9 duration=1.5ms)},
      {[:skillbook, :firing, :start], %{monotonic_time: 1, system_time: 2},
       %{book: :b, profile: "a", skill: "x", at: ~U[2026-03-01 08:00:00Z], attempt: 1},
       "skillbook.firing.start book=b profile=a skill=x at=2026-03-01T08:00:00Z attempt=1"},
      {[:skillbook, :breaker, :reset], %{failures: 1, system_time: 2},
       %{book: :b, profile: "a", tenant: :all, skill: "x"},
       "skillbook.breaker.reset book=b profile=a tenant=* skill=x failures=1"},
      {[:skillbook, :breaker, :reset], %{failures: 1, system_time: 2},
       %{book: :b, profile: "a", tenant: "*", skill: "x"},
       ~S(skillbook.breaker.reset book=b profile=a tenant="*" skill=x failures=1)},
      {[:skillbook, :preflight, :stop], %{duration: 0, monotonic_time: 1},
       %{book: nil, profile: "a", picks: ["x.a", "x b"], cached: false},
       ~S(skillbook.preflight.stop profile=a picks=x.a,"x b" cached=false duration=0.0ms)}
    ]

    for {name, measurements, metadata, expected} <- rows do
      line = Telemetry.DefaultLogger.line(name, measurements, metadata)
      assert IO.iodata_to_binary(line) == expected
    end
  end

  test "a second logger and wrong options are errors", %{book: book} do
    :ok = Telemetry.attach_default_logger(books: [book])

    assert {:error, %TelemetryError{kind: :attached} = error} = Telemetry.attach_default_logger()

    assert Exception.message(error) ==
             "expected Skillbook.Telemetry.attach_default_logger/1 to be called once, got: " <>
               "another call; call detach_default_logger/0 first to change its options"

    for {options, option} <- [
          {[level: "info"], :level},
          {[books: "b"], :books},
          {[events: [:nope]], :events},
          {[events: [[:skillbook, :nope, :stop]]], :events},
          {[encode: true], :encode}
        ] do
      assert {:error, %OptionError{option: ^option}} = Telemetry.attach_default_logger(options)
    end

    assert :ok = Telemetry.detach_default_logger()
    assert :ok = Telemetry.detach_default_logger()
  end
end
