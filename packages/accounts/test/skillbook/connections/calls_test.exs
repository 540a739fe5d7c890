defmodule Skillbook.Connections.CallsTest do
  # Many calls at once, from the account of a sign-in through the client to the vendor.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Client
  alias Skillbook.Test.Connections, as: TestConnections
  alias Skillbook.Test.Services

  @labels "https://gmail.googleapis.com/gmail/v1/users/me/labels"
  @scopes ["https://www.googleapis.com/auth/gmail.modify"]

  test "a thousand calls, and a token that expires in the middle: one renewal, no failed call" do
    world = TestConnections.world(echo: true)
    account = Services.google_client(world) ++ [quota: [gmail: :infinity]]
    book = TestConnections.book(google: account)
    {:ok, _connection} = TestConnections.connect(book, :google, for: ["email.label"])
    Services.clear_log(world)
    mail = TestConnections.mail(book, "default", timeout: 120_000)
    done = :counters.new(1, [])
    test = self()

    answers =
      1..1_000
      |> Task.async_stream(
        fn _ ->
          :counters.add(done, 1, 1)
          if :counters.get(done, 1) == 500, do: send(test, Services.advance(world, 3_600))
          Client.request(mail, [url: @labels], scopes: @scopes)
        end,
        max_concurrency: 1_000,
        timeout: 120_000
      )
      |> Enum.frequencies_by(fn {:ok, answer} -> elem(answer, 0) end)

    assert answers == %{ok: 1_000}
    assert_receive %{"now" => _}
    log = Services.log(world)
    assert Enum.count(log, &(&1["method"] == "oauth.token")) == 1
    # Some calls came with the token that had expired, and were repeated with the next one.
    statuses = Enum.frequencies_by(log, & &1["status"])
    assert statuses[401] > 0
    assert statuses[200] == 1_001
  end
end
