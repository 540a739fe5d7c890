defmodule Skillbook.Drive.Google.Upload do
  @moduledoc false
  # Sends the metadata and content of a file: in one request up to 5 MB, as Drive's guide advises,
  # and above that in parts, which go on where they stopped.

  alias Skillbook.Connections.{Account, Client}
  alias Skillbook.{Drive, ServiceError}
  alias Skillbook.Drive.Parts
  alias Skillbook.Support.{JSON, Number}

  @max_multipart 5 * 1024 * 1024
  # Parts are multiples of 256 KiB.
  @part 8 * 1024 * 1024
  @service "Google Drive"

  @spec send(
          Account.t(),
          :post | :patch,
          String.t(),
          keyword(),
          map(),
          String.t(),
          binary() | Drive.source(),
          keyword()
        ) :: {:ok, Client.answer()} | {:error, Exception.t()}
  def send(account, method, url, query, metadata, type, content, options) do
    url = String.replace(url, "/drive/v3/", "/upload/drive/v3/")

    size = Drive.size(content)

    if size <= @max_multipart do
      with {:ok, data} <- Drive.part(content, 0, size),
           do: multipart(account, method, url, query, metadata, type, data, options)
    else
      resumable(account, method, url, query, metadata, type, content, options)
    end
  end

  defp multipart(account, method, url, query, metadata, type, content, options) do
    # A boundary that the content cannot hold by chance or on purpose.
    boundary = 18 |> :crypto.strong_rand_bytes() |> Base.encode16(case: :lower)

    body = [
      ["--", boundary, "\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n"],
      [JSON.encode(metadata), "\r\n--", boundary, "\r\ncontent-type: ", type, "\r\n\r\n"],
      [content, "\r\n--", boundary, "--\r\n"]
    ]

    request = [
      method: method,
      url: url,
      query: [{:uploadType, "multipart"} | query],
      body: {"multipart/related; boundary=#{boundary}", body}
    ]

    Client.request(account, request, options)
  end

  defp resumable(account, method, url, query, metadata, type, content, options) do
    size = Drive.size(content)

    request = [
      method: method,
      url: url,
      query: [{:uploadType, "resumable"} | query],
      json: metadata,
      headers: [{"x-upload-content-type", type}, {"x-upload-content-length", "#{size}"}]
    ]

    # To begin an upload changes nothing.
    with {:ok, begun} <- Client.request(account, request, Keyword.put(options, :repeat, true)),
         {:ok, id} <- upload_id(begun) do
      upload = %{
        account: account,
        url: url,
        query: [uploadType: "resumable", upload_id: id],
        type: type,
        # The first request has said which fields to answer.
        options: options |> Keyword.delete(:fields) |> Keyword.put(:answers, [308])
      }

      Parts.send(content,
        size: @part,
        service: @service,
        put: fn from, part ->
          range = "bytes #{from}-#{from + byte_size(part) - 1}/#{size}"
          put(upload, part, range, false)
        end,
        next: fn -> put(upload, "", "bytes */#{size}", true) end
      )
    end
  end

  # Only the id of the address is used, so no answer can send the token and the content elsewhere.
  defp upload_id(%{headers: headers}) do
    with [location | _] <- headers["location"],
         %{"upload_id" => id} <- URI.decode_query(URI.parse(location).query || "") do
      {:ok, id}
    else
      _ -> {:error, broken("it began an upload without an address")}
    end
  end

  defp broken(hint), do: %ServiceError{kind: :bad_answer, service: @service, hint: hint}

  defp put(upload, part, range, repeat) do
    request = [
      method: :put,
      url: upload.url,
      query: upload.query,
      body: {upload.type, part},
      headers: [{"content-range", range}]
    ]

    with {:ok, %{status: 308} = answer} <-
           Client.request(upload.account, request, [repeat: repeat] ++ upload.options),
         do: received(answer)
  end

  # The first byte that is missing, by the header `range: bytes=0-42`.
  defp received(%{headers: headers}) do
    with [range | _] <- headers["range"] || :none,
         [_, last] <- Regex.run(~r/\Abytes=0-([0-9]{1,15})\z/, range) do
      {:next, Number.integer!(last) + 1}
    else
      :none -> {:next, 0}
      _ -> {:error, broken("it does not say how much of an upload it has")}
    end
  end
end
