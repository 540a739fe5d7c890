defmodule Skillbook.Web.FormTest do
  # The forms that are read, and those that break their format or a limit.
  use ExUnit.Case, async: true

  alias Skillbook.Web.{Form, Upload}

  @type_ "multipart/form-data; boundary=b"

  defp part(head, data), do: "--b\r\n#{head}\r\n\r\n#{data}\r\n"
  defp disposition(rest), do: "content-disposition: form-data; " <> rest

  for {text, expected} <- [
        {"", {:ok, %{}}},
        {"a=1&b=2", {:ok, %{"a" => "1", "b" => "2"}}},
        {"a", {:ok, %{"a" => ""}}},
        {"=1", {:ok, %{"" => "1"}}},
        {"a=1&a=2", {:ok, %{"a" => "2"}}},
        {"a[]=1&a[]=2", {:ok, %{"a" => ["1", "2"]}}},
        {"a[]=1&a=2", {:ok, %{"a" => ["1", "2"]}}},
        {"[]=1", {:ok, %{"[]" => "1"}}},
        {"a=b=c", {:ok, %{"a" => "b=c"}}},
        {"a=x+y%2B%C3%A9", {:ok, %{"a" => "x y+é"}}},
        {"&&a=1&", {:ok, %{"a" => "1"}}},
        {"a=%FF", :error},
        {"%FF=1", :error},
        {String.duplicate("a&", 1_000), {:ok, %{"a" => ""}}},
        {String.duplicate("a&", 1_001), :error},
        {String.duplicate("a&", 1_000) <> "a", :error},
        {String.duplicate("&", 1_000), {:ok, %{}}},
        {String.duplicate("&", 1_001), :error}
      ] do
    test "urlencoded #{inspect(String.slice(text, 0, 40))} of #{byte_size(text)} bytes" do
      assert Form.urlencoded(unquote(text)) == unquote(Macro.escape(expected))
    end
  end

  test "multipart has texts and files" do
    body =
      part(disposition(~s(name="a")), "é\r\n--x") <>
        part(disposition(~s(name="f"; filename="a%22b.md")) <> "\r\nContent-Type: x/y", "\xFF") <>
        part(disposition(~s(name="f[]"; filename="1")), "1") <>
        part(disposition(~s(name="none"; filename="")), "") <> "--b--\r\nafter"

    assert Form.read(@type_, "before\r\n" <> body) ==
             {:ok,
              %{
                "a" => "é\r\n--x",
                "f" => [
                  %Upload{name: ~s(a"b.md), type: "x/y", data: "\xFF"},
                  %Upload{name: "1", data: "1"}
                ]
              }}
  end

  for {what, type, body} <- [
        {"no boundary", "multipart/form-data", "--b--"},
        {"a boundary of 71 characters",
         "multipart/form-data; boundary=" <> String.duplicate("b", 71), "--b--"},
        {"no end", @type_, "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n"},
        {"an end in the middle of a line", @type_, "x--b--"},
        {"no name", @type_, "--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--"},
        {"no disposition", @type_, "--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--"},
        {"no empty line", @type_, "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n--b--"},
        {"a text that is not UTF-8", @type_,
         "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n\xFF\r\n--b--"},
        {"a head of 4,097 bytes", @type_,
         "--b\r\ncontent-disposition: form-data; name=\"#{String.duplicate("a", 4_064)}\"" <>
           "\r\n\r\nx\r\n--b--"},
        {"201 parts", @type_,
         String.duplicate(
           "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n",
           201
         ) <> "--b--"},
        {"another type", "text/plain", "a=1"},
        {"no type", "", "a=1"}
      ] do
    test "#{what} is no form" do
      assert Form.read(unquote(type), unquote(body)) == :error
    end
  end

  test "200 parts are a form" do
    body = String.duplicate(part(disposition(~s(name="a[]")), "x"), 200) <> "--b--"
    assert {:ok, %{"a" => list}} = Form.read(@type_, body)
    assert length(list) == 200
  end

  for {what, type, body} <- [
        {"\"&\"", "application/x-www-form-urlencoded", "&"},
        {"fields", "application/x-www-form-urlencoded", "a=1&"},
        {"boundaries", @type_, "\r\n--b"},
        {"parts", @type_, "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n"}
      ] do
    test "8 MiB of #{what} are no form, and take less memory than the body" do
      body = String.duplicate(unquote(body), div(8 * 1024 * 1024, byte_size(unquote(body))))
      test = self()

      # The process ends if its heap grows beyond 4 MiB.
      options = [:monitor, max_heap_size: %{size: div(4 * 1024 * 1024, 8), error_logger: false}]
      read = fn -> send(test, {:read, Form.read(unquote(type), body)}) end
      {pid, monitor} = :erlang.spawn_opt(read, options)

      assert_receive {:DOWN, ^monitor, :process, ^pid, reason}
      assert reason == :normal
      assert_receive {:read, :error}
    end
  end

  test "bytes of any kind give fields or no form" do
    for seed <- 1..2_000 do
      :rand.seed(:exsss, {seed, 1, 2})

      pieces = [
        "--b",
        "--b--",
        "\r\n",
        "content-disposition: form-data; name=\"a\"",
        "; filename=\"",
        "x",
        "\xFF",
        "=",
        "&",
        "%C3",
        "[]"
      ]

      text = for _piece <- 1..:rand.uniform(12), into: "", do: Enum.random(pieces)

      for type <- [@type_, "application/x-www-form-urlencoded"] do
        case Form.read(type, text) do
          {:ok, %{}} -> :ok
          :error -> :ok
        end
      end
    end
  end
end
