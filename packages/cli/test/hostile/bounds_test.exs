defmodule Skillbook.Hostile.BoundsTest do
  # Inputs that once took seconds, a scheduler or all memory. The guards of this folder measure
  # every function; these are the cases that they were made for.
  use ExUnit.Case, async: false
  use Skillbook.SkillsCase

  import ExUnit.CaptureLog

  alias Skillbook.{
    Agent,
    Catalog,
    Command,
    Cost,
    Diagnostic,
    Extractor,
    Frontmatter,
    Model,
    Native,
    OptionError,
    Store,
    Vault,
    View
  }

  alias Skillbook.Prompt.Sections

  @moduletag :tmp_dir

  # Milliseconds of processor time, for work that takes one or two.
  @quick 200

  defp cpu(call), do: Cost.cpu(call) / 1000

  describe "get_skill" do
    setup %{tmp_dir: folder} do
      names =
        for n <- 1..50, do: {"skills/s#{n}/SKILL.md", "---\nname: s#{n}\ndescription: d\n---\n"}

      write(folder, Map.new([{"skills/s1/references/a.md", "The file."} | names]))
      {:ok, view: view(Path.join(folder, "skills"))}
    end

    test "answers a path of 512 KB at once", %{view: view} do
      for piece <- ["/", "s1/", "s1/references/", "../", "é/"] do
        path = String.duplicate(piece, div(512 * 1024, byte_size(piece)))
        assert cpu(fn -> Skillbook.get(view, path) end) < @quick
        assert cpu(fn -> Skillbook.run(view, "```cmd\nget_skill: #{path}\n```") end) < @quick
        assert {:error, %{suggestions: []} = error} = Skillbook.get(view, path)
        assert byte_size(Exception.message(error)) < 1_000
      end
    end

    test "answers a path of up to 4 KB", %{view: view} do
      path = "s1/references/a.md"
      assert Skillbook.get(view, path) == {:ok, "The file."}

      assert Skillbook.get(view, String.duplicate(" ", 4096 - byte_size(path)) <> path) ==
               {:ok, "The file."}

      assert {:error, _} =
               Skillbook.get(view, String.duplicate(" ", 4097 - byte_size(path)) <> path)
    end

    test "gives each page once", %{view: view} do
      reply = "```cmd\nget_skill #{String.duplicate("s2 ", 9_000)}\n```"
      assert %{results: [%{status: :help, content: "# s2\n\nd"}]} = Skillbook.run(view, reply)
    end
  end

  test "a reply of tags and blanks takes linear time", %{tmp_dir: folder} do
    view = view(folder)

    for text <- [
          "<cmd>x" <> String.duplicate(" ", 256 * 1024),
          String.duplicate("<cmd>x ", 40_000),
          "```" <> String.duplicate(" \t", 128 * 1024) <> "x`",
          String.duplicate("<think>", 40_000),
          String.duplicate("```a\n```cmd\nx\n```\n", 15_000)
        ],
        do: assert(cpu(fn -> Skillbook.run(view, text) end) < @quick)
  end

  describe "frontmatter" do
    # 909 bytes that stand for a million.
    defp aliases do
      lines =
        for n <- 1..22, do: "b#{n}: &b#{n} [*b#{n - 1}, *b#{n - 1}, *b#{n - 1}, *b#{n - 1}]\n"

      "---\nb0: &b0 #{String.duplicate("x", 40)}\n#{lines}---\n"
    end

    test "that needs the YAML library stays off the normal schedulers" do
      for text <- [
            aliases(),
            "---\n#{String.duplicate("\ta:\n", 1024)}---\n",
            "---\na: #{String.duplicate("[", 200)}\n---\n",
            "---\na: \"\\x41\"\n---\n",
            "---\na: >\n  b\n---\n"
          ] do
        assert Native.frontmatter_parse_now(text) == :busy
        assert elem(Frontmatter.parse(text), 0) in [:ok, :error]
      end
    end

    test "with plain values is read at once" do
      text =
        "---\nname: a\ntags: [b, c]\nmetadata:\n  x: 1\n---\n" <> String.duplicate("x", 7_000)

      assert {:ok, %{data: %{"name" => "a"}}} = Native.frontmatter_parse_now(text)
    end
  end

  describe "files of tabs" do
    test "load in less than five times the time of plain pages", %{tmp_dir: folder} do
      pages = fn name, block ->
        files =
          for n <- 1..100,
              do: {"#{name}/p#{n}.md", "---\nname: p#{n}\ndescription: d\n#{block}---\nx\n"}

        Path.join(write(folder, Map.new(files)), name)
      end

      # A page with as much frontmatter that is read without a repair.
      plain = pages.("plain", "text: |\n" <> String.duplicate("  Some plain words.\n", 810))

      for {name, block} <- [
            {"tabs", String.duplicate("\t\n", 8_100)},
            {"fields", String.duplicate("\ta:\n", 4_050)},
            {"controls", String.duplicate("a\u0001: 1\n", 2_300)}
          ] do
        hostile = pages.(name, block)
        load = fn folder -> cpu(fn -> {:ok, _} = Catalog.load([folder]) end) end

        # The shortest times of some attempts, since other programs make them longer.
        {slow, quick} =
          Enum.reduce_while(1..5, {nil, nil}, fn _, {slow, quick} ->
            {slow, quick} = {min(load.(hostile), slow), min(load.(plain), quick)}
            {if(slow < 5 * quick, do: :halt, else: :cont), {slow, quick}}
          end)

        assert slow < 5 * quick, "#{name}: #{slow} ms, plain pages #{quick} ms"

        {:ok, catalog} = Catalog.load([hostile])
        counts = catalog |> Catalog.diagnostics() |> Enum.frequencies_by(&{&1.path, &1.code})
        assert counts |> Map.values() |> Enum.max() <= 21
      end
    end

    test "have at most 20 diagnostics of a code, and a count", %{tmp_dir: folder} do
      block = Enum.map_join(1..60, fn n -> "  a#{n}: &\n" end)
      write(folder, %{"p.md" => "---\nname: p\ndescription: d\nb:\n#{block}---\nx\n"})
      {:ok, catalog} = Catalog.load([folder])
      found = catalog |> Catalog.diagnostics() |> Enum.filter(&(&1.code == :frontmatter_repaired))
      assert length(found) == 21
      assert Enum.map(found, & &1.line) == Enum.to_list(5..25)

      assert %Diagnostic{
               message: "40 more of this code in this file",
               hint: nil,
               severity: :warning
             } = List.last(found)

      # A file with as many as that has them all.
      block = Enum.map_join(1..20, fn n -> "  a#{n}: &\n" end)
      write(folder, %{"p.md" => "---\nname: p\ndescription: d\nb:\n#{block}---\nx\n"})
      {:ok, catalog} = Catalog.load([folder])

      found = Catalog.diagnostics(catalog)
      assert Enum.count(found, &(&1.code == :frontmatter_repaired)) == 20

      refute Enum.any?(found, &(&1.message =~ "more of this code"))
    end
  end

  test "long commands stay off the normal schedulers", %{tmp_dir: folder} do
    view = view(folder)
    objects = "[" <> String.duplicate("{\"a\":[{}]},", 5_400) <> "1]"

    for line <- [
          ~s(x {"a": #{objects}}),
          "x --a #{objects}",
          "x " <> String.duplicate("<<E ", 16_000),
          "x <<E\n" <> String.duplicate("E \n", 21_000),
          "x “" <> String.duplicate("\n", 64_000)
        ] do
      for name <- [:tokenize_now, :parse_command_now],
          do: assert(apply(Native, name, [line]) == :busy)

      assert Native.route_now(view.ref, line) == :busy
      assert Native.extract_now("```cmd\n#{line}\n```", false) == :busy
      assert elem(Command.parse(line), 0) in [:ok, :error]
    end
  end

  test "a stream of blanks takes linear time" do
    for piece <- ["        ", "\n\n\n\n\n\n\n\n", "\r\r\r\r\r\r\r\r", " \n \n \n \n"],
        start <- ["", "<think>", "a", "```cmd\n", "```cmd\nx \""] do
      stream = fn ->
        Enum.reduce(1..8_192, Extractor.new() |> Extractor.feed(start) |> elem(1), fn _, state ->
          state |> Extractor.feed(piece) |> elem(1)
        end)
      end

      assert cpu(stream) < @quick, inspect({start, piece})
    end
  end

  test "a question that nobody answers ends with the run", %{tmp_dir: folder} do
    write(folder, %{"x/send.md" => page("x.send", handler("Text") ++ [effects: "write"])})
    me = self()

    ask = fn request ->
      send(me, {:asked, request.command.name})
      Process.sleep(:infinity)
    end

    book = book(sources: [folder], profiles: [[id: "ann", writes: :ask]], ask: ask)
    model = Model.Function.new(fn _messages, _options -> "```cmd\nx.send\nx.send\n```" end)

    log =
      capture_log(fn ->
        {time, {:ok, result}} =
          :timer.tc(fn -> Agent.run(book, "Hi", model: model, profile: "ann", max_time: 300) end)

        assert result.status == :max_time
        assert time < 10_000_000

        contents =
          for message <- result.transcript.messages, message.kind == :report, do: message.content

        assert [report] = contents
        assert report =~ "`x.send` was not run"
      end)

    assert log =~
             ~r/skill x.send: expected an answer of the :ask callback within \d+ ms, the time /

    # The second one is not asked, since no time is left.
    assert_receive {:asked, "x.send"}
    refute_received {:asked, "x.send"}
  end

  test "a query has at most 4 KB", %{tmp_dir: folder} do
    write(folder, %{"Plan.md" => "# Plan\n\nSow the beans.\n"})

    book =
      book(sources: [], store: ":memory:", vaults: [[path: folder, name: "notes"]], watch: false)

    {:ok, _} = Vault.sync(book, "notes")
    view = Skillbook.view(book)
    long = "beans " <> String.duplicate("-", 4090)
    assert {:ok, %{total: 1}} = Vault.search(view, long)

    for query <- [
          long <> "-",
          String.duplicate("\"", 128 * 1024),
          String.duplicate("a ", 64 * 1024)
        ] do
      assert {:error, error} = Vault.search(view, query)

      assert Exception.message(error) ==
               "expected as a query text with at least one word that is not excluded by -, " <>
                 "at most 32 words, and at most 4096 bytes"

      assert cpu(fn -> Vault.search(view, query) end) < @quick
    end
  end

  test "results keep their own commands, not the reply", %{tmp_dir: folder} do
    write(folder, %{"x/get.md" => page("x.get", handler("Text"))})
    view = view(folder)

    kept =
      for n <- 1..20 do
        reply =
          String.duplicate("Some words. ", 75_000) <>
            Enum.map_join(
              1..10,
              &"\n```cmd\nx.get --n #{n}.#{&1} --long #{String.duplicate("a", 200)}\n```\n"
            ) <>
            "\n```cmd\nx.get --n 1 --long #{String.duplicate("b", 200)}"

        report = Skillbook.run(view, reply)
        assert [%{command: "x.get --n " <> _} | _] = report.results
        assert length(report.results) == 10
        {report.results, report.incomplete}
      end

    size =
      for {results, incomplete} <- kept,
          text <- Enum.map(results, & &1.command) ++ incomplete,
          do: :binary.referenced_byte_size(text)

    assert Enum.max(size) < 600
  end

  test "a reply has at most 10,000 commands", %{tmp_dir: folder} do
    write(folder, %{"a.md" => "---\nname: a\ndescription: d\n---\nText.\n"})
    view = view(folder)
    blocks = &String.duplicate("```cmd\na\n```\n", &1)
    assert {:ok, %{commands: commands}} = Extractor.extract(blocks.(10_000))
    assert length(commands) == 10_000

    for reply <- [
          blocks.(100_000),
          blocks.(9_999) <> "```cmd\na\na\n```\n",
          String.duplicate("```cmd a```\n", 10_001),
          String.duplicate("```cmd a\n```\n", 10_001)
        ] do
      report = Skillbook.run(view, reply)
      assert [%{status: :error}] = report.results
      assert to_string(report) =~ "a reply may have 10000 commands, and this one has more"

      assert to_string(report) =~
               "write fewer commands in a reply, and continue when their results"
    end
  end

  test "a title, a description and a note are read in linear time", %{tmp_dir: folder} do
    book = book(sources: [folder], store: ":memory:", vaults: [[name: "drive"]])
    view = Skillbook.view(book)

    for text <- ["# a" <> String.duplicate(" #", 30_000) <> "x", String.duplicate("a", 60_000)] do
      assert cpu(fn -> Vault.put(book, "drive", %{id: "1", content: text}) end) < 5 * @quick
      assert cpu(fn -> Store.create(view, %{title: text, content: text}) end) < 5 * @quick
      assert cpu(fn -> View.fetch(view, text) end) < @quick
    end
  end

  describe "approvals" do
    test "store at most 100,000 bytes of the words of a call", %{tmp_dir: folder} do
      write(folder, %{"x/send.md" => page("x.send", handler("Text") ++ [effects: "write"])})
      ask = fn _request -> :pending end
      profiles = [[id: "ann", writes: :ask]]
      book = book(sources: [folder], store: ":memory:", profiles: profiles, ask: ask)
      view = Skillbook.view(book, "ann")

      run = fn bytes ->
        line = "x.send --a " <> String.duplicate("x", bytes)
        [result] = Skillbook.run(view, "```cmd\n#{line}\n```").results
        result
      end

      # The text is stored twice: in the line, and as the value of its flag.
      fixed = byte_size(~s({"command":"x.send --a ","flags":{"a":""}}))
      largest = div(100_000 - fixed, 2)
      assert run.(largest).status == :pending
      result = run.(largest + 1)
      assert result.status == :error

      got = fixed + 2 * (largest + 1)
      assert result.error.text == "expected a command of at most 100000 bytes, got #{got}"

      assert {:ok, [_]} = Skillbook.approvals(book)
      assert cpu(fn -> run.(4 * 1024 * 1024) end) < 5 * @quick
    end
  end

  test "a reply of 100,000 tool calls keeps 1,000, of which 100 run", %{tmp_dir: folder} do
    write(folder, %{"x/get.md" => page("x.get", handler("Text") ++ [effects: "read"])})
    book = book(sources: [folder], builtins: false, watch: false)

    run = fn count ->
      calls = for n <- 1..count, do: %{id: "c#{n}", name: "x__get", arguments: "{}"}

      model =
        Model.Function.new(fn messages, _options ->
          if List.last(messages).role == :tool, do: "Done.", else: %{text: "", tool_calls: calls}
        end)

      {:ok, %{text: "Done."} = result} = Agent.run(book, "Go.", model: model, protocol: :tools)

      texts =
        for message <- result.transcript.messages, message.kind == :result, do: message.content

      [reply] = for %{tool_calls: [_ | _] = calls} <- result.transcript.messages, do: calls
      {length(reply), Enum.frequencies_by(texts, &String.starts_with?(&1, "ok\n"))}
    end

    assert run.(1_000) == {1_000, %{true => 100, false => 900}}
    assert run.(1_001) == {1_000, %{true => 100, false => 900}}
    assert cpu(fn -> run.(100_000) end) < 100 * @quick
  end

  describe "files of tests" do
    test "a recording has at most 64 MiB", %{tmp_dir: folder} do
      path = Path.join(folder, "large.json")
      sparse(path, 64 * 1024 * 1024 + 1)

      {:error, error} = Model.Recording.new(path: path)
      assert Exception.message(error) =~ "more than 67108864 bytes"
      assert cpu(fn -> Model.Recording.new(path: path) end) < @quick
    end

    test "a file of evaluations has at most 1 MiB, and a file for a request 256 KiB", context do
      folder = context.tmp_dir
      path = Path.join(folder, "large.evals.yaml")
      sparse(path, 1024 * 1024 + 1)
      assert {[], [%{message: message}]} = Skillbook.Test.read_evaluations(path)
      assert message =~ "expected up to 1048576 bytes"

      write(folder, %{
        "e.evals.yaml" => "evaluations:\n- {name: a, request: b, files: [c.txt], answer: d}\n"
      })

      sparse(Path.join(folder, "c.txt"), 256 * 1024 + 1)
      {evaluations, []} = Skillbook.Test.read_evaluations(Path.join(folder, "e.evals.yaml"))
      model = Model.Function.new(fn _messages, _options -> flunk("the model was asked") end)
      book = [sources: [], builtins: false]
      assert %{runs: [run]} = Skillbook.Test.evaluate(evaluations, book: book, model: model)
      assert inspect(run) =~ "more than 262144 bytes"
    end

    defp sparse(path, size) do
      File.open!(path, [:write], fn file ->
        {:ok, _} = :file.position(file, size)
        :ok = :file.truncate(file)
      end)
    end
  end

  describe "sections of the prompt" do
    test "a text of megabytes is cut in linear time", %{tmp_dir: folder} do
      view = view(folder)

      for piece <- ["x", "é", "\n", "a\r\n", "<skill>", "\u202E"], max_tokens <- [1, 500] do
        text = String.duplicate(piece, div(1024 * 1024, byte_size(piece)))
        section = [name: "A", text: text, max_tokens: max_tokens]
        cut = fn -> Sections.text(view, sections: [section]) end
        # The heading, and up to four bytes for a token, each of which may become a code.
        assert byte_size(cut.()) < 200 + 40 * max_tokens
        assert {piece, max_tokens, cpu(cut) < 5 * @quick} == {piece, max_tokens, true}
      end
    end

    test "at most 20 are made, and one ends at its time limit", %{tmp_dir: folder} do
      view = view(folder)
      sections = for n <- 1..21, do: {"S#{n}", "text"}

      assert_raise OptionError, ~r/20/, fn -> Sections.text(view, sections: sections) end

      slow = [name: "Slow", timeout: 100, text: fn _ -> Process.sleep(:infinity) end]

      capture_log(fn ->
        {time, text} = :timer.tc(fn -> Sections.text(view, sections: [slow, {"B", "b"}]) end)
        assert text =~ "B:\n  b"
        refute text =~ "Slow"
        assert time < 5_000_000
      end)
    end
  end
end
