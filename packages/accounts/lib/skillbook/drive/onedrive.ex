defmodule Skillbook.Drive.OneDrive do
  @moduledoc """
  Files in a person's OneDrive by
  [Microsoft Graph](https://learn.microsoft.com/graph/api/resources/onedrive), version 1.0.

  OneDrive has no documents without bytes: a document that is made from Markdown is a file of
  Markdown. A folder has one file of a name, and a new file never replaces another one. Deleted
  files are in the recycle bin, where people take them back.
  """

  @behaviour Skillbook.Drive

  alias Skillbook.Connections.Graph
  alias Skillbook.Drive
  alias Skillbook.Drive.OneDrive.Upload
  alias Skillbook.Drive.{Text, Types}
  alias Skillbook.Support.UntilError
  alias Skillbook.{DriveError, NotFoundError, ServiceError}

  # The scopes of requests: any one of them suffices, the first is the least.
  @read ["Files.Read", "Files.ReadWrite"]
  @write ["Files.ReadWrite"]

  @select "id,name,size,file,folder,package,parentReference,lastModifiedDateTime,createdBy," <>
            "shared,webUrl,cTag,eTag,deleted"
  @page 200
  # The most pages whose files are compared with the conditions of a search.
  @max_pages 20

  # Seconds in which a file has just come, with what the clocks may differ.
  @recent 120

  @item "/me/drive/items/{id}"

  # Finding

  @impl true
  def search(account, %{shared: true}) do
    hint = "Microsoft lists no files that others shared with the account; ask for their addresses"
    {:error, error(account, :invalid, hint)}
  end

  def search(account, query) do
    with {:ok, %{items: items, more: more}} <- found(account, query) do
      {files, rest} = items |> Enum.map(&to_file/1) |> order(query) |> Enum.split(query.limit)
      {:ok, %{files: files, more: more or rest != []}}
    end
  end

  # Microsoft finds words of names and texts; the other conditions are checked here.
  defp found(account, query) do
    text = query[:text] || query[:name]

    cond do
      text ->
        options = [limit: query.limit + 1, keep: &keep?(&1, query)]
        quoted = String.replace(text, "'", "''")
        list(account, "/me/drive/search(q='{id}')", [quoted], options)

      query[:folder] ->
        options = [limit: @page * @max_pages, keep: &keep?(&1, query)]
        account |> list(@item <> "/children", [query.folder], options) |> known(query.folder)

      true ->
        options = [limit: @page * @max_pages, keep: &keep?(&1, query)]
        list(account, @item <> "/delta()", ["root"], options)
    end
  end

  defp list(account, path, ids, options) do
    query = ["$select": @select, "$top": @page]

    Graph.list(
      account,
      path,
      ids,
      [query: query, scopes: @read, max_pages: @max_pages] ++ options
    )
  end

  defp order(files, query) do
    cond do
      query[:text] -> files
      query[:folder] -> Enum.sort_by(files, &{&1.kind != :folder, String.downcase(&1.name)})
      true -> Enum.sort_by(files, &DateTime.to_unix(&1.modified), :desc)
    end
  end

  # The root of a drive is no file of it.
  defp keep?(raw, query) do
    file?(raw) and not is_map_key(raw, "deleted") and raw["parentReference"]["id"] != nil and
      query |> Map.to_list() |> Enum.all?(&holds?(&1, raw, to_file(raw)))
  end

  defp holds?({_name, nil}, _raw, _file), do: true
  defp holds?({:name, name}, _raw, file), do: file.name == name
  defp holds?({:kind, kind}, _raw, file), do: file.kind == kind
  defp holds?({:folder, folder}, _raw, file), do: folder == "root" or file.folder == folder
  defp holds?({:owner, "me"}, raw, _file), do: raw["shared"]["owner"] == nil
  defp holds?({:owner, owner}, raw, file), do: owner in [file.owner, address(raw["createdBy"])]

  defp holds?({:after, day}, _raw, file),
    do: Date.compare(DateTime.to_date(file.modified), day) != :lt

  defp holds?({:before, day}, _raw, file),
    do: Date.compare(DateTime.to_date(file.modified), day) == :lt

  defp holds?(_other, _raw, _file), do: true

  defp address(%{"user" => %{"email" => address}}), do: address
  defp address(_none), do: nil

  @impl true
  def children(account, folders, limit) do
    UntilError.reduce(folders, [], fn folder, found ->
      options = [limit: max(limit - length(found), 1), keep: &file?/1]

      case account |> list(@item <> "/children", [folder.id], options) |> known(folder.id) do
        {:ok, %{more: false, items: items}} when length(items) + length(found) <= limit ->
          {:ok, Enum.map(items, &to_file/1) ++ found}

        {:ok, _more} ->
          {:error, %DriveError{kind: :too_many, name: folder.name, limit: limit}}

        error ->
          error
      end
    end)
  end

  @impl true
  def file(account, id) do
    with {:ok, raw} <- fetch_raw(account, id), do: {:ok, to_file(raw)}
  end

  defp fetch_raw(account, id) do
    options = [query: ["$select": @select], scopes: @read]

    with {:ok, raw} <- account |> Graph.object(:get, @item, [id], options) |> known(id),
         do: check_file(raw)
  end

  defp read_file(raw), do: with({:ok, raw} <- check_file(raw), do: {:ok, to_file(raw)})

  defp check_file(raw),
    do: if(file?(raw), do: {:ok, raw}, else: {:error, Graph.bad_answer("/me/drive")})

  defp known({:error, %ServiceError{kind: :not_found}}, id),
    do: {:error, %NotFoundError{kind: "file", id: id, find: "drive.search"}}

  defp known(result, _id), do: result

  # Ids of Outlook.com have an exclamation mark.
  @impl true
  def id(text) do
    text = String.trim(text)
    if text =~ ~r/\A[A-Za-z0-9!_-]{1,200}\z/, do: {:ok, text}, else: :error
  end

  defp file?(%{"id" => id, "name" => name} = raw) when is_binary(id) and is_binary(name) do
    objects?(raw, ~w(folder package createdBy shared deleted)) and
      Graph.object?(raw["file"], ["mimeType"]) and
      Graph.object?(raw["parentReference"], ["id"]) and
      Graph.texts?(raw, ~w(lastModifiedDateTime webUrl cTag eTag)) and
      objects?(raw["createdBy"], ["user"]) and objects?(raw["shared"], ["owner"])
  end

  defp file?(_other), do: false

  defp objects?(raw, names), do: Enum.all?(names, &Graph.object?(raw[&1], []))

  defp to_file(raw) do
    type = type(raw)

    %{
      id: raw["id"],
      name: raw["name"],
      type: type,
      kind: kind(type, raw),
      own: is_map(raw["package"]),
      size: if(raw["folder"] == nil and is_integer(raw["size"]), do: raw["size"]),
      modified: time(raw["lastModifiedDateTime"]),
      owner: owner(raw["createdBy"]),
      shared: is_map(raw["shared"]),
      folder: raw["parentReference"]["id"],
      drive: nil,
      # Without the signs that commands do not take.
      revision: (raw["cTag"] || "") |> String.replace(~r/[^\w.:!~+-]+/, ".") |> String.trim("."),
      url: raw["webUrl"],
      trashed: is_map(raw["deleted"])
    }
  end

  defp type(%{"folder" => %{}}), do: "inode/directory"
  defp type(%{"package" => %{}}), do: "application/onenote"
  defp type(%{"file" => %{"mimeType" => type}}) when is_binary(type), do: String.downcase(type)
  defp type(_other), do: "application/octet-stream"

  defp kind(_type, %{"folder" => %{}}), do: :folder
  defp kind(type, raw), do: Types.kind(type, raw["name"])

  defp time(text) do
    case text && DateTime.from_iso8601(text) do
      {:ok, time, _offset} -> DateTime.truncate(time, :second)
      _ -> ~U[1970-01-01 00:00:00Z]
    end
  end

  defp owner(%{"user" => %{"displayName" => name}}) when is_binary(name), do: name
  defp owner(_none), do: nil

  # Contents

  @impl true
  def content(_account, %{kind: :folder, name: name}, _purpose),
    do: {:error, %DriveError{kind: :folder, name: name}}

  def content(_account, %{own: true} = file, _purpose),
    do: {:error, %DriveError{kind: :no_text, name: file.name, reason: file.type}}

  def content(account, file, _purpose) do
    with {:ok, data} <- fetch(account, file, Text.max_bytes(), []),
         do: {:ok, %{name: file.name, type: file.type, data: data}}
  end

  # Microsoft converts these to PDF.
  @to_pdf ~w(doc docx odp ods odt pps ppsx ppt pptx rtf xls xlsm xlsx)

  @impl true
  def formats(file) do
    extension = extension(file)
    if extension in @to_pdf, do: [extension, "pdf"], else: []
  end

  defp extension(file),
    do: file.name |> Path.extname() |> String.trim_leading(".") |> String.downcase()

  @impl true
  def save(account, file, format, device, max) do
    pdf? = format == "pdf" and "pdf" in formats(file)
    options = if pdf?, do: [query: [format: "pdf"]], else: []
    with {:ok, _body} <- fetch(account, file, max, [into: device] ++ options), do: :ok
  end

  # The size of a PDF is not known.
  defp fetch(account, file, max, options) do
    # Microsoft redirects to the server with the bytes, which gets no token.
    call = [scopes: @read, decode: :raw, max_body: max, redirects: 1] ++ options

    with true <- file.size == nil or file.size <= max or options[:query] != nil,
         {:ok, %{body: data}} <-
           account |> Graph.call(:get, @item <> "/content", [file.id], call) |> known(file.id) do
      {:ok, data}
    else
      {:error, %ServiceError{kind: :too_large}} -> too_large(file, max)
      {:error, error} -> {:error, error}
      false -> too_large(file, max)
    end
  end

  defp too_large(file, max),
    do: {:error, %DriveError{kind: :too_large, name: file.name, limit: max}}

  # Writing

  @conflict "@microsoft.graph.conflictBehavior"
  # The largest file.
  @max_upload 250_000_000_000

  @impl true
  def create(account, %{kind: :folder} = new) do
    body = %{"name" => new.name, "folder" => %{}, @conflict => "fail"}
    options = [json: body, scopes: @write, repeat: true]

    account
    |> Graph.object(:post, @item <> "/children", [parent(new)], options)
    |> made(account, new, nil)
  end

  def create(account, new) do
    {name, type} = named(new)

    target = %{
      path: @item <> ":/{id}:",
      ids: [parent(new), name],
      type: type,
      conflict: "fail",
      etag: nil
    }

    account
    |> upload(target, new[:content] || "")
    |> made(account, %{new | name: name}, Drive.size(new[:content] || ""))
  end

  defp upload(account, target, content) do
    if Drive.size(content) <= @max_upload do
      Upload.send(account, Map.put(target, :scopes, @write), content)
    else
      {:error, error(account, :too_large, "files of OneDrive have at most 250 GB")}
    end
  end

  defp parent(new), do: new[:folder] || "root"

  # OneDrive converts no Markdown.
  defp named(%{kind: :document, name: name}) do
    name = if String.downcase(Path.extname(name)) == ".md", do: name, else: name <> ".md"
    {name, "text/markdown"}
  end

  defp named(new), do: {new.name, new[:type] || "text/plain"}

  # A conflict on another attempt may mean that the first one made it. The connection repeats a
  # PUT by itself, so a file of this size that has just come is the one.
  defp made({:error, %ServiceError{kind: :conflict} = error}, account, new, size)
       when size != nil or error.attempts > 1 do
    options = [limit: @page * @max_pages, keep: &(file?(&1) and &1["name"] == new.name)]

    case list(account, @item <> "/children", [parent(new)], options) do
      {:ok, %{items: [raw | _]}} -> if ours?(raw, size), do: read_file(raw), else: {:error, error}
      {:ok, _none} -> {:error, error}
      {:error, _unknown} -> {:error, %{error | unclear: error.attempts > 1}}
    end
  end

  defp made({:ok, raw}, _account, _new, _size) do
    with {:error, error} <- read_file(raw), do: {:error, %{error | unclear: true}}
  end

  defp made(result, _account, new, _size), do: known(result, parent(new))

  defp ours?(raw, nil), do: is_map(raw["folder"])

  defp ours?(raw, size),
    do: raw["size"] == size and DateTime.diff(DateTime.utc_now(), to_file(raw).modified) < @recent

  @impl true
  def update(account, file, changes) do
    with {:ok, raw} <- current(account, file, changes),
         {:ok, raw} <- rename(account, raw, changes),
         {:ok, raw} <- replace(account, raw, changes[:content], changes[:type]),
         do: trash(account, to_file(raw), changes[:trashed])
  end

  defp current(account, file, changes) do
    with {:ok, raw} <- fetch_raw(account, file.id) do
      now = to_file(raw)

      cond do
        changes[:revision] not in [nil, now.revision] ->
          {:error, %DriveError{kind: :changed, name: now.name}}

        not replaced?(now, changes[:content]) ->
          {:error, %DriveError{kind: :fixed, name: now.name, reason: now.type}}

        true ->
          {:ok, raw}
      end
    end
  end

  # An open file replaces any bytes, and a text replaces a text.
  defp replaced?(_now, nil), do: true
  defp replaced?(now, {:file, _device, _size}), do: now.kind != :folder and not now.own
  defp replaced?(now, _text), do: Text.text?(now.type) or now.kind == :markdown

  defp rename(account, raw, changes) do
    folder = if changes[:folder] not in [nil, raw["parentReference"]["id"]], do: changes[:folder]
    body = if changes[:name], do: %{"name" => changes[:name]}, else: %{}
    body = if folder, do: Map.put(body, "parentReference", %{"id" => folder}), else: body

    if body == %{} do
      {:ok, raw}
    else
      # The same change again changes nothing.
      options = [json: body, scopes: @write, repeat: true]

      with {:ok, raw} <-
             account |> Graph.object(:patch, @item, [raw["id"]], options) |> known(raw["id"]),
           do: check_file(raw)
    end
  end

  defp replace(_account, raw, nil, _type), do: {:ok, raw}

  defp replace(account, %{"id" => id} = raw, content, type) do
    # Of the state that was read; other changes since then stay.
    target = %{
      path: @item,
      ids: [id],
      type: type || to_file(raw).type,
      conflict: "replace",
      etag: raw["eTag"]
    }

    with {:ok, raw} <-
           account
           |> upload(target, content)
           |> known(id)
           |> replaced(account, raw, Drive.size(content)),
         do: check_file(raw)
  end

  # The connection repeats a PUT by itself, as for a new file, and an upload in parts may have
  # ended though its last answer was lost.
  defp replaced({:error, %ServiceError{status: status, kind: kind}}, account, raw, size)
       when status == 412 or kind == :conflict do
    with {:ok, now} <- fetch_raw(account, raw["id"]) do
      if ours?(now, size),
        do: {:ok, now},
        else: {:error, %DriveError{kind: :changed, name: raw["name"]}}
    end
  end

  defp replaced(result, _account, _raw, _size), do: result

  defp trash(account, file, true) do
    case Graph.call(account, :delete, @item, [file.id], scopes: @write) do
      {:ok, _} -> {:ok, %{file | trashed: true}}
      # The answer to a repeated call.
      {:error, %ServiceError{kind: :not_found}} -> {:ok, %{file | trashed: true}}
      error -> error
    end
  end

  # A file that can be read is in no recycle bin.
  defp trash(_account, file, _no), do: {:ok, file}

  # Access

  @impl true
  def share(account, _file, %{role: :commenter}) do
    hint = "OneDrive has no commenters; share the file for reading or writing"
    {:error, error(account, :invalid, hint)}
  end

  def share(account, _file, %{to: {:domain, _name}}) do
    hint = "OneDrive shares with people, groups or everyone who has the link, not with a domain"
    {:error, error(account, :invalid, hint)}
  end

  def share(account, file, %{to: :anyone} = grant) do
    type = if grant.role == :writer, do: "edit", else: "view"
    # The same link is made once.
    options = [json: %{"type" => type, "scope" => "anonymous"}, scopes: @write, repeat: true]

    with {:ok, _} <-
           account
           |> Graph.object(:post, @item <> "/createLink", [file.id], options)
           |> known(file.id),
         do: :ok
  end

  def share(account, file, %{to: {_kind, address}} = grant) do
    body = %{
      "recipients" => [%{"email" => address}],
      "roles" => [if(grant.role == :writer, do: "write", else: "read")],
      "requireSignIn" => true,
      "sendInvitation" => grant.notify
    }

    body =
      if grant.notify and grant.message, do: Map.put(body, "message", grant.message), else: body

    # Each request may send a mail.
    options = [json: body, scopes: @write, repeat: not grant.notify]

    with {:ok, _} <-
           account
           |> Graph.object(:post, @item <> "/invite", [file.id], options)
           |> known(file.id),
         do: :ok
  end

  defp error(account, kind, hint),
    do: %ServiceError{kind: kind, service: "OneDrive", account: account.name, hint: hint}

  @impl true
  def permissions(account, file) do
    options = [scopes: @read, limit: 1_000, max_pages: @max_pages, keep: &permission?/1]

    with {:ok, %{items: items}} <-
           account |> Graph.list(@item <> "/permissions", [file.id], options) |> known(file.id),
         do: {:ok, for(one <- items, to = grantee(one), do: permission(one, to))}
  end

  defp permission?(%{"id" => id} = one) when is_binary(id) do
    objects?(one, ~w(link invitation grantedTo grantedToV2)) and
      (is_nil(one["roles"]) or (is_list(one["roles"]) and Enum.all?(one["roles"], &is_binary/1)))
  end

  defp permission?(_other), do: false

  defp permission(one, {to, name}), do: %{id: one["id"], to: to, role: role(one), name: name}

  defp grantee(%{"link" => %{"scope" => "anonymous"}}), do: {:anyone, nil}

  defp grantee(%{"link" => %{"scope" => "organization"}}),
    do: {{:domain, "the organization"}, nil}

  defp grantee(one) do
    granted = one["grantedToV2"] || %{}
    group = granted["group"]
    person = granted["siteUser"] || granted["user"] || one["grantedTo"]["user"] || %{}
    invited = one["invitation"]["email"]

    cond do
      is_map(group) ->
        {{:group, mail(group) || text(group["displayName"])}, text(group["displayName"])}

      is_map(person) and person != %{} ->
        {{:user, mail(person) || invited || text(person["displayName"])},
         text(person["displayName"])}

      is_binary(invited) ->
        {{:user, invited}, nil}

      true ->
        nil
    end
  end

  # A login such as i:0#.f|membership|ann@example.com.
  defp mail(%{"email" => address}) when is_binary(address) and address != "", do: address

  defp mail(%{"loginName" => login}) when is_binary(login),
    do: login |> String.split("|") |> List.last()

  defp mail(_none), do: nil

  defp text(text) when is_binary(text), do: text
  defp text(_none), do: ""

  defp role(%{"roles" => roles}) when is_list(roles) do
    cond do
      "owner" in roles -> :owner
      "write" in roles -> :writer
      true -> :reader
    end
  end

  defp role(_none), do: :reader

  @impl true
  def unshare(account, file, permission) do
    ids = [file.id, permission.id]

    case Graph.call(account, :delete, @item <> "/permissions/{id}", ids, scopes: @write) do
      {:ok, _} -> :ok
      {:error, %ServiceError{kind: :not_found}} -> :ok
      error -> error
    end
  end

  # Changes

  @impl true
  def changes(account, _drive, token) do
    path = @item <> "/delta(token='{id}')"
    options = [query: ["$select": @select], scopes: @read, limit: @page * 100, max_pages: 100]

    case Graph.list(account, path, ["root", token || "latest"], options) do
      {:ok, %{items: items, more: false, last: %{"@odata.deltaLink" => link}}}
      when is_binary(link) ->
        case Regex.run(~r/token=(?:'|%27)?([^'&)%]+)/, link) do
          [_, next] -> {:ok, %{changes: pairs(if(token, do: items, else: [])), token: next}}
          nil -> {:error, :expired}
        end

      {:ok, _cut} ->
        {:error, :expired}

      # A token that is too old, or of another account.
      {:error, %ServiceError{status: status}} when status in [400, 404, 410] ->
        {:error, :expired}

      error ->
        error
    end
  end

  defp pairs(items) do
    for %{"id" => id} = raw when is_binary(id) <- items do
      if file?(raw) and not is_map_key(raw, "deleted"), do: {id, to_file(raw)}, else: {id, nil}
    end
  end
end
