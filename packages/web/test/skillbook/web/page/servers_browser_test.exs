defmodule Skillbook.Web.Page.ServersBrowserTest do
  # An operator decides about the offers of an MCP server in a real Chromium.
  use ExUnit.Case, async: true

  alias Skillbook.MCP.Client
  alias Skillbook.Test.{Browser, HostileServer}
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag timeout: 300_000

  setup do
    book = HostileServer.book(HostileServer.start() <> "/read", [], store: ":memory:")
    options = [book: book, port: 0, authenticate: :none, profile: "default"]
    %{book: book, url: Server.info(start_supervised!({Server, options})).url}
  end

  defp status(book), do: Enum.find(Client.offers(book), &(&1.name == "docs/refunds")).status

  for script <- [true, false] do
    test "an offer is refused, approved and taken back; script: #{script}", context do
      %{book: book, url: url} = context
      page = Browser.open(url, script: unquote(script))

      for {button, badge, status} <- [
            {"Refuse it", "refused", :refused},
            {"Approve it as it is now", "approved", :approved},
            {"Take the approval back", "refused", :refused}
          ] do
        Browser.goto(page, "/servers") |> Browser.click(role: "link", name: "docs/refunds")
        Browser.wait(page, role: "button", name: button)
        # axe-core is a script.
        if unquote(script), do: Browser.assert_sound(page)
        Browser.click(page, role: "button", name: button)
        # The list has one offer with a decision.
        Browser.wait_url(page, "**/servers")
        Browser.wait(page, ".badge:text-is('#{badge}')")
        assert {button, status(book)} == {button, status}
        if unquote(script), do: Browser.assert_sound(page)
      end

      Browser.goto(page, "/servers/offer?name=docs/refunds")
      Browser.wait(page, "dd:has-text('by default, ')")
    end
  end
end
