defmodule Skillbook.Connections.Client.ServicesTest do
  # Pages, batches and repeats against the server that checks requests by Google's descriptions.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.{Account, Client}
  alias Skillbook.Test.Connections, as: Connected
  alias Skillbook.Test.Services

  defmodule Google do
    def auth(_options), do: {:secret, :token}
    def rules, do: Skillbook.Connections.Client.GoogleRules
  end

  @files "https://www.googleapis.com/drive/v3/files"

  setup do
    files = for n <- 1..7, do: %{id: "f#{n}", name: "File #{n}", text: "text #{n}"}
    world = Services.world(drive: %{files: files, page: 2})
    token = world.tokens["ann@example.com"]

    account = %Account{
      book: nil,
      name: :google,
      vendor: Google,
      profile: "p#{System.unique_integer([:positive])}",
      url: world.url,
      deadline: System.monotonic_time(:millisecond) + 20_000,
      options: %{token: fn -> token end}
    }

    %{world: world, account: account}
  end

  defp files(ids), do: for(id <- ids, do: [url: "#{@files}/#{id}", query: [fields: "id,name"]])

  test "pages are read until there are enough, with the parts that are asked for", context do
    request = [url: @files, query: [orderBy: "name", q: "name contains 'File'"]]
    options = [items: "files", limit: 5, fields: "nextPageToken,files(id)"]
    assert {:ok, %{items: items, more: true}} = Client.pages(context.account, request, options)
    assert items == for(n <- 1..5, do: %{"id" => "f#{n}"})
    assert Services.methods(context.world) == List.duplicate("drive.files.list", 3)

    assert {:ok, %{items: all, more: false}} =
             Client.pages(context.account, request, Keyword.put(options, :limit, 50))

    assert length(all) == 7
  end

  test "a batch is one request, and its answers are in order", context do
    results = Client.batch(context.account, files(~w(f3 gone f1)), [])

    assert [{:ok, %{body: %{"id" => "f3", "name" => "File 3"}}}, {:error, error}, {:ok, last}] =
             results

    assert last.body == %{"id" => "f1", "name" => "File 1"}
    assert {error.kind, error.status, error.service} == {:not_found, 404, "Google Drive"}
    log = Services.log(context.world)
    assert ["drive.batch" | parts] = for(entry <- log, do: entry["method"])
    assert parts == List.duplicate("drive.files.get", 3)
    assert [nil | [_, _, _] = within] = for(entry <- log, do: entry["batch"])
    assert Enum.uniq(within) == [hd(log)["n"]]
  end

  test "a part that is limited is sent again alone", context do
    fault = [method: "drive.files.get", skip: 1, status: 403, reason: "userRateLimitExceeded"]
    Services.fault(context.world, fault)
    results = Client.batch(context.account, files(~w(f1 f2 f3)), backoff: 1)
    assert for({:ok, %{body: body}} <- results, do: body["id"]) == ~w(f1 f2 f3)

    last = List.last(Services.log(context.world))

    assert {last["method"], last["params"]["fileId"], last["batch"]} ==
             {"drive.files.get", "f2", nil}
  end

  test "a batch with changes is not repeated when it is unclear whether they were made",
       context do
    Services.fault(context.world, method: "drive.batch", status: 503)
    request = [method: :post, url: @files, json: %{name: "New"}]
    [{:error, error}, {:error, error}] = Client.batch(context.account, [request, request], [])
    assert {error.kind, error.unclear} == {:server, true}
    assert Services.methods(context.world) == ["drive.batch"]
  end

  # {fault, kind of the error or `:ok`, requests}
  test "faults of Google's own form", context do
    rows = [
      {[status: 429, reason: "rateLimitExceeded", retry_after: 0], :ok, 2},
      {[status: 403, reason: "rateLimitExceeded"], :ok, 2},
      {[status: 403, reason: "dailyLimitExceeded"], :quota, 1},
      {[status: 403, reason: "insufficientPermissions"], :scope, 1},
      {[status: 500, reason: "backendError"], :ok, 2},
      {[status: 503, reason: "backendError", times: 3], :ok, 4},
      {[status: 503, reason: "backendError", times: nil], :server, 5},
      {[status: 404, reason: "notFound"], :not_found, 1},
      {[cut: 0], :ok, 2},
      {[cut: 10], :ok, 2},
      {[body: "<html>"], :bad_answer, 1},
      {[status: 401, reason: "authError"], :unauthorized, 1}
    ]

    for {fault, expected, requests} <- rows do
      Services.clear_faults(context.world)
      Services.clear_log(context.world)
      Services.fault(context.world, [method: "drive.files.get"] ++ fault)

      found =
        case Client.request(context.account, hd(files(["f1"])), backoff: 1) do
          {:ok, %{body: %{"id" => "f1"}}} -> :ok
          {:error, error} -> error.kind
        end

      assert {fault, found} == {fault, expected}
      assert {fault, length(Services.log(context.world))} == {fault, requests}
    end
  end

  test "a server that drips keeps nobody beyond the time limit", context do
    Services.fault(context.world, method: "drive.files.get", drip: 0.05)
    deadline = System.monotonic_time(:millisecond) + 600
    account = %{context.account | deadline: deadline}
    assert {:error, %{kind: :timeout}} = Client.request(account, hd(files(["f1"])))
    assert System.monotonic_time(:millisecond) - deadline < 300
  end

  describe "a refused token" do
    @labels "https://gmail.googleapis.com/gmail/v1/users/me/labels"

    defp person do
      world = Connected.world()
      book = Connected.book(google: Services.google_client(world))
      {:ok, _} = Connected.connect(book, :google, for: ["email.search"])
      Services.clear_log(world)
      {world, %{Connected.mail(book) | command: "email.search"}}
    end

    test "of a person is renewed, and the request is sent again" do
      {world, account} = person()
      Services.fault(world, method: "gmail.users.labels.list", status: 401, reason: "authError")
      assert {:ok, %{body: %{"labels" => _}}} = Client.request(account, url: @labels)
      list = "gmail.users.labels.list"
      assert Services.methods(world) == [list, "oauth.token", list]
    end

    test "that stays refused, or lacks a scope, is an error that names the next step" do
      {world, account} = person()
      list = "gmail.users.labels.list"

      robot = fn ->
        world = Services.world()
        options = Keyword.put(Services.google(world), :subject, "ann@example.com")
        book = Connected.book(google: options)
        {world, Connected.mail(book, "default")}
      end

      command = "`bin/skillbook connect google --for email.search`"

      rows = [
        {{world, account}, 401, "authError",
         "Gmail no longer accepts the connection (401, authError; sent 2 times): a person can " <>
           "renew the connection with #{command}. Gmail says: \"fault\""},
        {{world, account}, 403, "insufficientPermissions",
         "Gmail needs a scope that the connection lacks (403, insufficientPermissions): a " <>
           "person can grant it with #{command}. Gmail says: \"fault\""},
        {robot.(), 403, "insufficientPermissions",
         "Gmail needs a scope that the connection lacks (403, insufficientPermissions): the " <>
           "operator has to allow it in the delegation of the domain. Gmail says: \"fault\""},
        {robot.(), 401, "authError",
         "Gmail no longer accepts the connection (401, authError; sent 2 times): the operator " <>
           "has to check the service account google. Gmail says: \"fault\""}
      ]

      for {{world, account}, status, reason, message} <- rows do
        Services.clear_faults(world)
        fault = [method: list, times: nil, status: status, reason: reason, message: "fault"]
        Services.fault(world, fault)
        scopes = [Connected.scope("gmail.readonly")]
        {:error, error} = Client.request(account, [url: @labels], scopes: scopes)
        assert Exception.message(error) == message
      end
    end
  end
end
