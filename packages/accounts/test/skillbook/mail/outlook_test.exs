defmodule Skillbook.Mail.OutlookTest do
  use ExUnit.Case, async: true
  use Skillbook.MailConformance

  alias Skillbook.Mail
  alias Skillbook.Mail.Outlook
  alias Skillbook.{MailError, NotFoundError, ServiceError}
  alias Skillbook.Test.{MicrosoftVendor, Services}

  doctest Outlook.Query

  @ann "ann@example.com"
  @bob "bob@example.com"

  defp people do
    world = Services.world()
    {MicrosoftVendor.account(world, @ann), MicrosoftVendor.account(world, @bob)}
  end

  defp world(messages \\ []), do: Services.world(outlook: %{messages: %{@ann => messages}})
  defp ann(world, options \\ []), do: MicrosoftVendor.account(world, @ann, options)
  defp judged(world, user), do: Services.judge(world, "outlook.messages", user: user)
  defp folder(world, name), do: for(%{"folder" => ^name} = one <- judged(world, @ann), do: one)

  describe "a query" do
    # The values of `from`, and how they are written.
    @values [
      {"bob@co.com", ~s(from:"bob@co.com")},
      {~s(a" OR from:"b), ~s(from:"a OR from: b")},
      {"a\\\"b*", ~s(from:"a b")},
      {"a\r\nb\tc\0d", ~s(from:"a b c d")},
      {"a\u00A0b\u2028c\u202Ed\u200Be", ~s(from:"a b c d e")},
      {"(a) NOT b", ~s|from:"(a) NOT b"|}
    ]

    test "has each value in quotes, without quotes of its own" do
      for {value, expected} <- @values do
        {["$search": search], _keep} = Outlook.Query.parameters(query(from: value), [])
        assert {value, search} == {value, "\"" <> String.replace(expected, "\"", "\\\"") <> "\""}
      end
    end

    test "is a filter without words, and a search with them" do
      times = [after: ~U[2026-02-01 10:00:00Z], before: ~U[2026-03-01 10:00:00Z]]

      filter =
        "receivedDateTime ge 2026-02-01T10:00:00Z and receivedDateTime lt 2026-03-01T10:00:00Z"

      always = "receivedDateTime ge 1900-01-01T00:00:00Z"
      days = "received>=2026-01-31 AND received<=2026-03-02"

      for {fields, marks, expected} <- [
            {[], [], {:filter, always}},
            {times, [], {:filter, filter}},
            {[unread: true], [], {:filter, always <> " and isRead eq false"}},
            {[unread: false], [], {:filter, always <> " and isRead eq true"}},
            {[], [:starred], {:filter, always <> " and flag/flagStatus eq 'flagged'"}},
            {[], [:important], {:filter, always <> " and importance eq 'high'"}},
            {[], [{:category, "Ann's"}],
             {:filter, always <> " and categories/any(c:c eq 'Ann''s')"}},
            {[text: [with: "tea", without: "milk"]] ++ times, [:unread],
             {:search, ~s("tea" AND NOT "milk" AND ) <> days}},
            {[to: "ann", subject: "plan"], [],
             {:search, ~s|(to:"ann" OR cc:"ann") AND subject:"plan"|}},
            # Nothing has no letters, and everything is without none.
            {[text: [with: "!?"]], [], :none},
            {[from: "\"\""], [], :none},
            {[text: [with: "tea", without: "!?"]], [], {:search, ~s("tea")}}
          ] do
        found =
          case Outlook.Query.parameters(query(fields), marks) do
            {["$filter": filter, "$orderby": "receivedDateTime desc"], _keep} ->
              {:filter, filter}

            {["$search": search], _keep} ->
              {:search, search |> String.slice(1..-2//1) |> String.replace("\\", "")}

            :none ->
              :none
          end

        assert {fields, marks, found} == {fields, marks, expected}
      end
    end

    test "with words checks the other conditions itself, and says whether there are more" do
      day = 1_771_200_000

      messages =
        for n <- 1..30,
            do: %{
              subject: "Tea #{n}",
              date: day + n,
              read: rem(n, 2) == 0,
              categories: ["C#{rem(n, 3)}"]
            }

      account = ann(world(messages))
      tea = [text: [with: "tea"]]

      for {fields, numbers, more} <- [
            {[limit: 3], [30, 29, 28], true},
            {[unread: true, limit: 3], [29, 27, 25], true},
            {[unread: false, limit: 100], Enum.to_list(30..2//-2), false},
            {[label: "c2", limit: 10], [29, 26, 23, 20, 17, 14, 11, 8, 5, 2], false},
            {[after: DateTime.from_unix!(day + 28), limit: 10], [30, 29, 28], false},
            {[before: DateTime.from_unix!(day + 3), limit: 2], [2, 1], false},
            {[before: DateTime.from_unix!(day + 3), limit: 1], [2], true}
          ],
          words <- [tea, []] do
        assert {:ok, %{messages: found, more: ^more}} =
                 Mail.search(account, query(words ++ fields))

        assert {fields, Enum.map(found, & &1.subject)} ==
                 {fields, for(n <- numbers, do: "Tea #{n}")}
      end
    end

    test "of the whole mailbox leaves spam and trash out" do
      messages =
        for name <- ~w(inbox deleteditems junkemail archive), do: %{subject: name, folder: name}

      account = ann(world(messages))

      subjects = fn fields ->
        account |> found(query(fields)) |> Enum.map(& &1.subject) |> Enum.sort()
      end

      assert subjects.([]) == ["archive", "inbox"]
      assert subjects.(label: "trash") == ["deleteditems"]
      assert subjects.(label: "spam") == ["junkemail"]
    end
  end

  describe "folders and categories" do
    test "are labels: moves, marks and categories" do
      seed = %{folders: %{@ann => ["Projects"]}, messages: %{@ann => [%{subject: "Tea"}]}}
      world = Services.world(outlook: seed)
      account = ann(world)
      [%{id: id}] = found(account, query())

      change = fn add, remove ->
        Mail.label(account, [id], %{add: add, remove: remove, create: false})
      end

      place = fn -> world |> judged(@ann) |> hd() |> Map.fetch!("folder") end

      for {add, remove, folder, labels} <- [
            {["projects"], [], "Projects", ["Projects"]},
            {[], ["Projects"], "Inbox", ["inbox"]},
            {[], ["projects"], "Inbox", ["inbox"]},
            {[], ["inbox"], "Archive", ["archive"]},
            {[], ["inbox"], "Archive", ["archive"]},
            {["spam"], [], "Junk Email", ["spam"]},
            {[], ["spam"], "Inbox", ["inbox"]},
            {["trash", "starred"], [], "Deleted Items", ["trash", "starred"]},
            {[], ["trash", "starred"], "Inbox", ["inbox"]}
          ] do
        assert :ok = change.(add, remove)
        assert {:ok, mail} = Mail.get(account, id)
        assert {add, remove, place.(), mail.labels} == {add, remove, folder, labels}
      end

      for {label, message} <- [
            {"sent", "only mails that you wrote are in sent; choose another label"},
            {"Deleted Items", ~s("Deleted Items" is the folder of deleted mails; call it trash)}
          ] do
        assert {:error, %ServiceError{kind: :invalid, hint: ^message}} = change.([label], [])
      end

      assert {:error, %NotFoundError{kind: "label", available: available}} = change.(["x"], [])

      assert available == [
               "Archive",
               "Deleted Items",
               "Drafts",
               "Inbox",
               "Junk Email",
               "Projects",
               "Sent Items"
             ]
    end
  end

  describe "requests" do
    test "are few, and ask for ids that stay" do
      world = world(for n <- 1..30, do: %{subject: "Mail #{n}", date: 1_771_000_000 + n})
      account = ann(world)
      assert {:ok, %{messages: messages, more: true}} = Mail.search(account, query(limit: 25))
      assert length(messages) == 25

      assert Enum.frequencies(Services.methods(world)) == %{
               "POST /$batch" => 1,
               "GET /me/mailFolders/{id}" => 6,
               "GET /me/messages" => 1
             }
    end

    test "follow pages on the same server only" do
      world = world(for n <- 1..3, do: %{subject: "Mail #{n}"})
      account = %{ann(world) | url: nil}
      # Without `url`, all requests would go to Microsoft.
      link = "https://graph.microsoft.com.example.org/v1.0/me/messages"
      request = [method: :get, url: link]

      assert {:error, %ServiceError{kind: :invalid, hint: "it names another server"}} =
               Skillbook.Connections.Client.request(account, request)
    end

    test "are not sent for mails that are too large" do
      account = ann(world())

      file = %{
        name: "a.bin",
        type: "application/octet-stream",
        data: :crypto.strong_rand_bytes(2_000_000)
      }

      assert Mail.max_attachments(account) == 2_000_000
      assert {:ok, %{id: "AAk" <> _}} = Mail.send(account, mail(to: [@bob], attachments: [file]))

      assert {:error, %MailError{kind: :too_large, limit: 3_000_000}} =
               Mail.send(account, mail(to: [@bob], attachments: [file, file]))
    end

    test "need the address of the connection" do
      world = world()
      assert Mail.address(ann(world)) == {:ok, @ann}

      assert {:error, %ServiceError{kind: :invalid, hint: hint}} =
               Mail.address(ann(world, identity: nil))

      assert hint == "Microsoft did not name the account's address; write it in place of me"
    end
  end

  # The faults of a send, its result, and the number of mails afterwards, which is never more than
  # one.
  describe "sending" do
    @cut [cut: 0, applied: true]
    @unclear {:error, %MailError{kind: :unclear}}

    test "is repeated only if Microsoft has refused it, and the mail is looked for otherwise" do
      for {fault, result, mails} <- [
            {[], :ok, 1},
            {[status: 429, reason: "TooManyRequests", retry_after: 0], :ok, 1},
            {[status: 429, reason: "ApplicationThrottled", times: 2, retry_after: 0], :ok, 1},
            {@cut, :ok, 1},
            {[status: 500, reason: "ErrorInternalServerError", applied: true], :ok, 1},
            {[status: 503, applied: true], :ok, 1},
            {[body: "not json", applied: true], :ok, 1},
            {[cut: 0], :unclear, 0},
            {[status: 503], :unclear, 0},
            {[status: 403, reason: "ErrorSendAsDenied"], :forbidden, 0},
            {[status: 507, reason: "ErrorQuotaExceeded"], :quota, 0}
          ] do
        world = world()
        account = ann(world)
        {:ok, _} = Mail.send(account, mail(to: [@bob], subject: "Mine"))
        if fault != [], do: Services.fault(world, [method: "POST /me/sendMail"] ++ fault)
        mail = mail(to: [@bob], subject: "Mine")
        answer = Mail.send(account, mail)
        sent = folder(world, "Sent Items")

        found =
          for one <- sent, one["headers"]["message-id"] == ["<#{mail.message_id}>"], do: one["id"]

        case result do
          :ok -> assert {^fault, {:ok, %{id: id}}, [id]} = {fault, answer, found}
          :unclear -> assert {fault, answer} == {fault, @unclear}
          kind -> assert {^fault, {:error, %ServiceError{kind: ^kind}}} = {fault, answer}
        end

        assert {fault, length(sent), length(found)} == {fault, mails + 1, mails}
      end
    end

    test "needs no other scope, and then has no id" do
      world = world()
      token = Services.token(world, user: @ann, scopes: ["Mail.Send"])["access_token"]
      account = ann(world, token: token)
      assert Mail.send(account, mail(to: [@bob])) == {:ok, %{id: nil, thread: nil}}
      Services.fault(world, [method: "POST /me/sendMail"] ++ @cut)
      assert Mail.send(account, mail(to: [@bob])) == @unclear
      assert length(folder(world, "Sent Items")) == 2
    end

    test "takes the draft's place only after it" do
      world = world()
      account = ann(world)
      mail = mail(to: [@bob], subject: "Plan")
      {:ok, %{id: draft}} = Mail.draft(account, mail)
      Services.fault(world, method: "POST /me/sendMail", status: 503)
      assert Mail.send(account, %{mail | draft: draft}) == @unclear
      assert [_] = folder(world, "Drafts")
      # A mail that is no draft stays.
      {:ok, %{id: sent}} = Mail.send(account, mail)
      assert {:error, %NotFoundError{kind: "draft"}} = Mail.send(account, %{mail | draft: sent})

      Services.fault(world,
        method: "POST /me/messages/{id}/permanentDelete",
        status: 400,
        times: nil
      )

      assert {:ok, %{id: _}} = Mail.send(account, %{mail | draft: draft})
      assert [_, _] = folder(world, "Sent Items")
    end
  end

  describe "answers of Microsoft" do
    test "without some of their parts are read" do
      world = world()
      account = ann(world)

      for {answer, expected} <- [
            {~s({"id": "AAkAL-1="}), {"", nil, [], "", nil, nil}},
            {~s({"id": "AAkAL-1=", "subject": null, "from": null, "receivedDateTime": "x"}),
             {"", nil, [], "", nil, nil}},
            {~s({"id": "AAkAL-1=", "bodyPreview": "Hi", "internetMessageId": "<x\\r\\ny@z>", ) <>
               ~s("from": {"emailAddress": {"name": "a@b.c", "address": "a@b.c"}}, ) <>
               ~s("ccRecipients": [{"emailAddress": {"name": "No address"}}], ) <>
               ~s("receivedDateTime": "2026-02-16T09:12:00Z"}),
             {"", %{name: nil, address: "a@b.c"}, [], "Hi", ~U[2026-02-16 09:12:00Z], "x y@z"}}
          ] do
        Services.fault(world, method: "GET /me/messages/{id}", body: answer)
        assert {:ok, mail} = Mail.get(account, "AAkAL-1=")
        found = {mail.subject, mail.from, mail.cc, mail.snippet, mail.date, mail.message_id}
        assert {answer, found} == {answer, expected}
      end
    end

    test "that are no mail are errors" do
      world = world()
      account = ann(world)

      for answer <- [
            "",
            "null",
            "[]",
            "{}",
            "7",
            "not json",
            ~s({"id": 7}),
            ~s({"id": "a", "subject": 7}),
            ~s({"id": "a", "conversationId": 7}),
            ~s({"id": "a", "categories": "x"})
          ],
          call <- [&Mail.get(&1, "AAkAL-1="), &Mail.read(&1, "AAkAL-1=")] do
        Services.clear_faults(world)
        Services.fault(world, method: "GET /me/messages/{id}", body: answer, times: nil)
        # Only the conversation's id counts when it is looked for.
        result = call.(account)
        assert {^answer, {:error, %ServiceError{kind: :bad_answer}}} = {answer, result}
      end
    end

    test "with a large conversation are replaced by the mail alone" do
      messages = [
        %{subject: "A", text: "one", headers: %{"Message-ID" => "<a@b>"}, date: 1},
        %{subject: "A", text: "two", headers: %{"In-Reply-To" => "<a@b>"}, date: 2}
      ]

      world = world(messages)
      account = ann(world)
      [%{id: id}, _] = found(account, query())
      assert {:ok, [_, _]} = Mail.read(account, id)
      large = "[" <> String.duplicate(" ", 65 * 1024 * 1024)
      Services.fault(world, method: "GET /me/messages", body: large)
      assert {:ok, [%{id: ^id, problems: problems}]} = Mail.read(account, id)

      assert problems == [
               "its conversation is too large to be shown, so this is one message of it"
             ]
    end
  end
end
