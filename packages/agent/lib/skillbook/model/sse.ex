defmodule Skillbook.Model.SSE do
  @moduledoc false
  # Parses server-sent events as in the WHATWG HTML standard (9.2.6): lines end in LF, CRLF or CR;
  # a blank line ends an event; lines that begin with a colon are comments. The events do not
  # depend on the chunks. An event that is cut off at the end is dropped.

  # `open` is the start of an incomplete line, as iodata: growing a binary would copy it for each
  # chunk. `after_cr` is set after a CR, since an LF that follows belongs to it.
  defstruct open: [], open_size: 0, after_cr: false, first: true, name: "", data: [], size: 0

  @type event :: %{name: String.t(), data: String.t()}
  @type t :: %__MODULE__{}

  # Events of a chat have some hundred bytes; this limits the memory that a broken server can use.
  @max_event 4 * 1024 * 1024

  @spec new() :: t()
  def new, do: %__MODULE__{}

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

  defp field(state, _other, _value), do: state

  defp complete({:event, %{data: []} = state}, events), do: {%{state | name: ""}, events}

  defp complete({:event, state}, events) do
    event = %{name: state.name, data: state.data |> Enum.reverse() |> Enum.join("\n")}
    {%{state | name: "", data: [], size: 0}, [event | events]}
  end

  defp complete(state, events), do: {state, events}
end
