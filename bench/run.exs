# Compares Skillbook with its alternatives, in the same run:
#
#     bin/bench run
#
# The ratio says how many times faster Skillbook is. It is comparable between machines; times
# are not.

Code.require_file("measure.exs", __DIR__)
Code.require_file("peer.exs", __DIR__)

defmodule Bench do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.{Catalog, Command, Extractor, Frontmatter, Router, View}

  @reply """
  Good morning! Let me look at what is due this week, and at what Bob wrote to you.

  ```cmd
  tasks.search --status todo blocked --assignee me --sort due_date
  ```

  I also keep in mind what you said about him.

  ```cmd
  memory.save --content "Bob prefers meetings in the morning" --category people
  ```

  Done. Anything else?
  """

  @line ~s(email.send --to bob@company.com ann@company.com --subject "Q1 Report" ) <>
          ~s(--body "Here is the report." --cc carol@co.com)

  @frontmatter """
  ---
  name: email.send
  description: Send an email to one or more recipients
  handler: Skillbook.Handlers.Memory.Save
  tags: [email, communication]
  ---

  # email.send
  """

  def run do
    head()
    text()
    frontmatter()
    entries()
    declarations()
    usage()
    files()
    search()
    http()
  end

  defp text do
    reply = :binary.copy(@reply)
    line = :binary.copy(@line)

    long =
      String.duplicate(
        "Some text with a `tick` in it, and more words in the line, as prose goes on.\n",
        50_000
      ) <> @reply

    compare("extract, a reply of #{byte_size(reply)} bytes", "regex", [
      fn -> Extractor.extract(reply) end,
      fn -> Bench.Peer.extract(reply) end
    ])

    compare(
      "extract, a text of #{div(byte_size(long), 1000)} kB",
      "regex",
      [
        fn -> Extractor.extract(long) end,
        fn -> Bench.Peer.extract(long) end
      ],
      byte_size(long)
    )

    compare("tokenize, #{byte_size(line)} bytes", "OptionParser.split", [
      fn -> Command.tokenize(line) end,
      fn -> OptionParser.split(line) end
    ])

    compare("tokenize and flags", "plain Elixir", [
      fn -> Command.parse(line) end,
      fn ->
        [_ | words] = Bench.Peer.tokenize(line)
        Bench.Peer.flags(words)
      end
    ])
  end

  defp frontmatter do
    text = :binary.copy(@frontmatter)
    [_, yaml, _] = String.split(text, ~r/^---\n/m)

    if Code.ensure_loaded?(:fast_yaml) and
         match?({:ok, _}, Application.ensure_all_started(:fast_yaml)) do
      compare("frontmatter of 4 fields", "libyaml's NIF (fast_yaml)", [
        fn -> Frontmatter.parse(text) end,
        fn -> :fast_yaml.decode(yaml) end
      ])
    else
      compare("frontmatter of 4 fields", "none: fast_yaml is not installed", [
        fn -> Frontmatter.parse(text) end
      ])
    end
  end

  defp entries do
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_#{System.pid()}")

    try do
      for n <- 1..100, m <- 1..100 do
        path = Path.join(folder, "domain#{n}/action#{m}.md")
        if m == 1, do: File.mkdir_p!(Path.dirname(path))
        File.write!(path, String.replace(@frontmatter, "email.send", "domain#{n}.action#{m}"))
      end

      {:ok, catalog} = Catalog.load([folder])
      view = View.all(catalog)
      table = :ets.new(:entries, read_concurrency: true)
      for entry <- View.entries(view), do: :ets.insert(table, {entry.name, entry})
      name = "domain50.action50"
      line = String.replace(@line, "email.send", name)

      compare("fetch, of #{View.count(view)} entries", "ETS, the same struct", [
        fn -> View.fetch(view, name) end,
        fn ->
          [{_, entry}] = :ets.lookup(table, name)
          {:ok, entry}
        end
      ])

      compare("route: words, flags and lookup", "plain Elixir and ETS", [
        fn -> Router.route(view, line) end,
        fn -> Bench.Peer.route(table, line) end
      ])

      profile = fn ->
        %Skillbook.Profile{id: "p#{System.unique_integer([:positive])}", grants: []}
      end

      {:ok, made} = View.new(catalog, profile.())
      Skillbook.prompt(made)

      compare("prompt of #{View.count(view)} entries, a new profile", nil, [
        fn ->
          {:ok, view} = View.new(catalog, profile.())
          Skillbook.prompt(view)
        end
      ])

      compare("the same prompt again", nil, [fn -> Skillbook.prompt(made) end])
      changed(folder, View.count(view))
    after
      File.rm_rf!(folder)
    end
  end

  # Copies of a built-in page with ten flags.
  defp declarations do
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_flags_#{System.pid()}")
    page = File.read!(Application.app_dir(:skillbook, "priv/skills/tasks/search.md"))
    names = for n <- 1..1000, do: "tasks#{n}.search"

    try do
      for name <- names do
        path = Path.join(folder, String.replace(name, ".", "/") <> ".md")
        File.mkdir_p!(Path.dirname(path))
        File.write!(path, String.replace(page, "tasks.search", name))
      end

      load = fn ->
        {:ok, catalog} = Catalog.load([folder])
        View.all(catalog)
      end

      read = fn view -> for name <- names, do: {:ok, %{}} = View.flags(view, name) end

      compare("load 1,000 commands and read their flags", "the load alone", [
        fn -> read.(load.()) end,
        fn -> load.() end
      ])

      view = load.()

      compare("tool definitions of 127 commands", nil, [
        fn -> Skillbook.Tools.definitions(view) end
      ])

      compare("grammar of 1,000 commands", nil, [fn -> Skillbook.Grammar.gbnf(view) end])
    after
      File.rm_rf!(folder)
    end
  end

  # The time from the write of a file to the message to a subscriber.
  defp changed(folder, count) do
    {:ok, book} = Skillbook.start_link(name: :bench, sources: [folder], builtins: false)
    :ok = Skillbook.subscribe(:bench)
    path = Path.join(folder, "domain50/action50.md")
    text = File.read!(path)

    change = fn ->
      mark = "#{System.unique_integer()}"
      File.write!(path <> "~", text <> mark)
      File.rename!(path <> "~", path)
      await_change(mark)
    end

    compare("a changed file visible, of #{count}, to a subscriber", "reading everything", [
      change,
      fn -> Catalog.load([folder]) end
    ])

    Supervisor.stop(book)
  end

  # An earlier message may report changes from before the watch.
  defp await_change(mark) do
    receive do
      {:skillbook, :bench, _change} -> :ok
    end

    body = View.fetch!(View.all(:bench), "domain50.action50").body
    if not String.ends_with?(body, mark), do: await_change(mark)
  end

  # The cost of usage counts. Reads from Elixir are not counted.
  defp usage do
    [counted, not_counted] =
      for {name, usage} <- [bench_counted: [], bench_not_counted: false] do
        options = [builtins: ["tasks"], store: ":memory:", usage: usage, watch: false]
        {:ok, _pid} = Skillbook.start_link([name: name] ++ options)

        Skillbook.view(name)
      end

    compare("a command, counted", "the same, not counted", [
      fn -> Skillbook.Reply.Pipeline.commands(counted, ["get_skill: tasks.create"]) end,
      fn -> Skillbook.Reply.Pipeline.commands(not_counted, ["get_skill: tasks.create"]) end
    ])

    compare("a read from Elixir, in a book that counts", "in one that does not", [
      fn -> {View.fetch(counted, "tasks.create"), Skillbook.get(counted, "tasks.create")} end,
      fn ->
        {View.fetch(not_counted, "tasks.create"), Skillbook.get(not_counted, "tasks.create")}
      end
    ])

    for name <- [:bench_counted, :bench_not_counted], do: Supervisor.stop(name)
  end

  # As many files as a large collection has: the corpus, or the built-in skills without one.
  defp files do
    pages = corpus()
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_files_#{System.pid()}")

    try do
      paths =
        for {path, n} <- pages |> Stream.cycle() |> Stream.take(2417) |> Stream.with_index() do
          copy = Path.join(folder, "skill-#{n}/SKILL.md")
          File.mkdir_p!(Path.dirname(copy))

          File.write!(
            copy,
            Regex.replace(~r/^name:.*$/m, File.read!(path), "name: skill-#{n}", global: false)
          )

          copy
        end

      size = paths |> Enum.map(&File.stat!(&1).size) |> Enum.sum()
      label = "load #{length(paths)} files, #{Float.round(size / 1_000_000, 1)} MB"
      list = Path.join(folder, "list")
      File.write!(list, Enum.map_join(paths, <<0>>, & &1))

      compare(label, "xargs cat > /dev/null", [
        fn -> Catalog.load([folder]) end,
        fn -> System.cmd("sh", ["-c", "xargs -0 -a #{list} cat > /dev/null"]) end
      ])

      {:ok, catalog} = Catalog.load([folder])
      compare("load them again, unchanged", nil, [fn -> Catalog.reload(catalog) end])
    after
      File.rm_rf!(folder)
    end
  end

  @typical ["accessibility", "write tests", "deploy a docker container"]

  # One request after the other, on a kept-alive connection.
  defp http do
    url = Bench.Peer.http_server()
    {:ok, _} = Application.ensure_all_started(:inets)
    address = String.to_charlist(url)

    compare("HTTP request, kept connection", "OTP's httpc", [
      fn -> {:ok, %{status: 200}} = Skillbook.HTTP.request(url) end,
      fn ->
        {:ok, {{_, 200, _}, _, _}} = :httpc.request(:get, {address, []}, [], body_format: :binary)
      end
    ])
  end

  # 10,000 copies of the documents of the corpus, under other names. The peer is SQLite's FTS5
  # in memory, through our own driver: columns for name, title, tags, description and body with
  # weights 6, 4, 3, 3 and 1, Porter stemming, entries with any of the words, the last as a
  # prefix, and a snippet of the body. It has no aliases, trigger keywords or headings, and does
  # not correct typing errors.
  defp search do
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_search_#{System.pid()}")

    try do
      for {path, n} <- corpus() |> Stream.cycle() |> Stream.take(10_000) |> Stream.with_index() do
        copy = Path.join(folder, "skill-#{n}/SKILL.md")
        File.mkdir_p!(Path.dirname(copy))

        File.write!(
          copy,
          Regex.replace(~r/^name: *"?([^"\n]*)"?$/m, File.read!(path), "name: \\1-#{n}",
            global: false
          )
        )
      end

      before = resident()
      {:ok, catalog} = Catalog.load([folder])
      view = View.all(catalog)
      loaded = resident()
      {built, _} = :timer.tc(fn -> Skillbook.search(view, "a") end)

      bytes =
        Path.wildcard(folder <> "/*/SKILL.md") |> Enum.map(&File.stat!(&1).size) |> Enum.sum()

      memory("memory of #{View.count(view)} entries", loaded - before, bytes)
      memory("the same with the search index", resident() - before, bytes)
      sql = Bench.Peer.fts(View.entries(view))

      IO.puts(
        row(["the index of #{View.count(view)} entries", duration(built * 1000), "", "", ""])
      )

      for query <- @typical do
        compare("search, #{length(String.split(query))} words", "SQLite FTS5", [
          fn -> Skillbook.search(view, query) end,
          fn -> Bench.Peer.fts_search(sql, query) end
        ])
      end

      {:ok, catalog} = Catalog.load([corpus_folder()])
      view = View.all(catalog)
      sql = Bench.Peer.fts(View.entries(view))
      quality(view, [{"SQLite FTS5", &Bench.Peer.fts_search(sql, &1)}])
    after
      File.rm_rf!(folder)
    end
  end
end

Bench.run()
