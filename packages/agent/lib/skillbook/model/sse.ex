defmodule Skillbook.Model.SSE do
  @moduledoc false
  # Parses server-sent events as in the WHATWG HTML standard (9.2.6): lines end in LF, CRLF or CR;
  # a blank line ends an event; lines that begin with a colon are comments. The events do not
  # depend on the chunks. An event that is cut off at the end is dropped, and its id with it.

  alias Skillbook.Support.Number

  # `open` is the start of an incomplete line, as iodata: growing a binary would copy it for each
  # chunk. `after_cr` is set after a CR, since an LF that follows belongs to it.
  # `last_id` is the id of the last whole event, with which a stream can be resumed; `retry` is
  # the pause before that in milliseconds, if the server gave one.
  defstruct open: [],
            open_size: 0,
            after_cr: false,
            first: true,
            name: "",
            data: [],
            size: 0,
            id: nil,
            last_id: nil,
            retry: nil

  @type event :: %{name: String.t(), data: String.t()}
  @type t :: %__MODULE__{}

  # Events of a chat have some hundred bytes; this limits the memory that a broken server can use.
  @max_event 4 * 1024 * 1024
  # Bytes of an id, which is sent back in a header.
  @max_id 1_024
  # The digits of a pause: up to 11 days.
  @max_retry 9

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "The state for a stream that goes on after the last event of another one."
  @spec resumed(t()) :: t()
  def resumed(%{last_id: id, retry: retry}), do: %__MODULE__{id: id, last_id: id, retry: retry}

  @doc "Returns the events that the chunk completes, or `:error` if one is too large."
  @spec feed(t(), binary()) :: {:ok, [event()], t()} | :error
  def feed(state, chunk), do: lines(state, chunk, [])

  defp lines(state, "", events), do: {:ok, Enum.reverse(events), state}

  defp lines(%{after_cr: true} = state, "\n" <> rest, events),
    do: lines(%{state | after_cr: false}, rest, events)

  defp lines(%{size: size, open_size: open}, _chunk, _events) when size + open > @max_event,
    do: :error

  defp lines(state, chunk, events) do
    case :binary.match(chunk, ["\n", "\r"]) do
      {place, 1} ->
        {part, <<ending, rest::binary>>} = :erlang.split_binary(chunk, place)
        line = IO.iodata_to_binary([state.open, part])
        {state, events} = state |> line(strip_bom(state, line)) |> complete(events)

        lines(
          %{state | open: [], open_size: 0, after_cr: ending == ?\r, first: false},
          rest,
          events
        )

      :nomatch ->
        open_size = state.open_size + byte_size(chunk)

        lines(
          %{state | open: [state.open, chunk], open_size: open_size, after_cr: false},
          "",
          events
        )
    end
  end

  defp strip_bom(%{first: true}, "\uFEFF" <> line), do: line
  defp strip_bom(_state, line), do: line

  defp line(state, ""), do: {:event, state}
  defp line(state, ":" <> _comment), do: state

  defp line(state, line) do
    case String.split(line, ":", parts: 2) do
      [field, " " <> value] -> field(state, field, value)
      [field, value] -> field(state, field, value)
      [field] -> field(state, field, "")
    end
  end

  defp field(state, "event", name), do: %{state | name: name}

  defp field(state, "data", value),
    do: %{state | data: [value | state.data], size: state.size + byte_size(value) + 1}

  # An empty id takes the last one back. One that no header can have is none.
  defp field(state, "id", ""), do: %{state | id: nil}

  defp field(state, "id", value) do
    if byte_size(value) <= @max_id and value =~ ~r/\A[\x20-\x7e]+\z/,
      do: %{state | id: value},
      else: state
  end

  defp field(state, "retry", value) do
    if byte_size(value) <= @max_retry and value =~ ~r/\A[0-9]+\z/,
      do: %{state | retry: Number.integer!(value)},
      else: state
  end

  defp field(state, _other, _value), do: state

  defp complete({:event, %{data: []} = state}, events),
    do: {%{state | name: "", last_id: state.id}, events}

  defp complete({:event, state}, events) do
    event = %{name: state.name, data: state.data |> Enum.reverse() |> Enum.join("\n")}
    {%{state | name: "", data: [], size: 0, last_id: state.id}, [event | events]}
  end

  defp complete(state, events), do: {state, events}
end
