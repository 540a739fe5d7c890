defmodule Skillbook.HTTP.EnvironmentTest do
  # The environment is everybody's.
  use ExUnit.Case, async: false

  alias Skillbook.HTTP
  alias Skillbook.Test.HTTPServer

  @names for name <- ~w(HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY),
             name <- [name, String.downcase(name)],
             do: name

  setup do
    before = System.get_env()
    for name <- ["REQUEST_METHOD" | @names], do: System.delete_env(name)

    on_exit(fn ->
      for name <- ["REQUEST_METHOD" | @names],
          do:
            if(before[name],
              do: System.put_env(name, before[name]),
              else: System.delete_env(name)
            )
    end)
  end

  defp proxy do
    {_server, url} = HTTPServer.start([HTTPServer.answer("by proxy")])
    url
  end

  # Nobody answers there, and it does not take long to find out.
  @nobody "http://127.0.0.1:1"

  test "names the proxies" do
    for {variables, url} <- [
          {%{"HTTP_PROXY" => :proxy}, "http://example.test"},
          {%{"http_proxy" => :proxy, "HTTP_PROXY" => @nobody}, "http://example.test"},
          {%{"HTTP_PROXY" => :proxy, "HTTPS_PROXY" => @nobody}, "http://example.test"},
          {%{"ALL_PROXY" => :proxy}, "http://example.test"},
          {%{"all_proxy" => @nobody, "http_proxy" => :proxy}, "http://example.test"},
          {%{"HTTP_PROXY" => :proxy, "NO_PROXY" => "test.example,10.0.0.0/8"},
           "http://example.test"},
          {%{"HTTP_PROXY" => "", "ALL_PROXY" => :proxy}, "http://example.test"}
        ] do
      System.put_env(
        for {name, value} <- variables, do: {name, if(value == :proxy, do: proxy(), else: value)}
      )

      assert {:ok, %{body: "by proxy"}} = HTTP.request(url), inspect(variables)
      Enum.each(Map.keys(variables), &System.delete_env/1)
    end
  end

  test "names the proxy for https" do
    {_server, url} = HTTPServer.start([[{:head, 403, [{"content-length", "0"}]}]])
    System.put_env("HTTPS_PROXY", url)
    assert {:error, error} = HTTP.request("https://example.test")

    assert Exception.message(error) ==
             "example.test:443: the proxy refused the connection: unsuccessful"

    assert_receive {:request, %{line: "CONNECT example.test:443 HTTP/1.1"}}
  end

  test "names the exceptions" do
    System.put_env("HTTP_PROXY", @nobody)

    {_server, "http://localhost" <> port} =
      HTTPServer.start({:each, 4, HTTPServer.answer("direct")})

    # This machine is never asked for through a proxy.
    for host <- ["localhost", "127.0.0.1"],
        do: assert({:ok, %{body: "direct"}} = HTTP.request("http://#{host}#{port}"))

    # These have no address, and nobody is asked for one where there is a proxy.
    for {except, host, reason} <- [
          {"example.test", "example.test", "no address was found for this host"},
          {"a, .example.test", "a.example.test", "no address was found for this host"},
          {"*", "example.test", "no address was found for this host"},
          {"ample.test", "example.test", "connection refused"},
          {"", "example.test", "connection refused"}
        ] do
      System.put_env("NO_PROXY", except)
      assert {:error, error} = HTTP.request("http://#{host}")
      assert {error.kind, error.reason} == {:connect, reason}, except
    end
  end

  test "of a CGI program: HTTP_PROXY is ignored" do
    System.put_env(%{"REQUEST_METHOD" => "GET", "HTTP_PROXY" => @nobody})

    assert {:error, %{reason: "no address was found for this host"}} =
             HTTP.request("http://example.test")

    System.put_env("http_proxy", @nobody)
    assert {:error, %{reason: "connection refused"}} = HTTP.request("http://example.test")
  end

  test "is not read if the option sets a proxy" do
    System.put_env("HTTP_PROXY", @nobody)

    assert {:error, %{reason: "no address was found for this host"}} =
             HTTP.request("http://example.test", proxy: nil)

    proxy = proxy()

    assert {:ok, %{body: "by proxy"}} =
             HTTP.request("http://example.test", proxy: fn -> proxy end)
  end
end
