defmodule Skillbook.Web.NodesTest do
  # Two books with one database are two nodes behind a balancer: tokens, sessions and links hold
  # on both, and end on both.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.Requests
  alias Skillbook.Web.{Secrets, Tokens}

  @moduletag :tmp_dir

  defp statuses(webs, token) do
    headers = [{"authorization", "Bearer " <> token.secret.()}]
    for web <- webs, do: Requests.call(web, "GET", "/api/skills", headers: headers).status
  end

  for database <- [:sqlite, :postgres] do
    describe "#{database}" do
      @describetag database: database

      setup %{tmp_dir: folder, database: database} do
        store =
          case database do
            :sqlite -> Path.join(folder, "test.db")
            :postgres -> {Skillbook.SQL.Postgres, url: Skillbook.PostgresCase.database()}
          end

        [one, other] =
          for _node <- 1..2, do: book(store: store, profiles: [[id: "default"], [id: "ann"]])

        webs = for name <- [one, other], do: Requests.web(name, authenticate: :tokens)
        %{one: one, other: other, webs: webs}
      end

      test "a token of one node is a token of the other, until one revokes it", context do
        %{one: one, other: other, webs: webs} = context
        {:ok, token} = Tokens.create(one, profile: "ann", label: "é", expires_in: 600)
        {:ok, [listed]} = Tokens.list(other, profile: "ann")
        assert listed == %{token | secret: nil}
        assert statuses(webs, token) == [200, 200]
        assert {:ok, [%{last_used: %DateTime{}}]} = Tokens.list(one)
        assert Tokens.revoke(other, token.id) == :ok
        assert statuses(webs, token) == [401, 401]
        assert {:error, %Skillbook.TokenError{kind: :unknown}} = Tokens.revoke(one, token.id)
      end

      test "a link is used up once on all nodes, and begins a session on all", context do
        %{one: one, webs: webs} = context
        {:ok, link} = Tokens.link(one, profile: "ann", url: "http://a")
        "http://a" <> link = link.()

        responses =
          webs
          |> Stream.cycle()
          |> Enum.take(12)
          |> Enum.map(fn web ->
            Task.async(fn -> Requests.call(web, "GET", link, peer: :unix) end)
          end)
          |> Task.await_many(:infinity)

        assert [response] = Enum.filter(responses, &(&1.status == 200))
        assert Enum.count(responses, &(&1.status == 410)) == 11
        [pair | _] = response |> Requests.header("set-cookie") |> String.split(";")
        cookie = [{"cookie", pair}]
        page = fn web -> Requests.call(web, "GET", "/no/page", headers: cookie).status end
        assert Enum.map(webs, page) == [404, 404]

        csrf = pair |> String.split("=", parts: 2) |> List.last() |> Secrets.csrf()
        options = [headers: cookie, form: %{"_csrf" => csrf}]
        assert Requests.call(List.last(webs), "POST", "/logout", options).status == 303
        assert Enum.map(webs, page) == [303, 303]
      end
    end
  end
end
