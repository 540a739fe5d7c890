defmodule Skillbook.Model.SSETest do
  use ExUnit.Case, async: true

  alias Skillbook.Model.SSE

  defp events(chunks) do
    {events, _state} =
      Enum.reduce(chunks, {[], SSE.new()}, fn chunk, {events, state} ->
        {:ok, more, state} = SSE.feed(state, chunk)
        {events ++ more, state}
      end)

    events
  end

  defp data(chunks), do: Enum.map(events(chunks), & &1.data)

  test "lines, events and comments" do
    for {text, data} <- [
          {"", []},
          {"data: a\n\n", ["a"]},
          {"data: a\n", []},
          {"data: a", []},
          {"data:a\n\n", ["a"]},
          {"data:  a \n\n", [" a "]},
          {"data\n\n", [""]},
          {"data:\n\n", [""]},
          {"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]},
          {"data: a\r\rdata: b\r\r", ["a", "b"]},
          {"data: a\n\r\ndata: b\r\n\n", ["a", "b"]},
          {"data: a\ndata: b\n\n", ["a\nb"]},
          {"data: a\ndata\ndata: b\n\n", ["a\n\nb"]},
          {": ping\n\ndata: a\n: ping\n\n", ["a"]},
          {"id: 1\nretry: 5\nother: x\ndata: a\n\n", ["a"]},
          {"datax: a\n data: b\n\n", []},
          {"\uFEFFdata: a\n\n", ["a"]},
          {"\uFEFF\uFEFFdata: a\n\n", []},
          {"\n\n\ndata: a\n\n\n\n", ["a"]},
          {"data: é😀\n\n", ["é😀"]},
          {"data: a: b\n\n", ["a: b"]},
          {"data: \uFEFFa\n\n", ["\uFEFFa"]}
        ] do
      assert data([text]) == data, "for #{inspect(text)}"
    end
  end

  test "an event's name does not apply to the next one" do
    assert events(["event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n"]) ==
             [%{name: "error", data: "a"}, %{name: "", data: "b"}, %{name: "", data: "c"}]
  end

  test "the last id is that of a whole event, and the pause that of the last line" do
    long = String.duplicate("a", 1_024)

    for {text, id, retry} <- [
          {"", nil, nil},
          {"data: a\n\n", nil, nil},
          {"id: 1\nretry: 500\ndata: \n\n", "1", 500},
          {"id: 1\n\n", "1", nil},
          {"id: 1\ndata: a\n\nid: 2\ndata: b\n", "1", nil},
          {"id: 1\ndata: a\n\ndata: b\n\n", "1", nil},
          {"id: 1\ndata: a\n\nid\ndata: b\n\n", nil, nil},
          {"id: a\0b\ndata: a\n\n", nil, nil},
          {"id: é\ndata: a\n\n", nil, nil},
          {"id: #{long}\n\n", long, nil},
          {"id: #{long}a\n\n", nil, nil},
          {"retry: 5\nretry: 5x\nretry: -1\nretry: 1234567890\nretry:\n", nil, 5}
        ] do
      {:ok, _events, state} = SSE.feed(SSE.new(), text)
      assert {text, state.last_id, state.retry} == {text, id, retry}
      assert %{last_id: ^id, retry: ^retry, open: []} = SSE.resumed(state)
    end
  end

  # Made of the pieces that matter, in every order that chance finds.
  @pieces [
    "\n",
    "\r",
    "\r\n",
    "data: ",
    "data",
    ":",
    " ",
    "event: e",
    "x",
    "é😀",
    "\uFEFF",
    ": c",
    "data: y\n\n"
  ]

  test "events do not depend on the chunks" do
    for seed <- 1..400 do
      :rand.seed(:exsss, {seed, 1, 2})
      text = Enum.map_join(1..:rand.uniform(30), fn _ -> Enum.random(@pieces) end)
      whole = events([text])

      assert events(for <<byte <- text>>, do: <<byte>>) == whole,
             "for #{inspect(text)}, byte by byte"

      assert events(cut(text)) == whole, "for #{inspect(text)}, seed #{seed}"
    end
  end

  defp cut(""), do: []

  defp cut(text) do
    size = :rand.uniform(byte_size(text))
    {chunk, rest} = :erlang.split_binary(text, size)
    [chunk, "" | cut(rest)]
  end

  test "an event may be large, but not endless" do
    large = String.duplicate("a", 1_000_000)
    assert data(["data: " <> large, large <> "\n", "\n"]) == [large <> large]

    assert {:ok, [], state} = SSE.feed(SSE.new(), "data: " <> large)
    assert Enum.reduce_while(1..10, state, &grow(&1, &2, large)) == :error
    assert {:ok, [], state} = SSE.feed(SSE.new(), "data: a\n")
    assert Enum.reduce_while(1..10, state, &grow(&1, &2, "data: " <> large <> "\n")) == :error
  end

  test "comments may be endless" do
    comment = ": " <> String.duplicate("a", 1_000_000)
    assert data(List.duplicate([comment, "\n"], 10) |> List.flatten()) == []

    assert data((List.duplicate([comment, "\n"], 10) |> List.flatten()) ++ ["data: a\n\n"]) == [
             "a"
           ]
  end

  defp grow(_time, state, text) do
    case SSE.feed(state, text) do
      {:ok, [], state} -> {:cont, state}
      :error -> {:halt, :error}
    end
  end
end
