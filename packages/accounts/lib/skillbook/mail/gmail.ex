defmodule Skillbook.Mail.Gmail do
  @moduledoc """
  Mail by [Gmail's interface](https://developers.google.com/workspace/gmail/api/reference/rest),
  version 1.

  Gmail writes a Message-ID of its own into mails that are sent through this interface. To find a
  mail again after a lost connection, each one has its Message-ID in the header `X-Entity-Ref-ID`
  too, which Gmail keeps.
  """

  @behaviour Skillbook.Mail

  alias Skillbook.Connections.Client
  alias Skillbook.Mail.Gmail.{Message, Query}
  alias Skillbook.Mail.MIME
  alias Skillbook.Support.UntilError
  alias Skillbook.{MailError, NotFoundError, ServiceError}

  @root "https://gmail.googleapis.com"
  @me @root <> "/gmail/v1/users/me"

  # The scopes of methods: any one of them suffices, the first is the least. Those of commands are
  # in `Skillbook.Connections.Google`.
  @auth "https://www.googleapis.com/auth/gmail."
  @all "https://mail.google.com/"
  @read [@auth <> "readonly", @auth <> "modify", @all]
  @headers [@auth <> "metadata" | @read]
  @modify [@auth <> "modify", @all]
  @compose [@auth <> "compose", @auth <> "modify", @all]
  @send [@auth <> "send" | @compose]
  @labels [@auth <> "labels", @auth <> "readonly", @auth <> "modify", @all]

  @list "gmail.users.messages.list"

  # Gmail's limits, in bytes: of the attachments of a mail, and of a mail of the interface.
  @max_attachments 25_000_000
  @max_mail 36_700_160
  # Larger mails are uploaded, since a request in JSON has a limit of its own.
  @max_json 1_000_000
  @max_answer 64 * 1024 * 1024
  @max_thread 100

  @metadata ~w(From To Cc Reply-To Subject Date Message-ID References In-Reply-To)
  @summary "id,threadId,labelIds,snippet,internalDate,payload/headers"

  @impl true
  def max_attachments(_account), do: @max_attachments

  @impl true
  def utf8?(_account), do: {:ok, true}

  @impl true
  def address(%{identity: address}) when is_binary(address), do: {:ok, address}

  def address(account) do
    scopes = Enum.uniq(@headers ++ @compose)

    get_text(account, "/profile", scopes, "emailAddress", fields: "emailAddress")
  end

  # Reading

  @impl true
  def search(account, query) do
    with {:ok, labels} <- label_ids(account, List.wrap(query.label), @read),
         labels = if(query.unread == true, do: ["UNREAD" | labels], else: labels),
         parameters = [
           q: Query.text(query),
           includeSpamTrash: Enum.any?(labels, &(&1 in ["SPAM", "TRASH"])),
           maxResults: query.limit
         ],
         parameters = parameters ++ for(label <- labels, do: {:labelIds, label}),
         request = [method: :get, url: @me <> "/messages", query: parameters],
         options = [items: "messages", limit: query.limit, scopes: @read, method: @list],
         options = [fields: "messages(id),nextPageToken"] ++ options,
         {:ok, %{items: items, more: more}} <- Client.pages(account, request, options),
         ids = for(%{"id" => id} <- items, is_binary(id), do: id),
         {:ok, messages} <- summaries(account, ids, @read) do
      {:ok, %{messages: messages, more: more}}
    end
  end

  @impl true
  def get(account, id) do
    # For the error of a missing scope, in commands that only look a mail up.
    account = %{account | command: "email.read"}

    with :ok <- check_id(id),
         {:ok, message} <- get_json(account, "/messages/" <> id, @headers, metadata_options()),
         {:ok, names} <- label_names(account, [message]) do
      Message.summary(message, names)
    end
    |> not_found("mail", id)
  end

  @impl true
  def read(account, id) do
    with :ok <- check_id(id),
         options = [query: [format: "minimal"], fields: "threadId"],
         {:ok, thread} <- get_text(account, "/messages/" <> id, @read, "threadId", options),
         :ok <- check_id(thread),
         {:ok, messages} <- thread(account, thread, id),
         {:ok, names} <- label_names(account, messages) do
      UntilError.map(messages, &Message.message(&1, names))
    end
    |> not_found("mail", id)
  end

  # The thread, or only the message if the thread is too large for one answer.
  defp thread(account, thread, id) do
    options = [query: [format: "full"], max_body: @max_answer]

    case get_json(account, "/threads/" <> thread, @read, options) do
      {:ok, thread} ->
        draft? = &("DRAFT" in (&1["labelIds"] || []))
        sent = Enum.reject(thread["messages"] || [], &(draft?.(&1) and &1["id"] != id))
        {before, rest} = Enum.split_while(sent, &(&1["id"] != id))
        asked = Enum.take(rest, 1)
        latest = Enum.take(before ++ rest, -@max_thread)
        {:ok, if(asked == [] or hd(asked) in latest, do: latest, else: asked ++ tl(latest))}

      {:error, %ServiceError{kind: :too_large}} ->
        with {:ok, message} <- get_json(account, "/messages/" <> id, @read, options),
             do: {:ok, [Map.put(message, "alone", true)]}

      {:error, error} ->
        {:error, error}
    end
  end

  @impl true
  def attachment(account, id, part) do
    with :ok <- check_id(id),
         {:ok, message} <-
           get_json(account, "/messages/" <> id, @read,
             query: [format: "full"],
             fields: "payload",
             max_body: @max_answer
           ),
         {:ok, file, source} <- Message.fetch_part(message, part),
         {:ok, data} <- part_data(account, id, source) do
      {:ok, Map.put(file, :data, data)}
    else
      :error -> missing("attachment", "#{id}/#{part}", "email.read #{id}")
      {:error, error} -> {:error, error}
    end
    |> not_found("mail", id)
  end

  defp part_data(_account, _id, {:data, data}), do: {:ok, data}

  defp part_data(account, id, {:attachment, attachment}) do
    path = "/messages/#{id}/attachments/#{URI.encode(attachment, &URI.char_unreserved?/1)}"

    with {:ok, data} <- get_text(account, path, @read, "data", max_body: @max_answer),
         do: Message.decode(data)
  end

  # The messages with these ids, in this order; those that are gone are left out.
  defp summaries(_account, [], _scopes), do: {:ok, []}

  defp summaries(account, ids, scopes) do
    with {:ok, messages} <- get_all(account, ids, scopes, metadata_options()),
         {:ok, names} <- label_names(account, messages),
         do: UntilError.map(messages, &Message.summary(&1, names))
  end

  defp get_all(account, ids, scopes, options) do
    requests =
      for id <- ids,
          do: [method: :get, url: @me <> "/messages/" <> id, query: parameters(options)]

    account
    |> Client.batch(requests, scopes: scopes)
    |> Enum.reject(&match?({:error, %ServiceError{kind: :not_found}}, &1))
    |> UntilError.map(&with {:ok, %{body: message}} <- &1, do: {:ok, message})
  end

  defp metadata_options(headers \\ @metadata) do
    query = [format: "metadata"] ++ for(header <- headers, do: {:metadataHeaders, header})
    [query: query, fields: @summary]
  end

  # Labels

  # The names of all labels of messages by their ids; those of users need a request.
  defp label_names(account, messages) do
    ids = messages |> Enum.flat_map(&(&1["labelIds"] || [])) |> Enum.uniq()

    if Enum.all?(ids, &Message.system_label/1) do
      {:ok, %{}}
    else
      with {:ok, labels} <- list_labels(account, @labels),
           do: {:ok, Map.new(labels, &{&1["id"], &1["name"]})}
    end
  end

  defp list_labels(account, scopes) do
    with {:ok, answer} <- get_json(account, "/labels", scopes, fields: "labels(id,name)"),
         do: {:ok, answer["labels"] || []}
  end

  # The ids of labels, by their words or names.
  defp label_ids(account, names, scopes, create \\ &unknown/2) do
    if Enum.all?(names, &Message.label_id/1) do
      {:ok, Enum.map(names, &Message.label_id/1)}
    else
      with {:ok, labels} <- list_labels(account, scopes) do
        known = Map.new(labels, &{String.downcase(&1["name"]), &1["id"]})

        UntilError.map(names, fn name ->
          case Message.label_id(name) || known[String.downcase(name)] do
            nil -> create.(name, labels)
            id -> {:ok, id}
          end
        end)
      end
    end
  end

  defp unknown(name, labels) do
    names = for label <- labels, do: Message.label_name(label["id"], label["name"])
    available = names |> Enum.sort() |> Enum.take(20)
    {:error, %NotFoundError{kind: "label", id: name, find: nil, available: available}}
  end

  @impl true
  def label(account, ids, changes) do
    create = fn name, labels ->
      if changes.create, do: create_label(account, name), else: unknown(name, labels)
    end

    with :ok <- UntilError.each(ids, &check_id/1),
         {:ok, add} <- label_ids(account, changes.add, @modify, create),
         {:ok, remove} <- label_ids(account, changes.remove, @modify),
         :ok <- check_all(account, ids),
         body = %{ids: ids, addLabelIds: add, removeLabelIds: remove},
         # The same change again changes nothing, so it may be repeated.
         {:ok, _} <-
           post(account, "/messages/batchModify", @modify, [json: body], repeat: true, cost: 50),
         do: :ok
  end

  @impl true
  def archive(account, ids), do: label(account, ids, %{add: [], remove: ["inbox"], create: false})

  # Gmail changes no unknown message and says nothing about it.
  defp check_all(account, ids) do
    with {:ok, messages} <-
           get_all(account, ids, @modify, query: [format: "minimal"], fields: "id") do
      case ids -- Enum.map(messages, & &1["id"]) do
        [] -> :ok
        [id | _] -> missing("mail", id, "email.search")
      end
    end
  end

  defp create_label(account, name) do
    body = %{name: name, labelListVisibility: "labelShow", messageListVisibility: "show"}

    with {:ok, label} <- post(account, "/labels", @modify, [json: body], []),
         do: {:ok, label["id"]}
  end

  # Sending

  @impl true
  def send(account, mail) do
    with {:ok, raw} <- build(account, mail) do
      {path, scopes, message} = sending(mail)
      account = if mail.draft, do: %{account | command: "email.draft"}, else: account

      case submit(account, path, scopes, message, raw) do
        {:ok, sent} ->
          {:ok, sent_as(sent)}

        {:error, %ServiceError{unclear: unclear, kind: kind}}
        when unclear or kind == :bad_answer ->
          look_up(account, mail, [0, 1_000, 2_000])

        {:error, error} ->
          not_found({:error, error}, if(mail.draft, do: "draft", else: "mail"), mail.draft || "")
      end
    end
  end

  defp sending(%{draft: nil} = mail), do: {"/messages/send", @send, &message(mail, &1)}

  defp sending(%{draft: id} = mail),
    do: {"/drafts/send", @compose, &%{id: id, message: message(mail, &1)}}

  defp message(mail, fields),
    do: if(mail.reply, do: Map.put(fields, :threadId, mail.reply.thread), else: fields)

  defp sent_as(sent), do: %{id: sent["id"], thread: sent["threadId"]}

  # Looks for a mail among those sent last, by the only header that Gmail keeps.
  defp look_up(account, mail, [wait | later]) do
    if account.deadline && System.monotonic_time(:millisecond) + wait >= account.deadline,
      do: {:error, %MailError{kind: :unclear}},
      else: look_after(account, mail, wait, later)
  end

  defp look_after(account, mail, wait, later) do
    Process.sleep(wait)

    request = [method: :get, url: @me <> "/messages", query: [labelIds: "SENT", maxResults: 10]]

    with {:ok, %{items: items}} <-
           Client.pages(account, request,
             items: "messages",
             limit: 10,
             scopes: @headers,
             method: @list
           ),
         ids = for(%{"id" => id} <- items, is_binary(id), do: id),
         options = metadata_options(["X-Entity-Ref-ID", "Message-ID"]),
         {:ok, messages} <- get_all(account, ids, @headers, options),
         %{} = sent <- Enum.find(messages, &Message.marked?(&1, mail.message_id)) do
      {:ok, sent_as(sent)}
    else
      nil when later != [] -> look_up(account, mail, later)
      _ -> {:error, %MailError{kind: :unclear}}
    end
  end

  @impl true
  def draft(account, mail) do
    path = if mail.draft, do: "/drafts/" <> mail.draft, else: "/drafts"
    method = if mail.draft, do: :put, else: :post

    with :ok <- check_id(mail.draft || "new", "draft", nil),
         {:ok, raw} <- build(account, mail),
         fields = &%{message: message(mail, &1)},
         {:ok, draft} <- submit(account, path, @compose, fields, raw, method) do
      {:ok, %{id: draft["id"]}}
    end
    |> not_found("draft", mail.draft || "")
  end

  defp build(account, mail) do
    with {:ok, raw} <- MIME.build(Map.put(mail, :from, account.identity)) do
      raw = "X-Entity-Ref-ID: #{mail.message_id}\r\n" <> raw
      size = byte_size(raw)
      error = %MailError{kind: :too_large, size: size, limit: @max_mail}
      if size > @max_mail, do: {:error, error}, else: {:ok, raw}
    end
  end

  # Hands a mail over: in JSON, or a large one as an upload with the JSON before it.
  defp submit(account, path, scopes, fields, raw, method \\ :post)

  defp submit(account, path, scopes, fields, raw, method) when byte_size(raw) <= @max_json do
    json = fields.(%{raw: Base.url_encode64(raw)})
    request(account, [method: method, url: @me <> path, json: json], scopes, cost: 100)
  end

  defp submit(account, path, scopes, fields, raw, method) do
    boundary = "part-" <> Base.encode16(:crypto.strong_rand_bytes(16))
    json = fields.(%{}) |> Skillbook.Support.JSON.encode()

    body = [
      ["--", boundary, "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n", json],
      ["\r\n--", boundary, "\r\nContent-Type: message/rfc822\r\n\r\n", raw],
      ["\r\n--", boundary, "--\r\n"]
    ]

    request = [
      method: method,
      url: @root <> "/upload/gmail/v1/users/me" <> path,
      query: [uploadType: "multipart"],
      body: {"multipart/related; boundary=#{boundary}", body}
    ]

    request(account, request, scopes, cost: 100)
  end

  # Requests

  defp get_json(account, path, scopes, options) do
    request = [method: :get, url: @me <> path, query: parameters(options)]

    with {:ok, body} <- request(account, request, scopes, Keyword.take(options, [:max_body])) do
      if is_map(body),
        do: {:ok, body},
        else: {:error, %ServiceError{kind: :bad_answer, service: "Gmail"}}
    end
  end

  # A field of the answer that is text.
  defp get_text(account, path, scopes, field, options) do
    with {:ok, body} <- get_json(account, path, scopes, options) do
      case body do
        %{^field => text} when is_binary(text) -> {:ok, text}
        _ -> {:error, %ServiceError{kind: :bad_answer, service: "Gmail"}}
      end
    end
  end

  defp parameters(options) do
    fields = if options[:fields], do: [fields: options[:fields]], else: []
    Keyword.get(options, :query, []) ++ fields
  end

  defp post(account, path, scopes, body, options),
    do: request(account, [method: :post, url: @me <> path] ++ body, scopes, options)

  defp request(account, request, scopes, options) do
    [_, path] = String.split(request[:url], "/users/me/")
    name = name(request[:method], String.split(path, "/"))
    options = [scopes: scopes, method: "gmail.users." <> name] ++ options
    with {:ok, %{body: body}} <- Client.request(account, request, options), do: {:ok, body}
  end

  # Google's name of a method, for telemetry.
  defp name(:get, ["profile"]), do: "getProfile"
  defp name(:get, [kind]), do: kind <> ".list"
  defp name(:post, [kind]), do: kind <> ".create"
  defp name(:post, [kind, action]), do: kind <> "." <> action
  defp name(:get, [kind, _id]), do: kind <> ".get"
  defp name(:put, [kind, _id]), do: kind <> ".update"
  defp name(:get, [kind, _id, inner, _id2]), do: "#{kind}.#{inner}.get"

  # Errors

  # Ids of messages and drafts become parts of paths.
  defp check_id(id, kind \\ "mail", find \\ "email.search") do
    if id =~ ~r/\A[A-Za-z0-9_-]{1,128}\z/, do: :ok, else: missing(kind, id, find)
  end

  defp not_found({:error, %ServiceError{kind: :not_found}}, "draft", id),
    do: missing("draft", id, nil)

  defp not_found({:error, %ServiceError{kind: :not_found}}, kind, id),
    do: missing(kind, id, "email.search")

  # Gmail answers 400 to ids of another form than its own.
  defp not_found({:error, %ServiceError{kind: :invalid, code: code}}, kind, id)
       when code in ["invalidArgument", "INVALID_ARGUMENT"] and kind == "mail" and id != "",
       do: missing(kind, id, "email.search")

  defp not_found(result, _kind, _id), do: result

  defp missing(kind, id, find), do: {:error, %NotFoundError{kind: kind, id: id, find: find}}
end
