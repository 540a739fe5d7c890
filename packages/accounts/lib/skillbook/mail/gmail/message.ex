defmodule Skillbook.Mail.Gmail.Message do
  @moduledoc false
  # Reads Gmail's resource `Message` and its labels.
  #
  # Gmail has taken the MIME structure apart already. Headers are read by `Skillbook.Mail.MIME`,
  # as those of every other service.

  alias Skillbook.Mail
  alias Skillbook.Mail.MIME
  alias Skillbook.ServiceError
  alias Skillbook.Support.Number

  # By Gmail's id; other labels of the system are in lower case too.
  @words %{"DRAFT" => "drafts"}
  @system ~w(INBOX UNREAD STARRED IMPORTANT SENT DRAFT SPAM TRASH CHAT)
  @ids Map.new(@system, &{Map.get(@words, &1, String.downcase(&1)), &1})

  # A mail that is nested deeper is not one that a person wrote.
  @max_parts 1_000

  # Labels

  @doc "Whether an id is one of Gmail's own labels, which need no request for their names."
  @spec system_label(String.t()) :: boolean()
  def system_label("CATEGORY_" <> _), do: true
  def system_label(id), do: id in @system or String.ends_with?(id, ["_STAR", "_STARRED"])

  @doc "The id of a label by its word, or `nil`."
  @spec label_id(String.t()) :: String.t() | nil
  def label_id(name), do: @ids[String.downcase(name)]

  @doc "The word or name of a label."
  @spec label_name(String.t(), String.t() | nil) :: String.t()
  def label_name(id, name) do
    if system_label(id), do: Map.get(@words, id, String.downcase(id)), else: name || id
  end

  # Messages

  @doc "A message with its headers. `names` has the names of users' labels by their ids."
  @spec summary(map(), %{String.t() => String.t()}) ::
          {:ok, Mail.summary()} | {:error, Exception.t()}
  def summary(message, names) do
    with :ok <- check(message), {:ok, headers} <- headers(message) do
      labels = message["labelIds"] || []

      {:ok,
       %{
         id: message["id"],
         thread: message["threadId"],
         message_id: headers.message_id,
         references: Enum.uniq(headers.references ++ headers.in_reply_to),
         from: List.first(headers.from),
         reply_to: headers.reply_to,
         to: headers.to,
         cc: headers.cc,
         subject: headers.subject,
         date: date(message["internalDate"]),
         unread: "UNREAD" in labels,
         labels: for(id <- labels, id != "UNREAD", do: label_name(id, names[id])),
         snippet: unescape(message["snippet"] || "")
       }}
    end
  end

  # Gmail leaves fields out, but those that are there have a type.
  defp check(message) do
    if message?(message),
      do: :ok,
      else: {:error, %ServiceError{kind: :bad_answer, service: "Gmail"}}
  end

  defp message?(%{"id" => id, "threadId" => thread} = message)
       when is_binary(id) and is_binary(thread) do
    texts?(message, ["snippet", "internalDate"]) and
      Enum.all?(list(message["labelIds"]), &is_binary/1) and part?(message["payload"] || %{})
  end

  defp message?(_message), do: false

  # The depth is that of the JSON, which has a limit.
  defp part?(%{} = part) do
    texts?(part, ["partId", "mimeType", "filename"]) and
      Enum.all?(list(part["headers"]), &header?/1) and body?(part["body"] || %{}) and
      Enum.all?(list(part["parts"]), &part?/1)
  end

  defp part?(_part), do: false

  defp header?(header),
    do: match?(%{"name" => n, "value" => v} when is_binary(n) and is_binary(v), header)

  defp body?(%{} = body),
    do: texts?(body, ["data", "attachmentId"]) and is_integer(body["size"] || 0)

  defp body?(_body), do: false

  defp texts?(map, names), do: Enum.all?(names, &(is_nil(map[&1]) or is_binary(map[&1])))

  defp list(nil), do: []
  defp list(list) when is_list(list), do: list
  defp list(_other), do: [:wrong]

  @doc "A message with its text."
  @spec message(map(), %{String.t() => String.t()}) ::
          {:ok, Mail.message()} | {:error, Exception.t()}
  def message(message, names) do
    with {:ok, summary} <- summary(message, names) do
      {body, attachments, problems} = message["payload"] |> Kernel.||(%{}) |> contents()

      alone =
        if message["alone"],
          do: ["its conversation is too large to be shown, so this is one message of it"],
          else: []

      {:ok,
       Map.merge(summary, %{body: body, attachments: attachments, problems: alone ++ problems})}
    end
  end

  @doc "Whether a sent mail is the one with this Message-ID."
  @spec marked?(map(), String.t()) :: boolean()
  def marked?(message, id) do
    Enum.any?(
      message["payload"]["headers"] || [],
      &(String.downcase(&1["name"]) in ["x-entity-ref-id", "message-id"] and
          String.trim(&1["value"], "<") |> String.trim(">") == id)
    )
  end

  defp date(nil), do: nil

  defp date(milliseconds) do
    with {number, ""} <- Number.integer(milliseconds),
         {:ok, date} <- DateTime.from_unix(div(number, 1000)) do
      date
    else
      _ -> nil
    end
  end

  # Gmail escapes the characters of HTML in snippets.
  defp unescape(text) do
    Enum.reduce(
      [{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}],
      text,
      fn {escaped, character}, text -> String.replace(text, escaped, character) end
    )
  end

  # Headers are put together again for the parser. A value cannot begin another header.
  defp headers(message) do
    lines =
      for %{"name" => name, "value" => value} <- message["payload"]["headers"] || [],
          name =~ ~r/\A[!-9;-~]+\z/,
          do: [name, ": ", String.replace(value, ~r/[\r\n\0]+/, " "), "\r\n"]

    MIME.parse(IO.iodata_to_binary([lines, "\r\n"]))
  end

  # Parts

  # The texts to show, by the rules of RFC 8621, section 4.1.4, and everything else as an
  # attachment.
  defp contents(payload) do
    {items, _left} = walk(payload, @max_parts)
    bodies = for {:body, body} <- items, do: body
    attachments = for {:attachment, part} <- items, do: attachment(part)

    cut =
      if Enum.any?(items, &(&1 == :cut)), do: ["it has more than #{@max_parts} parts"], else: []

    {bodies, attachments, cut}
  end

  # The depth is that of the JSON, which has a limit.
  defp walk(_part, 0), do: {[:cut], 0}

  defp walk(%{"parts" => [_ | _] = parts} = part, left) do
    {items, left} = Enum.flat_map_reduce(parts, left - 1, &walk/2)

    cond do
      # A forwarded message that can be fetched whole.
      attached?(part) and part["body"]["attachmentId"] -> {[{:attachment, part}], left}
      part["mimeType"] == "multipart/alternative" -> {either(items), left}
      true -> {items, left}
    end
  end

  defp walk(part, left) do
    item =
      cond do
        attached?(part) or part["body"]["attachmentId"] -> {:attachment, part}
        part["mimeType"] in ["text/plain", "text/html"] -> {:body, body(part)}
        String.starts_with?(part["mimeType"] || "", "multipart/") -> nil
        part["body"]["size"] in [nil, 0] -> nil
        true -> {:attachment, part}
      end

    {List.wrap(item), left - 1}
  end

  # Alternatives, of which the text is shown.
  defp either(items) do
    {bodies, others} =
      Enum.split_with(items, &match?({:body, {kind, _}} when kind != :either, &1))

    plain = for {:body, {:plain, text}} <- bodies, do: text
    html = for {:body, {:html, html}} <- bodies, do: html

    case {plain, html} do
      {[], _} -> items
      {_, []} -> items
      _ -> [{:body, {:either, Enum.join(plain, "\n"), Enum.join(html, "\n")}} | others]
    end
  end

  defp body(%{"mimeType" => type} = part) do
    {:ok, data} = part["body"]["data"] |> Kernel.||("") |> decode()
    text = text(data, String.downcase(parameter(part, "content-type", "charset") || "utf-8"))
    {if(type == "text/html", do: :html, else: :plain), text}
  end

  # Gmail does not say whether it has converted a text. Only these character sets have bytes that
  # are valid UTF-8 with another meaning.
  defp text(data, charset) do
    if String.valid?(data) and
         not String.contains?(charset, ["2022", "utf-7", "utf-16", "hz-gb"]),
       do: data,
       else: MIME.decode(data, charset)
  end

  defp attached?(part) do
    part["filename"] not in [nil, ""] or
      (header(part, "content-disposition") || "") =~ ~r/\A\s*attachment/i
  end

  defp attachment(part) do
    name = if part["filename"] in [nil, ""], do: "unnamed", else: part["filename"]

    %{
      part: part_id(part),
      name: name,
      type: part["mimeType"] || "application/octet-stream",
      size: part["body"]["size"] || 0
    }
  end

  # A mail of one part has no id for it.
  defp part_id(part), do: if(part["partId"] in [nil, ""], do: "0", else: part["partId"])

  @doc "An attachment by its part: its name and type, and its data or their id."
  @spec fetch_part(map(), String.t()) ::
          {:ok, %{name: String.t(), type: String.t()},
           {:data, binary()} | {:attachment, String.t()}}
          | :error
  def fetch_part(message, id) do
    payload = message["payload"]
    {items, _left} = if part?(payload), do: walk(payload, @max_parts), else: {[], 0}

    case for({:attachment, part} <- items, part_id(part) == id, do: part) do
      [] ->
        :error

      [%{"body" => %{"attachmentId" => attachment}} = part | _] ->
        {:ok, part |> attachment() |> Map.take([:name, :type]), {:attachment, attachment}}

      [part | _] ->
        {:ok, data} = (part["body"]["data"] || "") |> decode()
        {:ok, part |> attachment() |> Map.take([:name, :type]), {:data, data}}
    end
  end

  defp header(part, name) do
    Enum.find_value(part["headers"] || [], fn header ->
      if String.downcase(header["name"]) == name, do: header["value"]
    end)
  end

  defp parameter(part, header, name) do
    with value when value != nil <- header(part, header),
         [_, found] <- Regex.run(~r/;\s*#{name}\s*=\s*"?([^";\s]+)/i, value),
         do: found,
         else: (_ -> nil)
  end

  @doc "Decodes Gmail's base64; data that are broken are empty."
  @spec decode(String.t()) :: {:ok, binary()}
  def decode(data) do
    with :error <- Base.url_decode64(data, padding: false),
         :error <- Base.url_decode64(data),
         do: {:ok, ""}
  end
end
