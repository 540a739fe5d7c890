defmodule Skillbook.Web.Page.TenantsTest do
  # An operator of one tenant changes nothing that is common to all of them, and nothing of
  # another tenant. What it may see is compared in test/skillbook/web/leaks_test.exs.
  use Skillbook.PageCase, async: true

  alias Skillbook.MCP.Client
  alias Skillbook.Test.{HostileServer, Requests}

  @moduletag :tmp_dir
  @moduletag :capture_log

  @near [profile: "near", operator: true]
  @far [profile: "far", operator: true]
  @common [profile: "common", operator: true]
  @all [profile: "all", operator: true]

  setup %{tmp_dir: folder} do
    scheduled = [schedule: "\"0 8 * * *\"", run_as: "common"]

    write(folder, %{
      "common/x/run.md" => page("x.run", handler("Raise") ++ scheduled),
      "common/x/save.md" => page("x.save", handler("Text") ++ [approval: "required"]),
      # A finding with one fix.
      "common/dash.md" => "---\nname: dash\ndescription: Sends: mail <b>now</b>\n---\nDash.\n",
      "near/y/run.md" =>
        page("y.run", handler("Raise") ++ [schedule: "\"0 9 * * *\"", run_as: "near"])
    })

    common = Path.join(folder, "common")
    server = {:mcp, HostileServer.start() <> "/read", label: "docs", timeout: 5_000}
    near = [path: Path.join(folder, "near"), tenant: "near"]

    {:ok, started} =
      served(
        sources: [[path: common], near, server],
        write_to: common,
        breaker: [failures: 1],
        profiles: [
          [id: "near", tenant: "near"],
          [id: "far", tenant: "far"],
          [id: "common"],
          [id: "all", tenant: :all],
          [id: "asks"],
          [id: "near-asks", tenant: "near"]
        ]
      )

    :ok = Client.await(started[:book])
    {:ok, started}
  end

  defp post(web, target, as, form),
    do: Requests.call(web, "POST", target, as: as, form: form).status

  test "the frame has the tenant", %{web: web} do
    for {as, text, shown?} <- [
          {@near, "Tenant <strong>near</strong>", true},
          {@all, "All tenants", true},
          {@common, "enant", false}
        ],
        do: assert({as, frame(get(web, "/skills", as)) =~ text} == {as, shown?})

    frame = frame(get(web, "/skills?as=near", @all))
    assert {frame =~ "Tenant <strong>near", frame =~ "All tenants"} == {true, false}
  end

  defp frame(page), do: page |> String.split("</main>") |> List.last()

  test "schedules", %{web: web} do
    # The skill, and the answer to each of the operators.
    for {name, expected} <- [{"x.run", [422, 422, 303, 303]}, {"y.run", [303, 404, 404, 303]}] do
      got =
        for as <- [@near, @far, @common, @all],
            do: post(web, "/runs", as, %{"name" => name, "action" => "pause"})

      assert {name, got} == {name, expected}
    end

    error = %Skillbook.OperationError{kind: :common, name: "x.run"}

    assert Exception.message(error) ==
             "`x.run` is common to all tenants, so an operator of one tenant cannot change " <>
               "its schedule; one with tenant: :all can"
  end

  test "circuit breakers", %{web: web, book: book} do
    fail = fn ->
      for id <- ~w(near far common all),
          do: Skillbook.run(book, "```cmd\nx.run\n```", profile: id)
    end

    failed = fn as ->
      for(row <- json(web, "/status", as)["breaker"], do: row["profile"]) |> Enum.sort()
    end

    # The follower of the database resets it once more.
    reset = fn as ->
      status = post(web, "/status", as, %{"name" => "x.run"})
      :sys.get_state(Module.concat(book, Follower))
      status
    end

    for {as, seen, left} <- [
          {@near, ~w(all common near), ~w(all common far)},
          {@far, ~w(all common far), ~w(all common near)},
          {@common, ~w(all common), []},
          {@all, ~w(all common far near), []}
        ] do
      fail.()
      assert {as, failed.(as)} == {as, seen}
      # Its diagnostics name the first three of them.
      text = get(web, "/diagnostics", as)

      for id <- ~w(far near),
          do: assert({as, text =~ "&quot;#{id}&quot;"} == {as, id in Enum.take(seen, 3)})

      assert reset.(as) == 303
      assert {as, failed.(@all)} == {as, left}
      reset.(@all)
    end
  end

  test "calls that wait", %{web: web, book: book} do
    for {id, expected} <- [{"asks", [403, 403, 303]}, {"near-asks", [303, 404, 404]}] do
      got =
        for as <- [@near, @far, @common] do
          %{results: [%{status: :pending, data: %{ref: ref}}]} =
            Skillbook.run(book, "```cmd\nx.save --to tea\n```", profile: id)

          if as == @near do
            text = get(web, "/approvals/#{ref}", as)
            assert text =~ "Yes, run it" == (id == "near-asks")
            assert text =~ "The call belongs to no tenant" == (id == "asks")
          end

          post(web, "/approvals/#{ref}", as, %{"decision" => "no"})
        end

      assert {id, got} == {id, expected}
    end
  end

  test "offers of servers", %{web: web, book: book} do
    %{"digest" => digest} = json(web, "/servers/offer?name=docs/refunds", @near)
    form = %{"name" => "docs/refunds", "digest" => digest, "decision" => "approve"}

    text = get(web, "/servers/offer?name=docs/refunds", @near)
    assert text =~ "The server is common to all tenants"
    refute text =~ "Approve it"

    for {as, expected, status} <- [{@near, 403, :new}, {@common, 303, :approved}] do
      assert {as, post(web, "/servers/offer", as, form)} == {as, expected}
      assert Enum.find(Client.offers(book), &(&1.name == "docs/refunds")).status == status
    end
  end

  test "fixes of files", %{web: web, tmp_dir: folder} do
    path = URI.encode_www_form(Path.join(folder, "common/dash.md"))

    for {as, status} <- [{@near, 404}, {@common, 200}, {@all, 200}] do
      response = Requests.call(web, "GET", "/diagnostics/fix?path=#{path}", as: as)
      assert {as, response.status} == {as, status}
      assert get(web, "/diagnostics", as) =~ "Can be fixed here" == (status == 200)
    end
  end
end
