defmodule Skillbook.MailConformance do
  @moduledoc false
  # The tests that every service of `Skillbook.Mail` passes. A module that uses it has a function
  # `people/0`, which returns `{ann, bob}`: the accounts of two people who can write to each
  # other, with empty mailboxes.

  import ExUnit.Assertions

  alias Skillbook.{Eventually, Mail}

  defmacro __using__(_options) do
    quote do
      import Skillbook.MailConformance

      test "recipients have names" do
        {ann, bob} = people()
        {:ok, address} = Mail.address(bob)
        to = ~s("B, Bob" <#{address}>)
        {_sent, summary} = deliver(ann, bob, to: [to])
        assert [%{name: "B, Bob", address: ^address}] = summary.to
      end

      test "a mail that is attached is sent as it is, and a text with its character set" do
        {ann, bob} = people()
        raw = "From: Eve <eve@example.org>\r\nSubject: Inner\r\n\r\nHello\r\n"

        files = [
          %{name: "inner.eml", type: "message/rfc822", data: raw},
          %{name: "latin.txt", type: "text/plain", charset: "iso-8859-1", data: "gr\xfc\xdfe"}
        ]

        {_sent, summary} = deliver(ann, bob, attachments: files)
        {:ok, [message]} = Mail.read(bob, summary.id)
        [inner, latin] = message.attachments
        assert {inner.type, inner.name} == {"message/rfc822", "inner.eml"}
        assert {:ok, %{data: data}} = Mail.attachment(bob, summary.id, inner.part)
        # The service of Gmail in tests has other line ends.
        assert data |> String.replace("\r\n", "\n") |> String.trim_trailing() ==
                 raw |> String.replace("\r\n", "\n") |> String.trim_trailing()

        assert {:ok, latin} = Mail.attachment(bob, summary.id, latin.part)
        assert latin.data == "gr\xfc\xdfe"
      end

      test "a mail arrives with its subject, its text and its attachments" do
        arrives(people())
      end

      test "searches follow each condition" do
        searches(people())
      end

      test "values of a search are text, whatever is in them" do
        plain_values(people())
      end

      test "an answer joins the conversation on both sides" do
        conversation(people())
      end

      test "a blind copy is not seen by the others" do
        blind_copy(people())
      end

      test "a draft is kept, changed, and replaced by the mail that is sent" do
        drafts(people())
      end

      test "labels are added and removed, and known by their words" do
        labels(people())
      end

      test "an archived mail is out of the inbox, and keeps its id" do
        archived(people())
      end

      test "reading leaves a mail unread" do
        unread(people())
      end

      test "missing mails, parts, labels and drafts are errors that name them" do
        missing(people())
      end
    end
  end

  @doc "A mail to send; `fields` replace its own."
  def mail(fields) do
    unique = "#{System.unique_integer([:positive])}.#{System.os_time()}@example.org"

    Map.merge(
      %{
        to: [],
        cc: [],
        bcc: [],
        subject: "Hello",
        text: "Hello!",
        attachments: [],
        reply: nil,
        draft: nil,
        message_id: unique,
        date: ~U[2026-02-17 12:00:00Z]
      },
      Map.new(fields)
    )
  end

  @doc "A search; `fields` replace its own."
  def query(fields \\ []) do
    Map.merge(
      %{
        text: [],
        from: nil,
        to: nil,
        subject: nil,
        after: nil,
        before: nil,
        unread: nil,
        label: nil,
        limit: 20
      },
      Map.new(fields)
    )
  end

  @doc "Sends a mail and waits until it has arrived."
  def deliver(from, to, fields) do
    {:ok, sent} = Mail.send(from, mail([to: [address(to)]] ++ fields))
    subject = Keyword.get(fields, :subject, "Hello")
    {sent, arrived(to, query(subject: subject, label: "inbox"))}
  end

  @doc "The latest mail that a search finds, once there is one."
  def arrived(account, query) do
    Eventually.eventually(fn -> match?([_ | _], found(account, query)) end, 20_000)
    hd(found(account, query))
  end

  @doc "The mails that a search finds."
  def found(account, query) do
    assert {:ok, %{messages: messages}} = Mail.search(account, query)
    messages
  end

  defp subjects(account, fields),
    do: account |> found(query(fields)) |> Enum.map(& &1.subject) |> Enum.sort()

  @doc "The own address of an account."
  def address(account) do
    assert {:ok, address} = Mail.address(account)
    address
  end

  # Only the line breaks of the texts may differ.
  def arrives({ann, bob}) do
    files = [
      %{name: "Übersicht – Q1.csv", type: "text/csv", data: "a,b\r\n1,2\r\n"},
      %{
        name: "all.bin",
        type: "application/octet-stream",
        data: :binary.list_to_bin(Enum.to_list(0..255))
      }
    ]

    text = "Grüße 👋\n\n.\nFrom the *start*:\n\n> quoted\n\n" <> String.duplicate("long ", 400)
    subject = "Bericht für März – „fertig“ 👍 " <> String.duplicate("sehr ", 30) <> "lang"
    fields = [subject: subject, text: text, attachments: files]
    {sent, summary} = deliver(ann, bob, fields)

    assert summary.subject == subject
    assert summary.from.address == address(ann)
    assert [%{address: to}] = summary.to
    assert to == address(bob)
    assert summary.unread
    assert "inbox" in summary.labels
    assert %DateTime{} = summary.date
    assert {:ok, again} = Mail.get(bob, summary.id)
    assert Map.delete(again, :snippet) == Map.delete(summary, :snippet)

    assert {:ok, [message]} = Mail.read(bob, summary.id)

    assert Map.take(message, Map.keys(summary)) |> Map.delete(:snippet) ==
             Map.delete(summary, :snippet)

    assert message.problems == []
    # Some services keep one form of a text.
    html =
      case message.body do
        [{:either, plain, html}] ->
          assert lines(plain) == lines(text)
          html

        [{:html, html}] ->
          html
      end

    assert html =~ "Grüße 👋"
    assert html =~ "<em>start</em>"
    assert html =~ "<blockquote>"

    assert for(file <- message.attachments, do: {file.name, file.type, file.size}) ==
             [
               {"Übersicht – Q1.csv", "text/csv", 10},
               {"all.bin", "application/octet-stream", 256}
             ]

    for {file, listed} <- Enum.zip(files, message.attachments),
        do: assert({:ok, ^file} = Mail.attachment(bob, summary.id, listed.part))

    # The sender has a copy.
    assert {:ok, [copy]} = Mail.read(ann, sent.id)
    assert copy.subject == subject
    assert "sent" in copy.labels
    refute copy.unread
  end

  defp lines(text),
    do:
      text
      |> String.split(~r/\r?\n/)
      |> Enum.map(&String.trim_trailing/1)
      |> Enum.reverse()
      |> Enum.drop_while(&(&1 == ""))
      |> Enum.reverse()

  def searches({ann, bob}) do
    before = DateTime.utc_now() |> DateTime.add(-3600)
    later = DateTime.utc_now() |> DateTime.add(3600)
    {_, first} = deliver(ann, bob, subject: "Invoice for May", text: "Please pay the tea.")
    deliver(ann, bob, subject: "Draft of the invoice", text: "Coffee and tea, März.")
    {_, own} = deliver(bob, bob, subject: "Note to myself", text: "Nothing.")
    :ok = Mail.label(bob, [first.id], %{add: ["starred"], remove: ["unread"], create: false})
    both = ["Draft of the invoice", "Invoice for May"]
    all = both ++ ["Note to myself"]

    for {fields, expected} <- [
          {[], all},
          {[text: [with: "tea"]], both},
          {[text: [with: "TEA"]], both},
          {[text: [with: "märz"]], ["Draft of the invoice"]},
          {[text: [with: "tea", with: "coffee"]], ["Draft of the invoice"]},
          {[text: [with: "tea", without: "coffee"]], ["Invoice for May"]},
          {[text: [with: "the tea"]], ["Invoice for May"]},
          {[text: [with: "elephant"]], []},
          {[from: address(ann)], both},
          {[from: address(bob)], ["Note to myself"]},
          {[to: address(bob)], all},
          {[to: address(ann)], []},
          {[subject: "invoice"], both},
          {[subject: "of the invoice"], ["Draft of the invoice"]},
          {[subject: "tea"], []},
          {[after: before], all},
          {[after: later], []},
          {[before: later], all},
          {[before: before], []},
          {[after: before, before: later, from: address(ann), text: [with: "coffee"]],
           ["Draft of the invoice"]},
          {[unread: true], ["Draft of the invoice", "Note to myself"]},
          {[unread: false], ["Invoice for May"]},
          {[label: "starred"], ["Invoice for May"]},
          {[label: "Starred", unread: true], []},
          {[label: "inbox", from: address(ann)], both},
          {[label: "trash"], []}
        ] do
      fields = if fields[:label], do: fields, else: [label: "inbox"] ++ fields
      assert {fields, subjects(bob, fields)} == {fields, expected}
    end

    # The latest come first, and the limit is told.
    assert {:ok, %{messages: [latest], more: true}} =
             Mail.search(bob, query(label: "inbox", limit: 1))

    assert latest.id == own.id

    assert {:ok, %{messages: [_, _, _], more: false}} =
             Mail.search(bob, query(label: "inbox", limit: 3))
  end

  # Each value is searched for as it is: none of them finds the one mail by another condition, and
  # none is an error.
  def plain_values({ann, bob}) do
    deliver(ann, bob, subject: "Tea", text: "The word is xylophone.")
    ann_address = address(ann)
    limit = "inbox"

    for value <- [
          "xylophone OR elephant",
          "elephant OR from:#{ann_address}",
          ~s(elephant" OR "xylophone),
          ~s(elephant" from:"#{ann_address}),
          "elephant} xylophone",
          "{elephant xylophone}",
          "elephant) OR (xylophone",
          "elephant\r\nA1 LOGOUT",
          "elephant\" ALL \"",
          "elephant\\\" OR ALL \\\"",
          "{10}\r\nelephant",
          "-elephant in:anywhere",
          "label:inbox elephant",
          "rfc822msgid:elephant",
          "is:unread elephant",
          "\u202Eelephant",
          "*elephant*",
          "%elephant%"
        ] do
      assert {value, subjects(bob, text: [with: value], label: limit)} == {value, []}
      assert {value, subjects(bob, from: value, label: limit)} == {value, []}
      assert {value, subjects(bob, to: value, label: limit)} == {value, []}
      assert {value, subjects(bob, subject: value, label: limit)} == {value, []}
      wanted = [text: [with: "xylophone", without: value], label: limit]
      assert {value, subjects(bob, wanted)} == {value, ["Tea"]}
    end

    assert subjects(bob, text: [with: "xylophone"], label: limit) == ["Tea"]
  end

  def conversation({ann, bob}) do
    {asked, question} = deliver(ann, bob, subject: "Lunch?", text: "On Tuesday?")
    fields = [subject: "Re: Lunch?", text: "Yes.", reply: question]
    {_, answer} = deliver(bob, ann, fields)

    assert answer.thread == asked.thread
    assert question.message_id in answer.references
    fields = [subject: "Re: Lunch?", text: "Fine, at noon.", reply: answer]
    {_, last} = deliver(ann, bob, fields)
    assert last.thread == question.thread

    assert MapSet.subset?(
             MapSet.new([question.message_id, answer.message_id]),
             MapSet.new(last.references)
           )

    for id <- [question.id, last.id] do
      assert {:ok, messages} = Mail.read(bob, id)
      texts = for %{body: [body]} <- messages, do: body |> text() |> String.trim()
      assert texts == ["On Tuesday?", "Yes.", "Fine, at noon."]
    end

    {_, other} = deliver(ann, bob, subject: "Lunch? No, dinner")
    refute other.thread == question.thread
  end

  defp text({:either, text, _html}), do: text

  defp text({:html, html}) do
    {:ok, %{text: text}} = Mail.MIME.html_text(html)
    text
  end

  def blind_copy({ann, bob}) do
    fields = [to: [address(ann)], cc: [], bcc: [address(bob)], subject: "Secret"]
    {:ok, _} = Mail.send(ann, mail(fields))
    got = arrived(bob, query(subject: "Secret", label: "inbox"))
    assert Enum.map(got.to ++ got.cc, & &1.address) == [address(ann)]
    own = arrived(ann, query(subject: "Secret", label: "inbox"))
    assert {:ok, messages} = Mail.read(ann, own.id)
    assert Enum.map(hd(messages).to ++ hd(messages).cc, & &1.address) == [address(ann)]
  end

  def drafts({ann, bob}) do
    wanted = mail(to: [address(bob)], subject: "Plan", text: "First.")
    assert {:ok, %{id: draft}} = Mail.draft(ann, wanted)
    assert subjects(ann, label: "drafts") == ["Plan"]

    # A draft is no mail that was sent, and it is in no conversation.
    assert subjects(ann, label: "sent") == []

    changed = %{wanted | subject: "Plan B", text: "Second.", draft: draft}
    assert {:ok, %{id: draft}} = Mail.draft(ann, changed)
    assert subjects(ann, label: "drafts") == ["Plan B"]

    sent = %{wanted | subject: "Plan C", text: "Third.", draft: draft}
    assert {:ok, _} = Mail.send(ann, sent)
    got = arrived(bob, query(label: "inbox"))
    assert got.subject == "Plan C"
    assert subjects(ann, label: "drafts") == []
    assert subjects(ann, label: "sent") == ["Plan C"]

    assert {:error, %Skillbook.NotFoundError{kind: "draft", id: ^draft}} = Mail.send(ann, sent)
    assert subjects(ann, label: "sent") == ["Plan C"]
  end

  def labels({ann, bob}) do
    {_, mail} = deliver(ann, bob, subject: "Tea")
    {_, other} = deliver(ann, bob, subject: "Coffee")

    change = fn ids, add, remove, create ->
      Mail.label(bob, ids, %{add: add, remove: remove, create: create})
    end

    labels = fn id ->
      {:ok, mail} = Mail.get(bob, id)
      {Enum.sort(mail.labels -- ["inbox"]), mail.unread}
    end

    before = labels.(mail.id) |> elem(0)
    assert :ok = change.([mail.id, other.id], ["starred"], ["unread"], false)
    assert labels.(mail.id) == {Enum.sort(["starred" | before]), false}
    assert labels.(other.id) == labels.(mail.id)
    assert :ok = change.([mail.id], ["unread"], ["starred", "important"], false)
    assert {left, true} = labels.(mail.id)
    refute "starred" in left or "important" in left

    assert {:error, %Skillbook.NotFoundError{kind: "label", id: "invoices"}} =
             change.([mail.id], ["invoices"], [], false)

    assert :ok = change.([mail.id], ["invoices"], [], true)
    assert "invoices" in elem(labels.(mail.id), 0)
    assert subjects(bob, label: "INVOICES") == ["Tea"]
    assert :ok = change.([other.id], ["Invoices"], [], true)
    assert subjects(bob, label: "invoices") == ["Coffee", "Tea"]
    assert :ok = change.([mail.id], [], ["invoices"], false)
    assert subjects(bob, label: "invoices") == ["Coffee"]
    assert :ok = change.([mail.id], [], ["invoices"], false)
  end

  def archived({ann, bob}) do
    {_, mail} = deliver(ann, bob, subject: "Tea")
    assert :ok = Mail.archive(bob, [mail.id])
    assert subjects(bob, label: "inbox") == []
    assert subjects(bob, subject: "Tea") == ["Tea"]
    assert {:ok, %{subject: "Tea"} = again} = Mail.get(bob, mail.id)
    refute "inbox" in again.labels
    assert :ok = Mail.archive(bob, [mail.id])
    assert :ok = Mail.label(bob, [mail.id], %{add: ["inbox"], remove: [], create: false})
    assert subjects(bob, label: "inbox") == ["Tea"]
  end

  def unread({ann, bob}) do
    {_, mail} = deliver(ann, bob, attachments: [%{name: "a.txt", type: "text/plain", data: "a"}])
    {:ok, [%{attachments: [%{part: part}]}]} = Mail.read(bob, mail.id)
    {:ok, %{data: "a"}} = Mail.attachment(bob, mail.id, part)
    assert {:ok, %{unread: true}} = Mail.get(bob, mail.id)
  end

  def missing({ann, bob}) do
    {_, mail} = deliver(ann, bob, [])
    changes = %{add: ["starred"], remove: [], create: false}

    long = String.duplicate("9", 300)

    for id <- ["nothing", "../labels", "1 OR 1", "", "ümlaut", "a/b", long] do
      for call <- [
            fn -> Mail.get(bob, id) end,
            fn -> Mail.read(bob, id) end,
            fn -> Mail.archive(bob, [id]) end,
            fn -> Mail.archive(bob, [mail.id, id]) end,
            fn -> Mail.label(bob, [id], changes) end,
            fn -> Mail.attachment(bob, id, "1") end
          ],
          do: assert({:error, %Skillbook.NotFoundError{kind: "mail", id: ^id}} = call.())

      draft = mail(to: [address(ann)], draft: id)
      assert {:error, %Skillbook.NotFoundError{kind: "draft", id: ^id}} = Mail.send(bob, draft)
      assert {:error, %Skillbook.NotFoundError{kind: "draft", id: ^id}} = Mail.draft(bob, draft)
    end

    # Nothing was done for the one that is there.
    assert {:ok, %{labels: labels}} = Mail.get(bob, mail.id)
    assert "inbox" in labels
    id = mail.id <> "/9"

    assert {:error, %Skillbook.NotFoundError{kind: "attachment", id: ^id}} =
             Mail.attachment(bob, mail.id, "9")

    assert {:error, %Skillbook.NotFoundError{kind: "label", id: "nothing"}} =
             Mail.search(bob, query(label: "nothing"))
  end
end
