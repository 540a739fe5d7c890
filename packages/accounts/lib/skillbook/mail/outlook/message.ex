defmodule Skillbook.Mail.Outlook.Message do
  @moduledoc false
  # Reads Graph's resource `message` and its attachments.

  alias Skillbook.Connections.Graph
  alias Skillbook.Mail
  alias Skillbook.Mail.MIME

  # Exchange keeps these headers of all messages; `internetMessageHeaders` has those of received
  # ones only.
  @references "String 0x1039"
  @in_reply_to "String 0x1042"

  @select ~w(id conversationId internetMessageId from replyTo toRecipients ccRecipients subject
    receivedDateTime isRead isDraft flag importance categories parentFolderId bodyPreview)
  @headers "singleValueExtendedProperties($filter=id eq '#{@references}' or " <>
             "id eq '#{@in_reply_to}')"
  @files "attachments($select=id,name,contentType,size,isInline)"

  @doc "The parameters of a request for summaries."
  @spec summary_query() :: keyword()
  def summary_query, do: ["$select": Enum.join(@select, ","), "$expand": @headers]

  @doc "The parameters of a request for messages with their texts and their lists of attachments."
  @spec query() :: keyword()
  def query,
    do: ["$select": Enum.join(@select ++ ["body"], ","), "$expand": "#{@headers},#{@files}"]

  @doc "The parameters of a request for the attachments alone."
  @spec files_query() :: keyword()
  def files_query, do: ["$select": "id", "$expand": @files]

  @doc "A message with its headers. `names` has the names of folders by their ids."
  @spec summary(map(), %{String.t() => String.t()}) ::
          {:ok, Mail.summary()} | {:error, Exception.t()}
  def summary(message, names) do
    with :ok <- check(message), {:ok, headers} <- headers(message) do
      {:ok,
       %{
         id: message["id"],
         thread: message["conversationId"] || message["id"],
         message_id: headers.own,
         references: headers.thread,
         from: message["from"] |> List.wrap() |> mailboxes() |> List.first(),
         reply_to: mailboxes(message["replyTo"]),
         to: mailboxes(message["toRecipients"]),
         cc: mailboxes(message["ccRecipients"]),
         subject: message["subject"] || "",
         date: date(message["receivedDateTime"]),
         unread: message["isRead"] == false,
         labels: labels(message, names),
         snippet: message["bodyPreview"] || ""
       }}
    end
  end

  # Ids are read by the parser of mails, as those of every other service.
  defp headers(message) do
    properties =
      for %{"id" => id, "value" => value} <- message["singleValueExtendedProperties"] || [],
          into: %{},
          do: {id, value}

    with {:ok, own} <- ids(message["internetMessageId"]),
         {:ok, references} <- ids(properties[@references]),
         {:ok, in_reply_to} <- ids(properties[@in_reply_to]) do
      thread = Enum.uniq(references ++ in_reply_to) -- own
      {:ok, %{own: List.first(own), thread: thread}}
    end
  end

  defp ids(nil), do: {:ok, []}

  defp ids(text) do
    line = "References: " <> String.replace(text, ~r/[\r\n\0]+/, " ") <> "\r\n\r\n"
    with {:ok, headers} <- MIME.parse(line), do: {:ok, headers.references}
  end

  defp mailboxes(list) do
    for %{"emailAddress" => %{"address" => address} = mailbox} when is_binary(address) <-
          list || [] do
      # Without a name, Exchange repeats the address.
      name = mailbox["name"]
      %{name: if(name in ["", address], do: nil, else: name), address: address}
    end
  end

  defp labels(message, names) do
    marks = [
      match?(%{"flag" => %{"flagStatus" => "flagged"}}, message) && "starred",
      message["importance"] == "high" && "important"
    ]

    folder = names[message["parentFolderId"]]
    Enum.filter([folder | marks], & &1) ++ (message["categories"] || [])
  end

  defp date(text) do
    with text when is_binary(text) <- text,
         {:ok, time, _offset} <- DateTime.from_iso8601(text),
         do: DateTime.truncate(time, :second),
         else: (_ -> nil)
  end

  defp check(message),
    do: if(message?(message), do: :ok, else: {:error, Graph.bad_answer("/me/messages")})

  @texts ~w(conversationId internetMessageId subject receivedDateTime importance parentFolderId
    bodyPreview)

  defp message?(%{"id" => id} = message) when is_binary(id) do
    Graph.texts?(message, @texts) and
      all?(message, "categories", &is_binary/1) and
      Enum.all?(
        ~w(replyTo toRecipients ccRecipients),
        &all?(message, &1, fn m -> mailbox?(m) end)
      ) and
      (is_nil(message["from"]) or mailbox?(message["from"])) and
      all?(message, "singleValueExtendedProperties", &property?/1) and
      all?(message, "attachments", &file?/1) and
      Graph.object?(message["body"], ~w(contentType content))
  end

  defp message?(_message), do: false

  defp all?(message, name, fun) do
    list = message[name] || []
    is_list(list) and Enum.all?(list, fun)
  end

  defp property?(property), do: is_map(property) and Graph.texts?(property, ~w(id value))

  defp mailbox?(%{"emailAddress" => %{} = mailbox}), do: Graph.texts?(mailbox, ~w(name address))
  defp mailbox?(_other), do: false

  defp file?(%{"id" => id} = file) when is_binary(id),
    do: Graph.texts?(file, ~w(name contentType @odata.type)) and is_integer(file["size"] || 0)

  defp file?(_other), do: false

  @doc "A message with its text."
  @spec message(map(), %{String.t() => String.t()}) ::
          {:ok, Mail.message()} | {:error, Exception.t()}
  def message(message, names) do
    with {:ok, summary} <- summary(message, names) do
      {files, links} = files(message)
      attachments = for {file, number} <- files, do: attachment(file, number)

      problems =
        [
          message["alone"] &&
            "its conversation is too large to be shown, so this is one message of it",
          links != [] && "it has links to files on a drive in place of attachments"
        ]
        |> Enum.filter(& &1)

      {:ok,
       Map.merge(summary, %{
         body: body(message["body"] || %{}),
         attachments: attachments,
         problems: problems
       })}
    end
  end

  # Exchange keeps one form of a text.
  defp body(%{"content" => text} = body) when text not in [nil, ""],
    do: [{if(body["contentType"] == "html", do: :html, else: :plain), text}]

  defp body(_none), do: []

  # The attachments with their numbers, which are their parts: ids are long. Links to files of a
  # drive have no content of their own.
  defp files(message) do
    (message["attachments"] || [])
    |> Enum.with_index(1)
    |> Enum.split_with(fn {file, _} ->
      file["@odata.type"] != "#microsoft.graph.referenceAttachment"
    end)
  end

  defp attachment(file, number) do
    %{
      part: "#{number}",
      name: name(file),
      type: type(file),
      size: max(file["size"] || 0, 0)
    }
  end

  # A mail that is attached has its subject in place of a name.
  defp name(%{"@odata.type" => "#microsoft.graph.itemAttachment"} = file) do
    name = file["name"] || "unnamed"
    if String.ends_with?(String.downcase(name), ".eml"), do: name, else: name <> ".eml"
  end

  defp name(file), do: if(file["name"] in [nil, ""], do: "unnamed", else: file["name"])

  defp type(%{"@odata.type" => "#microsoft.graph.itemAttachment"}), do: "message/rfc822"

  defp type(file) do
    case String.split(file["contentType"] || "", ";") do
      [type | _] when type != "" -> type |> String.trim() |> String.downcase()
      _ -> "application/octet-stream"
    end
  end

  @doc "The id of an attachment by its part, with its name and type."
  @spec fetch_file(map(), String.t()) ::
          {:ok, String.t(), %{name: String.t(), type: String.t()}} | :error
  def fetch_file(message, part) do
    {files, _links} =
      if all?(message, "attachments", &file?/1), do: files(message), else: {[], []}

    case Enum.find(files, fn {_file, number} -> "#{number}" == part end) do
      {file, number} -> {:ok, file["id"], file |> attachment(number) |> Map.take([:name, :type])}
      nil -> :error
    end
  end
end
