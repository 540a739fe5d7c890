defmodule Skillbook.Drive.Google do
  @moduledoc """
  Files in Google Drive, by version 3 of its interface.

  Shared drives are included. Google Docs are read and written as Markdown, sheets are read as
  workbooks and slides as plain text.

  ## Scopes

  Reading needs `drive.readonly`, making a file in one's own drive `drive.file`, and everything
  else `drive`.

  ## Writing twice

  A new file has an id that Drive has generated before, so a repeated request cannot make a second
  one. Documents that Drive converts cannot have such an id; they have a private property, by
  which the first one is found before a second attempt. Content of more than 5 MB is sent in
  parts, and an upload that was cut goes on where it stopped.

  Drive has no conditional write. The revision is compared right before the content is replaced,
  and a change in between is lost; the versions of the file, in Drive, still have it.
  """

  @behaviour Skillbook.Drive

  alias Skillbook.Connections
  alias Skillbook.Connections.Client
  alias Skillbook.Drive.Google.{Query, Upload}
  alias Skillbook.Drive.{Text, Types}
  alias Skillbook.Support.UntilError
  alias Skillbook.{DriveError, NotFoundError, ServiceError}

  @files "https://www.googleapis.com/drive/v3/files"
  @changes "https://www.googleapis.com/drive/v3/changes"

  @file_fields "id,name,mimeType,size,modifiedTime,headRevisionId,owners(displayName," <>
                 "emailAddress),shared,parents,driveId,webViewLink,trashed," <>
                 "shortcutDetails(targetId)"

  # The most in one page of Drive.
  @page 1000
  # Folders of one query, whose length is limited.
  @folders 40
  @max_parts 100

  @read "drive.read"
  @write "drive.update"

  # A request with the scopes of a command.
  defp request(account, command, request, options) do
    Client.request(as(account, command), request, [scopes: scopes(command)] ++ options)
  end

  defp scopes(command), do: Connections.Google.scopes(command || "")

  # If a scope is missing, the error names the command that the person has to allow. That is the
  # command of the call only if its least scope suffices: `drive.create --folder` and a mail with
  # an attachment need scopes of others.
  defp as(account, command) do
    if List.first(scopes(account.command)) in scopes(command),
      do: account,
      else: %{account | command: command}
  end

  # Finding

  @impl true
  def search(account, query) do
    # Drive sorts by relevance, and refuses another order, if words of the text are searched.
    order =
      cond do
        query[:text] -> []
        query[:folder] -> [orderBy: "folder,name_natural"]
        true -> [orderBy: "modifiedTime desc"]
      end

    with {:ok, found} <- files(account, Query.search(query), query.limit, where(query) ++ order),
         do: {:ok, %{files: Enum.map(found.items, &to_file/1), more: found.more}}
  end

  # Files in shared drives are found if Drive is told to look there. `sharedWithMe` is about
  # people's own drives.
  defp where(%{folder: folder} = query) when folder != nil, do: in_drive(query[:drive])
  defp where(%{shared: true}), do: []
  defp where(_query), do: [corpora: "allDrives"]

  @impl true
  def children(account, folders, limit) do
    folders
    |> Enum.chunk_every(@folders)
    |> UntilError.reduce([], fn some, found ->
      ids = Enum.map(some, & &1.id)

      case files(account, Query.children(ids), limit - length(found), in_drive(hd(some).drive)) do
        {:ok, %{more: false, items: items}} -> {:ok, Enum.map(items, &to_file/1) ++ found}
        {:ok, %{more: true}} -> too_many(hd(some), limit)
        error -> error
      end
    end)
  end

  defp too_many(folder, limit),
    do: {:error, %DriveError{kind: :too_many, name: folder.name, limit: limit}}

  defp files(_account, _q, limit, _more) when limit < 1, do: {:ok, %{items: [], more: true}}

  defp files(account, q, limit, more) do
    query =
      [q: q, pageSize: min(limit, @page), supportsAllDrives: true] ++
        [includeItemsFromAllDrives: true] ++ more

    options = [
      scopes: scopes(@read),
      method: "drive.files.list",
      items: "files",
      limit: limit,
      max_pages: div(limit, @page) + 10,
      fields: "nextPageToken,files(#{@file_fields})"
    ]

    Client.pages(as(account, @read), [method: :get, url: @files, query: query], options)
  end

  # A shared drive has a list of its own. Without one, it is the list of the person's files.
  defp in_drive(nil), do: []
  defp in_drive(drive), do: [corpora: "drive", driveId: drive]

  @impl true
  def file(account, id) do
    with {:ok, file} <- get(account, id) do
      case file do
        %{"shortcutDetails" => %{"targetId" => target}} when target != id ->
          # Shortcuts point to files, never to other shortcuts.
          with {:ok, target} <- get(account, target), do: {:ok, to_file(target)}

        file ->
          {:ok, to_file(file)}
      end
    end
  end

  defp get(account, id) do
    request = [method: :get, url: url(id), query: [supportsAllDrives: true]]

    with {:ok, %{body: file}} <-
           known(
             request(account, @read, request, method: "drive.files.get", fields: @file_fields),
             id
           ),
         do: {:ok, file}
  end

  # Drive answers in the same way for files that do not exist and those that the account may not
  # see.
  defp known({:error, %ServiceError{kind: :not_found}}, id),
    do: {:error, %NotFoundError{kind: "file", id: id, find: "drive.search"}}

  defp known(result, _id), do: result

  defp url(id), do: @files <> "/" <> URI.encode(id, &URI.char_unreserved?/1)

  defp to_file(%{"id" => id, "name" => name, "mimeType" => type} = file) do
    %{
      id: id,
      name: name,
      type: type,
      kind: Types.kind(type, name),
      own: Types.google?(type),
      size: Types.size(file["size"]),
      modified: time(file["modifiedTime"]),
      owner: owner(file["owners"]),
      shared: file["shared"] == true,
      folder: List.first(file["parents"] || []),
      drive: file["driveId"],
      revision: file["headRevisionId"] || file["modifiedTime"] || "",
      url: file["webViewLink"],
      trashed: file["trashed"] == true
    }
  end

  defp time(text) do
    case text && DateTime.from_iso8601(text) do
      {:ok, time, _offset} -> time
      _ -> ~U[1970-01-01 00:00:00Z]
    end
  end

  defp owner([owner | _]), do: owner["displayName"] || owner["emailAddress"]
  defp owner(_none), do: nil

  @impl true
  def id(text) do
    text = String.trim(text)

    cond do
      Regex.match?(~r/\A[A-Za-z0-9_-]{1,200}\z/, text) -> {:ok, text}
      id = address(text) -> {:ok, id}
      true -> :error
    end
  end

  @address ~r"\Ahttps://(?:docs|drive)\.google\.com/(?:[a-z0-9/]*/(?:d|folders)/|open\?id=)"
  @id ~r"\A([A-Za-z0-9_-]{1,200})(?:[/?#].*)?\z"s

  # The address that the browser shows, such as https://docs.google.com/document/d/ID/edit.
  defp address(text) do
    with [found] <- Regex.run(@address, text),
         rest = String.replace_prefix(text, found, ""),
         [_, id] <- Regex.run(@id, rest),
         do: id
  end

  # Contents

  @impl true
  def content(_account, %{kind: :folder, name: name}, _purpose),
    do: {:error, %DriveError{kind: :folder, name: name}}

  def content(account, file, purpose) do
    case Types.export(file.type, purpose) do
      :none ->
        {:error, %DriveError{kind: :no_text, name: file.name, reason: file.type}}

      :bytes ->
        bytes(account, file, url(file.id), [alt: "media", supportsAllDrives: true], file.type, "")

      {type, extension} ->
        bytes(account, file, url(file.id) <> "/export", [mimeType: type], type, extension)
    end
  end

  defp bytes(account, file, url, query, type, extension) do
    with {:ok, data} <- fetch(account, file, url, query, Text.max_bytes(), []),
         do: {:ok, %{name: file.name <> extension, type: type, data: data}}
  end

  @impl true
  def formats(%{own: true, type: type}), do: Types.formats(type)
  def formats(_file), do: []

  @impl true
  def save(account, file, format, device, max) do
    url = url(file.id)

    {url, query} =
      if format,
        do: {url <> "/export", [mimeType: Types.format(format)]},
        else: {url, [alt: "media", supportsAllDrives: true]}

    with {:ok, _body} <- fetch(account, file, url, query, max, into: device), do: :ok
  end

  defp fetch(account, file, url, query, max, options) do
    exported? = query[:mimeType] != nil
    method = if exported?, do: "drive.files.export", else: "drive.files.get"
    options = [method: method, decode: :raw, max_body: max] ++ options

    with true <- exported? or file.size == nil or file.size <= max,
         {:ok, %{body: data}} <-
           known(
             request(account, @read, [method: :get, url: url, query: query], options),
             file.id
           ) do
      {:ok, data}
    else
      {:error, error} ->
        if too_large?(error), do: too_large(file, max), else: {:error, error}

      false ->
        too_large(file, max)
    end
  end

  defp too_large?(error), do: is_struct(error, ServiceError) and large?(error)
  defp large?(error), do: error.kind == :too_large or error.code == "exportSizeLimitExceeded"

  # Google exports at most 10 MB.
  defp too_large(file, max),
    do: {:error, %DriveError{kind: :too_large, name: file.name, limit: max}}

  # Writing

  @impl true
  def create(account, new) do
    command = if new[:folder] in [nil, "root"], do: "drive.create", else: @write
    metadata = %{"name" => new.name, "parents" => [new[:folder] || "root"]}

    case new.kind do
      :document ->
        metadata = Map.put(metadata, "mimeType", Types.type(:document))
        create_document(account, metadata, new[:content] || "", command)

      :folder ->
        metadata = Map.put(metadata, "mimeType", Types.type(:folder))
        with_id(account, metadata, nil, command)

      :file ->
        type = new[:type] || "text/plain"
        metadata = Map.put(metadata, "mimeType", type)
        with_id(account, metadata, {type, new[:content] || ""}, command)
    end
  end

  # A conflict on another attempt means that the first one made the file.
  defp with_id(account, metadata, media, command) do
    request = [method: :get, url: @files <> "/generateIds", query: [count: 1]]
    options = [method: "drive.files.generateIds"]

    with {:ok, %{body: %{"ids" => [id]}}} <- request(account, command, request, options) do
      case write(account, :post, @files, Map.put(metadata, "id", id), media, true, command) do
        {:error, %ServiceError{kind: :conflict}} -> made_before(file(account, id))
        result -> result
      end
    end
  end

  # The file is there, even if it cannot be read now.
  defp made_before({:error, %ServiceError{} = error}), do: {:error, %{error | unclear: true}}
  defp made_before(result), do: result

  @property "skillbook_new"

  defp create_document(account, metadata, content, command) do
    key = 16 |> :crypto.strong_rand_bytes() |> Base.url_encode64(padding: false)
    metadata = Map.put(metadata, "appProperties", %{@property => key})
    attempt(account, metadata, {"text/markdown", content}, key, command, 2)
  end

  defp attempt(account, metadata, media, key, command, left) do
    case write(account, :post, @files, metadata, media, false, command) do
      {:error, %ServiceError{unclear: true}} = unclear when left > 0 ->
        case made(account, key, command) do
          {:ok, [file | _]} -> {:ok, file}
          {:ok, []} -> attempt(account, metadata, media, key, command, left - 1)
          # Nobody knows whether it was made.
          {:error, _reason} -> unclear
        end

      result ->
        result
    end
  end

  defp made(account, key, command) do
    query = [q: Query.property(@property, key), supportsAllDrives: true, pageSize: 1]
    query = query ++ [includeItemsFromAllDrives: true]
    options = [method: "drive.files.list", fields: "files(#{@file_fields})"]

    with {:ok, %{body: body}} <-
           request(account, command, [method: :get, url: @files, query: query], options),
         do: {:ok, Enum.map(body["files"] || [], &to_file/1)}
  end

  @impl true
  def update(account, file, changes) do
    with {:ok, now} <- current(account, file, changes),
         {:ok, media} <- media(now, changes[:content], changes[:type]) do
      metadata =
        for {key, name} <- [name: "name", trashed: "trashed", type: "mimeType"],
            changes[key] not in [nil, now.type],
            into: %{},
            do: {name, changes[key]}

      moved = moved(now, changes[:folder])

      # Replacing a text by the same text twice is replacing it once.
      write(account, :patch, url(now.id), metadata, media, true, @write, moved)
    end
  end

  defp current(account, file, changes) do
    with {:ok, now} <- file(account, file.id) do
      if changes[:revision] in [nil, now.revision],
        do: {:ok, now},
        else: {:error, %DriveError{kind: :changed, name: now.name}}
    end
  end

  defp media(_file, nil, _type), do: {:ok, nil}

  defp media(%{own: false} = file, {:file, _, _} = content, type),
    do: {:ok, {type || file.type, content}}

  defp media(file, {:file, _, _}, _type),
    do: {:error, %DriveError{kind: :own, name: file.name, ids: [file.id]}}

  defp media(%{type: type} = file, content, _type) do
    cond do
      type == Types.type(:document) -> {:ok, {"text/markdown", content}}
      Text.text?(type) -> {:ok, {type, content}}
      true -> {:error, %DriveError{kind: :fixed, name: file.name, reason: type}}
    end
  end

  defp moved(_file, nil), do: []
  defp moved(%{folder: folder}, folder), do: []
  defp moved(%{folder: nil}, folder), do: [addParents: folder]
  defp moved(%{folder: before}, folder), do: [addParents: folder, removeParents: before]

  defp write(account, method, url, metadata, media, repeat, command, query \\ []) do
    query = [supportsAllDrives: true] ++ query
    name = if method == :post, do: "drive.files.create", else: "drive.files.update"
    options = [method: name, repeat: repeat, fields: @file_fields]

    result =
      case media do
        nil ->
          request = [method: method, url: url, query: query, json: metadata]
          request(account, command, request, options)

        {type, content} ->
          options = [scopes: scopes(command)] ++ options
          account = as(account, command)
          Upload.send(account, method, url, query, metadata, type, content, options)
      end

    with {:ok, %{body: file}} <- result, do: {:ok, to_file(file)}
  end

  @impl true
  def share(account, file, grant) do
    {type, fields} = grantee(grant.to)
    permission = Map.merge(fields, %{"type" => type, "role" => Atom.to_string(grant.role)})
    told? = type in ["user", "group"]
    query = [supportsAllDrives: true]
    query = if told?, do: query ++ [sendNotificationEmail: grant.notify], else: query

    query =
      if told? and grant.notify and grant.message,
        do: query ++ [emailMessage: grant.message],
        else: query

    request = [method: :post, url: url(file.id) <> "/permissions", query: query, json: permission]
    # A permission is given once, however often it is asked for, but each request may send a mail.
    options = [method: "drive.permissions.create", repeat: not (told? and grant.notify)]
    options = options ++ [fields: "id"]

    with {:ok, _answer} <- known(request(account, @write, request, options), file.id), do: :ok
  end

  defp grantee({:user, address}), do: {"user", %{"emailAddress" => address}}
  defp grantee({:group, address}), do: {"group", %{"emailAddress" => address}}
  defp grantee({:domain, name}), do: {"domain", %{"domain" => name}}
  defp grantee(:anyone), do: {"anyone", %{}}

  @permissions "permissions(id,type,role,emailAddress,domain,displayName,deleted)"

  @impl true
  def permissions(account, file) do
    url = url(file.id) <> "/permissions"
    request = [method: :get, url: url, query: [supportsAllDrives: true, pageSize: 100]]

    options = [
      scopes: scopes(@read),
      method: "drive.permissions.list",
      items: "permissions",
      limit: 1_000,
      max_pages: 20,
      fields: "nextPageToken," <> @permissions
    ]

    with {:ok, %{items: found}} <-
           known(Client.pages(as(account, @read), request, options), file.id),
         do: {:ok, for(one <- found, one["deleted"] != true, do: permission(one))}
  end

  defp permission(%{"id" => id, "type" => type} = one) do
    to =
      case type do
        "anyone" -> :anyone
        "domain" -> {:domain, one["domain"] || ""}
        "group" -> {:group, one["emailAddress"] || ""}
        _user -> {:user, one["emailAddress"] || ""}
      end

    %{id: id, to: to, role: role(one["role"]), name: one["displayName"]}
  end

  # Shared drives have more kinds of people who write.
  defp role("reader"), do: :reader
  defp role("commenter"), do: :commenter
  defp role("owner"), do: :owner
  defp role(_writer_organizer), do: :writer

  @impl true
  def unshare(account, file, permission) do
    id = URI.encode(permission.id, &URI.char_unreserved?/1)
    url = url(file.id) <> "/permissions/" <> id
    request = [method: :delete, url: url, query: [supportsAllDrives: true]]

    case request(account, @write, request, method: "drive.permissions.delete", repeat: true) do
      {:ok, _answer} -> :ok
      {:error, %ServiceError{kind: :not_found}} -> :ok
      error -> error
    end
  end

  # Changes

  @impl true
  def changes(account, drive, nil) do
    query = [supportsAllDrives: true] ++ if(drive, do: [driveId: drive], else: [])
    request = [method: :get, url: @changes <> "/startPageToken", query: query]

    with {:ok, %{body: %{"startPageToken" => token}}} <-
           request(account, @read, request, method: "drive.changes.getStartPageToken"),
         do: {:ok, %{changes: [], token: token}}
  end

  def changes(account, drive, token), do: changes(account, drive, token, [], @max_parts)

  # A feed that never ends is left for a full comparison.
  defp changes(_account, _drive, _token, _found, 0), do: {:error, :expired}

  defp changes(account, drive, token, found, left) do
    query =
      [pageToken: token, pageSize: @page, supportsAllDrives: true] ++
        [includeItemsFromAllDrives: true] ++ if(drive, do: [driveId: drive], else: [])

    fields =
      "nextPageToken,newStartPageToken,changes(fileId,removed,changeType,file(#{@file_fields}))"

    options = [method: "drive.changes.list", fields: fields]

    case request(account, @read, [method: :get, url: @changes, query: query], options) do
      {:ok, %{body: body}} ->
        found = [change_pairs(body["changes"] || []) | found]

        case body do
          %{"nextPageToken" => next} when next != token ->
            changes(account, drive, next, found, left - 1)

          %{"newStartPageToken" => next} ->
            {:ok, %{changes: found |> Enum.reverse() |> Enum.concat(), token: next}}

          _neither ->
            {:error, :expired}
        end

      # A token that is too old, or of another account.
      {:error, %ServiceError{status: status}} when status in [400, 404, 410] ->
        {:error, :expired}

      error ->
        error
    end
  end

  defp change_pairs(changes) do
    for %{"fileId" => id} = change <- changes do
      case change do
        %{"removed" => true} -> {id, nil}
        %{"file" => %{"id" => _, "name" => _, "mimeType" => _} = file} -> {id, to_file(file)}
        _without_file -> {id, nil}
      end
    end
  end
end
