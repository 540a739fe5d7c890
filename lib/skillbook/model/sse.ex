defmodule Skillbook.Model.SSE do
  @moduledoc false
  # Server-sent events, as the WHATWG HTML standard defines them (9.2.6): lines end in LF, CRLF or CR; a blank line ends an
  # event; lines that begin with a colon are comments. Which events come out does not depend on the chunks. An event
  # that the end cuts off is none.

  # `line` is what there is of the line that is open, of which `seen` bytes hold no line end. After a CR, an LF that
  # comes next belongs to it.
  defstruct line: "", seen: 0, after_cr: false, first: true, name: "", data: [], size: 0

  @type event :: %{name: String.t(), data: String.t()}
  @type t :: %__MODULE__{}

  # An event of a chat is some hundred bytes; this only bounds what a broken server can make us keep.
  @largest 4 * 1024 * 1024

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "The events that the chunk completes; `:error` if one is too large to go on."
  @spec feed(t(), binary()) :: {:ok, [event()], t()} | :error
  def feed(state, chunk), do: lines(%{state | line: state.line <> chunk}, [])

  defp lines(%{after_cr: true, line: "\n" <> rest} = state, events),
    do: lines(%{state | after_cr: false, line: rest}, events)

  defp lines(%{after_cr: true, line: <<_, _::binary>>} = state, events),
    do: lines(%{state | after_cr: false}, events)

  defp lines(%{line: line, seen: seen} = state, events) do
    case :binary.match(line, ["\n", "\r"], scope: {seen, byte_size(line) - seen}) do
      {place, 1} ->
        <<line::binary-size(place), ending, rest::binary>> = line
        state = %{state | line: rest, seen: 0, after_cr: ending == ?\r}
        {state, events} = state |> line(unmarked(state, line)) |> ended(events)
        if state.size > @largest, do: :error, else: lines(%{state | first: false}, events)

      :nomatch when byte_size(line) + state.size > @largest ->
        :error

      :nomatch ->
        {:ok, Enum.reverse(events), %{state | seen: byte_size(line)}}
    end
  end

  defp unmarked(%{first: true}, "\uFEFF" <> line), do: line
  defp unmarked(_state, line), do: line

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

  defp ended({:event, %{data: []} = state}, events), do: {%{state | name: ""}, events}

  defp ended({:event, state}, events) do
    event = %{name: state.name, data: state.data |> Enum.reverse() |> Enum.join("\n")}
    {%{state | name: "", data: [], size: 0}, [event | events]}
  end

  defp ended(state, events), do: {state, events}
end
