defmodule Skillbook.Mail.MIME do
  @moduledoc false
  # Mails as bytes (RFC 5322, MIME), and the texts in them. The only caller of these functions of
  # the native library.
  #
  # Everything in the results but the problems was written by strangers. It is valid UTF-8, and
  # may have hidden characters.

  alias Skillbook.Connections.Library
  alias Skillbook.Mail.Address
  alias Skillbook.{Mail, MailError}

  @most_references 50

  @typedoc """
  A mail that was read. Lines of texts end with `\\n`.

    * `:date` - seconds since 1970, or `nil`
    * `:message_id`, `:in_reply_to`, `:references` - ids without `<` and `>`
    * `:text`, `:html` - its parts of plain text and of HTML, or `nil`. Parts that are no
      alternatives of each other are in both, if there are both
    * `:attachments` - `:part` is for `part/2`, `:size` is in bytes, and `:inline` is whether the
      part is shown within the text. `:charset` is the known character set of a text
    * `:problems` - what is broken about it, in words
  """
  @type t :: %{
          from: [Mail.address()],
          to: [Mail.address()],
          cc: [Mail.address()],
          bcc: [Mail.address()],
          reply_to: [Mail.address()],
          subject: String.t(),
          date: integer() | nil,
          message_id: String.t() | nil,
          in_reply_to: [String.t()],
          references: [String.t()],
          text: String.t() | nil,
          html: String.t() | nil,
          attachments: [
            %{
              part: pos_integer(),
              name: String.t() | nil,
              type: String.t(),
              charset: String.t() | nil,
              size: non_neg_integer(),
              inline: boolean()
            }
          ],
          problems: [String.t()]
        }

  @doc """
  Reads a mail, or the headers of one.

  Broken mails are read as far as possible; only one of more than 64 MiB is an error. A mail has
  at most 1000 parts, 32 in each other, and 8 MiB of text; the problems say what was left out.

      iex> {:ok, mail} = Skillbook.Mail.MIME.parse("From: Ann <ann@example.com>\\r\\n\\r\\nHello")
      iex> {mail.from, mail.text}
      {[%{name: "Ann", address: "ann@example.com"}], "Hello"}
  """
  @spec parse(binary()) :: {:ok, t()} | {:error, MailError.t()}
  def parse(raw), do: call(:unreadable, fn -> Library.mime_parse(raw) end)

  @doc "Returns the content of an attachment, by its `:part`."
  @spec part(binary(), non_neg_integer()) :: {:ok, binary()} | {:error, MailError.t()}
  def part(raw, number), do: call(:unreadable, fn -> Library.mime_part(raw, number) end)

  @doc """
  Writes a mail: its text in Markdown as plain text and as HTML, below it a text that is sent on
  (`:forwarded`, optional), and the attachments. `:from` is an address or `nil`. Values that could
  begin another header are errors.
  """
  @spec build(map()) :: {:ok, binary()} | {:error, MailError.t()}
  def build(mail) do
    {replied, thread} = thread(mail.reply)

    fields = %{
      from: mail.from && address(mail.from),
      to: Enum.map(mail.to, &address/1),
      cc: Enum.map(mail.cc, &address/1),
      bcc: Enum.map(mail.bcc, &address/1),
      reply_to: [],
      subject: mail.subject,
      date: DateTime.to_unix(mail.date),
      message_id: mail.message_id,
      in_reply_to: replied,
      references: thread,
      text: Enum.join([mail.text | List.wrap(mail[:forwarded])], "\n\n"),
      html: nil,
      attachments: Enum.map(mail.attachments, &Map.put_new(&1, :charset, nil))
    }

    call(:invalid, fn ->
      html = Library.markdown_html(mail.text)
      Library.mime_build(%{fields | html: html <> forwarded_html(mail[:forwarded])})
    end)
  end

  # A stranger's text is no Markdown.
  defp forwarded_html(nil), do: ""

  defp forwarded_html(text) do
    escaped =
      text
      |> String.replace("&", "&amp;")
      |> String.replace("<", "&lt;")
      |> String.replace(">", "&gt;")

    ~s(<hr>\n<pre style="white-space: pre-wrap">#{escaped}</pre>\n)
  end

  @doc """
  Text of bytes in a character set, with U+FFFD for bytes that it does not have. Raises
  `Skillbook.MailError` without the library.

      iex> Skillbook.Mail.MIME.decode("gr\\xfc\\xdfe", "iso-8859-1")
      "grüße"
  """
  @spec decode(binary(), String.t()) :: String.t()
  def decode(bytes, charset) do
    case loaded() do
      :ok -> Library.decode(bytes, charset)
      {:error, error} -> raise error
    end
  end

  @doc """
  Text of HTML, as a reader sees it. `:hidden` is the number of characters that a reader would not
  see, which are left out, and `:cut` whether the end is missing, after 8 MiB of text or 400,000
  elements.

      iex> Skillbook.Mail.MIME.html_text("<p>Hello <b style='display:none'>Eve</b></p>")
      {:ok, %{text: "Hello", hidden: 3, cut: false}}
  """
  @spec html_text(String.t()) ::
          {:ok, %{text: String.t(), hidden: non_neg_integer(), cut: boolean()}}
          | {:error, MailError.t()}
  def html_text(html), do: call(:unreadable, fn -> {:ok, Library.html_text(html)} end)

  @doc """
  HTML of a text in Markdown. HTML in the text is shown as it is written.

      iex> Skillbook.Mail.MIME.markdown_html("**a** <b> [c](javascript:d)")
      {:ok, "<p><strong>a</strong> &lt;b&gt; c</p>\\n"}
  """
  @spec markdown_html(String.t()) :: {:ok, String.t()} | {:error, MailError.t()}
  def markdown_html(text), do: call(:invalid, fn -> {:ok, Library.markdown_html(text)} end)

  # The ids of a thread come from strangers. Those that cannot be written are left out, and of a
  # long thread the middle, as RFC 5322 allows.
  defp thread(nil), do: {[], []}

  defp thread(reply) do
    replied = Enum.filter(List.wrap(reply.message_id), &id?/1)
    references = reply.references |> Enum.filter(&id?/1) |> Enum.uniq()
    {first, rest} = Enum.split(references -- replied, 1)
    {replied, first ++ Enum.take(rest, -@most_references) ++ replied}
  end

  defp id?(id), do: id =~ ~r/\A[!-;=?-~]{1,900}\z/

  # The domain is sent in ASCII.
  defp address(text) do
    mailbox = Address.mailbox(text)

    case Address.wire(mailbox.address) do
      {:ok, address} -> %{mailbox | address: address}
      :error -> mailbox
    end
  end

  defp call(kind, fun) do
    with :ok <- loaded(), {:error, reason} <- fun.() do
      {:error, %MailError{kind: kind, reason: reason}}
    end
  end

  defp loaded do
    with {:error, reason} <- Library.load(),
         do: {:error, %MailError{kind: :library, reason: reason}}
  end
end
