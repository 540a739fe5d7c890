defmodule Skillbook.Web.Page.EventsTest do
  # The topics that open pages hear of: only those in which the pages of their caller change.
  use Skillbook.PageCase, async: true

  alias Skillbook.Test.Requests

  @moduletag :tmp_dir
  @moduletag :capture_log

  setup %{tmp_dir: folder} do
    flow = "## Behavior\n\n```cmd\nx.read\n```\n"
    label = [visibility_labels: "[boss]"]

    write(folder, %{
      "x/read.md" => page("x.read", handler("Text")),
      "x/flow.md" => page("x.flow", [], flow),
      "x/ask.md" => page("x.ask", handler("Text") ++ [approval: "required"]),
      "s/flow.md" => page("s.flow", label, flow),
      "s/ask.md" => page("s.ask", handler("Text") ++ [approval: "required"] ++ label)
    })

    profiles = [
      [id: "root"],
      [id: "all", grants: :all],
      [id: "ann", grants: ["boss"]],
      [id: "bob"]
    ]

    {:ok, context} = served(sources: [folder], profiles: profiles, durable: true)
    {:ok, context ++ [folder: folder]}
  end

  # The names of the events of a stream until `last`.
  defp topics(pid, last, seen \\ []) do
    receive do
      {:part, ^pid, part} ->
        seen = seen ++ for([_, name] <- Regex.scan(~r/^event: (\w+)$/m, part), do: name)
        if last in seen, do: seen, else: topics(pid, last, seen)
    after
      60_000 -> flunk("no #{last} after #{inspect(seen)}")
    end
  end

  test "only the owner of a conversation hears of its answer", %{folder: folder} do
    model = Skillbook.Model.Function.new(fn _messages, _options -> "Hello." end)
    profiles = [[id: "ann"], [id: "bob"]]
    {:ok, context} = served(sources: [folder], profiles: profiles, agent: [model: model])
    web = context[:web]

    [{_, ann}, {_, bob}] =
      for as <- ["ann", "bob"] do
        {_response, pid} = Requests.stream(web, "GET", "/events", as: as)
        assert topics(pid, "ready") == ["ready"]
        {as, pid}
      end

    assert Requests.call(web, "POST", "/chat", as: "ann", form: %{"text" => "Hi"}).status == 303

    assert topics(ann, "chat") == ["chat"]
    # The other one hears of a later change, and of nothing before.
    {:ok, _} = Skillbook.Store.put_note(Skillbook.view(context[:book], "bob"), "Tea", "Green.")
    refute "chat" in topics(bob, "skills")
  end

  test "a stream outlasts a crash of its book, after which all is read again", context do
    %{book: book, web: web} = context
    {_response, pid} = Requests.stream(web, "GET", "/events", as: "bob")
    assert topics(pid, "ready") == ["ready"]
    Process.exit(GenServer.whereis(book), :kill)
    assert Enum.sort(topics(pid, "chat")) == ~w(agents approvals chat diagnostics runs skills)
    {:ok, _} = Skillbook.Store.put_note(Skillbook.view(book, "bob"), "Tea", "Green.")
    assert "skills" in topics(pid, "skills")
  end

  test "each caller hears of its own runs, approvals and entries", context do
    %{book: book, web: web, folder: folder} = context

    streams =
      for {id, as} <- [
            ann: "ann",
            bob: "bob",
            all: "all",
            root: [profile: "root", operator: true]
          ] do
        {_response, pid} = Requests.stream(web, "GET", "/events", as: as)
        assert topics(pid, "ready") == ["ready"]
        {id, pid}
      end

    run = fn id, line -> Skillbook.run(Skillbook.view(book, id), "```cmd\n#{line}\n```") end

    model = Skillbook.Model.Function.new(fn _messages, _options -> "Hello." end)
    agent = fn id -> {:ok, _} = Skillbook.Agent.run(book, "Hi", profile: id, model: model) end

    # A change that all see ends each step: then nothing else comes.
    step = fn number, change, expected ->
      change.()

      heard =
        for {id, pid} <- streams, topic <- expected[id], into: %{}, do: {id, topics(pid, topic)}

      Process.sleep(150)
      write(folder, %{"x/step.md" => page("x.step", [], "#{number}\n")})
      Skillbook.reload(book)

      for {id, pid} <- streams,
          do: {id, Map.get(heard, id, []) ++ (topics(pid, "skills") -- ["skills"])}
    end

    # `root` is an operator, but its own view has no labelled entries.
    for {{change, expected}, number} <-
          Enum.with_index([
            {fn -> run.("bob", "x.flow") end,
             [ann: [], bob: ["runs"], all: ["runs"], root: ["runs"]]},
            {fn -> run.("ann", "x.flow") end,
             [ann: ["runs"], bob: [], all: ["runs"], root: ["runs"]]},
            {fn -> run.("ann", "x.read") end, [ann: [], bob: [], all: [], root: []]},
            {fn -> run.("bob", "s.flow") end, [ann: [], bob: [], all: [], root: []]},
            {fn -> run.("ann", "s.ask") end,
             [ann: ["approvals"], bob: [], all: [], root: ["approvals"]]},
            {fn -> run.("bob", "x.ask") end,
             [ann: [], bob: ["approvals"], all: [], root: ["approvals"]]},
            {fn -> agent.("ann") end, [ann: [], bob: [], all: [], root: ["agents"]]}
          ]) do
      heard = for {id, topics} <- step.(number, change, expected), do: {id, Enum.uniq(topics)}
      assert {number, heard} == {number, expected}
    end

    for {_id, pid} <- streams, do: Requests.close(pid)
  end
end
