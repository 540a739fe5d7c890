defmodule Skillbook.Connections.PlugTest do
  use ExUnit.Case, async: true

  import Skillbook.Test.Connections

  alias Plug.Conn
  alias Skillbook.{Connections, OptionError}
  alias Skillbook.Test.Services

  @url "https://skills.example.com/connections"

  defp options(book, more \\ []) do
    Connections.Plug.init(
      Keyword.merge(
        [book: book, url: @url, profile: & &1.assigns[:user], return_to: "/settings?tab=mail"],
        more
      )
    )
  end

  defp get(options, path, user, query \\ "") do
    info = String.split(path, "/", trim: true)
    # A client chooses its host.
    headers = [{"host", "evil.example.com"}]
    conn = %Conn{method: "GET", path_info: info, query_string: query, req_headers: headers}
    Connections.Plug.call(%{conn | assigns: %{user: user}}, options)
  end

  defp header(conn, name), do: conn.resp_headers |> List.keyfind(name, 0) |> elem(1)

  defp visit(conn) do
    assert conn.status == 302
    {302, location} = conn |> header("location") |> Services.open()
    @url <> "/google/callback?" <> query = location
    query
  end

  setup do
    world = world()
    book = book([google: account(world)], profiles: [[id: "ann"], [id: "eve"]])
    %{world: world, book: book, options: options(book)}
  end

  test "signs the user in, and sends the browser back", %{book: book, options: options} do
    query = options |> get("/google", "ann", "for[]=email.search&for[]=calendar.list") |> visit()
    conn = get(options, "/google/callback", "ann", query)
    assert {conn.status, conn.resp_body} == {302, ""}
    assert header(conn, "location") == "/settings?tab=mail&connected=google"
    assert header(conn, "cache-control") == "no-store"
    assert header(conn, "referrer-policy") == "no-referrer"
    assert Connections.services(book, "ann") == ["calendar", "mail"]
    assert Connections.services(book, "eve") == []

    # Once.
    conn = get(options, "/google/callback", "ann", query)
    assert header(conn, "location") == "/settings?tab=mail&connection_error=state"
  end

  test "takes no answer of somebody else's sign-in", %{book: book, options: options} do
    # Eve sends the address to Ann, who signs in with her own account.
    query = options |> get("/google", "eve", "for=email.search") |> visit()
    conn = get(options, "/google/callback", "ann", query)
    assert header(conn, "location") == "/settings?tab=mail&connection_error=state"
    assert Connections.list(book) == {:ok, []}

    # Nor that of nobody.
    assert get(options, "/google/callback", nil, query).status == 403
    assert Connections.list(book) == {:ok, []}
  end

  test "takes the answer of one vendor only at its own address", context do
    accounts = [google: account(context.world), other: account(context.world)]
    options = options(book(accounts, profiles: [[id: "ann"]]))
    query = options |> get("/google", "ann", "for=email.search") |> visit()
    conn = get(options, "/other/callback", "ann", query)
    assert header(conn, "location") == "/settings?tab=mail&connection_error=state"
    # Nor later.
    conn = get(options, "/google/callback", "ann", query)
    assert header(conn, "location") == "/settings?tab=mail&connection_error=state"
  end

  test "returns to its own application after each error", context do
    %{options: options, world: world} = context
    Services.browser(world, answer: "deny")
    query = options |> get("/google", "ann", "for=email.search") |> visit()

    for {path, query, kind} <- [
          {"/google/callback", query, "denied"},
          {"/google/callback", "", "state"},
          {"/google/callback", "state=a&code=b", "state"},
          {"/nothing", "", "account"},
          {"/google", "for=email.nothing", "command"},
          # The book has no commands, so no default.
          {"/google", "", "command"},
          {"/google", "for[]=%FF", "command"},
          {"/google", "for=", "command"}
        ] do
      conn = get(options, path, "ann", query)
      assert {path, query, conn.status} == {path, query, 302}
      assert header(conn, "location") == "/settings?tab=mail&connection_error=#{kind}"
    end

    conn = get(options(context.book, return_to: "/"), "/google/callback", "ann", "")
    assert header(conn, "location") == "/?connection_error=state"
  end

  test "answers other requests by 404, and strangers by 403", %{options: options} do
    for path <- ["/", "/google/x", "/a/b/c", "/google/callback/x"],
        do: assert(get(options, path, "ann").status == 404)

    assert get(options, "/google", nil).status == 403

    for method <- ["POST", "PUT", "DELETE", "HEAD"] do
      conn = %Conn{method: method, path_info: ["google"], assigns: %{user: "ann"}}
      assert Connections.Plug.call(conn, options).status == 404
    end
  end

  test "its options are checked" do
    profile = fn _conn -> nil end
    all = [book: :a, url: @url, profile: profile]

    for {options, message} <- [
          {Keyword.delete(all, :book), "Skillbook.Connections.Plug needs the option :book"},
          {Keyword.delete(all, :url), "Skillbook.Connections.Plug needs the option :url"},
          {Keyword.delete(all, :profile), "Skillbook.Connections.Plug needs the option :profile"},
          {all ++ [return_to: "https://evil.example.com"],
           ~s(expected a path such as "/settings" as the option :return_to of ) <>
             ~s(Skillbook.Connections.Plug, got: "https://…")},
          {all ++ [return_to: "//evil.example.com"],
           ~s(expected a path such as "/settings" as the option :return_to of ) <>
             ~s(Skillbook.Connections.Plug, got: "//evil.example.com")},
          {all ++ [return_to: "/\\evil.example.com"],
           ~s(expected a path such as "/settings" as the option :return_to of ) <>
             ~S(Skillbook.Connections.Plug, got: "/\\evil.example.com")}
        ] do
      error = assert_raise OptionError, fn -> Connections.Plug.init(options) end
      assert Exception.message(error) == message
    end
  end
end
