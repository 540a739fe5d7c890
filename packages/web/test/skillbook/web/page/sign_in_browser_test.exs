defmodule Skillbook.Web.Page.SignInBrowserTest do
  # Accounts that a person connects on the page, in a real Chromium. The vendor is another website
  # than the page: `localhost` and `127.0.0.1`.
  use ExUnit.Case, async: true

  import Skillbook.Test.Connections

  alias Skillbook.Connections
  alias Skillbook.Test.{Browser, Services}
  alias Skillbook.Web.{Server, Tokens}

  @moduletag :capture_log
  @moduletag timeout: 300_000

  setup do
    world = world()
    vendor = String.replace(world.url, "127.0.0.1", "localhost")

    book =
      book([google: account(world, url: vendor)],
        builtins: ["email", "calendar"],
        profiles: [[id: "ann", writes: :run]]
      )

    %{url: url} = Server.info(start_supervised!({Server, book: book, port: 0}))
    %{world: world, book: book, url: url, vendor: vendor}
  end

  defp open(context, options) do
    {:ok, link} = Tokens.link(context.book, profile: "ann", url: context.url)
    page = Browser.open(context.url, options)
    Browser.goto(page, String.replace_prefix(link.(), context.url, ""))
    Browser.wait_url(page, "**/")
    Browser.goto(page, "/connections")
  end

  # Requests to the vendor, and the browser's own notes about statuses, are no problems here.
  defp assert_sound(page, context) do
    ours =
      for problem <- Browser.problems(page),
          not String.starts_with?(problem, "request: " <> context.vendor),
          not (problem =~ "the server responded with a status of 40"),
          do: problem

    assert ours == []
    Browser.assert_sound(page)
  end

  for {name, options} <- [
        light: [],
        dark: [theme: :dark],
        narrow: [width: 360, height: 640],
        "without script": [script: false]
      ] do
    test "an account is connected, #{name}", context do
      script? = Keyword.get(unquote(options), :script, true)
      page = open(context, unquote(options))
      if script?, do: assert_sound(page, context)

      # The person refuses first.
      Services.browser(context.world, answer: "deny")
      Browser.click(page, role: "button", name: "Connect google")
      Browser.wait_url(page, "**/connections/google/finish")
      assert Browser.text(page, "[role=alert]") =~ "the person has not allowed it."
      if script?, do: assert_sound(page, context)

      # With the keyboard, from the page with the reason.
      Services.browser(context.world, answer: "allow")
      Browser.check(page, [label: "email.archive " <> scope("gmail.modify")], false)
      Browser.press(page, "Tab")
      Browser.press(page, "Tab")
      Browser.press(page, "Tab")
      assert ["button", _id, "Connect" <> _] = Browser.focused(page)
      Browser.press(page, "Enter")
      Browser.wait_url(page, "**/connections?connected=google")

      assert Browser.text(page, "[role=status].notice") =~
               "google is connected as ann@example.com"

      assert Browser.text(page) =~ scope("gmail.send")
      if script?, do: assert_sound(page, context)
      assert {:ok, [%{profile: "ann"}]} = Connections.list(context.book)

      for cookie <- Browser.cookies(page) do
        assert %{"httpOnly" => true, "sameSite" => "Strict", "name" => name} = cookie
        assert name =~ ~r/\Askillbook(-browser)?-\d+\z/
      end
    end
  end

  test "the history of the browser has no code and no state", context do
    page = open(context, [])
    Browser.click(page, role: "button", name: "Connect google")
    Browser.wait_url(page, "**/connections?connected=google")
    entries = Browser.evaluate(page, "navigation.entries().map((entry) => entry.url)")
    paths = for url <- entries, do: String.replace_prefix(url, context.url, "")
    assert Enum.take(paths, -2) == ["/connections", "/connections?connected=google"]
    for path <- paths, do: refute(path =~ ~r/code|state|callback|finish/)
    assert Browser.evaluate(page, "document.referrer") == ""
  end
end
