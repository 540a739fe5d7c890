defmodule Skillbook.Mail.IMAPTest do
  use ExUnit.Case, async: true
  use Skillbook.MailConformance

  alias Skillbook.Mail.IMAP
  alias Skillbook.Mail.IMAP.{Folders, Id, Session, UTF7}
  alias Skillbook.{MailError, NotFoundError, ServiceError}
  alias Skillbook.Test.{MailScript, MailServer}

  doctest Id
  doctest UTF7

  # Dovecot and Postfix.
  defp people, do: {account("ann"), account("bob")}

  defp account(name, options \\ []), do: MailServer.account(MailServer.address(name), options)

  # An account whose servers play scripts.
  defp scripted(imap, options \\ []) do
    options = [host: "localhost", port: MailScript.start(imap)] ++ options
    MailServer.account("ann@example.org", options)
  end

  defp within(account, milliseconds),
    do: %{account | deadline: System.monotonic_time(:millisecond) + milliseconds}

  describe "signing in" do
    test "works with a password and with an access token, encrypted in both ways" do
      address = MailServer.address("ann")
      settings = MailServer.settings()

      starttls = [
        port: settings.imap,
        tls: :starttls,
        smtp: [port: settings.smtp, tls: :starttls]
      ]

      token = [auth: :xoauth2, password: fn -> MailServer.token(address) end]

      for options <- [[], starttls, token, starttls ++ token] do
        account = MailServer.account(address, options)
        assert {:ok, _} = IMAP.send(account, mail(to: [address], subject: "To myself"))
        assert arrived(account, query(subject: "To myself", label: "inbox"))
      end
    end

    test "with the wrong encryption names the right one within two seconds" do
      settings = MailServer.settings()
      late = "the port begins without encryption; write tls: :starttls"
      early = "the port is encrypted from the start; write tls: :implicit"

      for {options, hint} <- [
            {[port: settings.imap], late},
            {[port: settings.imaps, tls: :starttls], early},
            {[smtp: [port: settings.smtp]], late},
            {[smtp: [port: settings.smtps, tls: :starttls]], early}
          ] do
        account = account("ann", options)
        mail = mail(to: [MailServer.address("bob")])
        {time, {:error, error}} = :timer.tc(fn -> IMAP.send(account, mail) end)

        assert {error.kind, error.hint} ==
                 {:connection, hint <> "; the account's settings have to be mended"}

        assert {options, time < 2_500_000} == {options, true}
      end
    end

    test "asks the server that sends whether it takes addresses outside ASCII" do
      # Postfix does, the script does not.
      assert IMAP.utf8?(account("ann")) == {:ok, true}
      place = [host: "localhost", port: MailScript.start([[:tls | MailScript.submission()]])]
      assert IMAP.utf8?(account("ann", smtp: place)) == {:ok, false}
    end

    test "fails with a wrong password or token, for each protocol, without showing it" do
      good = MailServer.settings().password
      password = fn -> "wrong-" <> good end
      hint = "check :username and :password of this account in the book's :connections"

      for options <- [[], [auth: :xoauth2]] do
        account = account("ann", [password: password] ++ options)

        assert {:error, %ServiceError{kind: :unauthorized} = error} =
                 IMAP.search(account, query())

        assert error.hint == hint
        assert error.service == "localhost"
        refute inspect(error) =~ good
      end

      # The password of the first is right, so that only SMTP refuses it.

      script = [
        [:tls] ++ Enum.take(MailScript.submission(), 4) ++ [{:send, "535 no: #{good}\r\n"}]
      ]

      account = account("ann", smtp: [host: "localhost", port: MailScript.start(script)])

      assert {:error, %ServiceError{kind: :unauthorized} = error} =
               IMAP.send(account, mail(to: ["bob@example.org"]))

      assert error.reason == "535 no: [secret]"
    end

    test "is refused without encryption" do
      none = "the server does not offer STARTTLS, so the connection would not be encrypted"
      mended = "#{none}; the account's settings have to be mended"

      for script <- [
            [{:send, "* OK hello\r\n"}, {:read, "s STARTTLS"}, {:send, "s NO not here\r\n"}],
            [{:send, "* OK hello\r\n"}, {:read, "s STARTTLS"}, {:send, "s BAD what\r\n"}]
          ] do
        account = scripted([script], tls: :starttls)

        assert {:error, %ServiceError{kind: :connection, hint: ^mended}} =
                 IMAP.search(account, query())

        refute_received {:unexpected, _}
      end

      script = [
        {:send, "220 ready\r\n"},
        {:read, "EHLO"},
        {:send, "250-localhost\r\n250 SIZE\r\n"}
      ]

      port = MailScript.start([script])
      account = account("ann", smtp: [port: port, tls: :starttls])

      assert {:error, %ServiceError{kind: :connection, hint: ^mended}} =
               IMAP.send(account, mail(to: ["bob@example.org"]))
    end

    test "takes no answer that was sent before the encryption" do
      # The injected lines would be the answers to the first commands after it.
      imap = [
        {:send, "* OK hello\r\n"},
        {:read, "s STARTTLS"},
        {:send, "s OK go\r\n* CAPABILITY IMAP4rev1\r\ns1 OK done\r\n"},
        :tls
      ]

      account = scripted([imap], tls: :starttls)

      assert {:error, %ServiceError{kind: :connection, hint: "TLS: " <> _}} =
               IMAP.search(account, query())

      smtp = [
        {:send, "220 ready\r\n"},
        {:read, "EHLO"},
        {:send, "250-localhost\r\n250 STARTTLS\r\n"},
        {:read, "STARTTLS"},
        {:send, "220 go\r\n250-localhost\r\n250 AUTH PLAIN\r\n"},
        :tls
      ]

      account = account("ann", smtp: [port: MailScript.start([smtp]), tls: :starttls])

      assert {:error, %ServiceError{kind: :connection, hint: "TLS: " <> _}} =
               IMAP.send(account, mail(to: ["bob@example.org"]))
    end

    test "is refused by a server with another certificate" do
      for {options, text} <- [
            {[cacertfile: nil], "TLS: the authority of its certificate is not trusted"},
            {[host: "127.0.0.1"], "TLS: its certificate is for another host"},
            {[cacertfile: "/nowhere.pem"],
             "expected certificates in PEM in the file /nowhere.pem: I/O error: No such file " <>
               "or directory (os error 2)"}
          ] do
        hint = "#{text}; the account's settings have to be mended"
        account = account("ann", options)

        assert {:error, %ServiceError{kind: :connection, hint: ^hint}} =
                 IMAP.search(account, query())
      end
    end

    test "is refused as somebody whom the server chooses" do
      account = scripted([[:tls, {:send, "* PREAUTH welcome bob\r\n"}, :silent]])

      assert {:error, %ServiceError{kind: :unauthorized, hint: hint}} =
               IMAP.search(account, query())

      assert hint =~ "the server signs in by itself, so the account's name is not used"
    end
  end

  describe "a server that" do
    # Each step of a search, as a beginning of its script.
    defp search_steps do
      [:tls, {:send, "* OK hello\r\n"}] ++
        MailScript.signed_in() ++
        [
          {:read, "s4 LIST"},
          {:send, "* LIST () \"/\" INBOX\r\ns4 OK done\r\n"},
          {:read, "s5 EXAMINE"},
          {:send, "* 1 EXISTS\r\ns5 OK done\r\n"},
          {:read, "s6 UID SEARCH"},
          {:send, "* SEARCH 7\r\ns6 OK done\r\n"},
          {:read, "s7 UID FETCH"},
          {:send, fetched(7) <> "s7 OK done\r\n"},
          {:read, "s8 EXAMINE"},
          {:send, "* 1 EXISTS\r\ns8 OK done\r\n"},
          {:read, "s9 UID FETCH"},
          {:send, fetched(7) <> "s9 OK done\r\n"},
          {:read, "s10 EXAMINE"},
          {:send, "* 1 EXISTS\r\ns10 OK done\r\n"},
          {:read, "s11 UID FETCH"},
          {:send, fetched(7) <> "s11 OK done\r\n"}
        ]
    end

    defp fetched(uid) do
      headers = "Message-ID: <a@b>\r\nSubject: Hi\r\n\r\n"

      "* 1 FETCH (UID #{uid} FLAGS () INTERNALDATE \"17-Feb-2026 12:00:00 +0000\" " <>
        "RFC822.SIZE 9 BODY[HEADER.FIELDS (MESSAGE-ID)] " <>
        "{#{byte_size(headers)}}\r\n#{headers})\r\n"
    end

    defp step_ends, do: for({{:send, _}, place} <- Enum.with_index(search_steps()), do: place)

    test "plays along is read" do
      assert {:ok, %{messages: [%{subject: "Hi"}]}} =
               IMAP.search(scripted([search_steps()]), query())
    end

    test "hangs up at any step is an error" do
      for place <- [0 | step_ends()] do
        account = scripted([Enum.take(search_steps(), place)])

        assert {^place, {:error, %ServiceError{kind: :connection}}} =
                 {place, IMAP.search(account, query())}
      end
    end

    test "is silent at any step keeps no caller beyond its time" do
      for place <- [0 | step_ends()] do
        account = scripted([Enum.take(search_steps(), place) ++ [:silent]]) |> within(300)
        {time, result} = :timer.tc(fn -> IMAP.search(account, query()) end)
        assert {^place, {:error, %ServiceError{kind: :timeout}}} = {place, result}
        assert {place, time} < {place, 5_000_000}
      end
    end

    test "refuses connections or a command is quoted" do
      account = scripted([[:tls, {:send, "* BYE \"too\" many\r\n"}]])
      assert {:error, %ServiceError{kind: :connection} = error} = IMAP.search(account, query())
      assert error.reason == "'too' many"
      assert error.hint == "the server refuses connections; try again later"

      steps = Enum.take(search_steps(), 9) ++ [{:send, "s4 NO [LIMIT] not \e[2J now\r\n"}]

      assert {:error, %ServiceError{kind: :invalid} = error} =
               IMAP.search(scripted([steps]), query())

      assert error.reason == "not [2J now"
    end

    test "sends more than is allowed, or nonsense, is an error" do
      list = Enum.take(search_steps(), 9)
      megabyte = String.duplicate("a", 1024 * 1024)

      for {step, kind} <- [
            {{:endless, megabyte}, :too_large},
            {{:endless, String.duplicate("* LIST () \"/\" a\r\n", 10_000)}, :too_large},
            {{:endless, "\r\n"}, :bad_answer},
            {{:send, "* LIST () \"/\" {4294967295}\r\n"}, :connection},
            {{:send, "* LIST () \"/\" {99999999999999999999}\r\n\r\n"}, :bad_answer},
            {{:send, "* " <> String.duplicate("(", 100_000) <> "\r\n"}, :bad_answer},
            {{:send, "* 1 FETCH (BODYSTRUCTURE " <> String.duplicate("(", 100_000) <> "\r\n"},
             :bad_answer},
            {{:send, "* THREAD " <> String.duplicate("(", 100_000) <> "\r\n"}, :bad_answer},
            {{:send, "* LIST (\\NoSelect \"/\"\r\n"}, :bad_answer},
            {{:send, "\0\xff\xfe\r\n"}, :bad_answer},
            {{:send, "+ go on\r\n"}, :bad_answer},
            {{:send, "* BYE enough\r\n"}, :connection},
            {{:send, Enum.map_join(1..2_001, &"* LIST () \"/\" f#{&1}\r\n") <> "s4 OK done\r\n"},
             :too_large}
          ] do
        result = IMAP.search(scripted([list ++ [step]]), query())
        assert {^step, {:error, %ServiceError{kind: ^kind}}} = {step, result}
      end
    end
  end

  describe "a mail that" do
    # A mailbox on the real server, and an SMTP server that plays a script.
    defp submitting(steps) do
      port = MailScript.start([[:tls] ++ MailScript.submission() ++ steps])
      account("ann", smtp: [host: "localhost", port: port])
    end

    @consent [{:read, "DATA"}, {:send, "354 go\r\n"}, :data]

    test "the server takes is sent once, with its lines intact" do
      account = submitting(@consent ++ [{:send, "250 taken\r\n"}, {:read, "QUIT"}])

      assert {:ok, %{id: id}} =
               IMAP.send(account, mail(to: ["bob@example.org"], text: "a\n.\n..b"))

      assert {:ok, %{labels: ["sent"]}} = IMAP.get(account, id)
      assert_receive {:data, data}
      assert String.ends_with?(data, "\r\n.\r\n")
      refute data =~ ~r/[^\r]\n/
    end

    test "was handed over before the connection was lost is unclear, and not sent again" do
      for steps <- [@consent, @consent ++ [:silent], @consent ++ [{:send, "nonsense\r\n"}]] do
        account = submitting(steps) |> within(1_500)
        mail = mail(to: ["bob@example.org"])
        assert {:error, %MailError{kind: :unclear}} = IMAP.send(account, mail)
        assert_receive {:data, _}

        assert {:ok, %{messages: []}} =
                 account |> within(5_000) |> IMAP.search(query(label: "sent"))
      end
    end

    test "was handed over and is among the sent ones was sent" do
      account = submitting(@consent)
      mail = mail(to: ["bob@example.org"])
      copy = "Message-ID: <#{mail.message_id}>\r\nSubject: Hello\r\n\r\nHello!\r\n"

      {:ok, _} =
        Session.run(account, "imap.test", fn session ->
          sent = session |> Folders.list() |> Folders.find(:sent)
          Session.call(session, {:append, sent.raw, ["\\Seen"], copy})
        end)

      assert {:ok, %{id: id}} = IMAP.send(account, mail)
      assert {:ok, %{messages: [%{id: ^id}]}} = IMAP.search(account, query(label: "sent"))
    end

    test "is refused at any step was not sent" do
      steps = MailScript.submission() ++ @consent

      account = fn steps ->
        account("ann", smtp: [host: "localhost", port: MailScript.start([[:tls | steps]])])
      end

      for {place, kind} <- [
            {0, :connection},
            {2, :connection},
            {4, :unauthorized},
            {6, :invalid},
            {8, :invalid},
            {10, :invalid},
            {12, :invalid}
          ] do
        account = account.(Enum.take(steps, place) ++ [{:send, "554 5.7.1 no \"thanks\"\r\n"}])
        result = IMAP.send(account, mail(to: ["bob@example.org"]))
        assert {^place, {:error, %ServiceError{kind: ^kind}}} = {place, result}
      end
    end

    test "has a recipient who is refused goes to nobody" do
      {ann, bob} = people()
      {:ok, to} = IMAP.address(bob)
      mail = mail(to: [to, "blocked@example.org"])
      assert {:error, %ServiceError{kind: :invalid} = error} = IMAP.send(ann, mail)
      assert error.hint == "it refused the recipient blocked@example.org"

      assert error.reason ==
               "554 5.7.1 <blocked@example.org>: Recipient address rejected: no such mailbox"

      assert {:ok, %{messages: []}} = IMAP.search(ann, query())
      assert {:ok, %{messages: []}} = IMAP.search(bob, query())
    end

    test "has addresses or line ends that could add a command is refused" do
      account = account("ann")

      for to <- [
            "bob@example.org>\r\nRCPT TO:<eve@example.org",
            "bob",
            "a b@example.org",
            "<>",
            ""
          ] do
        assert {:error, _} = IMAP.send(account, mail(to: [to]))
      end

      assert {:ok, %{messages: []}} = IMAP.search(account, query())

      hint = "the lines of a mail must end with CRLF"

      for raw <- ["a\n.\nMAIL FROM:<x@y>\n", "a\r.\r", "a\r\n.\n"] do
        assert {:error, %ServiceError{kind: :invalid, hint: ^hint}} =
                 Session.run(account, "imap.test", fn session ->
                   Session.submit(session, "a@example.org", ["b@example.org"], raw)
                 end)
      end
    end
  end

  test "the folder of deleted mails is a label by its own name only, so that deleting can ask" do
    session = %{account: account("ann")}
    inbox = %{raw: "INBOX", name: "INBOX", role: :inbox}
    bin = %{raw: "INBOX.Bin", name: "INBOX.Bin", role: :trash}
    add = &%{add: [&1], remove: [], create: false}
    change = &Skillbook.Mail.IMAP.Labels.change(session, [inbox, bin], [], add.(&1))
    assert change.("trash") == :ok

    for label <- ["INBOX.Bin", "inbox.bin"] do
      assert {Skillbook.Mail.IMAP.Session, error} = catch_throw(change.(label))

      assert Exception.message(error) =~
               ~s("INBOX.Bin" is the folder of deleted mails; call it trash)
    end
  end

  describe "an id" do
    test "names the same mail after it was moved by another program" do
      {ann, bob} = people()
      {_, mail} = deliver(ann, bob, subject: "Moved")

      for label <- ["trash", "spam", "inbox"] do
        :ok = IMAP.label(bob, [mail.id], %{add: [label], remove: [], create: false})
        assert {:ok, %{subject: "Moved", labels: [^label | _]}} = IMAP.get(bob, mail.id)
        assert {:ok, [%{subject: "Moved"}]} = IMAP.read(bob, mail.id)
      end
    end

    test "of another form, day, size or digest is none" do
      {ann, bob} = people()
      {_, mail} = deliver(ann, bob, [])
      [day, size, digest] = String.split(mail.id, "-")

      for id <- [
            "#{day}-#{size}",
            "20250101-#{size}-#{digest}",
            "20259999-#{size}-#{digest}",
            "#{day}-#{String.to_integer(size) + 1}-#{digest}",
            "#{day}-#{size}-#{String.reverse(digest)}",
            "#{day}-0-#{digest}",
            "#{day}-4294967296-#{digest}",
            "#{day}-#{size}-#{digest} "
          ],
          do: assert({:error, %NotFoundError{kind: "mail", id: ^id}} = IMAP.get(bob, id))
    end

    test "is another one for another mail with the same Message-ID" do
      {ann, bob} = people()
      first = mail(to: [address(bob)], subject: "True")
      {:ok, _} = IMAP.send(ann, first)
      true_one = arrived(bob, query(subject: "True"))
      {:ok, _} = IMAP.send(ann, %{first | subject: "Forged"})
      forged = arrived(bob, query(subject: "Forged"))
      assert forged.message_id == true_one.message_id
      assert {:ok, %{subject: "True"}} = IMAP.get(bob, true_one.id)
      assert {:ok, %{subject: "Forged"}} = IMAP.get(bob, forged.id)
    end
  end

  test "any text is a label: missing, added, found and removed" do
    {ann, bob} = people()
    {_, mail} = deliver(ann, bob, [])

    change = fn changes ->
      IMAP.label(bob, [mail.id], Map.merge(%{add: [], remove: []}, changes))
    end

    for {label, shown} <- [
          {"Rechnungen März", "Rechnungen_März"},
          {"100% (draft) *new*", "100%_(draft)_*new*"},
          {~s({3} "quoted" \\Seen [x]), ~s({3}_"quoted"_\\Seen_[x])},
          {"a\r\nb LOGOUT", "a\r\nb_LOGOUT"},
          {"R&D &- &AOk-", "R&D_&-_&AOk-"},
          {"旅行 👋", "旅行_👋"},
          {"]", "]"},
          {"-", "-"}
        ] do
      assert {:error, %NotFoundError{kind: "label", id: ^label}} =
               IMAP.search(bob, query(label: label))

      assert {:error, %NotFoundError{kind: "label", id: ^label}} =
               change.(%{add: [label], create: false})

      assert {label, :ok} == {label, change.(%{add: [label], create: true})}
      assert {:ok, %{messages: [found]}} = IMAP.search(bob, query(label: label))
      assert {label, found.labels} == {label, ["inbox", shown]}
      assert :ok = change.(%{remove: [label], create: false})
      assert {:ok, %{messages: []}} = IMAP.search(bob, query(label: label))
    end
  end

  test "names of folders survive their encoding" do
    characters = ~c"aZ09 &-+,/~\"(){%*]" ++ ~c"äß„€旅\u{1F44B}\u0301\u0000\r\n"

    for _ <- 1..500 do
      text = for(_ <- 1..:rand.uniform(12), do: Enum.random(characters)) |> List.to_string()
      assert text |> UTF7.encode() |> UTF7.decode() == text
      keyword = UTF7.encode(text, &(&1 not in ~c|() {%*"\\]|))
      assert keyword =~ ~r/\A[!#$&'+-Z^-z|}~\[]+\z/
      assert UTF7.decode(keyword) == text
    end

    for raw <- ["&", "&-&", "&AOk", "&!!!-", "&2D0-", "ä", "\xff", "a\0b", "&AOk-&AOk-x"],
        do: assert(String.valid?(UTF7.decode(raw)))
  end

  test "folders with names in any language are labels" do
    account = account("ann")
    {:ok, _} = IMAP.send(account, mail(to: [address(account)], subject: "Tea"))
    mail = arrived(account, query(label: "inbox"))
    name = "Entwürfe & „Rest“"

    {:ok, :ok} =
      Session.run(account, "imap.test", &Session.call(&1, {:create, UTF7.encode(name)}))

    :ok = IMAP.label(account, [mail.id], %{add: [name], remove: [], create: false})

    assert {:ok, %{messages: [%{labels: [^name | _]}]}} =
             IMAP.search(account, query(label: String.upcase(name)))

    :ok = IMAP.label(account, [mail.id], %{add: [], remove: [name], create: false})
    assert {:ok, %{labels: ["inbox" | _]}} = IMAP.get(account, mail.id)
  end

  test "a mail of 30 MB is read whole, and its attachment too" do
    account = account("ann") |> within(60_000)
    data = :crypto.strong_rand_bytes(22_000_000)
    file = %{name: "large.bin", type: "application/octet-stream", data: data}
    {:ok, sent} = IMAP.draft(account, mail(to: ["bob@example.org"], attachments: [file]))

    assert {:ok, %{size: size}} =
             Session.run(account, "imap.test", fn session ->
               drafts = session |> Folders.list() |> Folders.find(:drafts)
               Session.call(session, {:select, drafts.raw, true})
               [message] = Session.call(session, {:fetch, [1], [], nil})
               message
             end)

    assert size > 30_000_000

    assert {:ok, [%{attachments: [%{part: part, size: 22_000_000}]}]} =
             IMAP.read(account, sent.id)

    assert {:ok, ^file} = IMAP.attachment(account, sent.id, part)
  end

  test "folders below the inbox are made there" do
    steps =
      Enum.take(search_steps(), 9) ++
        [
          {:send, "* LIST () \".\" INBOX\r\n* LIST () \".\" INBOX.Notes\r\ns4 OK done\r\n"},
          {:read, "s5 CREATE INBOX.Drafts"},
          {:send, "s5 NO enough\r\n"}
        ]

    assert {:error, %ServiceError{reason: "enough"}} = IMAP.draft(scripted([steps]), mail([]))
  end

  test "the words of all services are labels without their folders, too" do
    steps = Enum.take(search_steps(), 11)

    for label <- ~w(sent drafts spam trash) do
      assert IMAP.search(scripted([steps]), query(label: label)) ==
               {:ok, %{messages: [], more: false}}
    end
  end

  test "labels of the user's own mails can be neither added nor removed" do
    {ann, bob} = people()
    {_, mail} = deliver(ann, bob, [])

    for word <- ~w(sent drafts), {add, remove} <- [{[word], []}, {[], [word]}] do
      changes = %{add: add, remove: remove, create: true}
      assert {:error, %ServiceError{kind: :invalid} = error} = IMAP.label(bob, [mail.id], changes)
      assert error.hint == "only mails that you wrote are in #{word}; choose another label"
    end
  end

  test "a conversation of many mails has the latest and the one that was asked for" do
    account = account("ann") |> within(60_000)
    root = mail(to: ["bob@example.org"]).message_id

    {:ok, _} =
      Session.run(account, "imap.test", fn session ->
        for number <- 1..120 do
          text = if number == 5, do: String.duplicate("xylophone\r\n", 20_000), else: "#{number}"

          raw =
            "Message-ID: <#{number}.#{root}>\r\nReferences: <#{root}>\r\n" <>
              "Subject: #{number}\r\n\r\n#{text}\r\n"

          Session.call(session, {:append, "INBOX", [], raw})
        end
      end)

    assert {:ok, %{messages: [first]}} =
             IMAP.search(account, query(text: [with: "xylophone"], label: "inbox"))

    assert {:ok, messages} = IMAP.read(account, first.id)
    subjects = messages |> Enum.map(&String.to_integer(&1.subject)) |> Enum.sort()
    assert subjects == [5 | Enum.to_list(22..120)]
    assert [{:plain, text}] = Enum.find(messages, &(&1.id == first.id)).body
    assert byte_size(text) > 190_000
    assert Enum.all?(messages, &(&1.problems == []))
  end

  test "the connection of a process that was killed is closed" do
    steps = Enum.take(search_steps(), 9) ++ [:silent]
    account = scripted([steps])
    pid = spawn(fn -> IMAP.search(account, query()) end)
    assert_receive {:read, "s4 LIST" <> _}
    Process.exit(pid, :kill)
    assert_receive :hung_up
  end

  test "an error in the library shows no password" do
    account = account("ann", tls: :none)
    error = assert_raise RuntimeError, fn -> IMAP.search(account, query()) end
    assert Exception.message(error) == "the library of connections failed"

    text =
      try do
        IMAP.search(account, query())
      rescue
        error -> Exception.format(:error, error, __STACKTRACE__)
      end

    refute text =~ MailServer.settings().password
    refute inspect(account) =~ MailServer.settings().password
  end

  describe "a book" do
    test "runs the commands for mail with such an account, and lists them for its profiles" do
      settings = MailServer.settings()
      [ann, bob] = for name <- ["ann", "bob"], do: MailServer.address(name)
      name = :"imap_#{System.unique_integer([:positive])}"

      # Each profile is a person with a mailbox.
      account = [
        vendor: :imap,
        host: settings.host,
        port: settings.imaps,
        username: ann,
        password: fn _profile -> settings.password end,
        from: "Ann <#{ann}>",
        cacertfile: settings.cacertfile,
        smtp: [port: settings.smtps],
        profiles: ["ann"]
      ]

      start_supervised!(
        {Skillbook,
         name: name,
         builtins: ["email"],
         watch: false,
         ask: fn _request -> :allow end,
         profiles: for(id <- ~w(ann bob eve), do: [id: id]),
         connections: [
           post: account,
           other: Keyword.merge(account, username: bob, from: bob, profiles: ["bob"])
         ]}
      )

      run = fn profile, line ->
        view = Skillbook.view(name, profile)
        %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```")
        {result.status, result.content}
      end

      assert {:ok, sent} =
               run.(
                 "ann",
                 ~s(email.send --to #{bob} --subject "Q1 report" --body "See **below**.")
               )

      assert [id] = Regex.run(~r/\d{8}-\d+-[a-z2-7]{12}/, sent)
      assert {:ok, read} = run.("ann", "email.read #{id}")
      assert read =~ "See **below**."
      bobs = fn -> run.("bob", "email.search --unread --label inbox --limit 5") end
      assert Skillbook.Eventually.eventually(fn -> elem(bobs.(), 1) =~ "Q1 report" end)
      assert {:ok, found} = bobs.()
      assert found =~ "Ann"
      [id] = Regex.run(~r/\d{8}-\d+-[a-z2-7]{12}/, found)
      assert {:ok, _} = run.("bob", ~s(email.send --to #{ann} --reply-to #{id} --body "Thanks."))
      assert {:ok, _} = run.("bob", "email.archive #{id}")
      assert {:ok, nothing} = bobs.()
      refute nothing =~ "Q1 report"
      anns = fn -> elem(run.("ann", "email.search --label inbox"), 1) end
      assert Skillbook.Eventually.eventually(fn -> anns.() =~ "Re: Q1 report" end)

      # Another profile has no mail, and its commands do not exist for it.
      assert {:error, none} = run.("eve", "email.search")
      refute none =~ settings.password
      assert Skillbook.View.fetch(Skillbook.view(name, "ann"), "email.search")
    end
  end

  test "each call is one event, without anything of the mail" do
    profile = MailServer.address("profile")
    account = %{account("ann") | profile: profile}
    test = self()

    handler = fn _name, measurements, metadata, _config ->
      if metadata.profile == profile, do: send(test, {:event, measurements, metadata})
    end

    :ok = :telemetry.attach_many(profile, [[:skillbook, :connection, :request]], handler, nil)
    {:ok, _} = IMAP.search(account, query(text: [with: "private"]))
    {:error, _} = IMAP.get(account, "nothing")
    :telemetry.detach(profile)

    for {method, kind} <- [{"imap.search", nil}, {"imap.get", :not_found}] do
      assert_receive {:event, %{duration: _}, %{method: ^method} = metadata}

      assert metadata == %{
               book: nil,
               profile: profile,
               account: :post,
               method: method,
               status: nil,
               kind: kind,
               attempts: 1
             }
    end
  end

  test "a hundred calls at once use few connections" do
    account = account("ann")
    tasks = for _ <- 1..100, do: Task.async(fn -> IMAP.search(account, query()) end)
    for result <- Task.await_many(tasks, :infinity), do: assert({:ok, %{messages: []}} = result)
  end
end
