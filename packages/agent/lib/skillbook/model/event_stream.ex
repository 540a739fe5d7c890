defmodule Skillbook.Model.EventStream do
  @moduledoc false
  # Parses `application/vnd.amazon.eventstream`, in which Bedrock streams: messages with their
  # length, headers of types, a payload and checksums. An event has JSON with the event of the
  # vendor in Base64; an exception becomes the event of an error. A message that is cut off at the
  # end is dropped.

  alias Skillbook.Support.JSON

  # Parts of a message that has not come as a whole.
  defstruct open: [], size: 0, needs: 12

  @type t :: %__MODULE__{}

  # As for server-sent events.
  @max_message 4 * 1024 * 1024

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc """
  Returns the events that the chunk completes, `:error` if one is too large, or `:damaged`.
  """
  @spec feed(t(), binary()) :: {:ok, [%{data: String.t()}], t()} | :error | :damaged
  def feed(%{size: size, needs: needs} = state, chunk) when size + byte_size(chunk) < needs,
    do: {:ok, [], %{state | open: [state.open, chunk], size: size + byte_size(chunk)}}

  def feed(state, chunk), do: messages(IO.iodata_to_binary([state.open, chunk]), [])

  defp messages(<<size::32, length::32, check::32, rest::binary>> = data, events) do
    cond do
      :erlang.crc32(<<size::32, length::32>>) != check -> :damaged
      size > @max_message -> :error
      size < 16 or length > size - 16 -> :damaged
      byte_size(rest) < size - 12 -> open(data, size, events)
      true -> message(data, size, length, events)
    end
  end

  defp messages(data, events), do: open(data, 12, events)

  defp open(data, needs, events),
    do: {:ok, Enum.reverse(events), %__MODULE__{open: data, size: byte_size(data), needs: needs}}

  defp message(data, size, length, events) do
    <<message::binary-size(size - 4), check::32, rest::binary>> = data
    <<_prelude::binary-12, headers::binary-size(length), payload::binary>> = message

    with true <- :erlang.crc32(message) == check,
         {:ok, headers} <- headers(headers, %{}),
         {:ok, data} <- event(headers, payload) do
      messages(rest, [%{data: data} | events])
    else
      :skip -> messages(rest, events)
      _other -> :damaged
    end
  end

  # Only texts are of interest.
  defp headers("", found), do: {:ok, found}

  defp headers(<<size, name::binary-size(size), type, rest::binary>>, found) do
    case value(type, rest) do
      {value, rest} -> headers(rest, Map.put(found, name, value))
      :error -> :error
    end
  end

  defp headers(_other, _found), do: :error

  @sizes %{0 => 0, 1 => 0, 2 => 1, 3 => 2, 4 => 4, 5 => 8, 8 => 8, 9 => 16}

  defp value(type, <<size::16, value::binary-size(size), rest::binary>>) when type in [6, 7],
    do: {value, rest}

  defp value(type, rest) when is_map_key(@sizes, type) do
    size = @sizes[type]
    if byte_size(rest) >= size, do: :erlang.split_binary(rest, size), else: :error
  end

  defp value(_type, _rest), do: :error

  defp event(%{":message-type" => "event", ":event-type" => "chunk"}, payload) do
    with {:ok, %{"bytes" => text}} when is_binary(text) <- JSON.decode(payload),
         {:ok, data} <- Base.decode64(text) do
      {:ok, data}
    else
      _other -> :error
    end
  end

  defp event(%{":message-type" => "exception"} = headers, payload),
    do: {:ok, error(headers[":exception-type"], payload)}

  defp event(%{":message-type" => "error"} = headers, _payload),
    do: {:ok, error(headers[":error-code"], headers[":error-message"] || "")}

  defp event(_other, _payload), do: :skip

  # The names of Anthropic, which `Skillbook.HTTP.Failure` knows.
  @types %{
    "throttlingException" => "rate_limit_error",
    "serviceUnavailableException" => "overloaded_error",
    "modelTimeoutException" => "timeout_error",
    "validationException" => "invalid_request_error"
  }

  defp error(name, payload) do
    message =
      case JSON.decode(payload) do
        {:ok, %{"message" => message}} when is_binary(message) -> message
        {:ok, %{"Message" => message}} when is_binary(message) -> message
        _other -> payload
      end

    type = Map.get(@types, name, "api_error")
    JSON.encode(%{"type" => "error", "error" => %{"type" => type, "message" => message}})
  end
end
