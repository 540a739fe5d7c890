defmodule Skillbook.Connections.Client.MultipartTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Client.Multipart

  @headers %{"content-type" => ["multipart/mixed; boundary=b"]}

  defp part(number, response, breaks \\ "\r\n") do
    Enum.join(
      ["--b", "Content-Type: application/http", "Content-ID: <response-item-#{number}>", ""] ++
        response,
      breaks
    ) <> breaks
  end

  # {body, the statuses and bodies of two requests}
  test "reads what servers write, and leaves out the rest" do
    ok = ["HTTP/1.1 200 OK", "Content-Type: application/json", "", "{}"]
    late = ["HTTP/1.1 404 Not Found", "", "gone"]

    rows = [
      {part(1, ok) <> part(2, late) <> "--b--\r\n", [{200, "{}"}, {404, "gone"}]},
      {part(2, late) <> part(1, ok) <> "--b--\r\n", [{200, "{}"}, {404, "gone"}]},
      {part(1, ok, "\n") <> part(2, late, "\n") <> "--b--", [{200, "{}"}, {404, "gone"}]},
      {"preamble\r\n" <> part(1, ok), [{200, "{}"}, nil]},
      {part(1, ["HTTP/1.1 204 No Content", "", ""]), [{204, ""}, nil]},
      {part(1, ["HTTP/2 200", "", "a"]), [{200, "a"}, nil]},
      {part(1, ["HTTP/1.1 200 OK", "Content-Length: 2", "", "abcd"]), [{200, "ab"}, nil]},
      {part(1, ["HTTP/1.1 200 OK", "Content-Length: 99", "", "abcd"]), [{200, "abcd"}, nil]},
      {part(1, ["HTTP/1.1 200 OK", "Content-Length: -1", "", "abcd"]), [{200, "abcd"}, nil]},
      # No such request, no status, no response, no headers.
      {part(7, ok), [nil, nil]},
      {part("x", ok), [nil, nil]},
      {part(1, ["HTTP/1.1 OK", "", ""]), [nil, nil]},
      {part(1, ["<html>"]), [nil, nil]},
      {part(1, ["HTTP/1.1 200 OK", "no end of the head"]), [nil, nil]},
      {"--b\r\n--b\r\n--b--", [nil, nil]},
      {part(1, ["HTTP/1.1 200 OK"] ++ List.duplicate("A: b", 101) ++ ["", "x"]), [nil, nil]}
    ]

    for {body, expected} <- rows do
      assert {:ok, responses} = Multipart.decode(@headers, body, 2)
      found = for response <- responses, do: response && {response.status, response.body}
      assert {body, found} == {body, expected}
    end
  end

  test "refuses an answer that is no batch" do
    for type <- ["application/json", "multipart/mixed", "multipart/form-data; boundary=b", ""],
        do: assert(Multipart.decode(%{"content-type" => [type]}, "--b", 1) == :error)

    assert Multipart.decode(%{}, "", 1) == :error

    for type <- [~s(multipart/mixed; boundary="b"), "Multipart/Mixed;charset=a; boundary=b"],
        do: assert({:ok, [nil]} = Multipart.decode(%{"content-type" => [type]}, "--b", 1))
  end

  test "takes linear time" do
    for text <- ["--b", "--b\r\n", "a: b\n", "--b\n\n", ":\n", "\n", "HTTP/1.1 200 a\n"] do
      body = part(1, []) <> String.duplicate(text, 200_000)
      {time, {:ok, _}} = :timer.tc(fn -> Multipart.decode(@headers, body, 1) end)
      assert {text, time < 5_000_000} == {text, true}
    end
  end

  test "no header or path of a part can begin another one" do
    # Paths are encoded, and the boundary is random.
    {type, body} =
      Multipart.encode([%{method: :get, path: "/a?b=%0D%0A", headers: [], body: nil}])

    {_, other} = Multipart.encode([])
    "multipart/mixed; boundary=" <> boundary = type
    assert IO.iodata_to_binary(body) =~ "GET /a?b=%0D%0A HTTP/1.1\r\n"
    refute IO.iodata_to_binary(other) =~ boundary
  end
end
