defmodule Skillbook.Web.Page.AgentsTest do
  # The page of durable runs: operators see, continue and stop them; for others it does not exist.
  use Skillbook.PageCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Agent, Model}
  alias Skillbook.Agent.Runs
  alias Skillbook.Test.Requests

  @moduletag :capture_log

  @operator [profile: "root", operator: true]
  @of_north [profile: "north", operator: true]
  @profiles [
    [id: "root", grants: :all, tenant: :all],
    [id: "north", grants: :all, tenant: "north"],
    [id: "ann"],
    [id: "carl", tenant: "north"],
    [id: "reader", grants: :all, tenant: :all, writes: :deny]
  ]

  setup context do
    model = Model.Function.new(fn _messages, _options -> "All <b>done</b>." end)

    served(
      profiles: @profiles,
      agent: [model: model],
      durable: Map.get(context, :durable, continue: false)
    )
  end

  defp refs(web, as),
    do: for(run <- json(web, "/agents", as)["runs"], do: {run["title"], run["status"]})

  # A run whose process ends while its model is asked.
  defp interrupted(book, profile) do
    test = self()

    model =
      Model.Function.new(fn _messages, _options ->
        send(test, {:asked, self()})
        Process.sleep(:infinity)
      end)

    spawn(fn -> Agent.run(book, "Go on, #{profile}", profile: profile, model: model) end)
    assert_receive {:asked, pid}, 60_000
    {:ok, [%{ref: ref, status: :running} | _]} = Runs.list(book)
    Process.exit(pid, :kill)
    assert eventually(fn -> match?({:ok, %{status: :interrupted}}, Runs.fetch(book, ref)) end)
    ref
  end

  defp post(web, ref, action, as),
    do: Requests.call(web, "POST", "/agents/#{ref}", as: as, form: %{"action" => action})

  test "lists the runs of the operator's tenants", %{book: book, web: web} do
    assert get(web, "/agents", @operator) =~ "No agent has run yet."
    {:ok, _} = Agent.run(book, "Do <i>it</i>", profile: "ann")
    {:ok, _} = Agent.run(book, "Of north", profile: "carl")

    assert refs(web, @operator) == [{"Of north", "done"}, {"Do <i>it</i>", "done"}]
    assert refs(web, @of_north) == refs(web, @operator)
    assert get(web, "/agents", @operator) =~ "Do &lt;i&gt;it&lt;/i&gt;"

    {:ok, [%{ref: north}, %{ref: common}]} = Runs.list(book)
    body = get(web, "/agents/#{common}", @operator)
    assert body =~ "All &lt;b&gt;done&lt;/b&gt;."
    assert body =~ "Do &lt;i&gt;it&lt;/i&gt;"
    # One that has ended needs no buttons.
    refute body =~ ~s(name="action")
    assert %{"ref" => ^north, "tenant" => "north"} = json(web, "/agents/#{north}", @of_north)
  end

  test "shows a hundred runs, and the older ones on further pages", %{book: book, web: web} do
    for at <- 1..102, do: {:ok, _} = Agent.run(book, "Run #{at}", profile: "ann")
    assert %{"runs" => runs, "next" => last} = json(web, "/agents", @operator)
    assert {length(runs), hd(runs)["title"], last} == {100, "Run 102", List.last(runs)["ref"]}
    assert get(web, "/agents", @operator) =~ "/agents?after=#{last}"
    assert %{"runs" => older, "next" => nil} = json(web, "/agents?after=#{last}", @operator)
    assert for(run <- older, do: run["title"]) == ["Run 2", "Run 1"]
    assert Requests.call(web, "GET", "/agents?after=none", as: @operator).status == 404
  end

  test "an operator continues a run", %{book: book, web: web} do
    ref = interrupted(book, "ann")
    assert get(web, "/agents/#{ref}", @operator) =~ "interrupted"
    assert %{status: 303, headers: headers} = post(web, ref, "continue", @operator)
    assert {"location", "/agents/#{ref}"} in headers
    assert {:ok, %{status: :done, text: "All <b>done</b>."}} = Runs.fetch(book, ref)
    # It has ended; the error says so.
    response = post(web, ref, "continue", @operator)
    assert response.status == 409
    assert response.body =~ "The run #{ref} has ended already (done)."
  end

  test "an operator stops a run", %{book: book, web: web} do
    ref = interrupted(book, "ann")
    assert get(web, "/agents/#{ref}", @operator) =~ "Stop"
    assert post(web, ref, "stop", @operator).status == 303
    assert {:ok, %{status: :stopped}} = Runs.fetch(book, ref)
    assert post(web, ref, "stop", @operator).status == 409
    refute get(web, "/agents/#{ref}", @operator) =~ "Stop"
  end

  test "nobody else sees or changes them", %{book: book, web: web} do
    ref = interrupted(book, "ann")
    missing = Requests.call(web, "GET", "/nowhere", as: "ann")

    for target <- ["/agents", "/agents/#{ref}", "/agents/none"] do
      assert Requests.call(web, "GET", target, as: "ann") == missing
      assert Requests.call(web, "GET", target <> "?as=ann", as: @operator).status == 404
    end

    refute get(web, "/usage", "ann") =~ "/agents"
    reader = [profile: "reader", operator: true]

    for {as, action, status} <- [
          {"ann", "stop", 404},
          {reader, "stop", 403},
          {@of_north, "stop", 403},
          {@of_north, "continue", 403},
          {@operator, "burn", 400},
          {@operator, nil, 400}
        ],
        do: assert({as, post(web, ref, action, as).status} == {as, status})

    assert Requests.call(web, "POST", "/agents/none", as: @operator, form: %{}).status == 404
    assert {:ok, %{status: :interrupted}} = Runs.fetch(book, ref)
    refute get(web, "/agents/#{ref}", reader) =~ ~s(name="action")
    assert get(web, "/agents/#{ref}", @of_north) =~ "belongs to no tenant"

    # Runs of a tenant are hidden from the operators of others.
    other = Requests.web(book)
    hidden = interrupted(book, "carl")
    assert get(other, "/agents/#{hidden}", @of_north) =~ "Continue"
    assert post(other, hidden, "stop", @of_north).status == 303
  end

  @tag durable: false
  test "a book without durable runs says how to have them", %{web: web} do
    assert get(web, "/agents", @operator) =~ "keeps no journal of runs"
    assert %{"durable" => false, "runs" => []} = json(web, "/agents", @operator)
    assert Requests.call(web, "GET", "/agents/none", as: @operator).status == 404
  end
end
