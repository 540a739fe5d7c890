defmodule Skillbook.Web.PlugTest do
  # The plug, with the functions of Plug that test/support/plug.ex has.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.OptionError
  alias Skillbook.Web.Plug, as: WebPlug

  setup do
    %{book: book(sources: [], store: ":memory:", profiles: [[id: "default"], [id: "ann"]])}
  end

  def profile(conn), do: conn.assigns[:answer]

  defp init(book, options \\ []) do
    [book: book, url: "https://example.com", authenticate: {__MODULE__, :profile}]
    |> Keyword.merge(options)
    |> WebPlug.init()
  end

  defp conn(fields) do
    {assigns, fields} = Keyword.pop(fields, :assigns, %{})

    struct!(
      Plug.Conn,
      [
        method: "GET",
        scheme: :https,
        host: "example.com",
        port: 443,
        path_info: ["api", "skills"],
        script_name: ["admin", "skills"],
        assigns: Map.merge(%{answer: {:ok, "ann"}}, assigns)
      ] ++ fields
    )
  end

  defp header(conn, name) do
    with {^name, value} <- List.keyfind(conn.resp_headers, name, 0), do: value
  end

  for {options, message} <- [
        {[url: nil], "Skillbook.Web.Plug needs the option :url"},
        {[authenticate: :none],
         "expected :tokens or a function, since an application can be reached from other " <>
           "machines; listen on 127.0.0.1 for :none, as the option :authenticate of " <>
           "Skillbook.Web, got: :none"},
        {[max_body: 0],
         "expected a number of bytes as the option :max_body of Skillbook.Web.Plug, got: 0"},
        {[book: nil],
         "expected the name of a book as the option :book of Skillbook.Web, got: nil"}
      ] do
    test "init with #{inspect(options)} raises", %{book: book} do
      error = assert_raise OptionError, fn -> init(book, unquote(options)) end
      assert Exception.message(error) == unquote(message)
    end
  end

  test "the function of the application gets the connection", %{book: book} do
    for {answer, headers, status, kept} <- [
          {{:ok, "ann"}, [], 200, "private, no-cache"},
          {{:ok, "ann"}, [{"if-none-match", "*"}], 304, "private, no-cache"},
          {{:ok, "gone"}, [], 401, "no-store"},
          {:error, [], 401, "no-store"}
        ] do
      fields = [assigns: %{answer: answer}, req_headers: headers]
      conn = WebPlug.call(conn(fields), init(book))
      assert {conn.status, header(conn, "cache-control")} == {status, kept}
      if status == 304, do: assert(conn.resp_body == "")
    end

    conn =
      conn(path_info: ["skills"], assigns: %{answer: {:redirect, "/sign-in"}})
      |> WebPlug.call(init(book, authenticate: fn conn -> conn.assigns.answer end))

    assert {conn.status, header(conn, "location")} == {303, "/sign-in"}
  end

  test "the host is the one of the connection", %{book: book} do
    for {fields, status} <- [
          {[], 200},
          {[scheme: :http, port: 80], 200},
          {[host: "other.example"], 421},
          {[port: 8443], 421},
          {[host: "::1", port: 4000], 421}
        ] do
      fields = Keyword.merge([scheme: :https, host: "example.com", port: 443], fields)
      conn = struct!(conn([]), fields)
      assert WebPlug.call(conn, init(book)).status == status
    end

    options = init(book, url: fn -> "http://[::1]:4000" end)
    conn = struct!(conn([]), scheme: :http, host: "::1", port: 4000)
    assert WebPlug.call(conn, options).status == 200
    options = init(book, url: fn -> "nonsense" end)
    assert_raise OptionError, fn -> WebPlug.call(conn, options) end
  end

  test "links lead below the place where it is mounted", %{book: book} do
    conn = WebPlug.call(conn(path_info: ["skills"]), init(book))
    assert conn.status == 200
    body = IO.iodata_to_binary(conn.resp_body)
    assert body =~ ~s(href="/admin/skills/skills")
    refute body =~ ~s(href="/skills")
    request = %Skillbook.Web.Request{base: "/admin/skills"}

    assert Skillbook.Web.Request.url(request, init(book).web, ["mcp"]) ==
             "https://example.com/admin/skills/mcp"
  end

  test "the path is decoded, and the base is not", %{book: book} do
    for {path, status} <- [
          {["api", "skills", "a%20b"], 404},
          {["api", "skills", "%FF"], 400},
          {["api", "skills", "%zz"], 404},
          {["api", "%73kills"], 200}
        ],
        do: assert(WebPlug.call(conn(path_info: path), init(book)).status == status)
  end

  # The part of the path before the plug is the client's, if the application mounts it below a
  # variable segment.
  test "the base leads to no other host, and ends no header or attribute", %{book: book} do
    for {segment, base} <- [
          {"admin", "/admin"},
          {"a%20b", "/a%20b"},
          {"\\\\evil.example", "/%5C%5Cevil.example"},
          {"\\evil.example", "/%5Cevil.example"},
          {"a;b,c", "/a%3Bb%2Cc"},
          {~s("><script>), "/%22%3E%3Cscript%3E"},
          {"a\r\nx: y", "/a%0D%0Ax%3A%20y"},
          {"é", "/%C3%A9"}
        ] do
      fields = [path_info: ["skills"], script_name: [segment]]
      page = WebPlug.call(conn(fields), init(book))
      assert {segment, page.status} == {segment, 200}
      assert IO.iodata_to_binary(page.resp_body) =~ ~s(href="#{base}/skills")

      signed_out = WebPlug.call(conn(fields), init(book, authenticate: :tokens))
      location = header(signed_out, "location")
      assert {segment, String.starts_with?(location, base <> "/login")} == {segment, true}
    end
  end

  test "methods, paths and headers are those of the server's own", %{book: book} do
    {:ok, token} = Skillbook.Web.Tokens.create(book, scopes: [:api], profile: "ann")
    bearer = {"authorization", "Bearer " <> token.secret.()}
    other = {"authorization", "Bearer sb_other"}
    options = init(book, authenticate: :tokens)

    for {fields, status} <- [
          {[], 200},
          {[method: "HEAD"], 200},
          {[method: "get"], 405},
          {[method: "TRACE"], 405},
          {[method: "OPTIONS"], 405},
          {[method: "CONNECT"], 405},
          {[method: ""], 405},
          {[path_info: ["api", "skills", ".."]], 400},
          {[path_info: ["api", "skills", "%2e%2E"]], 400},
          {[path_info: ["api", "%2e", "skills"]], 400},
          {[path_info: ["api", "skills%00"]], 400},
          {[path_info: ["api", "skills", "a%2Fb"]], 404},
          {[path_info: ["api%2Fskills"]], 403},
          {[path_info: ["api;a=b", "skills"]], 403},
          {[path_info: ["API", "skills"]], 403},
          {[query_string: String.duplicate("a", 20_000)], 414},
          {[query_string: "a=%FF"], 400},
          {[req_headers: [bearer, other]], 401},
          {[req_headers: [other, bearer]], 401},
          {[req_headers: []], 401},
          {[host: ""], 421},
          {[host: "example.com.evil.example"], 421}
        ] do
      fields = Keyword.merge([req_headers: [bearer]], fields)
      answer = [] |> conn() |> struct!(fields) |> WebPlug.call(options)
      assert {fields, answer.status} == {fields, status}
      if fields[:method] == "HEAD", do: assert(answer.resp_body == "")
    end
  end

  @form [{"content-type", "application/x-www-form-urlencoded"}]
  @page [method: "POST", path_info: ["login"], req_headers: @form]

  describe "the body" do
    test "is read up to the limit", %{book: book} do
      {:ok, token} = Skillbook.Web.Tokens.create(book, scopes: [:page])
      body = "token=" <> token.secret.()
      options = init(book, authenticate: :tokens, max_body: byte_size(body))
      assert WebPlug.call(conn([assigns: %{body: body}] ++ @page), options).status == 303
      too_long = WebPlug.call(conn([assigns: %{body: body <> "&"}] ++ @page), options)
      assert {too_long.status, too_long.resp_body} == {413, "The body is too large.\n"}
      conn = WebPlug.call(conn([assigns: %{body: :timeout}] ++ @page), options)
      assert {conn.status, conn.resp_body} == {400, "The body cannot be read.\n"}
    end

    test "may have been read by Plug.Parsers, as a form", %{book: book} do
      {:ok, token} = Skillbook.Web.Tokens.create(book, scopes: [:page])
      options = init(book, authenticate: :tokens)
      params = %{"token" => token.secret.(), "nested" => %{"a" => ["1"]}}
      assert WebPlug.call(conn([body_params: params] ++ @page), options).status == 303
      params = %{"token" => ["x"]}
      assert WebPlug.call(conn([body_params: params] ++ @page), options).status == 401

      # A map of the client's is no upload, and a form may be of another parser.
      params = %{
        "token" => [%{"path" => "/etc/passwd", "filename" => "a", "content_type" => "b"}]
      }

      assert WebPlug.call(conn([body_params: params] ++ @page), options).status == 401
      fields = [body_params: %{"token" => "x"}, method: "POST", path_info: ["login"]]
      assert WebPlug.call(conn(fields), options).status == 401
    end

    test "may have been read by Plug.Parsers, as JSON", %{book: book} do
      fields = [
        method: "POST",
        path_info: ["mcp"],
        req_headers: [
          {"content-type", "application/json"},
          {"accept", "application/json, text/event-stream"}
        ]
      ]

      message = %{"jsonrpc" => "2.0", "id" => 1, "method" => "ping"}

      bodies =
        for more <- [
              [assigns: %{body: Skillbook.Support.JSON.encode(message)}],
              [body_params: message]
            ],
            do: WebPlug.call(conn(more ++ fields), init(book)).resp_body

      assert [body] = bodies |> Enum.map(&IO.iodata_to_binary/1) |> Enum.uniq()
      assert body =~ ~s("jsonrpc":"2.0")
      # A list is under its own name.
      conn = conn([body_params: %{"_json" => [message]}] ++ fields)
      assert IO.iodata_to_binary(WebPlug.call(conn, init(book)).resp_body) =~ "error"
    end
  end

  test "a stream is sent in parts, until the client has gone", %{book: book} do
    test = self()
    {client, _monitor} = spawn_monitor(fn -> relay(test) end)

    task =
      Task.async(fn ->
        conn(path_info: ["events"], assigns: %{client: client}) |> WebPlug.call(init(book))
      end)

    assert_receive {:chunk, 0, ": \n\n"}
    assert_receive {:chunk, 1, "event: ready" <> _}
    Process.exit(client, :kill)
    send(task.pid, {:skillbook, book, nil})
    write = fn -> Skillbook.Store.create(Skillbook.view(book, "ann"), note(), by: :user) end
    assert {:ok, _entry} = write.()
    assert %Plug.Conn{status: 200} = Task.await(task, :infinity)
  end

  test "a stream that raises leaves nothing in the process of its connection" do
    raising = fn write ->
      :ok = write.("a")
      raise "lost"
    end

    response = %Skillbook.Web.Response{body: {:stream, raising}}
    before = Process.get_keys()
    conn = conn(assigns: %{client: self()})
    assert_raise RuntimeError, "lost", fn -> WebPlug.respond(conn, response) end
    assert Process.get_keys() -- before == []

    response = %{response | body: {:stream, & &1.("a")}}
    assert %Plug.Conn{resp_body: ["a"]} = WebPlug.respond(conn, response)
    assert Process.get_keys() -- before == []
  end

  defp note, do: %{name: "tea", title: "Tea", kind: :note, content: "Boil."}

  defp relay(test) do
    receive do
      message -> send(test, message)
    end

    relay(test)
  end
end
