defmodule Skillbook.MCP.ClientOAuthTest do
  # People sign in to MCP servers as to accounts. The judge is the official SDK with its own
  # authorization server. `bin/mcp-for-tests run mix test FILE` installs it.
  use ExUnit.Case, async: false

  alias Skillbook.{Connections, HTTP, View}
  alias Skillbook.MCP.Client
  alias Skillbook.Support.JSON
  alias Skillbook.Test.MCPJudges

  @moduletag :capture_log
  @moduletag :tmp_dir
  @redirect "http://127.0.0.1:50999/connections/docs/callback"

  setup %{tmp_dir: folder} do
    %{
      url: MCPJudges.start("python", [MCPJudges.path("oauth_server.py")]),
      store: Path.join(folder, "book.db"),
      key: Connections.generate_key()
    }
  end

  defp book(context, name \\ :mcp_oauth) do
    key = context.key
    source = {:mcp, context.url, label: "docs", oauth: true, approve: :all, read: ["*"]}

    options = [
      name: name,
      watch: false,
      builtins: false,
      usage: false,
      store: context.store,
      sources: [source],
      connections: [key: fn -> key end]
    ]

    start_supervised!(Supervisor.child_spec({Skillbook, options}, id: name))
    :ok = Client.await(name)
    name
  end

  defp log(context) do
    {:ok, %{body: body}} = HTTP.request(String.replace_suffix(context.url, "/mcp", "/log"))
    {:ok, %{"log" => log}} = JSON.decode(body)
    log
  end

  defp forget(context) do
    {:ok, %{status: 200}} = HTTP.request(String.replace_suffix(context.url, "/mcp", "/forget"))
  end

  # The browser of a person who agrees.
  defp browse(url) do
    {:ok, %{status: 302} = response} = HTTP.request(url)
    [location] = response.headers["location"]
    location |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()
  end

  defp sign_in(book, options \\ []) do
    {:ok, sign_in} = Connections.authorize(book, "docs", [redirect: @redirect] ++ options)
    Connections.complete(book, browse(sign_in.url), redirect: @redirect)
  end

  defp run(book, line), do: hd(Skillbook.run(View.all(book), "```cmd\n#{line}\n```").results)

  test "a person signs in; the token is renewed, widened and revoked", context do
    book = book(context)

    assert [%{code: :server_unavailable, message: message}] = Skillbook.diagnostics(book)

    assert message ==
             "the MCP server docs: the profile default has no connection for docs; a person " <>
               "can make it with `bin/skillbook --mcp 'docs=#{context.url}' connect docs`; it " <>
               "has no tools and skills until it answers"

    assert {:ok, connection} = sign_in(book)
    assert {connection.account, connection.status} == {"docs", :connected}
    assert connection.scopes == ["docs:read"]
    assert Client.refresh(book) == []
    assert run(book, "docs.search tea").content =~ "| found tea"

    # A token that the server has forgotten is renewed once, and the call repeated.
    forget(context)
    assert run(book, "docs.search milk").content =~ "| found milk"
    assert %{"token" => "refresh"} = List.last(log(context))

    result = run(book, "docs.write tea")
    assert result.status == :error

    assert result.content =~
             "the connection docs of the profile default lacks the scope docs:write; a person " <>
               "can grant it with `bin/skillbook --mcp 'docs=#{context.url}' connect docs " <>
               "--scope docs:write`"

    # This node knows what was missing.
    assert {:ok, %{scopes: ["docs:read", "docs:write"]}} = sign_in(book)
    assert run(book, "docs.write tea").content =~ "| wrote tea"

    assert {:ok, %{revoked: true}} = Connections.disconnect(book, "docs")
    assert %{"revoke" => "RefreshToken"} = List.last(log(context))
    assert [{"docs", error}] = Client.refresh(book)
    assert Exception.message(error) =~ "has no connection for docs"

    resource = context.url

    assert [
             %{"register" => client},
             %{"authorize" => %{"resource" => ^resource, "scopes" => ["docs:read"]}}
             | _more
           ] = log(context)

    assert %{
             "application_type" => "native",
             "redirect_uris" => [@redirect],
             "grant_types" => ["authorization_code", "refresh_token"]
           } = client
  end
end
