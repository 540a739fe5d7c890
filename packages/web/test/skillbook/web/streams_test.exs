defmodule Skillbook.Web.StreamsTest do
  # A stream ends with its token or its session, although it was open before. The time between two
  # looks is a minute, so these tests look themselves.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, SQL}
  alias Skillbook.Test.Requests
  alias Skillbook.Web.{Authentication, Sessions, Streams, Tokens}

  setup do
    name = book(store: ":memory:", profiles: [[id: "default"], [id: "ann"]])
    sql = name |> Book.fetch!() |> Book.sql()
    %{book: name, web: Requests.web(name, authenticate: :tokens), sql: sql}
  end

  defp authenticated(web, headers) do
    request = Requests.request("GET", "/events", headers: headers)
    {:ok, caller} = Authentication.caller(request, :page, web)
    %{request | caller: caller}
  end

  test "a token that is revoked, or has expired", %{book: book, web: web, sql: sql} do
    for ending <- [&Tokens.revoke(book, &1.id), fn _ -> expire(sql) end] do
      {:ok, token} = Tokens.create(book, scopes: [:page], expires_in: 600)
      request = authenticated(web, [{"authorization", "Bearer " <> token.secret.()}])
      assert Authentication.holds?(request, web)
      ending.(token)
      refute Authentication.holds?(request, web)
    end
  end

  defp expire(sql), do: SQL.query!(sql, "update skillbook_tokens set expires_at = 1")

  test "a session that has ended; looking is no use of it", context do
    %{book: book, web: web, sql: sql} = context
    session = %{profile: "ann", operator?: false, token: nil, scopes: :all}
    {:ok, secret} = Sessions.start(Book.fetch!(book), session, 600)
    request = authenticated(web, [{"cookie", "skillbook-4004=" <> secret.()}])
    SQL.query!(sql, "update skillbook_sessions set used_at = used_at - 100")
    [[used]] = SQL.query!(sql, "select used_at from skillbook_sessions").rows
    assert Authentication.holds?(request, web)
    assert [[^used]] = SQL.query!(sql, "select used_at from skillbook_sessions").rows
    SQL.query!(sql, "update skillbook_sessions set used_at = used_at - 43200")
    refute Authentication.holds?(request, web)
  end

  test "a profile or a book that is gone, but not a database that does not answer", context do
    %{book: book, web: web, sql: sql} = context
    {:ok, token} = Tokens.create(book, scopes: [:page], profile: "ann")
    request = authenticated(web, [{"authorization", "Bearer " <> token.secret.()}])
    gone = put_in(request.caller.profile.id, "gone")
    refute Authentication.holds?(gone, web)
    SQL.query!(sql, "alter table skillbook_tokens rename to away")
    assert Authentication.holds?(request, web)
    stop_supervised!(book)
    refute Authentication.holds?(request, web)
  end

  describe "an application's caller, which is asked for again," do
    for {what, answer, holds?} <- [
          {"is the same", {:ok, "ann"}, true},
          {"has new functions", {:profile, assigns: :new}, true},
          {"has signed out", :error, false},
          {"is sent to sign in", {:redirect, "/sign-in"}, false},
          {"is another one", {:ok, "default"}, false},
          {"is an operator now", {:ok, "ann", operator: true}, false},
          {"has another label", {:profile, grants: ["staff"]}, false},
          {"sees fewer skills", {:profile, skills: ["a.*"]}, false},
          {"may not write any more", {:profile, writes: :deny}, false}
        ] do
      test "#{what}: #{holds?}", %{book: book} do
        answer =
          case unquote(Macro.escape(answer)) do
            {:profile, [assigns: :new]} -> {:ok, profile(assigns: fn -> %{} end)}
            {:profile, options} -> {:ok, profile(options)}
            other -> other
          end

        request = authenticated(web(book, {:ok, profile([])}), [])
        assert Authentication.holds?(request, web(book, {:ok, profile([])}))
        assert Authentication.holds?(request, web(book, answer)) == unquote(holds?)
      end
    end

    defp web(book, answer), do: Requests.web(book, authenticate: fn _request -> answer end)
    defp profile(options), do: Skillbook.Profile.new!([id: "ann"] ++ options)
  end

  test "a profile of a token that has other rights now" do
    rights = :counters.new(1, [])

    fetch = fn "ann" ->
      {:ok, [id: "ann", grants: if(:counters.get(rights, 1) == 0, do: ["staff"], else: [])]}
    end

    name = book(store: ":memory:", profiles: fetch)
    web = Requests.web(name, authenticate: :tokens)
    {:ok, token} = Tokens.create(name, scopes: [:page], profile: "ann")
    request = authenticated(web, [{"authorization", "Bearer " <> token.secret.()}])
    assert Authentication.holds?(request, web)
    :counters.add(rights, 1, 1)
    refute Authentication.holds?(request, web)
  end

  describe "the streams of one caller are limited:" do
    @max 3

    for {what, same, other} <- [
          {"a token", :token, :token},
          {"a session", :session, :session},
          {"an address", {:open, {10, 0, 0, 1}}, {:open, {10, 0, 0, 2}}},
          {"a network of IPv6", {:open, {1, 2, 3, 4, 5, 6, 7, 8}},
           {:open, {1, 2, 3, 5, 5, 6, 7, 8}}},
          {"a profile of the application", {:as, "ann", {10, 0, 0, 1}},
           {:as, "default", {10, 0, 0, 1}}},
          {"its address", {:as, "ann", {10, 0, 0, 1}}, {:as, "ann", {10, 0, 0, 2}}}
        ] do
      test what, %{book: book} do
        same = limited(book, unquote(Macro.escape(same)))
        other = limited(book, unquote(Macro.escape(other)))

        streams = for _ <- 1..@max, do: same.(:stream)
        assert for({response, _pid} <- streams, do: response.status) == [200, 200, 200]

        refused = same.(:call)
        assert refused.status == 429
        assert {"retry-after", "10"} in refused.headers

        assert refused.body ==
                 "This caller has 3 event streams, the most at once. Close some of them.\n"

        # Other answers are not counted, and other callers have streams of their own.
        assert same.(:page).status == 200
        assert same.(:head).status == 200
        assert {%{status: 200}, _pid} = other.(:stream)
      end
    end

    test "one that ends, or whose process ends, makes room", %{book: book} do
      web = limited_web(book, :none)
      request = Requests.request("GET", "/events")
      {:ok, caller} = Authentication.caller(request, :page, web)
      headers = [{"content-type", "text/event-stream"}]
      stream = fn _write -> receive do: (:end -> :ok) end
      response = %Skillbook.Web.Response{headers: headers, body: {:stream, stream}}
      limit = fn -> Streams.limit(response, %{request | caller: caller}, web) end
      test = self()

      begin = fn ->
        pid =
          spawn(fn ->
            answer = limit.()
            send(test, {:status, answer.status})
            with {:stream, fun} <- answer.body, do: fun.(fn _data -> :ok end)
            send(test, :ended)
            receive do: (:stop -> :ok)
          end)

        assert_receive {:status, status}
        {pid, status}
      end

      [{first, 200}, {second, 200}, {_third, 200}] = for _ <- 1..@max, do: begin.()
      assert {_refused, 429} = begin.()
      assert_receive :ended
      # The process goes on, as that of a connection.
      send(first, :end)
      assert_receive :ended
      assert {_fourth, 200} = begin.()
      assert {_refused, 429} = begin.()
      Process.exit(second, :kill)
      assert Skillbook.Eventually.eventually(fn -> match?({_fifth, 200}, begin.()) end)
    end

    test "of many that begin at once, as many as the limit", %{book: book} do
      group = {:test, book}
      test = self()

      pids =
        for _ <- 1..50 do
          spawn_link(fn ->
            receive do: (:go -> send(test, Skillbook.MCP.Sessions.join(group, 10)))
            receive do: (:end -> :ok)
          end)
        end

      Enum.each(pids, &send(&1, :go))
      answers = for _ <- pids, do: assert_receive(answer when answer in [:ok, :full])
      assert Enum.count(answers, &(&1 == :ok)) == 10
      Enum.each(pids, &send(&1, :end))
    end
  end

  # A function that asks as one caller.
  defp limited(book, :token) do
    {:ok, token} = Tokens.create(book, scopes: [:page])
    asking(limited_web(book, :tokens), headers: [{"authorization", "Bearer " <> token.secret.()}])
  end

  defp limited(book, :session) do
    session = %{profile: "ann", operator?: false, token: nil, scopes: :all}
    {:ok, secret} = Sessions.start(Book.fetch!(book), session, 600)
    asking(limited_web(book, :tokens), headers: [{"cookie", "skillbook-4004=" <> secret.()}])
  end

  defp limited(book, {:open, peer}), do: asking(limited_web(book, :none), peer: peer)

  defp limited(book, {:as, id, peer}),
    do: asking(limited_web(book, fn _request -> {:ok, id} end), peer: peer)

  defp limited_web(book, authenticate),
    do: Requests.web(book, authenticate: authenticate, max_streams_per_caller: @max)

  defp asking(web, options) do
    fn
      :stream -> Requests.stream(web, "GET", "/events", options)
      :call -> Requests.call(web, "GET", "/events", options)
      :head -> Requests.call(web, "HEAD", "/events", options)
      :page -> Requests.call(web, "GET", "/skills", options)
    end
  end
end
