defmodule Skillbook.Web.SessionBrowserTest do
  # Signing in with a real Chromium, and the attempts of another website that it has open:
  # `localhost` is another site than `127.0.0.1`, with another server.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.Browser
  alias Skillbook.Web.{Response, Server, Tokens}

  @moduletag :capture_log
  @moduletag timeout: 300_000

  setup do
    name = book(store: ":memory:", profiles: [[id: "default"], [id: "ann"]])
    server = start_supervised!({Server, book: name, port: 0}, id: :server)
    %{url: url} = Server.info(server)
    %{book: name, url: url}
  end

  defp link(book) do
    {:ok, link} = Tokens.link(book, operator: true, url: "http://a")
    "http://a" <> path = link.()
    path
  end

  # A website at another origin, with this page for each path.
  defp website(pages) do
    handler = fn %{path: path} ->
      case Map.fetch(pages, Enum.join(path, "/")) do
        {:ok, body} -> Response.html(200, ["<!doctype html><title>x</title>", body])
        :error -> Response.text(404, "")
      end
    end

    server = start_supervised!({Server, handler: handler, port: 0}, id: :website)
    "http://localhost:#{Server.info(server).port}"
  end

  test "the link signs in; signing out and a token lead out and in again", context do
    %{book: book, url: url} = context
    link = link(book)
    page = Browser.open(url) |> Browser.goto(link)
    Browser.wait_url(page, "**/")
    # No script reads the cookie.
    assert Browser.evaluate(page, "document.cookie") == ""
    assert [%{"httpOnly" => true, "sameSite" => "Strict"} = cookie] = Browser.cookies(page)
    assert cookie["name"] =~ ~r/\Askillbook-\d+\z/
    # The address with the link is used up, also for this browser once it has signed out.
    Browser.click(page, role: "button", name: "Sign out")
    Browser.wait_url(page, "**/login")
    assert Browser.cookies(page) == []
    Browser.assert_sound(page)
    Browser.goto(page, link, 410)
    Browser.problems(page)
    Browser.assert_sound(page)

    {:ok, token} = Tokens.create(book, profile: "ann", scopes: [:page])
    Browser.goto(page, "/new")
    Browser.wait_url(page, "**/login?to=%2Fnew")
    Browser.fill(page, [label: "Token"], "sb_wrong")
    Browser.click(page, role: "button", name: "Sign in")
    assert Browser.text(page, "#field-token-error") =~ "This token is not valid."
    # The browser reports the status 401.
    Browser.problems(page)
    Browser.assert_sound(page)
    Browser.fill(page, [label: "Token"], token.secret.())
    Browser.press(page, "Enter")
    Browser.wait_url(page, "**/new")
    Browser.assert_sound(page)

    # The next request after the end of the token leads to the form.
    :ok = Tokens.revoke(book, token.id)
    Browser.goto(page, "/skills")
    Browser.wait_url(page, "**/login?to=%2Fskills")
  end

  test "a link in another website signs in, although the cookie is strict", context do
    %{book: book, url: url} = context
    website = website(%{"mail" => ~s(<a href="#{url}#{link(book)}">open</a>)})
    page = Browser.open(website) |> Browser.goto("/mail")
    Browser.click(page, text: "open")
    Browser.wait_url(page, url <> "/")
  end

  test "without script the link and the form work too", %{book: book, url: url} do
    page = Browser.open(url, script: false) |> Browser.goto(link(book))
    Browser.wait_url(page, "**/")
    Browser.click(page, role: "button", name: "Sign out")
    {:ok, token} = Tokens.create(book, scopes: [:page])
    Browser.fill(page, [label: "Token"], token.secret.())
    Browser.click(page, role: "button", name: "Sign in")
    Browser.wait_url(page, "**/")
  end

  test "another website changes and reads nothing", %{book: book, url: url} do
    {:ok, token} = Tokens.create(book, scopes: [:page, :api])
    fields = %{name: "tea", title: "Tea", description: "Tea", content: "Boil."}
    {:ok, _entry} = Skillbook.Store.create(book, fields, profile: "default")

    form = fn action, fields ->
      inputs = for {name, value} <- fields, do: ~s(<input name="#{name}" value="#{value}">)
      ~s(<form method="post" action="#{url}#{action}">#{inputs}<button>go</button></form>)
    end

    website =
      website(%{
        "delete" => form.("/skills/tea/delete", %{}),
        "login" => form.("/login", %{"token" => token.secret.()}),
        "empty" => "x"
      })

    page = Browser.open(website) |> Browser.goto("/empty")
    # The victim is signed in, in the same browser.
    Browser.evaluate(page, "location.href = '#{url}#{link(book)}'")
    Browser.wait_url(page, url <> "/")

    for path <- ["delete", "login"] do
      Browser.evaluate(page, "location.href = '#{website}/#{path}'")
      Browser.click(page, text: "go")
      assert Browser.text(page) =~ "This request comes from another website."
    end

    assert {:ok, _entry} = Skillbook.View.fetch(Skillbook.view(book), "tea")

    # Reading by script fails for the caller of the page, and with a token.
    Browser.evaluate(page, "location.href = '#{website}/empty'")
    Browser.wait_url(page, website <> "/empty")

    for options <- [
          "{credentials: 'include'}",
          "{headers: {authorization: 'Bearer #{token.secret.()}'}}",
          "{method: 'POST', credentials: 'include', body: 'x'}"
        ],
        path <- ["/skills?format=json", "/api/skills", "/mcp", "/events"] do
      script = "fetch('#{url}#{path}', #{options}).then(() => 'read', () => 'refused')"
      assert Browser.evaluate(page, script) == "refused", "#{path} with #{options}"
    end

    # Not even as an image, a script, a frame or a stream.
    for {tag, source} <- [{"img", "/assets/icon.svg"}, {"script", "/api/skills"}] do
      script = """
      new Promise((done) => {
        const it = document.createElement("#{tag}");
        it.onload = () => done("loaded");
        it.onerror = () => done("refused");
        it.src = "#{url}#{source}";
        document.body.append(it);
      })
      """

      assert Browser.evaluate(page, script) == "refused", tag
    end

    script = """
    new Promise((done) => {
      const events = new EventSource("#{url}/events", {withCredentials: true});
      events.onopen = () => done("open");
      events.onerror = () => done("refused");
    })
    """

    assert Browser.evaluate(page, script) == "refused"
  end
end
