defmodule Skillbook.SkillTest do
  use ExUnit.Case, async: false
  doctest Skillbook.Skill
  doctest Skillbook.SkillError

  import ExUnit.CaptureLog, only: [with_log: 1]
  import Skillbook.Eventually

  alias Skillbook.{Catalog, Diagnostic, Lint, Skill, Source, View}

  defmodule Refund do
    @moduledoc """
    ## Behavior

    Refunds an order.
    """

    use Skillbook.Skill,
      name: "orders.refund",
      description: "Refunds an order that was paid",
      effects: :write,
      timeout: 500,
      labels: ["finance"],
      examples: ["Give Ann her money back", {:not, "Order tea"}],
      metadata: [team: :billing, since: ~D[2026-01-01]],
      flags: [order: [type: :text, required: true], amount: [type: :number, min: 0]]

    @impl true
    def execute(flags, context), do: {:ok, "#{inspect(flags)} for #{context.profile.id}"}
  end

  defmodule Undocumented do
    @moduledoc false
    use Skillbook.Skill, name: "orders.count", description: "Counts the orders of today"

    @impl true
    def execute(_flags, _context), do: {:ok, "3"}
  end

  defmodule Other do
    @moduledoc false
    def execute(_flags, _context), do: {:ok, "other"}
  end

  defp view(sources, profile \\ nil) do
    {:ok, catalog} = Catalog.load(sources)
    if profile, do: elem(View.new(catalog, profile), 1), else: View.all(catalog)
  end

  defp run(view, line) do
    [result] = Skillbook.run(view, "```cmd\n#{line}\n```").results
    {result.status, result.content}
  end

  defp add(options \\ []) do
    Skill.new!(
      [
        name: "math.add",
        description: "Adds two integers",
        run: fn flags, _context -> {:ok, "#{flags["a"]}"} end
      ]
      |> Keyword.merge(options)
    )
  end

  describe "use Skillbook.Skill" do
    test "makes the same entry as a file with the same page" do
      module = View.fetch!(view([{:modules, [Refund]}]), "orders.refund")
      {:ok, page} = View.frontmatter(view([{:modules, [Refund]}]), "orders.refund")
      folder = Path.join(System.tmp_dir!(), "skill-#{System.unique_integer([:positive])}")
      on_exit(fn -> File.rm_rf!(folder) end)
      File.mkdir_p!(Path.join(folder, "orders"))
      File.write!(Path.join(folder, "orders/refund.md"), page <> module.body)
      file = View.fetch!(view([[path: folder, trust: :high]]), "orders.refund")

      assert Map.drop(module, [:path, :source]) == Map.drop(file, [:path, :source])
      assert module.path == "test/skillbook/skill_test.exs (Skillbook.SkillTest.Refund)"
      assert {module.source, module.trust, module.limits} == {"modules", :high, %{timeout: 500}}
      assert module.body == "## Behavior\n\nRefunds an order.\n"
      assert module.metadata == %{"team" => "billing", "since" => "2026-01-01"}

      assert page == """
             ---
             name: orders.refund
             description: Refunds an order that was paid
             flags:
               order:
                 type: text
                 required: true
               amount:
                 type: number
                 min: 0
             effects: write
             examples:
             - Give Ann her money back
             - not: Order tea
             visibility_labels:
             - finance
             timeout: 500ms
             metadata:
               team: billing
               since: 2026-01-01
             handler: Skillbook.SkillTest.Refund
             ---
             """
    end

    test "runs with the profile of the call, whose grants decide as for files" do
      granted = view([{:modules, [Refund]}], id: "ann", grants: ["finance"])
      assert run(granted, "orders.refund --order 7") == {:ok, ~s(%{"order" => "7"} for ann)}

      hidden = view([{:modules, [Refund, Undocumented]}], id: "bob")
      assert Enum.map(View.entries(hidden), & &1.name) == ["orders.count"]
      assert {:error, "unknown skill \"orders.refund\"" <> _} = run(hidden, "orders.refund")
    end

    test "the model reads its flags, which need no Usage section" do
      view = view([{:modules, [Refund]}])
      {:ok, text} = Skillbook.get(view, "orders.refund")

      assert text == """
             ## Behavior

             Refunds an order.

             ## Usage

             orders.refund --order <order> [--amount <n>]

             ## Flags

             --order   required
             --amount  number from 0 on\
             """

      assert View.fetch!(view, "orders.refund").usage ==
               "orders.refund --order <order> [--amount <n>]"

      assert Lint.run([{:modules, [Refund]}]) == []
    end

    test "without documentation the description is the text" do
      view = view([{:modules, [Undocumented]}])
      assert View.fetch!(view, "orders.count").body == "Counts the orders of today\n"
      assert run(view, "orders.count") == {:ok, "3"}
    end

    # Options and documentation, the line and the text of the error. The module begins in line 1.
    @described ~s(name: "a.b", description: "Does one good thing")
    @rows [
      {~s(nam: "a.b"), 3, "unknown option :nam for use Skillbook.Skill, did you mean :name? The"},
      {~s(description: "b"), 3,
       ~s(use Skillbook.Skill needs the option :name, such as name: "app.refund")},
      {~s(name: "a.b"), 3, "use Skillbook.Skill needs the option :description"},
      {~s(name: "ab", description: "c"), 3,
       ~s(the skill ab: expected the name of a command, such as "math.add", got "ab")},
      {~s(name: "a.all", description: "c"), 3,
       "the skill a.all: the name `a.all` cannot be used: the action `all` is reserved"},
      {@described <> ", effects: :writ", 3,
       "expected :read or :write as the option :effects of use Skillbook.Skill, got: :writ"},
      {@described <> ", tags: \"x\"", 3,
       "expected a list of texts as the option :tags of use Skillbook.Skill, got: \"x\""},
      {@described <> ", flags: [:limit]", 3,
       "expected a keyword list of flags as the option :flags of use Skillbook.Skill, got: [:l"},
      {@described <> ", timeout: \"30s\"", 3,
       "expected milliseconds as the option :timeout of use Skillbook.Skill, got: \"30s\""},
      {@described <> ", timeout: 7_200_000", 3,
       "the skill a.b: expected seconds, or a duration such as 500ms, 30s or 5m, of at most 1h"},
      {@described <> ", schedule: \"soon\"", 3,
       "the skill a.b: `schedule`: expected five fields, or six with the second first, got \"so"},
      {@described <> ", metadata: [a: self()]", 3,
       "the skill a.b: frontmatter holds nil, booleans, 64-bit integers, floats, UTF-8 strings"},
      {@described <> ", tags: [\"a\"], tags: [\"b\"]", 3,
       "expected one value as the option :tags of use Skillbook.Skill, got: [[\"a\"], [\"b\"]]"},
      {@described <> ", flags: [a: [typ: :text]]", 3,
       "the skill a.b: expected a key of a flag for --a, got `typ`; the command does not run"},
      {@described <> ", flags: [a: [type: :integer, min: 9, max: 1]]", 3,
       "the skill a.b: expected `min` below `max` for --a; the command does not run"},
      {@described <> ", flags: [a: :string]", 3,
       "the skill a.b: expected the type `text` for --a, got `string`"},
      {@described <> ", approval: []", 3,
       ~s(expected :required or a list of flags such as ["--to"] as the option :approval of us)},
      {@described <> ", approval: [\"to\"]", 3,
       "the skill a.b: expected `required`, `none` or a list of flags such as `[--to]` for `ap"},
      {@described, 3, "a.b needs a function execute/2 (Skillbook.Handler)"}
    ]
    for {{options, line, text}, number} <- Enum.with_index(@rows) do
      test "is checked when the module is compiled, row #{number}" do
        code = "defmodule My#{unquote(number)}.App.Refund do\n\nuse Skillbook.Skill, "
        code = code <> unquote(options) <> "\nend"
        error = assert_raise CompileError, fn -> Code.compile_string(code, "lib/x.ex") end
        assert {error.file, error.line} == {"lib/x.ex", unquote(line)}
        assert String.starts_with?(error.description, unquote(text))
      end
    end
  end

  describe "diagnostics" do
    test "have the file, the module and the line of the code" do
      code = ~S'''
      defmodule Skillbook.SkillTest.Advice do
        @moduledoc """
        ## Usage

        advice.give

        ## Behavior

            Text

        ```cmd
        advice.giv
        ```
        """
        use Skillbook.Skill, name: "advice.give", description: "Gives advice"
        def execute(_flags, _context), do: :ok
      end
      '''

      Code.compile_string(code, "lib/advice.ex")
      found = Lint.run([{:modules, [Skillbook.SkillTest.Advice]}])
      path = "lib/advice.ex (Skillbook.SkillTest.Advice)"

      assert Enum.map(found, &{&1.path, &1.line, &1.column, &1.code, &1.fix}) == [
               {path, 12, nil, :example_unknown, nil},
               {path, 15, nil, :description_short, nil}
             ]

      assert "lib/advice.ex (Skillbook.SkillTest.Advice):12: warning: there is no command" <> _ =
               to_string(hd(found))
    end

    test "explain shows the place, and files take precedence by the order of the sources" do
      folder = Path.join(System.tmp_dir!(), "skill-#{System.unique_integer([:positive])}")
      on_exit(fn -> File.rm_rf!(folder) end)
      File.mkdir_p!(Path.join(folder, "orders"))
      page = "---\nname: orders.count\ndescription: Counts them\n---\nSay four.\n"
      File.write!(Path.join(folder, "orders/count.md"), page)
      place = "test/skillbook/skill_test.exs (Skillbook.SkillTest.Undocumented)"

      {:ok, catalog} = Catalog.load([{:modules, [Undocumented]}, folder])

      assert [used, shadowed] =
               Skillbook.explain(catalog, "orders.count", profile: [id: "a"]).files

      assert {used.path, used.state} == {Path.join(folder, "orders/count.md"), :used}
      assert {shadowed.path, shadowed.state} == {place, :shadowed}

      {:ok, catalog} = Catalog.load([folder, {:modules, [Undocumented]}])

      assert [used, _shadowed] =
               Skillbook.explain(catalog, "orders.count", profile: [id: "a"]).files

      assert {used.path, used.source} == {place, "modules"}
    end
  end

  describe "sources of modules" do
    # The compiled files of an application with a skill, another module, and `more`.
    defp application(name, more \\ "") do
      folder = Path.join(System.tmp_dir!(), "#{name}-#{System.unique_integer([:positive])}/ebin")
      File.mkdir_p!(folder)
      true = Code.prepend_path(folder)
      base = Macro.camelize("#{name}")

      compiled =
        Code.compile_string("""
        defmodule #{base}.Echo do
          use Skillbook.Skill, name: "testing.echo", description: "Returns the flags"
          def execute(flags, _context), do: {:ok, inspect(flags)}
        end

        defmodule #{base}.Plain do
          def __skillbook_skill__, do: raise("not a skill")
        end
        #{more}
        """)

      for {module, binary} <- compiled do
        File.write!(Path.join(folder, "#{module}.beam"), binary)
        :code.purge(module)
        :code.delete(module)
      end

      modules = Enum.map(compiled, &elem(&1, 0))
      properties = [vsn: ~c"1.0.0", modules: modules, applications: [:kernel]]
      file = :io_lib.format(~c"~p.~n", [{:application, name, properties}])
      File.write!(Path.join(folder, "#{name}.app"), file)

      on_exit(fn ->
        Application.unload(name)
        Code.delete_path(folder)
        File.rm_rf!(Path.dirname(folder))
      end)

      modules
    end

    test "an application has its modules that use Skillbook.Skill; others stay unloaded" do
      [echo, plain] = application(:skill_test_one)
      entries = View.entries(view([{:modules, :skill_test_one, labels: ["app"]}]))
      assert [%{name: "testing.echo", labels: ["app"], source: "skill_test_one"}] = entries
      assert {:erlang.module_loaded(echo), :erlang.module_loaded(plain)} == {true, false}
      assert view([{:modules, :kernel}]) |> View.count() == 0
    end

    test "modules that were added to an application or removed from it show after a reload" do
      application(:skill_test_two)
      {:ok, catalog} = Catalog.load([{:modules, :skill_test_two}])

      more = """
      defmodule SkillTestTwo.More do
        use Skillbook.Skill, name: "testing.more", description: "Returns nothing"
        def execute(_flags, _context), do: :ok
      end
      """

      Code.put_compiler_option(:ignore_module_conflict, true)
      application(:skill_test_two, more)
      assert Catalog.refresh(catalog, :all).added == ["testing.more"]
      application(:skill_test_two)
      assert Catalog.refresh(catalog, :all).removed == ["testing.more"]
    after
      Code.put_compiler_option(:ignore_module_conflict, false)
    end

    @invalid [
      {{:modules, :no_such_app},
       "expected {:modules, application} with an application that exists for a source, " <>
         "got: {:modules, :no_such_app}"},
      {{:modules, [Refund, Other]},
       "expected {:modules, modules} with modules that use Skillbook.Skill for a source, " <>
         "got: Skillbook.SkillTest.Other"},
      {{:modules, ["Refund"]},
       "expected {:modules, modules} with modules that use Skillbook.Skill for a source, " <>
         "got: \"Refund\""},
      {{:modules, []},
       "expected {:modules, application} or {:modules, modules} for a source, " <>
         "got: {:modules, []}"},
      {{:modules, [Refund], path: "x"},
       "unknown option :path for a source of modules. The options are :trust, :name, :labels, " <>
         ":tenant, :available, :inline"},
      {{:modules, [Refund], trust: :none},
       "expected :high, :medium or :low as the option :trust of a source of modules, got: :none"},
      {{:modules, [Refund], inline: ["a.[b"]},
       "expected globs (unclosed character class; missing ']') as the option :inline of a " <>
         "source, got: \"a.[b\""}
    ]
    for {{item, message}, number} <- Enum.with_index(@invalid) do
      test "an invalid one is an error, row #{number}" do
        assert {:error, error} = Source.list([unquote(Macro.escape(item))])
        assert Exception.message(error) == unquote(message)
      end
    end

    test "with low trust the module does not run" do
      view = view([{:modules, [Undocumented], trust: :low}])
      assert View.fetch!(view, "orders.count").handler == nil
      assert [%Diagnostic{code: :untrusted_field, line: line}] = View.diagnostics(view)
      assert line == elem(Undocumented.__skillbook_skill__().lines, 0)
    end

    test "a recompiled module shows after a reload, views before it keep their page" do
      compile = fn text ->
        Code.compile_string("""
        defmodule Skillbook.SkillTest.Changing do
          use Skillbook.Skill, name: "tea.make", description: "#{text}"
          def execute(_flags, _context), do: {:ok, "#{text}"}
        end
        """)
      end

      Code.put_compiler_option(:ignore_module_conflict, true)
      on_exit(fn -> Code.put_compiler_option(:ignore_module_conflict, false) end)
      compile.("Makes green tea")
      {:ok, catalog} = Catalog.load([{:modules, [Skillbook.SkillTest.Changing]}])
      before = View.all(catalog)
      assert Catalog.refresh(catalog, :all).changed == []
      compile.("Makes black tea")
      assert Catalog.refresh(catalog, :all).changed == ["tea.make"]
      assert View.fetch!(View.all(catalog), "tea.make").description == "Makes black tea"
      assert View.fetch!(before, "tea.make").description == "Makes green tea"
    end

    test "a running book notices compiled files that change" do
      folder = Path.join(System.tmp_dir!(), "ebin-#{System.unique_integer([:positive])}")
      File.mkdir_p!(folder)
      true = Code.prepend_path(folder)

      on_exit(fn ->
        Code.delete_path(folder)
        File.rm_rf!(folder)
      end)

      compile = fn text ->
        [{module, binary}] =
          Code.compile_string("""
          defmodule Skillbook.SkillTest.Watched do
            use Skillbook.Skill, name: "tea.watch", description: "#{text}"
            def execute(_flags, _context), do: :ok
          end
          """)

        # Loaded from its file, as by `recompile` and by Phoenix.
        File.write!(Path.join(folder, "#{module}.beam"), binary)
        :code.purge(module)
        {:module, _} = :code.load_file(module)
        module
      end

      Code.put_compiler_option(:ignore_module_conflict, true)
      on_exit(fn -> Code.put_compiler_option(:ignore_module_conflict, false) end)
      module = compile.("Watches a green tea")
      book = Skillbook.SkillTest.Book
      start_supervised!({Skillbook, name: book, sources: [{:modules, [module]}], builtins: false})
      description = fn -> View.fetch!(View.all(book), "tea.watch").description end
      assert description.() == "Watches a green tea"
      compile.("Watches a black tea")
      assert eventually(fn -> description.() == "Watches a black tea" end)
    end
  end

  describe "new/1" do
    test "calls with some flags need an approval, as with a list of a page" do
      skill = add(flags: [a: :integer, to: :text], approval: ["--to"])
      assert View.fetch!(view([skill]), "math.add").limits == %{approval: ["to"]}
    end

    test "makes a command of a function, in a catalog and in a book" do
      offset = 10

      add =
        add(
          run: fn flags, context ->
            {:ok, "#{offset + String.to_integer(flags["a"])} #{context.profile.id}"}
          end
        )

      assert run(view([add], id: "ann"), "math.add --a 5") == {:ok, "15 ann"}

      book = Skillbook.SkillTest.FunctionBook
      profiles = [[id: "bob"]]
      start_supervised!({Skillbook, name: book, sources: [add], profiles: profiles})
      assert run(Skillbook.view(book, "bob"), "math.add --a 5") == {:ok, "15 bob"}
      assert Skillbook.diagnostics(book) == []
    end

    test "each catalog runs its own function; one of the same name replaces an earlier one" do
      one = add(run: fn _, _ -> {:ok, "one"} end)
      two = add(run: fn _, _ -> {:ok, "two"} end)
      assert run(view([one]), "math.add") == {:ok, "one"}
      assert run(view([two]), "math.add") == {:ok, "two"}
      assert run(view([one, two]), "math.add") == {:ok, "two"}

      labelled = add(run: fn _, _ -> {:ok, "vip"} end, labels: ["vip"])
      assert run(view([one, labelled], id: "a"), "math.add") == {:ok, "one"}

      vip = view([one, labelled], id: "a", grants: ["vip"])
      assert run(vip, "math.add") == {:ok, "vip"}
    end

    test "a function is only in the catalogs that list it" do
      folder = Path.join(System.tmp_dir!(), "skill-#{System.unique_integer([:positive])}")
      on_exit(fn -> File.rm_rf!(folder) end)
      File.mkdir_p!(Path.join(folder, "math"))
      page = "---\nname: math.sum\ndescription: Adds\nhandler: function math.add\n---\nAdds.\n"
      File.write!(Path.join(folder, "math/sum.md"), page)
      _elsewhere = view([add()])
      assert [%{code: :handler_missing}] = View.diagnostics(view([folder]))
    end

    test "a crash, a hanging function and a wrong result fail as in modules" do
      for {run, text} <- [
            {fn _, _ -> raise "no" end, "crashed"},
            {fn _, _ -> Process.sleep(:infinity) end, "took longer than"},
            {fn _, _ -> :no end, "returned"}
          ] do
        view = view([add(run: run, timeout: 50)])
        assert {{:error, content}, log} = with_log(fn -> run(view, "math.add") end)
        assert content =~ text
        assert log =~ "skill math.add"
      end
    end

    test "the example runs" do
      import ExUnit.CaptureIO
      output = capture_io(fn -> Code.eval_file("examples/functions.exs") end)

      assert output == """
             Let me look.
             [1] stock.count --product tea
             ok
               12 packets of tea

             [2] stock.count --product milk
             error
               there is no milk; the products are coffee, tea
             """
    end

    test "flags arrive with their types, in text and in JSON" do
      add =
        add(
          flags: [
            a: [type: :integer, min: 0, required: true],
            kind: [values: [:sum, :product], default: :sum]
          ],
          run: fn flags, _context -> {:ok, inspect(flags)} end
        )

      for line <- ["math.add --a 7", "math.add 7", ~s(math.add {"a": 7})],
          do: assert(run(view([add]), line) == {:ok, ~s(%{"a" => 7, "kind" => "sum"})})

      assert {:error, "--a must be a whole number from 0 on, got \"-1\"" <> _} =
               run(view([add]), "math.add --a -1")

      none = add(flags: [], run: fn flags, _context -> {:ok, inspect(flags)} end)
      assert run(view([none]), "math.add") == {:ok, "%{}"}
      assert {:error, "unknown flag --a." <> _} = run(view([none]), "math.add --a 1")
    end

    test "errors are returned, and raised by new!/1" do
      assert {:error, error} = Skill.new(name: "a.b", description: "c")
      assert Exception.message(error) == "a skill needs the option :run"
      assert {:error, error} = Skill.new(name: "a.b", description: "c", run: fn _ -> :ok end)

      assert Exception.message(error) =~
               "expected a function of flags and context as the option :run of a skill, got: #Fun"

      assert {:error, error} = Skill.new(:no)

      assert Exception.message(error) ==
               "expected a keyword list or a map with atoms as keys for a skill, got: :no"

      assert_raise Skillbook.SkillError, fn -> add(name: "add") end
      assert {:error, error} = Skill.new(add_options(body: String.duplicate("a", 1_048_576)))
      assert Exception.message(error) =~ "expected a page of at most 1048576 bytes, got 1048"
    end
  end

  defp add_options(more),
    do: [name: "a.b", description: "Does c", run: fn _, _ -> :ok end] ++ more
end
