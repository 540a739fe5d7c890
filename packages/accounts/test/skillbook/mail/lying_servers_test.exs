defmodule Skillbook.Mail.LyingServersTest do
  # IMAP and SMTP servers that answer other things than they were asked.
  use ExUnit.Case, async: true

  alias Skillbook.Mail.IMAP
  alias Skillbook.Mail.IMAP.Session
  alias Skillbook.{MailConformance, ServiceError}
  alias Skillbook.Test.{MailScript, MailServer}

  @capabilities "IMAP4rev1 AUTH=PLAIN SASL-IR UIDPLUS MOVE"

  # An account whose server has one folder with the mails 7 and 8; `answers` are in place of the
  # honest ones, by the beginning of a command.
  defp account(answers, options \\ []) do
    serve = fn tag, command ->
      answer = Enum.find_value(answers, fn {name, answer} -> starts?(command, name) && answer end)

      case answer || honest(command) do
        steps when is_list(steps) -> steps
        text when is_binary(text) -> text <> "#{tag} OK done\r\n"
        fun -> fun.(tag, command)
      end
    end

    script = [:tls, {:send, "* OK hello\r\n"}, {:serve, serve}]
    options = [host: "localhost", port: MailScript.start([script, script, script])] ++ options
    MailServer.account("ann@example.org", options)
  end

  defp starts?(command, name), do: String.starts_with?(String.upcase(command), name)

  defp honest(command) do
    cond do
      starts?(command, "CAPABILITY") -> "* CAPABILITY #{@capabilities}\r\n"
      starts?(command, "LIST") -> "* LIST () \"/\" INBOX\r\n"
      starts?(command, "EXAMINE") or starts?(command, "SELECT") -> "* 2 EXISTS\r\n"
      starts?(command, "UID SEARCH") -> "* SEARCH 7 8\r\n"
      starts?(command, "UID FETCH") -> mail(7) <> mail(8)
      true -> ""
    end
  end

  defp mail(uid, options \\ []) do
    headers = "Message-ID: <#{uid}@b>\r\nSubject: Mail #{uid}\r\n\r\n"
    date = options[:date] || "17-Feb-2026 12:00:00 +0000"

    "* #{uid} FETCH (UID #{uid} FLAGS () INTERNALDATE \"#{date}\" " <>
      "RFC822.SIZE #{options[:size] || 9} BODY[HEADER.FIELDS (MESSAGE-ID)] " <>
      "{#{byte_size(headers)}}\r\n#{headers} BODY[]<0> \"#{options[:text] || "Subject: x"}\")\r\n"
  end

  @query %{
    text: [],
    from: nil,
    to: nil,
    subject: nil,
    after: nil,
    before: nil,
    unread: nil,
    label: nil,
    limit: 10
  }

  defp within(account, milliseconds),
    do: %{account | deadline: System.monotonic_time(:millisecond) + milliseconds}

  defp search(account), do: IMAP.search(account, @query)
  defp subjects({:ok, %{messages: messages}}), do: Enum.map(messages, & &1.subject)

  defp said({:mails, uids}), do: Enum.map_join(uids, &mail/1)
  defp said(text), do: text

  @folder "UID FETCH"

  # {what the server says instead, the subjects that a search finds}
  for {name, answers, found} <- [
        {"a mail that was not asked for", [{@folder, {:mails, [7, 9, 8, 4_294_967_295]}}],
         ["Mail 8", "Mail 7"]},
        {"a mail twice", [{@folder, {:mails, [7, 7, 8, 7]}}], ["Mail 8", "Mail 7"]},
        {"no mail", [{@folder, ""}], []},
        {"a mail that goes meanwhile", [{@folder, "* 1 EXPUNGE\r\n* 1 EXISTS\r\n"}], []},
        {"mails twice, in two answers", [{"UID SEARCH", "* SEARCH 8 7\r\n* SEARCH 7\r\n"}],
         ["Mail 8", "Mail 7"]},
        {"mails that are not there", [{"UID SEARCH", "* SEARCH 7 4294967295\r\n"}], ["Mail 7"]},
        {"another UIDVALIDITY each time",
         [{"EXAMINE", "* 2 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDVALIDITY 2] x\r\n"}],
         ["Mail 8", "Mail 7"]},
        {"more mails than there are numbers", [{"EXAMINE", "* 4294967295 EXISTS\r\n"}],
         ["Mail 8", "Mail 7"]}
      ] do
    @answers answers
    @found found

    test "#{name}: only mails that were asked for are read, and once each" do
      answers = for {name, answer} <- @answers, do: {name, said(answer)}
      assert subjects(search(account(answers))) == @found
      {:ok, %{messages: messages}} = search(account([]))

      for %{id: id, subject: subject} <- messages, subject in @found do
        assert {:ok, texts} = answers |> account() |> IMAP.read(id)
        assert Enum.sort(Enum.map(texts, & &1.subject)) == Enum.sort(@found)
      end
    end
  end

  # Else the draft that a mail replaces, or a mail that is moved, could be another one.
  test "a folder that is replaced between two commands ends the call, before any change" do
    counter = :counters.new(1, [])
    test = self()
    {:ok, %{messages: [%{id: id} | _]}} = search(account([]))

    examine = fn tag, _command ->
      :counters.add(counter, 1, 1)
      number = :counters.get(counter, 1)
      "* 2 EXISTS\r\n* OK [UIDVALIDITY #{number}] x\r\n#{tag} OK done\r\n"
    end

    change = fn tag, command ->
      send(test, {:changed, command})
      "#{tag} OK done\r\n"
    end

    changes = for name <- ["UID STORE", "UID MOVE", "UID COPY", "UID EXPUNGE"], do: {name, change}
    answers = [{"EXAMINE", examine}, {"SELECT", examine} | changes]

    for call <- [
          &search/1,
          &IMAP.read(&1, id),
          &IMAP.label(&1, [id], %{add: ["starred"], remove: [], create: false}),
          &IMAP.label(&1, [id], %{add: [], remove: ["unread"], create: false})
        ] do
      assert {:error, %ServiceError{kind: :connection} = error} = call.(account(answers))
      assert error.hint == "the folder was replaced by another one; try again later"
    end

    refute_received {:changed, _command}
  end

  test "a date outside of the calendar is read as its end" do
    for {date, time} <- [
          {"31-Dec-9999 23:59:59 -2300", ~U[9999-12-31 23:59:59Z]},
          {"01-Jan-0000 00:00:00 +2300", ~U[0000-01-01 00:00:00Z]}
        ] do
      account = account([{"UID FETCH", mail(7, date: date)}])
      assert {:ok, %{messages: [%{date: ^time, id: id}]}} = search(account)
      assert {:ok, _id} = Skillbook.Mail.IMAP.Id.parse(id)
    end
  end

  test "of more than 2,000 mails the last ones are looked at, and few flags" do
    many = "* SEARCH" <> Enum.map_join(1..200_000, &" #{2 * &1}") <> "\r\n"
    flags = "* 2 EXISTS\r\n* FLAGS (" <> String.duplicate("a ", 100_000) <> "b)\r\n"
    test = self()

    fetch = fn tag, command ->
      send(test, {:fetch, command})
      mail(400_000) <> mail(7) <> "#{tag} OK done\r\n"
    end

    answers = [{"UID SEARCH", many}, {"EXAMINE", flags}, {"UID FETCH", fetch}]
    account = account(answers)
    assert subjects(search(account)) == ["Mail 400000"]
    assert_receive {:fetch, "UID FETCH 396002,396004," <> _}

    {:ok, selected} =
      Session.run(account(answers), "imap.test", &Session.call(&1, {:select, "INBOX", true}))

    assert length(selected.keywords) == 1_000
  end

  # All answers to a call together: 10 commands of 200 mails each.
  test "a call reads 16 MiB, whatever the number of its commands" do
    many = "* SEARCH" <> Enum.map_join(1..2_000, &" #{2 * &1}") <> "\r\n"
    text = String.duplicate("a", 2_000_000)

    fetch = fn tag, "UID FETCH " <> set ->
      [first | _] = String.split(set, ["," | [" "]])
      mail(String.to_integer(first), text: text) <> "#{tag} OK done\r\n"
    end

    account = account([{"UID SEARCH", many}, {"UID FETCH", fetch}])

    assert {:error, %ServiceError{kind: :too_large, hint: "the server sent more than allowed"}} =
             search(account)
  end

  test "a literal is read up to the limit of an answer, whatever its length is said to be" do
    for length <- ["8388609", "999999999", "2147483648", "4294967295", "4294967296", "-1"] do
      endless = fn _tag, _command ->
        [{:send, "* LIST () \"/\" {#{length}}\r\n"}, {:endless, String.duplicate("a", 1_000_000)}]
      end

      assert {:error, %ServiceError{kind: kind}} = search(account([{"LIST", endless}]))
      assert {length, kind in [:too_large, :bad_answer]} == {length, true}
      assert_receive {:sent, bytes}
      assert {length, bytes < 30_000_000} == {length, true}
    end
  end

  test "an answer byte by byte does not outlast the time" do
    steps = [:tls, {:drip, "* OK hello, and more, and more, and more, ", 20}]
    options = [host: "localhost", port: MailScript.start([steps])]
    account = MailServer.account("ann@example.org", options) |> within(300)
    {time, result} = :timer.tc(fn -> search(account) end)
    assert {:error, %ServiceError{kind: :timeout}} = result
    assert time < 3_000_000
    assert_receive :hung_up
  end

  test "a long answer ends in time" do
    many = fn text -> String.duplicate(text, div(4_000_000, byte_size(text))) end

    for {command, said, kind} <- [
          {"EXAMINE", many.("* OK [ALERT] x\r\n"), nil},
          {"EXAMINE", many.("* XYZZY\r\n"), :bad_answer},
          {"EXAMINE", "* OK " <> many.("\r") <> "\r\n", :bad_answer},
          {"EXAMINE", many.("* OK {1}\r\n"), :bad_answer},
          {"LIST", "* LIST () \"/\" \"" <> many.("a") <> "\"\r\n", :too_large},
          {"LIST", "* LIST () \"/\" \"" <> many.("\\\"") <> "\"\r\n", :too_large},
          {"UID SEARCH", "* SEARCH " <> many.("1") <> "\r\n", :bad_answer},
          {"UID FETCH", "* 1 FETCH (" <> many.("BODY[1] {1}\r\na ") <> "UID 7)\r\n", nil},
          {"UID FETCH", "* 1 FETCH (" <> many.("UID 7 ") <> "UID 7)\r\n", nil},
          {"UID FETCH",
           "* 1 FETCH (ENVELOPE (NIL NIL (" <>
             many.("(NIL NIL \"a\" \"b\")") <> ") NIL NIL NIL NIL NIL NIL NIL))\r\n", nil},
          {"UID FETCH",
           "* 1 FETCH (BODYSTRUCTURE (" <>
             many.("(\"a\" \"b\" NIL NIL NIL \"7BIT\" 1)") <> " \"mixed\"))\r\n", nil}
        ] do
      {time, result} = :timer.tc(fn -> search(account([{command, said}])) end)
      assert {binary_part(said, 0, 9), time} < {binary_part(said, 0, 9), 5_000_000}

      case result do
        {:ok, _found} ->
          assert {said |> binary_part(0, 9), nil} == {binary_part(said, 0, 9), kind}

        {:error, error} ->
          assert {binary_part(said, 0, 9), error.kind} == {binary_part(said, 0, 9), kind}
      end
    end
  end

  describe "an SMTP server" do
    # A mailbox on the real server, and an SMTP server that plays a script.
    defp send_mail(steps, milliseconds \\ 5_000) do
      place = [host: "localhost", port: MailScript.start([[:tls | steps]])]
      account = MailServer.account(MailServer.address("ann"), smtp: place) |> within(milliseconds)
      mail = MailConformance.mail(to: ["bob@example.org"], text: "Hello!\nRSET\n.\nx")
      :timer.tc(fn -> IMAP.send(account, mail) end)
    end

    @consent [{:read, "DATA"}, {:send, "354 go\r\n"}]
    @taken @consent ++ [:data, {:send, "250 ok\r\n"}]

    test "that took a mail may say anything to QUIT, or nothing" do
      for step <- [
            :silent,
            {:drip, "250-x\r\n", 10},
            {:endless, "250-x\r\n"},
            {:send, "554 no\r\n"}
          ] do
        {time, result} = send_mail(MailScript.submission() ++ @taken ++ [step])
        assert {^step, {:ok, %{id: _}}} = {step, result}
        assert {step, time} < {step, 3_000_000}
      end
    end

    test "without end is left after 100 lines" do
      submission = MailScript.submission()
      line = String.duplicate("250-x\r\n", 1_000)

      for {steps, kind} <- [
            {[{:endless, String.duplicate("220-x\r\n", 1_000)}], :too_large},
            {Enum.take(submission, 2) ++ [{:endless, line}], :too_large},
            {Enum.take(submission, 6) ++ [{:endless, line}], :too_large},
            {Enum.take(submission, 8) ++ [{:endless, line}], :too_large},
            {submission ++ [{:read, "DATA"}, {:endless, line}], :too_large},
            {submission ++ @consent ++ [:data, {:endless, line}], :unclear},
            {submission ++ @consent ++ [:data, {:endless, String.duplicate("a", 100_000)}],
             :unclear},
            {[{:endless, String.duplicate("220 x", 20_000)}], :too_large}
          ] do
        {time, {:error, error}} = send_mail(steps)
        assert {length(steps), error.kind, time < 2_000_000} == {length(steps), kind, true}
      end

      # As many lines as a server may have to say.
      hello = String.duplicate("250-X\r\n", 98) <> "250-8BITMIME\r\n250 AUTH PLAIN\r\n"
      steps = Enum.take(submission, 2) ++ [{:send, hello}] ++ Enum.drop(submission, 3)
      assert {_time, {:ok, _}} = send_mail(steps ++ @taken)
    end

    test "must consent with the answers of RFC 5321" do
      submission = MailScript.submission()
      no_consent = submission ++ [{:read, "DATA"}, {:send, "250 ok\r\n"}]

      for {steps, kind} <- [
            {Enum.take(submission, 6) ++ [{:send, "354 x\r\n"}, :silent], :bad_answer},
            {Enum.take(submission, 8) ++ [{:send, "334 x\r\n"}, :silent], :bad_answer},
            {Enum.take(submission, 8) ++ [{:send, "250-x\r\n554 x\r\n"}, :silent], :bad_answer},
            {no_consent ++ [:silent], :bad_answer},
            {submission ++ @consent ++ [:data, {:send, "421 4.3.2 going\r\n"}], :rate_limited},
            {submission ++ @consent ++ [:data, {:send, "354 go\r\n"}, :silent], :unclear},
            {submission ++ @consent ++ [:data, {:send, "250-ok\r\n554 no\r\n"}, :silent],
             :unclear},
            {submission ++ @consent ++ [:data, {:send, "250-ok\r\n"}], :unclear},
            {submission ++ @consent ++ [:data, {:send, "250 \xff\r\n"}], :unclear}
          ] do
        {_time, {:error, error}} = send_mail(steps)
        assert {steps, error.kind} == {steps, kind}
      end

      # The answer may be lost with the connection that ends in the middle of the text.
      for steps <- [[{:send, "421 going\r\n"}], [{:read, ""}, {:send, "421 going\r\n"}]] do
        {_time, {:error, error}} = send_mail(submission ++ @consent ++ steps)
        assert error.kind in [:rate_limited, :unclear]
      end

      # The lines of a mail were not sent as commands.
      refute_receive {:unexpected, "RSET" <> _}, 10
    end

    # {the steps, the reason to try again}
    test "that refuses a mail for now is tried again later" do
      submission = MailScript.submission()
      recipient = "it refused the recipient bob@example.org for now; try again later"

      for {steps, hint} <- [
            {Enum.take(submission, 6) ++ [{:send, "451 4.7.1 greylisted\r\n"}], nil},
            {Enum.take(submission, 8) ++ [{:send, "451 4.7.1 greylisted\r\n"}], recipient},
            {submission ++ @consent ++ [:data, {:send, "452 4.3.1 full\r\n"}], nil}
          ] do
        {_time, {:error, error}} = send_mail(steps)
        assert {error.kind, error.hint, error.unclear} == {:rate_limited, hint, false}
        assert Exception.message(error) =~ "try again later"
      end
    end

    test "that drips does not outlast the time" do
      {time, {:error, error}} = send_mail([{:drip, "220-x\r\n", 20}], 400)
      assert {error.kind, time < 3_000_000} == {:timeout, true}
    end
  end
end
