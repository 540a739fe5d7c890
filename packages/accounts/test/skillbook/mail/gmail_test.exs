defmodule Skillbook.Mail.GmailTest do
  use ExUnit.Case, async: true
  use Skillbook.MailConformance

  alias Skillbook.Mail
  alias Skillbook.Mail.Gmail
  alias Skillbook.{MailError, ServiceError}
  alias Skillbook.Test.{GoogleVendor, Services}

  doctest Gmail.Query

  @ann "ann@example.com"
  @bob "bob@example.com"

  defp people do
    world = Services.world()
    {GoogleVendor.account(world, @ann), GoogleVendor.account(world, @bob)}
  end

  defp world(messages \\ []), do: Services.world(gmail: %{messages: %{@ann => messages}})
  defp calls(world, method), do: Enum.count(Services.methods(world), &(&1 == method))
  defp sent(world), do: Services.judge(world, "gmail.messages", user: @ann, q: "in:sent")

  describe "a query" do
    # The values of `from`, and how they are written.
    @values [
      {"bob@co.com", ~s(from:"bob@co.com")},
      {"Bob Smith", ~s(from:"Bob Smith")},
      {~s(a" OR from:"b), ~s(from:"a OR from: b")},
      {~s("), ~s(from:"")},
      {"a\r\nb\tc\0d", ~s(from:"a b c d")},
      {"a\u00A0b\u2028c\u202Ed\u200Be", ~s(from:"a b c d e")},
      {"{a} (b) -c +d", ~s|from:"{a} (b) -c +d"|}
    ]

    test "has each value in quotes, without quotes of its own" do
      for {value, expected} <- @values do
        written = Gmail.Query.text(query(from: value))
        assert {value, written} == {value, expected}

        in_all =
          query(to: value, subject: value, text: [with: value <> " x", without: value <> " x"])

        # Outside of quotes there are only our own operators.
        outside = in_all |> Gmail.Query.text() |> String.replace(~r/"[^"]*"/, "")
        assert {value, outside} == {value, " - {to: cc:} subject:"}
      end
    end

    test "has single plain words without quotes, except for operators" do
      for {word, expected} <- [
            {"report", "report"},
            {"März2026", "März2026"},
            {"OR", ~s("OR")},
            {"AND", ~s("AND")},
            {"AROUND", ~s("AROUND")},
            {"or", "or"},
            {"a:b", ~s("a:b")},
            {"a-b", ~s("a-b")},
            {"-a", ~s("-a")},
            {"a b", ~s("a b")}
          ],
          do: assert({word, Gmail.Query.text(query(text: [with: word]))} == {word, expected})
    end

    test "has all conditions" do
      fields = [
        text: [with: "tea", without: "milk"],
        from: "bob",
        to: "ann",
        subject: "plan",
        unread: false,
        after: ~U[2026-02-01 00:00:00Z],
        before: ~U[2026-03-01 00:00:00Z]
      ]

      assert Gmail.Query.text(query(fields)) ==
               ~s(tea -milk from:"bob" {to:"ann" cc:"ann"} subject:"plan" is:read ) <>
                 "after:1769904000 before:1772323200"

      assert Gmail.Query.text(query()) == ""
    end
  end

  describe "requests" do
    test "are few: a search reads all headers in one batch" do
      world = world(for n <- 1..30, do: %{subject: "Mail #{n}", date: 1_771_000_000 + n})
      account = GoogleVendor.account(world, @ann)
      assert {:ok, %{messages: messages, more: true}} = Mail.search(account, query(limit: 25))
      assert Enum.map(messages, & &1.subject) == for(n <- 30..6//-1, do: "Mail #{n}")

      assert Enum.frequencies(Services.methods(world)) == %{
               "gmail.users.messages.list" => 1,
               "gmail.batch" => 1,
               "gmail.users.messages.get" => 25
             }

      [list, _batch, get | _] = Services.log(world)
      assert list["params"]["maxResults"] == 25
      assert get["params"]["format"] == "metadata"
    end

    test "are sent with a large mail as an upload" do
      world = world()
      account = GoogleVendor.account(world, @ann)

      file = fn size ->
        %{name: "a.bin", type: "application/octet-stream", data: :crypto.strong_rand_bytes(size)}
      end

      for {size, path} <- [{1_000, "/gmail/v1"}, {1_500_000, "/upload/gmail/v1"}] do
        attached = file.(size)
        mail = mail(to: [@bob], subject: "Size #{size}", attachments: [attached])
        assert {:ok, %{id: draft}} = Mail.draft(account, mail)
        assert {:ok, _} = Mail.draft(account, %{mail | draft: draft})
        assert {:ok, _} = Mail.send(account, %{mail | draft: draft})
        assert {:ok, %{id: id}} = Mail.send(account, mail)
        paths = for entry <- Services.log(world), do: entry["path"]
        assert Enum.uniq(Enum.map(paths, &(&1 |> String.split("/users") |> hd()))) == [path]
        Services.clear_log(world)
        assert {:ok, %{data: data}} = Mail.attachment(account, id, "1")
        assert data == attached.data
        Services.clear_log(world)
      end
    end

    test "have Google's names in telemetry" do
      world = world([%{subject: "A", attachments: [%{name: "a", type: "a/b", data: "c"}]}])
      account = GoogleVendor.account(world, @ann)
      test = self()
      id = "gmail_#{System.unique_integer()}"
      event = [:skillbook, :connection, :request]

      :telemetry.attach_many(
        id,
        [event],
        fn _, _, data, profile ->
          if data.profile == profile, do: send(test, {:method, data.method})
        end,
        account.profile
      )

      on_exit(fn -> :telemetry.detach(id) end)
      mail = mail(to: [@bob])
      {:ok, _} = Mail.search(account, query())
      {:ok, [_]} = Mail.read(account, "m1")
      {:ok, _} = Mail.attachment(account, "m1", "1")
      {:ok, %{id: draft}} = Mail.draft(account, mail)
      {:ok, _} = Mail.draft(account, %{mail | draft: draft})
      {:ok, _} = Mail.send(account, %{mail | draft: draft})
      {:ok, _} = Mail.send(account, mail)
      :ok = Mail.label(account, ["m1"], %{add: ["new"], remove: [], create: true})
      {:ok, _} = Mail.address(%{account | identity: nil})

      sent = for name <- Services.methods(world), name != "gmail.batch", do: name
      # A batch has no name of Google's.
      told = Enum.uniq(received()) -- ["POST gmail.googleapis.com"]
      assert Enum.sort(Enum.uniq(sent)) == Enum.sort(told)
    end

    defp received do
      receive do
        {:method, method} -> [method | received()]
      after
        0 -> []
      end
    end

    test "ask for an address only if the connection has none" do
      world = world()
      assert Mail.address(GoogleVendor.account(world, @ann)) == {:ok, @ann}
      assert Services.methods(world) == []
      assert Mail.address(GoogleVendor.account(world, @ann, identity: nil)) == {:ok, @ann}
      assert Services.methods(world) == ["gmail.users.getProfile"]
    end
  end

  # The faults of a send, its result, and the number of mails afterwards, which is never more than
  # one.
  describe "sending" do
    @cut [cut: 0, applied: true]
    @unclear {:error, %MailError{kind: :unclear}}

    test "is repeated only if Gmail has refused it, and the mail is looked for otherwise" do
      for {fault, result, mails} <- [
            {[], :ok, 1},
            {[status: 429, reason: "rateLimitExceeded"], :ok, 1},
            {[status: 403, reason: "userRateLimitExceeded"], :ok, 1},
            {[status: 429, reason: "rateLimitExceeded", times: 2, retry_after: 0], :ok, 1},
            # The connection ends, or Gmail fails, after the mail was accepted.
            {@cut, :ok, 1},
            {[status: 500, reason: "backendError", applied: true], :ok, 1},
            {[status: 503, reason: "backendError", applied: true], :ok, 1},
            {[body: "not json", applied: true], :ok, 1},
            # It ends before.
            {[cut: 0], :unclear, 0},
            {[status: 503, reason: "backendError"], :unclear, 0},
            {[status: 400, reason: "invalidArgument", message: "Invalid To header"], :invalid, 0},
            {[status: 403, reason: "dailyLimitExceeded"], :quota, 0}
          ] do
        world = world()
        account = GoogleVendor.account(world, @ann)
        # Others that were sent at the same time.
        {:ok, _} = Mail.send(account, mail(to: [@bob], subject: "Mine"))
        if fault != [], do: Services.fault(world, [method: "gmail.users.messages.send"] ++ fault)
        mail = mail(to: [@bob], subject: "Mine")
        answer = Mail.send(account, mail)
        found = Enum.filter(sent(world), &(&1["headers"]["x-entity-ref-id"] == [mail.message_id]))

        case result do
          :ok ->
            assert {^fault, {:ok, %{id: id, thread: thread}}} = {fault, answer}
            assert [%{"id" => ^id, "thread" => ^thread}] = found

          :unclear ->
            assert {fault, answer} == {fault, @unclear}

          kind ->
            assert {^fault, {:error, %ServiceError{kind: ^kind}}} = {fault, answer}
        end

        assert {fault, length(found)} == {fault, mails}
        assert {fault, length(sent(world))} == {fault, mails + 1}
      end
    end

    test "of a draft is looked for in the same way" do
      for {fault, mails, drafts} <- [{@cut, 1, 0}, {[cut: 0], 0, 1}] do
        world = world()
        account = GoogleVendor.account(world, @ann)
        mail = mail(to: [@bob], subject: "Plan")
        {:ok, %{id: draft}} = Mail.draft(account, mail)
        Services.fault(world, [method: "gmail.users.drafts.send"] ++ fault)
        answer = Mail.send(account, %{mail | draft: draft})
        assert {mails, match?({:ok, _}, answer)} == {mails, mails == 1}
        assert length(sent(world)) == mails
        assert length(Services.judge(world, "gmail.drafts", user: @ann)) == drafts
        assert calls(world, "gmail.users.drafts.send") == 1
      end
    end

    test "is not known to have succeeded without a scope for looking" do
      world = world()
      scopes = ["https://www.googleapis.com/auth/gmail.send"]
      token = Services.token(world, user: @ann, scopes: scopes, expires_in: 3600)["access_token"]
      account = GoogleVendor.account(world, @ann, token: token)
      assert {:ok, _} = Mail.send(account, mail(to: [@bob]))
      Services.fault(world, [method: "gmail.users.messages.send"] ++ @cut)
      assert Mail.send(account, mail(to: [@bob])) == @unclear
      assert length(sent(world)) == 2
    end

    test "keeps the time limit" do
      world = world()
      account = GoogleVendor.account(world, @ann, time: 1_500)
      Services.fault(world, method: "gmail.users.messages.send", silent: true)
      began = System.monotonic_time(:millisecond)
      assert Mail.send(account, mail(to: [@bob])) == @unclear
      assert System.monotonic_time(:millisecond) - began < 3_000
    end
  end

  describe "answers of Gmail" do
    test "without some of their parts are read" do
      world = world()
      account = GoogleVendor.account(world, @ann)

      for {answer, expected} <- [
            {~s({"id": "m1", "threadId": "m1"}), {"", nil, [], "", nil}},
            {~s({"id": "m1", "threadId": "m1", "payload": {}, "internalDate": "x"}),
             {"", nil, [], "", nil}},
            {~s({"id": "m1", "threadId": "m1", "snippet": "&lt;a&gt; &amp;lt; &#39;&quot;", ) <>
               ~s("internalDate": "1771233120000", "payload": {"headers": [) <>
               ~s({"name": "Subject", "value": "a\\r\\nBcc: eve@example.org"}, ) <>
               ~s({"name": "Bad\\r\\nCc", "value": "eve@example.org"}]}}),
             {"a Bcc: eve@example.org", nil, [], "<a> &lt; '\"", ~U[2026-02-16 09:12:00Z]}}
          ] do
        Services.fault(world, method: "gmail.users.messages.get", body: answer)
        assert {:ok, mail} = Mail.get(account, "m1")
        found = {mail.subject, mail.from, mail.cc, mail.snippet, mail.date}
        assert {answer, found} == {answer, expected}
      end
    end

    test "that are no mail are errors" do
      world = world()
      account = GoogleVendor.account(world, @ann)

      for answer <- ["", "null", "[]", "{}", "7", "not json", ~s({"id": 7}), ~s({"payload": []})],
          {method, call} <- [
            {"messages.get", fn -> Mail.get(account, "m1") end},
            {"messages.get", fn -> Mail.read(account, "m1") end},
            {"getProfile", fn -> Mail.address(%{account | identity: nil}) end}
          ] do
        Services.clear_faults(world)
        Services.fault(world, method: "gmail.users." <> method, body: answer, times: nil)
        assert {^answer, {:error, %ServiceError{kind: :bad_answer}}} = {answer, call.()}
      end
    end

    test "with a large conversation are replaced by the mail alone" do
      messages = [
        %{subject: "A", text: "one", headers: %{"Message-ID" => "<a@b>"}},
        %{subject: "A", text: "two", headers: %{"In-Reply-To" => "<a@b>"}}
      ]

      world = world(messages)
      account = GoogleVendor.account(world, @ann)
      assert {:ok, [_, _]} = Mail.read(account, "m2")
      large = "[" <> String.duplicate(" ", 65 * 1024 * 1024)
      Services.fault(world, method: "gmail.users.threads.get", body: large)
      assert {:ok, [%{id: "m2", problems: problems}]} = Mail.read(account, "m2")

      assert problems == [
               "its conversation is too large to be shown, so this is one message of it"
             ]
    end
  end
end
