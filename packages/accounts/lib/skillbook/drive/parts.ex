defmodule Skillbook.Drive.Parts do
  @moduledoc false
  # Sends a content in parts, each read from the disk when its turn comes. A part that failed is
  # not repeated as it is, since the service may have some of it: the upload goes on at the byte
  # that the service names.

  alias Skillbook.{Drive, ServiceError}

  # How often an upload that was cut goes on. Progress gives new attempts.
  @resumes 5

  @typedoc "The first byte that is missing, or what the service answered to the last part."
  @type result :: {:next, non_neg_integer()} | {:ok, term()} | {:error, Exception.t()}

  @doc """
  Sends a content. Options:

    * `:size` - the bytes of a part
    * `:put` - sends a part: a function of its first byte and its bytes
    * `:next` - asks where the upload goes on
    * `:service` - the name of the service for errors
  """
  @spec send(binary() | Drive.source(), keyword()) :: {:ok, term()} | {:error, Exception.t()}
  def send(content, options) do
    upload = Map.merge(Map.new(options), %{content: content, whole: Drive.size(content)})
    part(upload, 0, @resumes)
  end

  defp part(upload, from, resumes) do
    size = min(upload.size, upload.whole - from)

    with {:ok, part} <- Drive.part(upload.content, from, size) do
      case upload.put.(from, part) do
        {:next, next} when next > from and next < upload.whole ->
          part(upload, next, @resumes)

        {:next, next} when next == from and resumes > 0 ->
          part(upload, next, resumes - 1)

        {:next, _lost} ->
          {:error, lost(upload)}

        {:error, %ServiceError{unclear: true}} when resumes > 0 ->
          resume(upload, resumes - 1)

        result ->
          result
      end
    end
  end

  defp resume(upload, resumes) do
    case upload.next.() do
      {:next, next} when next < upload.whole -> part(upload, next, resumes)
      {:next, _none} -> {:error, lost(upload)}
      # It has all of the content.
      result -> result
    end
  end

  defp lost(upload) do
    hint = "it lost a part of an upload"
    %ServiceError{kind: :bad_answer, service: upload.service, hint: hint}
  end
end
