defmodule Skillbook.Drive.OneDrive.Upload do
  @moduledoc false
  # Sends the content of a file: up to 4 MiB in one request, and above that in a session
  # (https://learn.microsoft.com/graph/api/driveitem-createuploadsession), whose parts go to an
  # address of its own. The token is not sent there, since the address is the permission. A
  # session that fails is cancelled, so it leaves nothing behind.

  alias Skillbook.Connections.{Account, Client, Graph}
  alias Skillbook.{Drive, ServiceError}
  alias Skillbook.Drive.Parts
  alias Skillbook.Support.Number

  @max_put 4 * 1024 * 1024
  # Parts are multiples of 320 KiB.
  @part 25 * 320 * 1024
  @service "OneDrive"

  @typedoc """
  Where a file goes: its path without `/content` or `/createUploadSession`, the ids in it, the
  type, and what becomes of another file: `"fail"` or `"replace"`, in the state of an `:etag`.
  """
  @type target :: %{
          path: String.t(),
          ids: [String.t()],
          type: String.t(),
          conflict: String.t(),
          etag: String.t() | nil,
          scopes: [String.t()]
        }

  @spec send(Account.t(), target(), binary() | Drive.source()) ::
          {:ok, map()} | {:error, Exception.t()}
  def send(account, target, content) do
    size = Drive.size(content)

    if size <= @max_put,
      do: whole(account, target, content, size),
      else: parts(account, target, content, size)
  end

  defp whole(account, target, content, size) do
    query = if target.conflict == "fail", do: [{conflict(), "fail"}], else: []

    with {:ok, data} <- Drive.part(content, 0, size) do
      options = [query: query, body: {target.type, data}, headers: version(target)]
      options = [scopes: target.scopes] ++ options
      Graph.object(account, :put, target.path <> "/content", target.ids, options)
    end
  end

  defp conflict, do: "@microsoft.graph.conflictBehavior"

  defp version(%{etag: nil}), do: []
  defp version(%{etag: etag}), do: [{"if-match", etag}]

  defp parts(account, target, content, size) do
    path = target.path <> "/createUploadSession"
    json = %{"item" => %{conflict() => target.conflict}}
    # To begin an upload changes nothing.
    options = [json: json, headers: version(target), scopes: target.scopes, repeat: true]
    options = [changes: false] ++ options

    with {:ok, session} <- Graph.object(account, :post, path, target.ids, options),
         {:ok, url} <- url(session) do
      upload = %{account: account, url: url, scopes: target.scopes, size: size}

      result =
        Parts.send(content,
          size: @part,
          service: @service,
          put: &put(upload, &1, &2),
          next: fn -> next(upload) end
        )

      case result do
        {:ok, _file} -> :ok
        # It is over.
        {:error, %ServiceError{status: 404}} -> :ok
        {:error, _error} -> call(upload, :delete, [])
      end

      result
    end
  end

  defp url(%{"uploadUrl" => url}) when is_binary(url), do: {:ok, url}
  defp url(_other), do: {:error, broken("it began an upload without an address")}

  defp broken(hint), do: %ServiceError{kind: :bad_answer, service: @service, hint: hint}

  defp put(upload, from, part) do
    range = "bytes #{from}-#{from + byte_size(part) - 1}/#{upload.size}"
    body = {"application/octet-stream", part}

    # The part is not repeated as it is: OneDrive may have some of it, and then says 416.
    case call(upload, :put, body: body, headers: [{"content-range", range}], repeat: false) do
      {:ok, %{status: 202, body: body}} -> received(body)
      {:ok, %{body: %{} = file}} -> {:ok, file}
      {:ok, _other} -> {:error, %{broken("it does not say which file it made") | unclear: true}}
      {:error, %ServiceError{status: 416} = error} -> {:error, %{error | unclear: true}}
      error -> error
    end
  end

  defp next(upload) do
    with {:ok, %{body: body}} <- call(upload, :get, []), do: received(body)
  end

  defp call(upload, method, request) do
    {repeat, request} = Keyword.split(request, [:repeat])
    request = [method: method, url: upload.url] ++ request
    options = [method: "onedrive.upload", scopes: upload.scopes, signed: true] ++ repeat

    case Client.request(upload.account, request, options) do
      # A session that is over has made its file, or was cancelled. The caller looks for the file.
      {:error, %ServiceError{kind: :not_found} = error} ->
        hint = "its upload ended too early; send the file again"
        {:error, %{error | kind: :conflict, service: @service, hint: hint}}

      {:error, %ServiceError{} = error} ->
        {:error, %{error | service: @service}}

      result ->
        result
    end
  end

  # The first of the ranges that are missing, such as 327680-.
  defp received(%{"nextExpectedRanges" => [range | _]}) when is_binary(range) do
    case Regex.run(~r/\A([0-9]{1,15})-/, range) do
      [_, from] -> {:next, Number.integer!(from)}
      nil -> received(nil)
    end
  end

  defp received(_other), do: {:error, broken("it does not say how much of an upload it has")}
end
