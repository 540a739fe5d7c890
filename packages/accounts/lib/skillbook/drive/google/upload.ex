defmodule Skillbook.Drive.Google.Upload do
  @moduledoc false
  # Sends the metadata and content of a file: in one request up to 5 MB, as Drive's guide advises,
  # and above that in parts, which go on where they stopped.

  alias Skillbook.Connections.{Account, Client}
  alias Skillbook.{Drive, ServiceError}
  alias Skillbook.Support.{JSON, Number}

  @max_multipart 5 * 1024 * 1024
  # Parts are multiples of 256 KiB.
  @part 8 * 1024 * 1024
  # How often an upload that was cut goes on.
  @resumes 5

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
        content: content,
        size: size,
        options: options
      }

      parts(upload, 0, @resumes)
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

  defp broken(hint), do: %ServiceError{kind: :bad_answer, service: "Google Drive", hint: hint}

  defp parts(upload, from, resumes) do
    size = min(@part, upload.size - from)

    with {:ok, part} <- Drive.part(upload.content, from, size) do
      range = "bytes #{from}-#{from + size - 1}/#{upload.size}"
      put(upload, request(upload, {upload.type, part}, range), from, resumes)
    end
  end

  defp put(upload, request, from, resumes) do
    # The part is not repeated as it is: Drive may have some of it.
    case Client.request(upload.account, request, options(upload, false)) do
      {:ok, %{status: 308} = answer} -> more(upload, answer, from, resumes)
      {:error, %ServiceError{unclear: true} = error} -> resume(upload, error, resumes)
      result -> result
    end
  end

  # Progress gives new attempts.
  defp more(upload, answer, from, resumes) do
    case received(answer) do
      {:ok, next} when next > from and next < upload.size ->
        parts(upload, next, @resumes)

      {:ok, next} when next == from and resumes > 0 ->
        parts(upload, next, resumes - 1)

      _ ->
        {:error, broken("it lost a part of an upload")}
    end
  end

  defp resume(_upload, error, 0), do: {:error, error}

  defp resume(upload, _error, resumes) do
    request = request(upload, {upload.type, ""}, "bytes */#{upload.size}")

    case Client.request(upload.account, request, options(upload, true)) do
      {:ok, %{status: 308} = answer} ->
        with {:ok, next} <- received(answer), do: parts(upload, next, resumes - 1)

      # It has all of the content.
      result ->
        result
    end
  end

  defp request(upload, body, range) do
    [
      method: :put,
      url: upload.url,
      query: upload.query,
      body: body,
      headers: [{"content-range", range}]
    ]
  end

  defp options(upload, repeat) do
    # The first request has said which fields to answer.
    upload.options |> Keyword.delete(:fields) |> Keyword.merge(repeat: repeat, answers: [308])
  end

  # The first byte that is missing, by the header `range: bytes=0-42`.
  defp received(%{headers: headers}) do
    with [range | _] <- headers["range"] || :none,
         [_, last] <- Regex.run(~r/\Abytes=0-([0-9]{1,15})\z/, range) do
      {:ok, Number.integer!(last) + 1}
    else
      :none -> {:ok, 0}
      _ -> {:error, broken("it does not say how much of an upload it has")}
    end
  end
end
