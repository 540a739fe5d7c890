defmodule Skillbook.Catalog.ChangedFilesTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Catalog.{ChangedFiles, Watcher}
  alias Skillbook.MCP.{Call, Context, Resources}
  alias Skillbook.{Catalog, Source, Store, View}
  alias Skillbook.Test.Requests

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "low/pdf/SKILL.md" => page("pdf"),
      "low/pdf/references/x.md" => "x\n",
      "low/pdf/references/deep/y.md" => "y\n",
      "low/other-folder/SKILL.md" => page("named"),
      "low/other-folder/a.txt" => "a\n",
      "low/tea/make.md" => page("tea.make"),
      # It has the name of one below, and hides it from those who see it.
      "high/pdf/SKILL.md" => page("pdf", visibility_labels: "[boss]"),
      "high/pdf/references/x.md" => "secret\n",
      "high/plan/SKILL.md" => page("plan", visibility_labels: "[boss]"),
      "high/plan/z.md" => "z\n"
    })

    {:ok, low: Path.join(folder, "low"), high: Path.join(folder, "high")}
  end

  test "are those of paths below a folder with a page", %{low: low} do
    of = fn paths -> paths |> Enum.map(&Path.join(low, &1)) |> ChangedFiles.of([low]) end
    at = &Path.join(low, &1)

    # {paths, names with paths}
    rows = [
      {["pdf/references/x.md"], [{"pdf", at.("pdf/references/x.md")}]},
      {["pdf/references/gone.md"], [{"pdf", at.("pdf/references/gone.md")}]},
      {["pdf/references"], [{"pdf", at.("pdf/references")}]},
      {["pdf"], [{"pdf", at.("pdf")}]},
      {["other-folder/a.txt"],
       [{"other-folder", at.("other-folder/a.txt")}, {"named", at.("other-folder/a.txt")}]},
      {["tea/make.md"], []},
      {["nowhere/x.md"], []}
    ]

    for {paths, expected} <- rows, do: assert({paths, of.(paths)} == {paths, expected})
    assert ChangedFiles.of([low, Path.dirname(low), "/elsewhere/pdf/x.md"], [low]) == []
    assert ChangedFiles.of(:all, [low]) == :all

    assert ChangedFiles.merge([{"a", "/a"}], [{"b", "/b"}, {"a", "/a"}]) == [
             {"a", "/a"},
             {"b", "/b"}
           ]

    assert ChangedFiles.merge([{"a", "/a"}], :all) == :all
  end

  test "count for a view by the files of its own entries", %{low: low, high: high} do
    {:ok, sources} = Source.list([low, high])
    {:ok, catalog} = Catalog.load(sources)
    watched = ["skill://pdf/SKILL.md", "skill://pdf/references/x.md", "skill://plan/z.md"]
    all = [{"pdf", Path.join(low, "pdf")}, {"plan", Path.join(high, "plan/z.md")}]

    # {profile, changed, whether the list differs, updated}
    rows = [
      {"bob", [{"pdf", Path.join(low, "pdf/references/x.md")}], true, [1]},
      {"bob", [{"pdf", Path.join(low, "pdf/references/deep")}], true, []},
      {"bob", [{"pdf", Path.join(low, "pdf/references")}], true, [1]},
      {"bob", [{"pdf", Path.join(low, "pdf/refer")}], false, []},
      {"bob", [{"pdf", Path.join(low, "pdf/SKILL.md")}], false, []},
      {"bob", [{"pdf", Path.join(high, "pdf/references/x.md")}], false, []},
      {"bob", [{"plan", Path.join(high, "plan/z.md")}], false, []},
      {"bob", all, true, [1]},
      {"bob", :all, true, [1]},
      {"ann", [{"pdf", Path.join(low, "pdf/references/x.md")}], false, []},
      {"ann", [{"pdf", Path.join(high, "pdf/references/x.md")}], true, [1]},
      {"ann", [{"plan", Path.join(high, "plan/z.md")}], true, [2]},
      {"ann", :all, true, [1, 2]}
    ]

    for {id, changed, list, updated} <- rows do
      grants = if id == "ann", do: ["boss"], else: []
      view = View.new!(catalog, id: id, grants: grants)
      context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
      expected = %{list: list, updated: Enum.map(updated, &Enum.at(watched, &1))}
      got = Resources.changed_files(changed, context, watched)
      assert {id, changed, got} == {id, changed, expected}
      assert ChangedFiles.any?(changed, view, & &1.files) == list
    end
  end

  describe "a running book" do
    setup %{low: low, high: high} do
      book = :"changed_files_#{System.unique_integer([:positive])}"
      profiles = [[id: "ann", grants: ["boss"]], [id: "bob"]]

      start_supervised!(
        {Skillbook,
         name: book, sources: [low, high], builtins: false, store: ":memory:", profiles: profiles}
      )

      {:ok, book: book}
    end

    # A change is made again until it is seen, since a watch begins in the background.
    defp change(path, seen?) do
      assert eventually(fn ->
               File.write!(path, "#{System.unique_integer([:positive])}\n")
               Process.sleep(100)
               seen?.()
             end)
    end

    test "tells MCP clients about the files that they see", context do
      %{book: book, low: low, high: high} = context
      test = self()
      generation = Skillbook.view(book, "ann").generation

      listen = fn id, uris ->
        view = Skillbook.view(book, id)
        context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
        notifications = %{"resourcesListChanged" => true, "resourceSubscriptions" => uris}
        message = {:request, 1, "subscriptions/listen", %{"notifications" => notifications}}
        run = fn -> Call.run(message, context, &send(test, {id, &1})) end
        start_supervised!({Task, run}, id: id)
        assert_receive {^id, %{"method" => "notifications/subscriptions/acknowledged"}}
      end

      plan = "skill://plan/z.md"
      x = "skill://pdf/references/x.md"
      listen.("ann", [plan, x])
      listen.("bob", [plan, x])

      updated = fn id, uri ->
        receive do
          {^id, %{"method" => "notifications/resources/updated", "params" => %{"uri" => ^uri}}} ->
            true
        after
          0 -> false
        end
      end

      change(Path.join(high, "plan/z.md"), fn -> updated.("ann", plan) end)
      assert_received {"ann", %{"method" => "notifications/resources/list_changed"}}
      change(Path.join(high, "pdf/references/x.md"), fn -> updated.("ann", x) end)
      refute_received {"bob", _message}

      change(Path.join(low, "pdf/references/x.md"), fn -> updated.("bob", x) end)
      assert_received {"bob", %{"method" => "notifications/resources/list_changed"}}
      refute updated.("bob", plan)
      assert Skillbook.view(book, "ann").generation == generation
    end

    # The topics until the event that ends the step.
    defp topics(pid, seen \\ []) do
      receive do
        {:part, ^pid, part} ->
          seen = seen ++ for([_, name] <- Regex.scan(~r/^event: (\w+)$/m, part), do: name)
          if "runs" in seen, do: Enum.uniq(seen) -- ["runs"], else: topics(pid, seen)
      after
        5_000 -> flunk("no end after #{inspect(seen)}")
      end
    end

    defp heard(book, pid, id) do
      run = %{name: "tea.make", profile: id}
      Watcher.publish(book, {:skillbook_run, book, Map.put_new(run, :tenant, nil)})
      topics(pid)
    end

    defp stream(web, id) do
      {_response, pid} = Requests.stream(web, "GET", "/events", as: id)
      assert_receive {:part, ^pid, "event: ready" <> _}
      pid
    end

    test "tells open pages about the files that they show", context do
      %{book: book, low: low, high: high} = context
      web = Requests.web(book)
      [ann, bob] = for id <- ["ann", "bob"], do: stream(web, id)
      heard = fn pid, id -> "skills" in heard(book, pid, id) end

      change(Path.join(high, "plan/z.md"), fn -> heard.(ann, "ann") end)
      assert heard(book, bob, "bob") == []
      change(Path.join(low, "pdf/references/deep/y.md"), fn -> heard.(bob, "bob") end)
      for pid <- [ann, bob], do: Requests.close(pid)
    end

    test "tells open pages about disabled entries that they show", %{book: book} do
      web = Requests.web(book)
      view = &Skillbook.view(book, &1)

      for id <- ["ann", "bob"],
          do: assert({:ok, _} = Store.put_note(view.(id), "N #{id}", "Text"))

      fields = [name: "own", title: "Own", description: "Own", content: "1", labels: ["boss"]]
      assert {:ok, _} = Store.create(view.("ann"), fields)
      assert {:ok, _} = Store.disable(view.("ann"), "own")
      assert {:ok, _} = Store.disable(view.("bob"), "n-bob")
      [ann, bob] = for id <- ["ann", "bob"], do: stream(web, id)

      # {change, heard by ann, by bob}
      rows = [
        {fn -> Store.update(view.("ann"), "own", title: "New") end, ["skills"], []},
        {fn -> Store.update(view.("bob"), "n-bob", title: "New") end, ["skills"], ["skills"]},
        {fn -> Store.update(view.("ann"), "own", labels: []) end, ["skills"], ["skills"]},
        {fn -> Store.update(view.("ann"), "own", labels: ["boss"]) end, ["skills"], ["skills"]},
        {fn -> Store.delete(view.("ann"), "own") end, ["skills"], []},
        {fn -> Store.restore(view.("ann"), "own", 1) end, ["skills"], []}
      ]

      for {{change, by_ann, by_bob}, number} <- Enum.with_index(rows) do
        assert {:ok, _} = change.()
        got = {heard(book, ann, "ann"), heard(book, bob, "bob")}
        assert {number, got} == {number, {by_ann, by_bob}}
      end

      for pid <- [ann, bob], do: Requests.close(pid)
    end
  end
end
