defmodule Skillbook.Mail.PeerTest do
  # The shapes of mails in test/fixtures/mails/make.py, as our reader and Python's `email` read
  # them. Each field is the same, or a row of the table says how and why it differs.
  use ExUnit.Case, async: true

  alias Skillbook.Test.MailPeer

  @shapes "test/fixtures/mails/shapes.jsonl"

  # {shape, field, ours, the reason}
  @differences [
    {"subject: folded by a tab", "subject", "one two", "a fold is one blank"},
    {"subject: Latin-1", "subject", "Grüße", "bytes that are no UTF-8 are windows-1252"},
    {"subject: a word with a line end", "subject", "a b", "a subject has one line"},
    {"subject: blanks around", "subject", "a b", "blanks at the end of a field say nothing"},
    {"to: with a comment", "to", [["Ann Example", "ann@example.com"]],
     "a comment after an address is a name, as old mails write it"},
    {"to: with a name of two words", "to", [["Jürgen", "j@example.com"]],
     "blanks between encoded words are none (RFC 2047)"},
    {"to: with a bracket in a comment", "to", [["Ann ) Example", "ann@example.com"]],
     "a comment after an address is a name, as old mails write it"},
    {"to: with a comment within a comment", "to", [["Ann (A.) Example", "ann@example.com"]],
     "a comment after an address is a name, as old mails write it"},
    {"to: with a comment in a name", "to", [["Ann Example (a ) b)", "ann@example.com"]],
     "a comment in a name is shown, since a reader may know the person by it"},
    {"to: with a word within a name", "to", [["Jürgen", "j@example.com"]],
     "words within others are read, as in a subject"},
    {"to: semicolons between", "to", [[nil, "a@example.com"], [nil, "b@example.com"]],
     "Outlook writes semicolons, and Python ends the list there"},
    {"to: without a domain", "to", [["ann", ""]],
     "without a domain there is no address (RFC 5322), and the word is shown as a name"},
    {"date: a whole name of a month", "date", nil, "months have three letters (RFC 5322)"},
    {"date: empty", "date", nil, "Python has an empty text"},
    {"body: Q with blanks at an end", "text", "a\nbc\n",
     "blanks at the end of a line are none (RFC 2045)"},
    {"body: Latin-1 that is Windows-1252", "text", "€ 5\n", "as the web reads the name"},
    {"body: ASCII with UTF-8 in it", "text", "Grüße\n", "valid UTF-8 is UTF-8"},
    {"body: no character set, UTF-8", "text", "Grüße\n", "valid UTF-8 is UTF-8"},
    {"body: an unknown character set", "text", "abc\n", "Python raises"},
    {"body: a comment in a type", "text", "Grüße\n", "a type may have a comment (RFC 2045)"},
    {"body: a comment in a type", "files", [], "a type may have a comment (RFC 2045)"},
    {"body: blanks in a type", "text", "Grüße\n",
     "blanks beside the slash say nothing (RFC 822)"},
    {"body: blanks in a type", "files", [], "blanks beside the slash say nothing (RFC 822)"},
    {"body: a field without a colon", "to", [[nil, "bob@example.com"]],
     "a line that is no field is left out"},
    {"body: a field without a colon", "text", "Hi\n", "Python ends the header there"},
    {"parts: none", "files", [], "a mail that has no parts is a text"},
    {"parts: a mail", "files", [["Inner", "message/rfc822", 20]],
     "a mail without a name has its subject as its name"},
    {"parts: a digest", "files", [["One", "message/rfc822", 17], ["Two", "message/rfc822", 17]],
     "a mail without a name has its subject as its name"},
    {"parts: no boundary", "text", "--b1\nContent-Type: text/plain; charset=utf-8\n\nHello",
     "what has no parts is a text"},
    {"parts: no boundary", "files", [], "what has no parts is a text"},
    {"file: blanks without quotes", "files", [["a b.pdf", "application/pdf", 3]],
     "blanks in names are kept, as writers forget the quotes"},
    {"file: words without quotes", "files", [["Ä.pdf", "application/pdf", 3]],
     "encoded words in parameters are read"}
  ]

  test "mails are read as Python reads them, but for the table" do
    rows = MailPeer.rows(@shapes)
    assert length(rows) == 200

    found =
      for {name, _raw, _theirs} = row <- rows,
          {field, ours, _theirs} <- MailPeer.differences(row),
          do: {name, field, ours}

    listed = for {name, field, ours, _why} <- @differences, do: {name, field, ours}
    assert found -- listed == []
    # A row that is no difference any more is taken out.
    assert listed -- found == []
  end
end
