defmodule Skillbook.Mail.MIMETest do
  use ExUnit.Case, async: true

  doctest Skillbook.Mail.MIME

  alias Skillbook.Mail.MIME
  alias Skillbook.MailError

  defp mail(fields) do
    Map.merge(
      %{
        from: "Ann <ann@example.com>",
        to: ["bob@example.com"],
        cc: [],
        bcc: [],
        subject: "Report",
        text: "**Hello**",
        attachments: [],
        reply: nil,
        draft: nil,
        message_id: "1@example.com",
        date: ~U[2026-03-01 12:00:00Z]
      },
      fields
    )
  end

  test "a mail that is built is read back" do
    built =
      mail(%{
        cc: [~s("Grüße, Carl" <carl@example.com>), "  <dave@example.com> "],
        subject: "Grüße",
        attachments: [%{name: "Ä.bin", type: "application/x-a", data: <<0, 255, 13, 10>>}],
        reply: %{message_id: "0@example.com", references: ["a@example.com", "0@example.com"]}
      })

    assert {:ok, raw} = MIME.build(built)
    assert {:ok, read} = MIME.parse(raw)

    assert read == %{
             from: [%{name: "Ann", address: "ann@example.com"}],
             to: [%{name: nil, address: "bob@example.com"}],
             cc: [
               %{name: "Grüße, Carl", address: "carl@example.com"},
               %{name: nil, address: "dave@example.com"}
             ],
             bcc: [],
             reply_to: [],
             subject: "Grüße",
             date: DateTime.to_unix(built.date),
             message_id: "1@example.com",
             in_reply_to: ["0@example.com"],
             references: ["a@example.com", "0@example.com"],
             text: "**Hello**",
             html: "<p><strong>Hello</strong></p>\n",
             attachments: [
               %{
                 part: 4,
                 name: "Ä.bin",
                 type: "application/x-a",
                 size: 4,
                 charset: nil,
                 inline: false
               }
             ],
             problems: []
           }

    assert MIME.part(raw, 4) == {:ok, <<0, 255, 13, 10>>}

    assert MIME.part(raw, 9) ==
             {:error, %MailError{kind: :unreadable, reason: "the mail has no part 9"}}
  end

  test "ids of strangers that cannot be written do not keep a reply from being sent" do
    ids = ["a b", "<x>", "ä@b", "", String.duplicate("a", 901), "x\r\nBcc: eve@example.com"]

    for id <- ids do
      reply = %{message_id: id, references: ids ++ ["good@example.com"]}
      assert {:ok, raw} = MIME.build(mail(%{reply: reply}))
      assert {:ok, read} = MIME.parse(raw)
      assert {read.in_reply_to, read.references} == {[], ["good@example.com"]}
      assert read.bcc == []
    end
  end

  test "a long thread keeps its first and its last ids" do
    references = for n <- 1..80, do: "#{n}@example.com"
    reply = %{message_id: "80@example.com", references: references}
    {:ok, raw} = MIME.build(mail(%{reply: reply}))
    {:ok, read} = MIME.parse(raw)
    kept = for n <- [1] ++ Enum.to_list(30..80), do: "#{n}@example.com"
    assert read.references == kept
    assert read.in_reply_to == ["80@example.com"]
  end

  test "names are encoded, and domains are sent in ASCII" do
    to = [~s("B, Bob" <bob@example.com>), "Jürgen <jürgen@bücher.example>"]
    {:ok, raw} = MIME.build(mail(%{to: to}))
    assert raw =~ "jürgen@xn--bcher-kva.example"
    {:ok, read} = MIME.parse(raw)

    assert read.to == [
             %{name: "B, Bob", address: "bob@example.com"},
             %{name: "Jürgen", address: "jürgen@xn--bcher-kva.example"}
           ]
  end

  test "values that could begin another header are errors" do
    for {fields, message} <- [
          {%{subject: "a\nBcc: eve@example.com"},
           "the mail cannot be written: expected one line without control characters as " <>
             ~S(subject, got: "a\nBcc: eve@example.com")},
          {%{to: ["bob"]},
           "the mail cannot be written: expected an address such as \"ann@example.com\" as " <>
             ~S(to, got: "bob")},
          {%{to: ["Bob\r\nX: y <bob@example.com>"]},
           "the mail cannot be written: expected one line without control characters as a " <>
             ~S(name in to, got: "Bob\r\nX: y")},
          {%{attachments: [%{name: "a\nb", type: "a/b", data: ""}]},
           "the mail cannot be written: expected one line without control characters as the " <>
             ~S(name of an attachment, got: "a\nb")}
        ] do
      assert {:error, %MailError{kind: :invalid} = error} = MIME.build(mail(fields))
      assert Exception.message(error) == message
    end
  end

  test "a mail of more than 64 MiB is an error" do
    raw = String.duplicate("a", 67_108_865)
    assert {:error, error} = MIME.parse(raw)

    assert Exception.message(error) ==
             "the mail cannot be read: the mail has 67108865 bytes, and at most 67108864 are read"
  end

  test "work of any length leaves the normal schedulers free" do
    html = String.duplicate("<div><a href='http://a.b/c'>text</a>", 100_000)
    raw = "Content-Type: text/html\r\n\r\n" <> html

    task = Task.async(fn -> {MIME.html_text(html), MIME.parse(raw)} end)
    # On a normal scheduler the calls would be reported.
    :erlang.system_monitor(self(), long_schedule: 200)
    assert {{:ok, %{cut: _}}, {:ok, _}} = Task.await(task, :infinity)
    :erlang.system_monitor(:undefined)
    pid = task.pid
    refute_received {:monitor, ^pid, :long_schedule, _}
  end
end
