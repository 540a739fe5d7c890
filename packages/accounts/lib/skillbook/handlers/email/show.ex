defmodule Skillbook.Handlers.Email.Show do
  @moduledoc false
  # Mails in words, for the results of `email.*`. Texts of strangers pass `External` here.

  alias Skillbook.{Drive, Result}
  alias Skillbook.Mail.{Address, MIME}
  alias Skillbook.Support.External

  # A thousand recipients of a mail are of no use to a model.
  @max_addresses 10
  # Quotes of this many lines are shown.
  @short_quote 2
  # Characters of an attachment. The run cuts a long result too.
  @max_file 100_000

  @doc "The line below lists of mails."
  def note, do: External.note("Names, subjects and beginnings of texts")

  @doc ~S"""
  A mailbox, with its name in quotes.

      iex> Skillbook.Handlers.Email.Show.address(%{name: "Bob", address: "bob@co.com"})
      ~S("Bob" <bob@co.com>)
      iex> Skillbook.Handlers.Email.Show.address(%{name: nil, address: "a b@co.com>"})
      ~S(<"a b@co.com>">)
  """
  def address(nil), do: "an unknown sender"
  def address(%{name: name, address: address}) when name in [nil, ""], do: place(address)

  def address(%{name: name, address: address}),
    do: External.line(name, 80) <> " " <> place(address)

  defp place(address) do
    plain? = address =~ ~r/\A[!#-;=?-~]{1,254}\z/
    "<" <> if(plain?, do: address, else: External.line(address, 254)) <> ">"
  end

  @doc "Several mailboxes, of which some may be left out."
  def addresses(addresses) do
    {shown, rest} = Enum.split(addresses, @max_addresses)
    text = Enum.map_join(shown, ", ", &address/1)
    if rest == [], do: text, else: "#{text} and #{length(rest)} more"
  end

  @doc "The recipients of a mail to send."
  def recipients(mail) do
    for {name, addresses} <- [{"", mail.to}, {"cc ", mail.cc}, {"bcc ", mail.bcc}],
        addresses != [] do
      {shown, rest} = Enum.split(addresses, @max_addresses)
      more = if rest == [], do: "", else: " and #{length(rest)} more"
      name <> Enum.join(shown, ", ") <> more
    end
    |> Enum.join("; ")
  end

  @doc "A time without its seconds."
  def time(nil), do: "at an unknown time"
  def time(time), do: Calendar.strftime(time, "%Y-%m-%d %H:%M UTC")

  @doc "A number of bytes, as files are shown."
  def size(bytes) when bytes < 1_000, do: "#{bytes} bytes"
  def size(bytes) when bytes < 1_000_000, do: "#{div(bytes, 1_000)} KB"
  def size(bytes), do: "#{:erlang.float_to_binary(bytes / 1_000_000, decimals: 1)} MB"

  @doc "One mail of a list, on two lines if it has a snippet."
  def summary(mail) do
    state = if mail.unread, do: ["unread"], else: []
    about = Enum.reject(state ++ [labels(mail.labels)], &(&1 == ""))
    about = if about == [], do: "", else: " [#{Enum.join(about, ", ")}]"

    line =
      "#{mail.id} #{time(mail.date)}#{about} from #{address(mail.from)}: " <>
        External.line(mail.subject, 150)

    if mail.snippet == "", do: line, else: "#{line}\n  #{External.line(mail.snippet, 150)}"
  end

  @doc "The first labels of a mail."
  def labels(labels), do: labels |> Enum.take(8) |> Enum.map_join(", ", &label/1)

  defp label(label),
    do: if(label =~ ~r/\A[\w\/.-]{1,60}\z/u, do: label, else: External.line(label, 60))

  @doc """
  The text of a message: `{text, notes}`. HTML becomes text, and quotes become a note in brackets,
  unless `:quotes` is set. With `:html` the HTML of two forms is used.
  """
  def text(message, options) do
    parts = Enum.map(message.body, &part(&1, options[:html] == true))
    {texts, notes} = {Enum.map(parts, &elem(&1, 0)), Enum.flat_map(parts, &elem(&1, 1))}
    text = texts |> Enum.map(&String.trim_trailing/1) |> Enum.reject(&(&1 == ""))
    text = Enum.join(text, "\n\n")
    {if(options[:quotes], do: text, else: fold(text)), Enum.uniq(notes)}
  end

  @doc "A mail that is sent on: its headers and its text, as they are."
  def forwarded(message) do
    {text, _notes} = text(message, quotes: true)
    heads = heads(message, List.wrap(message.from), message.date)
    Enum.join(["---------- Forwarded message ----------"] ++ heads ++ ["", text], "\n")
  end

  # Without line breaks, with which a stranger could write another header.
  defp heads(mail, from, date) do
    for {name, value} <- [
          {"From", boxes(from)},
          {"To", boxes(mail.to)},
          {"Cc", boxes(mail.cc)},
          {"Date", date && time(date)},
          {"Subject", mail.subject}
        ],
        value not in [nil, ""],
        do: "#{name}: #{String.replace(value, ~r/[\r\n]+/, " ")}"
  end

  @doc "The result that shows an attachment, as a text of a stranger, with what it belongs to."
  def file(file, owner, account) do
    with {:ok, text} <- file_text(file, account) do
      about = "attachment #{External.line(file.name)} of #{owner}, #{about_file(file)}"
      block = External.block(about, text, max: @max_file)
      {:ok, Result.ok(block, data: file, metadata: %{external: true})}
    end
  end

  @doc "The type and the size of an attachment."
  def about_file(file) do
    size = Map.get_lazy(file, :size, fn -> byte_size(file.data) end)
    type = if file.type =~ ~r/\A[\w.+-]+\/[\w.+-]+\z/, do: file.type, else: "of an unknown type"
    "#{type}, #{size(size)}"
  end

  # Mails and HTML as mails are read; PDF and office files by the program for documents.
  defp file_text(%{type: type, data: data}, _account)
       when type in ["message/rfc822", "message/global"] do
    with {:ok, mail} <- MIME.parse(data), do: {:ok, attached(mail)}
  end

  defp file_text(%{type: "text/html" <> _} = file, _account) do
    html = MIME.decode(file.data, file[:charset] || "utf-8")
    with {:ok, %{text: text}} <- MIME.html_text(html), do: {:ok, text}
  end

  defp file_text(%{charset: charset} = file, account) do
    file = %{file | data: MIME.decode(file.data, charset)}
    Drive.Text.read(file, account.deadline)
  end

  defp file_text(file, account), do: Drive.Text.read(file, account.deadline)

  @doc "A mail that is attached to another one, as it was written by a stranger."
  def attached(mail) do
    heads = heads(mail, mail.from, mail.date && DateTime.from_unix!(mail.date))

    body =
      case mail do
        %{text: text} when is_binary(text) -> text
        %{html: html} when is_binary(html) -> html |> html() |> elem(0)
        _none -> "(no text)"
      end

    files = for file <- mail.attachments, do: "Attachment: #{file.name || file.type}"
    Enum.join(heads ++ ["", body] ++ files, "\n")
  end

  defp boxes(boxes),
    do: boxes |> Enum.take(@max_addresses) |> Enum.map_join(", ", &Address.text/1)

  defp part({:plain, text}, _html?), do: {unwind(text), []}
  defp part({:html, html}, _html?), do: html(html)
  defp part({:either, _text, html}, true), do: html(html)

  defp part({:either, text, html}, false) do
    if String.trim(text) == "",
      do: html(html),
      else: {unwind(text), ["its HTML may say more; --html shows it"]}
  end

  defp html(html) do
    case MIME.html_text(html) do
      {:ok, %{text: text, hidden: hidden, cut: cut}} ->
        {text, hidden(hidden) ++ if(cut, do: ["the end of its HTML was left out"], else: [])}

      {:error, error} ->
        {"", [Exception.message(error)]}
    end
  end

  defp hidden(0), do: []
  defp hidden(1), do: ["1 character that its HTML hides from readers was left out"]
  defp hidden(n), do: ["#{n} characters that its HTML hides from readers were left out"]

  defp unwind(text), do: String.replace(text, "\r\n", "\n")

  @doc ~S"""
  Replaces quoted lines by a note of how many there are.

      iex> Skillbook.Handlers.Email.Show.fold("Yes.\n> a\n> b\n> c\nBye")
      "Yes.\n[3 quoted lines left out; --quotes shows them]\nBye"
      iex> Skillbook.Handlers.Email.Show.fold("> Will you come?\nYes.")
      "> Will you come?\nYes."
  """
  def fold(text), do: if(text =~ ~r/^\s*>/m, do: fold_lines(text), else: text)

  defp fold_lines(text) do
    text
    |> String.split("\n")
    |> Enum.chunk_by(&quoted?/1)
    |> Enum.flat_map(fn [line | _] = lines ->
      if quoted?(line) and length(lines) > @short_quote,
        do: ["[#{length(lines)} quoted lines left out; --quotes shows them]"],
        else: lines
    end)
    |> Enum.join("\n")
  end

  defp quoted?(line), do: String.starts_with?(String.trim_leading(line), ">")
end
