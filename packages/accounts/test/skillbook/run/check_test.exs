defmodule Skillbook.Run.CheckTest do
  # A call that cannot succeed is refused before anybody is asked about it.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Executor, HandlerError, OutOfServiceError, Router, Tools}

  @moduletag :tmp_dir

  defmodule Order do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def check(flags, context) do
      send(context.assigns.test, {:checked, flags})

      case flags["answer"] do
        "ok" -> :ok
        "error" -> {:error, "order #{flags["id"]} does not exist"}
        "term" -> {:error, :not_found}
        "bare" -> :error
        "crash" -> raise "secret"
        "exit" -> exit(:gone)
        "slow" -> Process.sleep(:infinity)
        "odd" -> {:ok, "done"}
      end
    end

    @impl true
    def execute(flags, context) do
      send(context.assigns.test, {:ran, flags})
      {:ok, "Ran."}
    end
  end

  @body """
  # x.order

  ## Usage

  x.order --id <number> --answer <word>

  ## Flags

  --id      A word, one line (required)
  --answer  One word, one line (default: ok)
  """

  @fields [handler: inspect(Order), timeout: "200ms", effects: "write"]

  defp pages do
    %{
      "x/order.md" => page("x.order", @fields, @body),
      "x/sure.md" => page("x.sure", @fields ++ [approval: "required"], @body),
      "x/flow.md" =>
        page(
          "x.flow",
          [effects: "read"],
          "## Behavior\n\n```cmd\nx.order 7 --answer error\n```\n"
        )
    }
  end

  defp start(folder, options \\ []) do
    test = self()

    ask = fn request ->
      send(test, {:asked, request.entry.name})
      :allow
    end

    defaults = [
      sources: [write(folder, pages())],
      builtins: ["workflow"],
      watch: false,
      store: ":memory:",
      write_to: folder,
      ask: ask,
      assigns: %{test: test},
      profiles: [[id: "ann", writes: :ask], [id: "reader", writes: :deny], [id: "free"]]
    ]

    book(Keyword.merge(defaults, options))
  end

  defp run(book, line, profile \\ "ann") do
    view = Skillbook.view(book, profile)
    %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```")
    result
  end

  defp events do
    receive do
      {event, _value} -> [event | events()]
    after
      0 -> []
    end
  end

  test "flags, then the check, then the question, then the handler", %{tmp_dir: folder} do
    book = start(folder)

    for {profile, line, events, status, text} <- [
          {"ann", "x.order 7", [:checked, :asked, :ran], :ok, "Ran."},
          {"ann", "x.sure 7", [:checked, :asked, :ran], :ok, "Ran."},
          {"ann", "x.order 7 --answer error", [:checked], :error, "order 7 does not exist"},
          {"ann", "x.sure 7 --answer error", [:checked], :error, "order 7 does not exist"},
          {"ann", "x.order 7 --answer term", [:checked], :error, "not found"},
          {"ann", "x.order 7 --answer bare", [:checked], :error, nil},
          {"ann", "x.order --it 7", [], :error, nil},
          {"free", "x.order 7", [:checked, :ran], :ok, "Ran."},
          {"free", "x.order 7 --answer error", [:checked], :error, "order 7 does not exist"},
          # No code runs for a profile that may not run it.
          {"reader", "x.order 7 --answer error", [], :error, nil}
        ] do
      result = run(book, line, profile)
      assert {profile, line, events()} == {profile, line, events}
      assert {line, result.status} == {line, status}
      if text, do: assert({line, result.content} == {line, text})
    end
  end

  test "in every way that a command runs", %{tmp_dir: folder} do
    book = start(folder)
    view = Skillbook.view(book, "ann")
    line = "x.order 7 --answer error"
    {:ok, routed} = Router.route(view, line)
    arguments = %{"id" => "7", "answer" => "error"}

    for {way, run} <- [
          block: fn -> run(book, line).content end,
          tool: fn ->
            {result, _message} =
              Tools.call(view, %{"name" => "x__order", "arguments" => arguments})

            result.content
          end,
          page: fn ->
            hd(Skillbook.Reply.Pipeline.commands(view, [line], by: :user)).content
          end,
          workflow: fn -> run(book, "x.flow").content end,
          run: fn -> run(book, "workflow.run x.flow").content end,
          executor: fn ->
            {:error, error} = Executor.execute(routed, Executor.context(view, routed))
            Exception.message(error)
          end
        ] do
      assert run.() =~ "order 7 does not exist"
      assert {way, events()} == {way, [:checked]}
    end
  end

  test "crashes, time limits and other answers are those of a handler", %{tmp_dir: folder} do
    book = start(folder)

    for {answer, kind, logged} <- [
          {"crash", :crash, "(RuntimeError) secret"},
          {"exit", :crash, "skill x.sure crashed: "},
          {"slow", :timeout, "skill x.sure took longer than 200 ms and was stopped"},
          {"odd", :bad_return,
           "skill x.sure: expected :ok or {:error, reason} of check/2, got: " <>
             "{:ok, a text}"}
        ] do
      log =
        capture_log(fn ->
          result = run(book, "x.sure 7 --answer #{answer}")
          assert {answer, %HandlerError{kind: ^kind}} = {answer, result.error}
          assert {answer, events()} == {answer, [:checked]}
          refute result.content =~ "secret"
        end)

      assert String.contains?(log, logged), log
    end
  end

  test "failures count for the circuit breaker, and successes do not close it", context do
    book = start(context.tmp_dir, breaker: [failures: 2, cooldown: 60_000])

    capture_log(fn ->
      run(book, "x.order 7 --answer crash")
      assert events() == [:checked]
      # A check that passes says nothing about the handler.
      run(book, "x.order 7 --answer error")
      run(book, "x.order 7 --answer crash")
      assert events() == [:checked, :checked]
    end)

    assert %OutOfServiceError{} = run(book, "x.order 7").error
    assert events() == []
  end

  test "an approved call is checked again before it runs", %{tmp_dir: folder} do
    book = start(folder, ask: fn _request -> :pending end)
    assert run(book, "x.sure 7").status == :pending
    assert events() == [:checked]
    {:ok, [waiting]} = Skillbook.approvals(book)
    {:ok, approval} = Skillbook.approve(book, waiting.ref, by: "ann")
    assert approval.result.content == "Ran."
    assert events() == [:checked, :ran]
  end

  describe "the connection of a page" do
    # A command of each domain that asks, and one that does not.
    @lines %{
      "email" => [
        {"email.send --to bob@example.com --subject A --body B", :mail},
        {"email.search --unread", :mail}
      ],
      "calendar" => [
        {"calendar.create --title A --start 9:00 --attendees bob@example.com", :calendar},
        {"calendar.delete e1", :calendar},
        {"calendar.list", :calendar}
      ],
      "drive" => [
        {"drive.share f1 --to bob@example.com --role reader", :drive},
        {"drive.list", :drive}
      ],
      "hubspot" => [{"hubspot.contacts", :hubspot}]
    }

    test "is checked before anybody is asked, in all domains", %{tmp_dir: folder} do
      for writes <- [:run, :ask], {domain, lines} <- @lines do
        options = [builtins: [domain], profiles: [[id: "ann", writes: writes]]]
        book = start(folder, options)

        for {line, service} <- lines do
          result = run(book, line)

          assert {line, result.content} ==
                   {line,
                    "the profile ann has no connection for #{service}: no account in the " <>
                      "book's :connections offers it to this profile; see " <>
                      "`bin/skillbook connect --help`"}

          assert {line, events()} == {line, []}
        end
      end
    end

    test "is checked for an account that a person has not signed in to", %{tmp_dir: folder} do
      google = [client_id: "id", client_secret: fn -> "secret" end]
      book = start(folder, connections: [google: google], builtins: ["email"])
      result = run(book, "email.send --to bob@example.com --subject A --body B")

      assert result.content ==
               "the profile ann has no connection for mail; a person can make it with " <>
                 "`bin/skillbook connect google --profile ann --for email.send`"

      assert events() == []
    end

    test "and what its service can do are known before the question", %{tmp_dir: folder} do
      caldav = [
        vendor: :caldav,
        url: "https://cal.example.com",
        username: "ann",
        password: fn -> "secret" end
      ]

      book = start(folder, connections: [home: caldav], builtins: ["calendar"])
      no_guests = "this calendar's server tells nobody about events, so nobody can be invited; "
      no_video = "this calendar's server makes no video conferences; "

      for {line, text} <- [
            {"calendar.create --title A --start 9:00 --attendees bob@example.com", no_guests},
            {"calendar.invite --title A --start 9:00 --attendees bob@example.com", no_guests},
            {"calendar.update e1 --add-attendees bob@example.com", no_guests},
            {"calendar.create --title A --start 9:00 --conference", no_video}
          ] do
        assert {line, String.starts_with?(run(book, line).content, text)} == {line, true}
        assert {line, events()} == {line, []}
      end
    end

    test "and the flags of a mail and of a share are checked before", %{tmp_dir: folder} do
      mail = [vendor: :imap, host: "mail.example.com", username: "a", password: fn -> "s" end]
      google = [vendor: Skillbook.Test.GoogleVendor, token: fn -> "token" end]
      options = [connections: [post: mail, google: google], builtins: ["email", "drive"]]
      book = start(folder, options)

      for {line, text} <- [
            {"email.send --to bob --subject A --body B",
             "--to must be one or more e-mail addresses"},
            {"email.send --to me --cc bob --subject A --body B",
             "--cc must be one or more e-mail addresses"},
            {"email.send --to me --body B", "--subject is required and missing"},
            {"drive.share f1 --role reader", "one of --to, --group, --domain or --anyone"},
            {"drive.share f1 --role reader --domain x", "--domain must be a domain's name"}
          ] do
        assert {line, String.slice(run(book, line).content, 0, String.length(text))} ==
                 {line, text}

        assert {line, events()} == {line, []}
      end
    end

    test "of a page of the application is checked too", %{tmp_dir: folder} do
      pages = %{
        "x/post.md" => page("x.post", @fields ++ [connection: "mail"], @body),
        "x/mine.md" => page("x.mine", @fields ++ [connection: "slack"], @body),
        "x/steps.md" =>
          page("x.steps", [connection: "mail"], "## Behavior\n\n```cmd\nx.order 7\n```\n"),
        "x/text.md" => page("x.text", [connection: "mail"], "Read the mail.\n")
      }

      write(folder, pages)
      book = start(folder)

      for {line, start} <- [
            {"x.post 7", "the profile ann has no connection for mail: "},
            {"x.mine 7", "the profile ann has no connection for slack: "},
            {"x.steps", "the profile ann has no connection for mail: "},
            # Nothing runs.
            {"x.text", "Read the mail."}
          ] do
        assert {line, String.starts_with?(run(book, line).content, start)} == {line, true}
        assert {line, events()} == {line, []}
      end
    end
  end
end
