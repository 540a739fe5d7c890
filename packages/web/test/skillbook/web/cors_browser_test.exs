defmodule Skillbook.Web.CORSBrowserTest do
  # Pages of two other websites in a real Chromium that use MCP and the API by `fetch`: one is in
  # the list of origins, one is not.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.Browser
  alias Skillbook.Web.{Response, Server, Tokens}

  @moduletag :capture_log
  @moduletag timeout: 300_000

  defp website(id) do
    handler = fn _request -> Response.html(200, "<!doctype html><title>x</title>") end
    server = start_supervised!({Server, handler: handler, port: 0}, id: id)
    "http://localhost:#{Server.info(server).port}"
  end

  # A session of MCP from its beginning to its end with its stream, an error, and the API.
  @client """
  (async () => {
    const [url, token] = [URL, TOKEN];
    const auth = { authorization: `Bearer ${token}` };
    const accept = "application/json, text/event-stream";
    const json = { ...auth, accept, "content-type": "application/json" };
    const post = (headers, method, params) => fetch(url + "/mcp", {
      method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    try {
      const nobody = await post({ accept, "content-type": "application/json" }, "ping", {});
      const protocolVersion = "2025-11-25";
      const started = await post(json, "initialize", {
        protocolVersion, capabilities: {}, clientInfo: { name: "page", version: "1" },
      });
      await started.json();
      const session = {
        "mcp-session-id": started.headers.get("mcp-session-id"),
        "mcp-protocol-version": protocolVersion,
      };
      const tools = await post({ ...json, ...session }, "tools/list", {});
      const list = (await tools.json()).result.tools;
      const stop = new AbortController();
      const stream = await fetch(url + "/mcp", {
        headers: { ...auth, ...session, accept, "last-event-id": "1" }, signal: stop.signal,
      });
      const type = stream.headers.get("content-type");
      stop.abort();
      const leave = { method: "DELETE", headers: { ...auth, ...session } };
      const end = await fetch(url + "/mcp", leave);
      const api = await fetch(url + "/api/skills", { headers: auth });
      const skills = (await api.json()).skills.length;
      return [nobody.status, nobody.headers.get("www-authenticate"), list.length > 0, type,
        end.status, skills];
    } catch (error) {
      return String(error);
    }
  })()
  """

  defp evaluate(page, url, token) do
    script = @client |> String.replace("URL,", "#{inspect(url)},")
    Browser.evaluate(page, String.replace(script, "TOKEN]", "#{inspect(token)}]"))
  end

  test "a website of the list uses MCP and the API, and another one neither" do
    [listed, other] = for id <- [:listed, :other], do: website(id)
    name = book(sources: [], store: ":memory:", profiles: [[id: "default"]])
    server = start_supervised!({Server, book: name, port: 0, origins: [listed]}, id: :server)
    %{url: url} = Server.info(server)
    {:ok, token} = Tokens.create(name, scopes: [:mcp, :api])
    skills = skills(url, token)

    page = Browser.open(listed) |> Browser.goto("/")
    got = evaluate(page, url, token.secret.())
    assert got == [401, "Bearer", true, "text/event-stream", 204, skills]

    page = Browser.open(other) |> Browser.goto("/")
    assert evaluate(page, url, token.secret.()) == "TypeError: Failed to fetch"
    # The API answers, but the page may not read it.
    read = ~s|fetch("#{url}/api/skills").then(() => "read", (error) => String(error))|
    assert Browser.evaluate(page, read) == "TypeError: Failed to fetch"

    # The page of the server is not shared with anyone.
    page = Browser.open(listed) |> Browser.goto("/")
    read = ~s|fetch("#{url}/login").then(() => "read", (error) => String(error))|
    assert Browser.evaluate(page, read) == "TypeError: Failed to fetch"
  end

  defp skills(url, token) do
    headers = [{"authorization", "Bearer " <> token.secret.()}]

    {:ok, response} =
      Skillbook.HTTP.request(url: url <> "/api/skills", headers: headers, method: :get)

    {:ok, %{"skills" => skills}} = Skillbook.Support.JSON.decode(response.body)
    length(skills)
  end
end
