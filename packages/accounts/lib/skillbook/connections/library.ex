defmodule Skillbook.Connections.Library do
  @moduledoc false
  # The native library of connections (native/skillbook_connect). Most applications do not build
  # it. The module of each topic is the only caller of the topic's functions, and calls load/0
  # before.

  use Skillbook.Support.NativeLibrary,
    app: :skillbook_accounts,
    crate: "skillbook_connect",
    wish: [
      setting: "connections: true",
      variable: "SKILLBOOK_CONNECT",
      name: "the library of connections"
    ],
    functions: [
      decode(bytes, charset),
      mime_parse(raw),
      mime_part(raw, number),
      mime_build(mail),
      html_text(html),
      markdown_html(text),
      imap_open(reference, account, milliseconds),
      imap_call(session, reference, command, milliseconds),
      imap_leave(session),
      smtp_send(reference, account, from, recipients, raw, milliseconds),
      smtp_utf8(reference, account, milliseconds),
      ical_dates(rule, start, from, to, limit, steps),
      xml_elements(xml)
    ]

  # Text of bytes in a character set. Always text, with U+FFFD for wrong bytes.
  @spec decode(binary(), String.t()) :: String.t()

  # Reads a mail. The error is text.
  @spec mime_parse(binary()) :: {:ok, map()} | {:error, String.t()}

  # The content of a part of a mail. The error is text.
  @spec mime_part(binary(), non_neg_integer()) :: {:ok, binary()} | {:error, String.t()}

  # The bytes of a mail. The error is text.
  @spec mime_build(map()) :: {:ok, binary()} | {:error, String.t()}

  # Text of HTML as a reader sees it.
  @spec html_text(String.t()) :: %{text: String.t(), hidden: non_neg_integer(), cut: boolean()}

  # HTML of a text in Markdown.
  @spec markdown_html(String.t()) :: String.t()

  @typedoc "A failure of a mail server: its kind, a text of ours, and the server's text."
  @type mail_failure :: {:error, atom(), String.t(), String.t() | nil}

  # Opens a session with an IMAP server. The message is `{reference, :ok}` or
  # `{reference, failure}` (`t:mail_failure/0`).
  @spec imap_open(reference(), map(), non_neg_integer()) :: reference()

  # Runs a command in a session. The message is `{reference, {:ok, answer}}` or a failure.
  @spec imap_call(reference(), reference(), atom() | tuple(), non_neg_integer()) :: :ok

  # Ends a session. Its connection is kept for a while.
  @spec imap_leave(reference()) :: :ok

  # Sends a mail. The message is `{reference, :ok}` or a failure.
  @spec smtp_send(reference(), map(), String.t(), [String.t()], binary(), non_neg_integer()) ::
          :ok

  # Asks an SMTP server for SMTPUTF8. The message is `{reference, {:ok, boolean}}` or a failure.
  @spec smtp_utf8(reference(), map(), non_neg_integer()) :: :ok

  # The dates of a rule of iCalendar from `from` on and before `to`, at most `limit`, found in
  # some steps, whether there may be more, and the steps that were taken. All dates are seconds
  # since 1970 of local time.
  @spec ical_dates(
          String.t(),
          integer(),
          integer(),
          integer(),
          non_neg_integer(),
          integer()
        ) :: {:ok, [integer()], boolean(), integer()} | :error

  # The elements of an XML document with their depths, names (`"DAV: href"`), texts and
  # attributes.
  @spec xml_elements(binary()) ::
          {:ok, [{non_neg_integer(), String.t(), String.t(), [{String.t(), String.t()}]}]}
          | :error
end
