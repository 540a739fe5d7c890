defmodule Skillbook.MCP.ProtocolTest do
  use ExUnit.Case, async: true

  alias Skillbook.MCP.{Error, Pagination, Protocol}
  alias Skillbook.Support.JSON

  doctest Skillbook.MCP
  doctest Protocol
  doctest Pagination

  describe "messages" do
    test "of every kind are read" do
      for {text, message} <- [
            {~S({"jsonrpc":"2.0","id":1,"method":"ping"}), {:request, 1, "ping", %{}}},
            {~S({"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}),
             {:request, "a", "m", %{"x" => 1}}},
            {~S({"jsonrpc":"2.0","id":"","method":"m"}), {:request, "", "m", %{}}},
            {~S({"jsonrpc":"2.0","method":"n"}), {:notification, "n", %{}}},
            {~S({"jsonrpc":"2.0","id":1,"result":{}}), {:response, 1, {:ok, %{}}}},
            {~S({"jsonrpc":"2.0","id":1,"error":{"code":1}}),
             {:response, 1, {:error, %{"code" => 1}}}}
          ] do
        assert Protocol.read(text) == {:ok, message}
      end
    end

    # {bytes, code, message, id}
    @malformed [
      {"", -32_700, "not JSON: line 1, column 1: EOF while parsing a value", nil},
      {"{", -32_700, "not JSON: line 1, column 1: EOF while parsing an object", nil},
      {<<255>>, -32_700, "not JSON: line 1, column 1: expected UTF-8", nil},
      {~S({"id":1,"id":2}), -32_700,
       "not JSON: line 1, column 9: expected each key once, got \"id\" again", nil},
      {"[]", -32_600, "expected one message, got a list: batches are not served", nil},
      {~S([{"jsonrpc":"2.0","id":1,"method":"ping"}]), -32_600,
       "expected one message, got a list: batches are not served", nil},
      {"1", -32_600, "expected a message, an object of JSON-RPC", nil},
      {"null", -32_600, "expected a message, an object of JSON-RPC", nil},
      {"{}", -32_600, "expected `jsonrpc` to be \"2.0\"", nil},
      {~S({"jsonrpc":"1.0","id":5,"method":"m"}), -32_600, "expected `jsonrpc` to be \"2.0\"", 5},
      {~S({"jsonrpc":2.0,"id":"x"}), -32_600, "expected `jsonrpc` to be \"2.0\"", "x"},
      {~S({"jsonrpc":"2.0"}), -32_600,
       "expected a `method`, a `result` or an `error`, got none of them", nil},
      {~S({"jsonrpc":"2.0","id":null,"method":"m"}), -32_600,
       "expected text or a whole number as `id`", nil},
      {~S({"jsonrpc":"2.0","id":1.5,"method":"m"}), -32_600,
       "expected text or a whole number as `id`", nil},
      {~S({"jsonrpc":"2.0","id":true,"method":"m"}), -32_600,
       "expected text or a whole number as `id`", nil},
      {~S({"jsonrpc":"2.0","id":{},"method":"m"}), -32_600,
       "expected text or a whole number as `id`", nil},
      {~S({"jsonrpc":"2.0","id":1,"method":7}), -32_600,
       "expected a text of at most 128 bytes as `method`", 1},
      {~S({"jsonrpc":"2.0","id":1,"method":"m","result":{}}), -32_600,
       "expected a request or a response, got both", 1},
      {~S({"jsonrpc":"2.0","id":1,"method":"m","error":{}}), -32_600,
       "expected a request or a response, got both", 1},
      {~S({"jsonrpc":"2.0","id":1,"result":{},"error":{}}), -32_600,
       "expected a response with an `id` and one object as its outcome", 1},
      {~S({"jsonrpc":"2.0","result":{}}), -32_600,
       "expected a response with an `id` and one object as its outcome", nil},
      {~S({"jsonrpc":"2.0","id":1,"result":[]}), -32_600,
       "expected a response with an `id` and one object as its outcome", 1},
      {~S({"jsonrpc":"2.0","id":1,"method":"m","params":[]}), -32_602,
       "expected an object as `params`", 1},
      {~S({"jsonrpc":"2.0","id":1,"method":"m","params":null}), -32_602,
       "expected an object as `params`", 1},
      {~S({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[]}}), -32_602,
       "expected an object as `params._meta`", 1}
    ]

    test "that are malformed are errors, with the id if there is one" do
      for {bytes, code, message, id} <- @malformed do
        assert {:error, error, ^id} = Protocol.read(bytes), bytes
        assert {error.code, error.message, error.status} == {code, message, 400}, bytes
      end
    end

    test "have limits" do
      long = String.duplicate("a", 257)
      text = ~s({"jsonrpc":"2.0","id":"#{long}","method":"m"})
      assert {:error, %{code: -32_600, message: message}, nil} = Protocol.read(text)
      assert message == "expected an `id` of at most 256 bytes"
      text = String.replace(text, "aa", "a", global: false)
      assert {:ok, {:request, _, "m", _}} = Protocol.read(text)

      method = String.duplicate("m", 129)
      text = ~s({"jsonrpc":"2.0","id":1,"method":"#{method}"})
      assert {:error, %{code: -32_600}, 1} = Protocol.read(text)

      # The message, its parameters and the outermost list are three.
      nested = fn depth ->
        list = String.duplicate("[", depth) <> String.duplicate("]", depth)
        Protocol.read(~s({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":#{list}}}))
      end

      assert {:ok, _} = nested.(62)
      assert {:error, %{code: -32_600, message: message}, 1} = nested.(63)
      assert message == "expected a message nested at most 64 deep"
      # The decoder's own limit.
      assert {:error, %{code: -32_700}, nil} = nested.(100_000)

      max = Protocol.max_bytes()
      assert {:error, %{status: 413} = error, nil} = Protocol.read(String.duplicate(" ", max + 1))
      assert error.message == "expected a message of at most #{max} bytes, got #{max + 1}"
      assert {:error, %{code: -32_700}, nil} = Protocol.read(String.duplicate(" ", max))
    end

    test "of any bytes and any JSON are read, or are an error" do
      :rand.seed(:exsss, {18, 7, 28})

      for number <- 1..4_000 do
        bytes = if rem(number, 2) == 0, do: bytes(), else: JSON.encode(value(5))

        case Protocol.read(bytes) do
          {:ok, message} -> assert elem(message, 0) in [:request, :notification, :response]
          {:error, %Error{} = error, id} -> assert answer?(Protocol.error(id, error), id)
        end
      end
    end
  end

  defp answer?(%{"jsonrpc" => "2.0", "error" => %{"code" => code, "message" => text}} = map, id),
    do: is_integer(code) and String.valid?(text) and map["id"] == id

  defp bytes, do: :crypto.strong_rand_bytes(:rand.uniform(40))

  @keys ~w(jsonrpc id method params result error _meta x)
  defp value(0), do: Enum.random([nil, true, 1, 1.5, -7, "", "2.0", "ping", "é\u202e"])

  defp value(depth) do
    case :rand.uniform(4) do
      1 -> value(0)
      2 -> for(_ <- 1..:rand.uniform(3), do: value(depth - 1))
      _ -> message(depth)
    end
  end

  defp message(depth) do
    map = Map.new(Enum.take_random(@keys, :rand.uniform(5)), &{&1, value(depth - 1)})
    if :rand.uniform(3) == 1, do: map, else: Map.put(map, "jsonrpc", "2.0")
  end

  describe "pages of a list" do
    test "a cursor that is not of this list is refused" do
      of_other = Pagination.cursor("prompts", "b")
      refused = "expected a `cursor` that this list has returned as `nextCursor`"

      for cursor <- ["", "x", "!!", of_other, 1, nil, String.duplicate("a", 3_000)] do
        assert {:error, %Error{code: -32_602, message: ^refused}} =
                 Pagination.of(~w(a b c), %{"cursor" => cursor}, "tools", 2, & &1)
      end
    end

    test "go on after the same item when the list has changed" do
      {:ok, ["a", "b"], more} = Pagination.of(~w(a b c d), %{}, "tools", 2, & &1)
      params = %{"cursor" => more["nextCursor"]}
      assert Pagination.of(~w(a bb d e f), params, "tools", 2, & &1) |> elem(1) == ["bb", "d"]
      assert Pagination.of(~w(a), params, "tools", 2, & &1) == {:ok, [], %{}}
    end
  end
end
