defmodule Skillbook.House.NativesTest do
  # An invalid argument is an error in the calling process and never ends the virtual machine.
  use ExUnit.Case, async: true

  alias Skillbook.{Catalog, Command, Extractor, Frontmatter, Native, View}

  @always [Native, Skillbook.SQL.Native, Skillbook.SQL.Postgres.Library, Skillbook.HTTP.Library]

  @functions for module <- @always,
                 function <- module.__info__(:functions) -- [load: 0],
                 do: {module, function}

  setup_all do
    {:ok, catalog} = Catalog.load([Skillbook.Test.Checkout.path("test/support/fixtures/skills")])
    {:ok, catalog: catalog, view: View.all(catalog)}
  end

  # A library with a function that has no stub cannot be loaded.
  test "each stub is a function of its library" do
    optional = [Skillbook.Embedder.Library, Skillbook.Connections.Library]
    for module <- optional, do: :ok = module.load()

    for module <- @always ++ optional,
        {name, _} = stub <- module.__info__(:functions) -- module.module_info(:nifs),
        name not in [:load, :load_with_module] do
      assert {:"#{name}_now", elem(stub, 1)} in module.module_info(:nifs)
    end
  end

  test "rejects arguments of the wrong type", %{catalog: catalog, view: view} do
    values = [
      nil,
      :atom,
      -1,
      1.5,
      1_000_000_000_000_000_000_000_000,
      "",
      "text",
      <<255, 0, 254>>,
      <<1::3>>,
      [],
      [1 | 2],
      ["a"],
      %{"a" => 1},
      {},
      {:a, 1},
      make_ref(),
      self(),
      catalog.ref,
      view.ref,
      Extractor.new().ref
    ]

    for {module, {name, arity}} <- @functions, round <- 1..100 do
      # Reproducible, and different for each function.
      arguments =
        for n <- 1..arity//1,
            do: Enum.at(values, :erlang.phash2({name, round, n}, length(values)))

      try do
        apply(module, name, arguments)
      rescue
        error in [ArgumentError, ErlangError] -> error
      end
    end

    assert View.count(view) == Catalog.count(catalog)
  end

  @tag :tmp_dir
  test "runs long work on a dirty scheduler", %{catalog: catalog, tmp_dir: folder} do
    page = fn name, body ->
      "---\nname: #{name}\ndescription: d\nallowed-tools: Read\n---\n\n#{body}\n"
    end

    File.mkdir_p!(Path.join(folder, "many"))

    for n <- 1..65,
        do: File.write!(Path.join(folder, "many/a#{n}.md"), page.("many.a#{n}", "Text."))

    File.write!(Path.join(folder, "long.md"), page.("long", String.duplicate("text ", 13_200)))
    {:ok, large} = Catalog.load([folder])

    long = String.duplicate("a", 64 * 1024 + 1)
    all = Skillbook.Profile.unrestricted().services
    [small, large, other] = [View.all(catalog).ref, View.all(large).ref, View.all(large).ref]
    {:ok, unmade} = View.new(catalog, id: "unmade")
    Native.view_prompt(small)
    stream = fn -> Extractor.new().ref end
    held = stream.()
    Native.extractor_feed(held, 0, "```cmd\nx “\n" <> long)
    tools = for n <- 1..200, do: "Tool#{n}"
    stored = &%Skillbook.Stored{name: "a", kind: :note, content: &1}
    vectors = Native.vectors_new()
    Native.view_unembedded(small, vectors)

    http = %{
      protocol: :auto,
      connect_timeout: 1,
      cacertfile: nil,
      http_proxy: nil,
      https_proxy: nil,
      no_proxy: nil
    }

    {:ok, _client} = Skillbook.HTTP.Library.http_client(http)

    rows = [
      extract: {["a", false], [long, false]},
      extractor_feed: {[stream.(), 0, "a"], [stream.(), 0, long]},
      extractor_feed: {[held, 1, "a"], [held, 2, "\n```"]},
      extractor_finish: {[stream.(), 0], [held, 3]},
      tokenize: {["a"], [long]},
      parse_command: {["a"], [long]},
      quote_word: {["a"], [long]},
      route: {[small, "haiku"], [small, long]},
      frontmatter_parse: {["---\na: [b, c]\n---\n"], ["---\na: &a b\nc: *a\n---\n"]},
      frontmatter_parse: {["---\na: b\n---\n"], ["---\n\ta: b\n---\n"]},
      frontmatter_parse: {["---\na\n"], ["---\na: b\n#{String.duplicate("#\n", 2_100)}---\n"]},
      frontmatter_parse: {["a"], [long]},
      hidden_visible:
        {[String.duplicate("a", 64 * 1024)], [String.duplicate("\e", 16 * 1024 + 1)]},
      hidden_visible: {["a"], [long <> "a"]},
      hidden_json: {[~s("a")], [String.duplicate("\u202E", 16 * 1024)]},
      http_client: {[http], [%{http | connect_timeout: 2}]},
      sql_statements:
        {["select 1", :sqlite, 0],
         [String.duplicate(" ", 8 * 1024) <> "select 1", :postgres, nil]},
      json_decode: {["[1]", 9], [~s("#{String.duplicate("a", 8 * 1024)}"), 9]},
      json_encode: {[%{"a" => [1]}, false], [[String.duplicate("a", 8 * 1024)], false]},
      json_encode: {[[a: 1], false], [Enum.to_list(0..8_192), false]},
      json_encode: {[{1}, false], [Map.new(0..8_192, &{&1, 1}), false]},
      json_encode: {[{"1"}, true], [List.duplicate(["a"], 4_000), false]},
      view_new:
        {[catalog.ref, [""], :all, :all, [], all], [catalog.ref, ["x"], nil, :all, [], all]},
      view_suggest: {[small, "haikus", :paths], [small, String.duplicate("a", 65), :paths]},
      view_suggest: {[small, "haikus", :stored], [large, "haikus", :stored]},
      view_spelled: {[small, "Haiku"], [small, String.duplicate("a", 65)]},
      view_spelled: {[small, "Haiku"], [large, "Haiku"]},
      view_missing: {[small, ["haiku"]], [small, List.duplicate("haiku", 65)]},
      view_sees: {[small, []], [small, [stored.(long)]]},
      view_sees: {[small, [stored.("a")]], [small, List.duplicate(stored.("a"), 64)]},
      view_sees: {[small, [stored.(nil)]], [small, [stored.("---\na: b\n---\n")]]},
      view_unembedded: {[small, vectors], [large, vectors]},
      spelling: {["A b"], [long]},
      view_entries: {[small, nil, nil, false], [large, nil, :skill, true]},
      view_entries: {[large, "few", nil, true], [large, "many", nil, false]},
      view_page: {[large, "", 64, false], [large, "", 65, false]},
      view_page: {[small, "", 64, true], [large, "", 64, true]},
      view_names: {[small, nil, true], [large, nil, false]},
      view_domains: {[small], [large]},
      view_help: {[small, ""], [large, ""]},
      view_help: {[small, "email"], [large, "many"]},
      view_help: {[large, "many.a1"], [large, "long"]},
      view_help: {[small, "haiku"], [small, "email.all"]},
      view_help: {[small, "haiku"], [small, "pdf-processing/references/forms.md"]},
      view_help_domain: {[small, "email"], [large, "many"]},
      view_help_skill: {[small, "haiku"], [large, "long"]},
      view_prompt: {[small], [unmade.ref]},
      view_news: {[large, other], [large, small]},
      view_tools: {[small, "haiku", :all], [small, "haiku", tools]},
      tools_allow: {[["Read"], "Read", nil], [tools, "Read", nil]},
      tools_allow: {[["Read"], "Read", nil], [["Read"], "Read", long]},
      tool_entry: {[small, "x-0123456789abcdef"], [large, "x-0123456789abcdef"]},
      tool_entry: {[large, "x__y"], [large, "x-0123456789abcdef"]}
    ]

    for {name, {quick, slow}} <- rows do
      {module, _} = List.keyfind(@functions, {name, length(quick)}, 1)
      assert apply(module, :"#{name}_now", quick) != :busy, inspect(name)

      assert apply(module, :"#{name}_now", slow) == :busy,
             inspect({name, slow}, limit: 3, printable_limit: 20)

      assert apply(module, name, slow) != :busy
    end

    twins =
      for {_module, {name, _}} <- @functions,
          "won_" <> twin <- [name |> to_string() |> String.reverse()],
          do: twin

    assert Enum.sort(twins) ==
             rows
             |> Keyword.keys()
             |> Enum.uniq()
             |> Enum.map(&String.reverse("#{&1}"))
             |> Enum.sort()
  end

  test "accepts any bytes", %{view: view} do
    :rand.seed(:exsss, {1, 2, 3})

    parts = [
      "```cmd\n",
      "\n```\n",
      "---\n",
      "\"",
      "'",
      "<<E",
      "\nE\n",
      "\\",
      "--a",
      "=",
      "“",
      "a: ",
      "- ",
      "[",
      "{",
      <<0>>,
      <<0xE2>>
    ]

    for _ <- 1..2_000 do
      bytes =
        for _ <- 1..:rand.uniform(20), into: "" do
          if :rand.uniform(3) == 1, do: :rand.bytes(:rand.uniform(8)), else: Enum.random(parts)
        end

      assert elem(Extractor.extract(bytes), 0) in [:ok, :error]
      assert elem(Command.parse(bytes), 0) in [:ok, :error]
      assert elem(Frontmatter.parse("---\n" <> bytes), 0) in [:ok, :error]
      assert elem(Skillbook.Router.route(view, bytes), 0) in [:ok, :help, :error]
      assert elem(View.fetch(view, bytes), 0) == :error
      assert elem(Skillbook.get(view, bytes), 0) in [:ok, :error]
      {_events, state} = Extractor.feed(Extractor.new(), bytes)
      assert {_events, _state} = Extractor.finish(state)
      assert to_string(Skillbook.run(view, bytes)) |> String.valid?()
    end
  end

  test "rejects deep nesting without a stack overflow", %{view: view} do
    for {open, close} <- [{"[", "]"}, {"{a: ", "}"}, {"- ", ""}] do
      deep = String.duplicate(open, 5_000) <> "1" <> String.duplicate(close, 5_000)
      assert {:error, _} = Frontmatter.parse("---\na:\n  #{deep}\n---\n")
    end

    deep = String.duplicate("[", 5_000) <> String.duplicate("]", 5_000)
    assert {:error, %{kind: :invalid_json}} = Command.parse(~s(haiku {"a": #{deep}}))

    assert {:error, %{kind: :invalid_json}} =
             Skillbook.Router.route(view, ~s(haiku {"a": #{deep}}))
  end
end
