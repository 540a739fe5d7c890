defmodule Skillbook.Mail.Outlook do
  @moduledoc """
  Mail of Microsoft 365 and Outlook.com by
  [Microsoft Graph](https://learn.microsoft.com/graph/api/resources/mail-api-overview), version
  1.0.

  ## Labels

  In Outlook a message is in one folder and has categories. Both are labels:

    * `inbox`, `sent`, `drafts`, `spam` and `trash` are folders. Adding `inbox`, `spam` or `trash`
      moves a message there; removing `spam` or `trash` moves it to the inbox, and removing
      `inbox` to the archive
    * `unread`, `starred` (flagged) and `important` (high importance) are marks
    * another name is the folder of this name, if there is one: adding it moves a message there,
      and removing it moves the message to the inbox. Otherwise it is a category

  ## Ids

  All requests ask for immutable ids, which stay when a message is moved.

  ## Sending

  A mail is handed over whole, as `email.draft` stores it. Graph takes requests of at most 4 MB,
  and does not say which id the mail gets: it is looked up among the sent ones, if the connection
  may read mail.
  """

  @behaviour Skillbook.Mail

  alias Skillbook.Connections.Graph
  alias Skillbook.Mail.MIME
  alias Skillbook.Mail.Outlook.{Folders, Message, Query}
  alias Skillbook.Support.{External, UntilError}
  alias Skillbook.{MailError, NotFoundError, ServiceError}

  # The scopes of requests: any one of them suffices, the first is the least. Those of commands
  # are in `Skillbook.Connections.Microsoft`.
  @read ["Mail.Read", "Mail.ReadWrite"]
  @write ["Mail.ReadWrite"]
  @send ["Mail.Send"]

  # Bytes: of a mail in base64 in a request, and of attachments in such a mail.
  @max_request 4_000_000
  @max_attachments 2_000_000
  @max_answer 64 * 1024 * 1024
  @max_thread 100
  @most_in_thread 500
  # The most pages of a search whose other conditions are checked afterwards.
  @max_pages 10
  # Milliseconds to look for the id of a mail that was sent.
  @look_up 4_000

  @prefer [{"prefer", ~s(IdType="ImmutableId")}]

  @marks %{"unread" => :unread, "starred" => :starred, "important" => :important}
  @places ~w(inbox spam trash)
  # Only mails that the user wrote are there.
  @own ~w(sent drafts)

  @impl true
  def max_attachments(_account), do: @max_attachments

  @impl true
  def utf8?(_account), do: {:ok, true}

  @impl true
  def address(%{identity: address}) when is_binary(address), do: {:ok, address}

  def address(account) do
    hint = "Microsoft did not name the account's address; write it in place of me"
    {:error, invalid(account, hint)}
  end

  defp invalid(account, hint) do
    %ServiceError{kind: :invalid, service: "Outlook", account: account.name, hint: hint}
  end

  # Reading

  @impl true
  def search(account, query) do
    with {:ok, place, marks} <- place(account, query.label),
         {:ok, words} <- words(account, @read),
         {parameters, keep} <- Query.parameters(query, marks),
         {path, ids} = path(place),
         # Of the whole mailbox, spam and trash are left out.
         keep =
           &(keep.(&1) and (place != nil or words[&1["parentFolderId"]] not in ~w(spam trash))),
         # One more says whether there are more.
         limit = query.limit + 1,
         # The results of a search of words are checked afterwards.
         top = if(parameters[:"$search"], do: 100, else: limit),
         options = [limit: limit, max_pages: @max_pages, keep: &(is_map(&1) and keep.(&1))],
         parameters = Message.summary_query() ++ ["$top": top] ++ parameters,
         {:ok, %{items: items, more: more}} <-
           Graph.list(
             account,
             path,
             ids,
             [query: parameters, headers: @prefer, scopes: @read] ++ options
           ),
         {items, rest} = Enum.split(items, query.limit),
         {:ok, names} <- names(account, items, words),
         {:ok, messages} <- UntilError.map(items, &Message.summary(&1, names)) do
      {:ok, %{messages: messages, more: more or rest != []}}
    else
      :none -> {:ok, %{messages: [], more: false}}
      {:error, error} -> {:error, error}
    end
  end

  defp path(nil), do: {"/me/messages", []}
  defp path(id), do: {"/me/mailFolders/{id}/messages", [id]}

  # The folder of a search, and the mark that is no folder.
  defp place(_account, nil), do: {:ok, nil, []}

  defp place(account, label) do
    word = String.downcase(label)

    cond do
      mark = @marks[word] -> {:ok, nil, [mark]}
      name = Folders.known(word) -> {:ok, name, []}
      true -> named(account, label)
    end
  end

  defp named(account, label) do
    with {:ok, kind} <- find(account, label, @read) do
      case kind do
        {:folder, folder} -> {:ok, folder.id, []}
        {:category, name} -> {:ok, nil, [{:category, name}]}
        {:none, folders} -> {:error, unknown(label, folders)}
      end
    end
  end

  # A name stands for a folder, or for a category of any message.
  defp find(account, label, scopes) do
    with {:ok, folders} <- Folders.list(account, scopes, @prefer) do
      same? = &(String.downcase(&1) == String.downcase(label))

      case Enum.find(folders, &same?.(&1.name)) do
        nil -> category(account, label, same?, folders, scopes)
        folder -> {:ok, {:folder, folder}}
      end
    end
  end

  defp category(account, label, same?, folders, scopes) do
    query = ["$filter": Query.category(label), "$select": "categories", "$top": 1]
    options = [query: query, headers: @prefer, scopes: scopes, limit: 1]

    with {:ok, %{items: items}} <- Graph.list(account, "/me/messages", [], options) do
      names = for %{"categories" => [_ | _] = names} <- items, name <- names, do: name

      case Enum.find(names, &(is_binary(&1) and same?.(&1))) do
        nil -> {:ok, {:none, folders}}
        name -> {:ok, {:category, name}}
      end
    end
  end

  defp unknown(label, folders) do
    available = folders |> Enum.map(& &1.name) |> Enum.sort() |> Enum.take(20)
    %NotFoundError{kind: "label", id: label, find: nil, available: available}
  end

  defp words(account, scopes), do: Folders.words(account, scopes, @prefer)

  # The labels of folders by their ids; those of users need a request.
  defp names(account, messages, words) do
    if Enum.all?(messages, &Map.has_key?(words, &1["parentFolderId"])) do
      {:ok, words}
    else
      with {:ok, folders} <- Folders.list(account, @read, @prefer),
           do: {:ok, folders |> Map.new(&{&1.id, &1.name}) |> Map.merge(words)}
    end
  end

  @impl true
  def get(account, id) do
    # For the error of a missing scope, in commands that only look a mail up.
    account = %{account | command: "email.read"}

    with :ok <- check_id(id),
         {:ok, message} <- get_message(account, id, Message.summary_query(), @read),
         {:ok, words} <- words(account, @read),
         {:ok, names} <- names(account, [message], words) do
      Message.summary(message, names)
    end
    |> not_found("mail", id)
  end

  defp get_message(account, id, query, scopes, options \\ []) do
    options = [query: query, headers: @prefer, scopes: scopes] ++ options
    Graph.object(account, :get, "/me/messages/{id}", [id], options)
  end

  @impl true
  def read(account, id) do
    with :ok <- check_id(id),
         {:ok, asked} <- get_message(account, id, ["$select": "id,conversationId"], @read),
         {:ok, words} <- words(account, @read),
         {:ok, messages} <- thread(account, asked, words),
         {:ok, names} <- names(account, messages, words) do
      UntilError.map(messages, &Message.message(&1, names))
    end
    |> not_found("mail", id)
  end

  # The thread, or only the message if the thread is too large for one answer.
  defp thread(account, %{"id" => id, "conversationId" => thread}, words)
       when is_binary(id) and is_binary(thread) do
    # With an order, Graph refuses this filter.
    query = Message.query() ++ ["$filter": "conversationId eq " <> Graph.quoted(thread)]
    query = query ++ ["$top": @max_thread]
    options = [query: query, headers: @prefer, scopes: @read, max_body: @max_answer]
    options = options ++ [limit: @most_in_thread]

    case Graph.list(account, "/me/messages", [], options) do
      {:ok, %{items: items}} -> {:ok, latest(items, id, words)}
      {:error, %ServiceError{kind: :too_large}} -> alone(account, id, true)
      {:error, error} -> {:error, error}
    end
    |> case do
      # It is in no conversation that can be found.
      {:ok, []} -> alone(account, id, false)
      other -> other
    end
  end

  defp thread(_account, _asked, _words), do: {:error, Graph.bad_answer("/me/messages")}

  defp latest(items, id, words) do
    hidden? = &(&1["isDraft"] == true or words[&1["parentFolderId"]] in ~w(spam trash))
    items = items |> Enum.filter(&is_map/1) |> Enum.reject(&(hidden?.(&1) and &1["id"] != id))
    items = Enum.sort_by(items, &{to_string(&1["receivedDateTime"]), to_string(&1["id"])})
    latest = Enum.take(items, -@max_thread)
    asked = Enum.filter(items, &(&1["id"] == id))

    cond do
      asked == [] -> []
      hd(asked) in latest -> latest
      true -> asked ++ tl(latest)
    end
  end

  defp alone(account, id, too_large?) do
    with {:ok, message} <-
           get_message(account, id, Message.query(), @read, max_body: @max_answer),
         do: {:ok, [Map.put(message, "alone", too_large?)]}
  end

  @impl true
  def attachment(account, id, part) do
    path = "/me/messages/{id}/attachments/{id}/$value"

    with :ok <- check_id(id),
         {:ok, message} <- get_message(account, id, Message.files_query(), @read),
         {:ok, file_id, file} <- Message.fetch_file(message, part),
         options = [headers: @prefer, scopes: @read, decode: :raw, max_body: @max_answer],
         {:ok, %{body: data}} <- Graph.call(account, :get, path, [id, file_id], options) do
      {:ok, Map.put(file, :data, data)}
    else
      :error -> missing("attachment", "#{id}/#{part}", "email.read #{id}")
      {:error, error} -> {:error, error}
    end
    |> not_found("mail", id)
  end

  # Labels

  @impl true
  def label(account, ids, changes) do
    with :ok <- UntilError.each(ids, &check_id/1),
         {:ok, words} <- words(account, @write),
         {:ok, messages} <- UntilError.map(ids, &labelled(account, &1)),
         {:ok, add} <- UntilError.map(changes.add, &change(account, &1, changes.create)),
         {:ok, remove} <- UntilError.map(changes.remove, &change(account, &1, false)),
         do: UntilError.each(messages, &apply_changes(account, &1, words, add, remove))
  end

  @impl true
  def archive(account, ids), do: label(account, ids, %{add: [], remove: ["inbox"], create: false})

  defp labelled(account, id) do
    account
    |> get_message(id, ["$select": "id,parentFolderId,categories"], @write)
    |> not_found("mail", id)
  end

  # A label to add or to remove: a mark, a category, or a folder to move to.
  defp change(account, label, create?) do
    word = String.downcase(label)

    cond do
      mark = @marks[word] ->
        {:ok, mark}

      word in @places ->
        {:ok, {:move, Folders.known(word), word}}

      word in @own ->
        hint = "only mails that you wrote are in #{word}; choose another label"
        {:error, invalid(account, hint)}

      true ->
        with {:ok, found} <- find(account, label, @write), do: named_change(found, label, create?)
    end
    |> check_trash(account)
  end

  defp named_change({:folder, folder}, _label, _create?),
    do: {:ok, {:move, folder.id, folder.name}}

  defp named_change({:category, _name} = category, _label, _create?), do: {:ok, category}
  defp named_change({:none, _folders}, label, true), do: {:ok, {:category, label}}
  defp named_change({:none, folders}, label, false), do: {:error, unknown(label, folders)}

  # By another name than `trash`, which callers can tell apart.
  defp check_trash({:ok, {:move, id, name}} = change, account) when name not in @places do
    with {:ok, words} <- words(account, @write) do
      if words[id] == "trash" do
        hint = "#{External.line(name)} is the folder of deleted mails; call it trash"
        {:error, invalid(account, hint)}
      else
        change
      end
    end
  end

  defp check_trash(change, _account), do: change

  defp apply_changes(account, message, words, add, remove) do
    with :ok <- mark(account, message, add, remove) do
      here = message["parentFolderId"]

      case target(here, words, add, remove) do
        nil -> :ok
        id when id == here -> :ok
        target -> if words[here] == word(target), do: :ok, else: move(account, message, target)
      end
    end
  end

  defp word(target),
    do: Enum.find(@places ++ ["archive"], &(Folders.known(&1) == target)) || :other

  # The folder that a message is moved to, or `nil`.
  defp target(here, words, add, remove) do
    leaves = for {:move, id, name} <- remove, do: {id, name}
    adds = for {:move, id, _name} <- add, do: id

    cond do
      adds != [] ->
        List.last(adds)

      words[here] == "inbox" and Enum.any?(leaves, &match?({"inbox", _}, &1)) ->
        Folders.known("archive")

      Enum.any?(leaves, fn {id, name} -> id == here or name == words[here] end) ->
        Folders.known("inbox")

      true ->
        nil
    end
  end

  defp move(account, message, target) do
    # The same move again changes nothing.
    options = [json: %{DestinationId: target}, headers: @prefer, scopes: @write, repeat: true]

    with {:ok, _} <-
           Graph.call(account, :post, "/me/messages/{id}/move", [message["id"]], options),
         do: :ok
  end

  defp mark(account, message, add, remove) do
    given = if is_list(message["categories"]), do: message["categories"], else: []
    more = for {:category, name} <- add, do: name
    less = for {:category, name} <- remove, do: name
    categories = Enum.uniq((given ++ more) -- less)
    fields = Map.merge(fields(add, true), fields(remove, false))
    fields = if categories == given, do: fields, else: Map.put(fields, :categories, categories)

    if fields == %{} do
      :ok
    else
      # The same change again changes nothing.
      options = [json: fields, headers: @prefer, scopes: @write, repeat: true]

      with {:ok, _} <- Graph.call(account, :patch, "/me/messages/{id}", [message["id"]], options),
           do: :ok
    end
  end

  defp fields(changes, add?) do
    for change <- changes, is_atom(change), into: %{} do
      case change do
        :unread -> {:isRead, not add?}
        :starred -> {:flag, %{flagStatus: if(add?, do: "flagged", else: "notFlagged")}}
        :important -> {:importance, if(add?, do: "high", else: "normal")}
      end
    end
  end

  # Sending

  @impl true
  def send(account, mail) do
    # Its look-ups before need the scope of drafts.
    drafts = %{account | command: "email.draft"}

    with {:ok, body} <- build(mail),
         :ok <- check_draft(drafts, mail.draft),
         {:ok, sent} <- submit(account, mail, body) do
      # The mail is sent, so a failure from here on must not look as if it were not.
      if mail.draft, do: delete_draft(drafts, mail.draft)
      {:ok, sent}
    end
  end

  defp submit(account, mail, body) do
    options = [body: body, headers: @prefer, scopes: @send]

    case Graph.call(account, :post, "/me/sendMail", [], options) do
      {:ok, _accepted} ->
        # The mail is sent: its id is not worth a long wait.
        end_at = System.monotonic_time(:millisecond) + @look_up
        soon = %{account | deadline: min(account.deadline || end_at, end_at)}

        with {:error, _unknown} <- look_up(soon, mail, [0, 500, 1_500]),
             do: {:ok, %{id: nil, thread: nil}}

      {:error, %ServiceError{unclear: unclear, kind: kind}} when unclear or kind == :bad_answer ->
        look_up(account, mail, [0, 1_000, 2_000])

      {:error, error} ->
        {:error, error}
    end
  end

  # Looks for a mail among those sent.
  defp look_up(account, mail, [wait | later]) do
    if account.deadline && System.monotonic_time(:millisecond) + wait >= account.deadline do
      {:error, %MailError{kind: :unclear}}
    else
      Process.sleep(wait)
      look_now(account, mail, later)
    end
  end

  defp look_now(account, mail, later) do
    filter = "internetMessageId eq " <> Graph.quoted("<" <> mail.message_id <> ">")
    query = ["$filter": filter, "$select": "id,conversationId", "$top": 1]
    options = [query: query, headers: @prefer, scopes: @read, limit: 1]

    case Graph.list(account, "/me/mailFolders/{id}/messages", ["sentitems"], options) do
      {:ok, %{items: [%{"id" => id, "conversationId" => thread} | _]}}
      when is_binary(id) and is_binary(thread) ->
        {:ok, %{id: id, thread: thread}}

      {:ok, _none} when later != [] ->
        look_up(account, mail, later)

      _ ->
        {:error, %MailError{kind: :unclear}}
    end
  end

  @impl true
  def draft(account, mail) do
    options = [headers: @prefer, scopes: @write]

    with {:ok, body} <- build(mail),
         :ok <- check_draft(account, mail.draft),
         {:ok, draft} <-
           Graph.object(account, :post, "/me/messages", [], [body: body] ++ options),
         {:ok, id} <- id(draft),
         :ok <- if(mail.draft, do: delete_draft(account, mail.draft), else: :ok),
         do: {:ok, %{id: id}}
  end

  defp id(%{"id" => id}) when is_binary(id), do: {:ok, id}
  defp id(_other), do: {:error, Graph.bad_answer("/me/messages")}

  defp check_draft(_account, nil), do: :ok

  defp check_draft(account, id) do
    with :ok <- check_id(id, "draft", nil),
         {:ok, message} <- get_message(account, id, ["$select": "isDraft"], @write) do
      if message["isDraft"] == true, do: :ok, else: missing("draft", id, nil)
    end
    |> not_found("draft", id)
  end

  # A mail takes its place, so it does not go to the trash.
  defp delete_draft(account, id) do
    options = [headers: @prefer, scopes: @write, repeat: true]

    case Graph.call(account, :post, "/me/messages/{id}/permanentDelete", [id], options) do
      {:ok, _} -> :ok
      {:error, %ServiceError{kind: :not_found}} -> :ok
      {:error, error} -> {:error, error}
    end
  end

  # Exchange writes the sender, by the mailbox: the address with which a person signs in need not
  # be one that the mailbox may send from.
  defp build(mail) do
    with {:ok, raw} <- MIME.build(Map.put(mail, :from, nil)) do
      body = Base.encode64(raw)
      limit = div(@max_request * 3, 4)
      error = %MailError{kind: :too_large, size: byte_size(raw), limit: limit}

      if byte_size(body) > @max_request,
        do: {:error, error},
        else: {:ok, {"text/plain", body}}
    end
  end

  # Errors

  # Ids become parts of paths.
  defp check_id(id, kind \\ "mail", find \\ "email.search") do
    if id =~ ~r/\A[A-Za-z0-9_=-]{1,400}\z/, do: :ok, else: missing(kind, id, find)
  end

  defp not_found({:error, %ServiceError{kind: :not_found}}, "draft", id),
    do: missing("draft", id, nil)

  defp not_found({:error, %ServiceError{kind: :not_found}}, kind, id),
    do: missing(kind, id, "email.search")

  defp not_found(result, _kind, _id), do: result

  defp missing(kind, id, find), do: {:error, %NotFoundError{kind: kind, id: id, find: find}}
end
