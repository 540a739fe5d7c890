defmodule Skillbook.Catalog.HandlersTest do
  # A command whose handler does not exist: an error in the diagnostics, the log, lint and
  # explain, and no offer to a model.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureLog

  alias Skillbook.{Catalog, Help, HandlerError, Lint, Tools, View}
  alias Skillbook.Catalog.Handlers

  @moduletag :tmp_dir

  defmodule Echo do
    @behaviour Skillbook.Handler
    @impl true
    def execute(_flags, _context), do: {:ok, "echo"}
  end

  defmodule NoHandler do
    def run(_flags), do: :ok
  end

  @echo inspect(Echo)

  defp command_page(name, handler, more \\ "") do
    """
    ---
    name: #{name}
    description: Echoes a text for the tests of handlers
    #{if handler, do: "handler: #{handler}\n"}#{more}---
    ## Usage

    #{name}
    """
  end

  defp found(diagnostics),
    do: for(%{code: code} = found <- diagnostics, handler?(code), do: found)

  defp handler?(code), do: code in [:handler_missing, :handler_unchecked, :shadowed]

  test "the problem of each handler, and its hint", %{tmp_dir: root} do
    nothing = "name an existing module with execute/2, or remove the page"

    rows = [
      {@echo, nil},
      {"Elixir." <> @echo, nil},
      {"Skillbook.Handlers.Tasks.Get", nil},
      {String.replace_suffix(@echo, "Echo", "Ehco"),
       {"does not exist", "did you mean `#{@echo}`?"}},
      {"Skilbook.Handlers.Tasks.Get",
       {"does not exist", "did you mean `Skillbook.Handlers.Tasks.Get`?"}},
      {"Other.Thing", {"does not exist", nothing}},
      {"not a module", {"does not exist", nothing}},
      {String.duplicate("A", 300), {"does not exist", nothing}},
      {inspect(NoHandler),
       {"is a module without execute/2", "name a module with the behaviour Skillbook.Handler"}}
    ]

    for {handler, expected} <- rows do
      write(root, %{"a/echo.md" => command_page("a.echo", handler)})
      {:ok, catalog} = Catalog.load([root])

      case found(Catalog.diagnostics(catalog)) do
        [] ->
          assert expected == nil, handler

        [found] ->
          {problem, hint} = expected
          assert found.message == "the handler `#{handler}` #{problem}"
          assert {found.code, found.severity, found.hint} == {:handler_missing, :error, hint}
          assert {found.path, found.line} == {Path.join(root, "a/echo.md"), 4}
      end

      assert found(Lint.run([root])) == found(Catalog.diagnostics(catalog))
      assert Catalog.errors(catalog) == found(Catalog.diagnostics(catalog))
    end
  end

  test "a model is not offered a broken command, and a call of it says why", %{tmp_dir: root} do
    write(root, %{
      "a/SKILL.md" => "---\ndomain: a\ndescription: Echoes\n---\n",
      "a/echo.md" => command_page("a.echo", @echo),
      "a/gone.md" => command_page("a.gone", "No.Such.Handler"),
      "b/gone.md" => command_page("b.gone", "No.Such.Handler")
    })

    {book, log} = with_log(fn -> book(sources: [root], builtins: false) end)
    assert log =~ "b/gone.md:4:1: error: the handler `No.Such.Handler` does not exist"
    view = Skillbook.view(book)

    {:ok, top} = Help.top_level(view)
    {:ok, domain} = Help.domain(view, "a")
    {:ok, all} = Help.domain_all(view, "a")
    tools = view |> Tools.definitions() |> inspect(limit: :infinity, printable_limit: :infinity)
    hits = for hit <- Skillbook.search(view, "echoes a text", limit: 9), do: hit.name

    texts = [
      Skillbook.prompt(view),
      Skillbook.prompt(view, format: :list),
      top,
      domain,
      all,
      tools
    ]

    for text <- [inspect(hits) | texts] do
      refute text =~ "gone"
    end

    assert "a.echo" in hits and Enum.all?([domain, all, tools], &(&1 =~ "echo"))

    report = Skillbook.run(view, "```cmd\na.gone\nb.gone --help\na.echo\n```")

    assert [%{error: %HandlerError{kind: :missing}}, %{status: :help}, %{content: "echo"}] =
             report.results

    assert hd(report.results).content ==
             "`a.gone` cannot run: its handler No.Such.Handler does not exist. " <>
               "You cannot fix this: tell the user, and go on without it."

    explanation = to_string(Skillbook.explain(book, "a.gone"))

    # An id or a profile is short for the option.
    for profile <- ["default", Skillbook.Profile.new!(id: "default")],
        do: assert(to_string(Skillbook.explain(book, "a.gone", profile)) == explanation)

    assert explanation =~ "in the prompt of `default`: nowhere: its handler does not exist\n"
    assert explanation =~ "error: the handler `No.Such.Handler` does not exist [handler_missing]"
  end

  test "a broken page that replaces a working one is an error", %{tmp_dir: root} do
    folders = for name <- ~w(one two three), do: Path.join(root, name)
    [one, two, three] = folders

    rows = [
      {[@echo, "No.Such"], [one: :shadowed, two: :handler_missing]},
      {[nil, "No.Such"], [one: :shadowed, two: :handler_missing]},
      {["No.Such", @echo], []},
      {["No.Such", "No.Such.Either"], [two: :handler_missing]},
      {[@echo, @echo], []},
      {[@echo, nil], []},
      {[@echo, @echo, "No.Such"], [two: :shadowed, three: :handler_missing]}
    ]

    for {handlers, expected} <- rows do
      used = Enum.take(folders, length(handlers))

      for {folder, handler} <- Enum.zip(used, handlers) do
        write(folder, %{"a/echo.md" => command_page("a.echo", handler)})
      end

      {:ok, catalog} = Catalog.load(used)

      errors =
        for %{severity: :error} = found <- Catalog.diagnostics(catalog) do
          [folder | _] = found.path |> Path.relative_to(root) |> Path.split()
          {String.to_existing_atom(folder), found.code}
        end

      assert Enum.sort(errors) == Enum.sort(expected), inspect(handlers)
      assert length(Catalog.errors(catalog)) == length(expected)
    end

    write(one, %{"a/echo.md" => command_page("a.echo", @echo)})
    write(two, %{"a/echo.md" => command_page("a.echo", "No.Such")})
    {:ok, catalog} = Catalog.load([one, two])
    [shadowed, missing] = Catalog.errors(catalog)

    assert shadowed.message ==
             "`a.echo` is replaced by #{two}/a/echo.md from the source `two`, " <>
               "whose handler does not exist"

    assert shadowed.hint == "correct the handler in #{two}/a/echo.md, or remove the page"

    assert missing.message ==
             "the handler `No.Such` does not exist, and the page replaces a working one, " <>
               "#{one}/a/echo.md"

    assert three not in Enum.map(catalog.sources, & &1.path)
  end

  test "a reload looks again", %{tmp_dir: root} do
    write(root, %{"a/echo.md" => command_page("a.echo", "Skillbook.HandlersTest.Late")})
    {:ok, catalog} = Catalog.load([root])
    prompt = fn -> Skillbook.prompt(View.all(catalog)) end
    assert prompt.() == ""

    {:module, module, _, _} =
      defmodule Elixir.Skillbook.HandlersTest.Late do
        def execute(_flags, _context), do: {:ok, ""}
      end

    # Nothing in the folder has changed, so only a full reload looks.
    assert Catalog.refresh(catalog, [root]).generation == 1
    assert {:ok, 2} = Catalog.reload(catalog)
    assert prompt.() =~ "a.echo"
    assert Catalog.errors(catalog) == []

    :code.purge(module)
    :code.delete(module)
    assert {:ok, 3} = Catalog.reload(catalog)
    assert prompt.() == ""
  end

  test "in bin/skillbook the code of other applications is unknown", %{tmp_dir: root} do
    on_exit(fn -> Application.delete_env(:skillbook, :standalone) end)
    Handlers.standalone()

    write(root, %{
      "a/echo.md" => command_page("a.echo", "MyUnknownApp.Echo"),
      "a/gone.md" => command_page("a.gone", "Skillbook.Handlers.Gone")
    })

    {:ok, catalog} = Catalog.load([root])
    assert [unchecked, missing] = found(Catalog.diagnostics(catalog))
    assert {unchecked.code, unchecked.severity} == {:handler_unchecked, :info}

    assert unchecked.message ==
             "the handler `MyUnknownApp.Echo` was not looked up: the code of its application " <>
               "is not loaded"

    assert unchecked.hint == "run `mix skillbook lint` in the application to check it"
    assert missing.code == :handler_missing
    assert Catalog.errors(catalog) == [missing]
    prompt = Skillbook.prompt(View.all(catalog))
    assert prompt =~ "a.echo" and not (prompt =~ "a.gone")
  end

  describe "the log" do
    defp errors(log), do: for(line <- String.split(log, "\n"), line =~ "[error]", do: line)

    test "has the errors at start, at most ten, and new ones after a reload", %{tmp_dir: root} do
      broken = fn range ->
        write(
          root,
          for(n <- range, into: %{}, do: {"a/n#{n}.md", command_page("a.n#{n}", "No.Such#{n}")})
        )
      end

      broken.(10..22)
      {book, log} = with_log(fn -> book(sources: [root], builtins: false, watch: false) end)
      lines = errors(log)
      assert length(lines) == 11

      assert hd(lines) =~
               "the book #{inspect(book)}: #{root}/a/n10.md:4:1: error: the handler " <>
                 "`No.Such10` does not exist [handler_missing]; name an existing module"

      assert List.last(lines) =~
               "the book #{inspect(book)}: 3 more errors; " <>
                 "Skillbook.diagnostics(#{inspect(book)}) returns all"

      assert capture_log(fn -> Skillbook.reload(book) end) == ""
      broken.(30..30)
      write(root, %{"bad.md" => "---\nname: [\n---\n"})
      log = capture_log(fn -> Skillbook.reload(book) end)
      assert [first, second] = errors(log)
      assert first =~ "n30.md" and second =~ "bad.md:" and second =~ "[frontmatter_invalid]"

      # A corrected page that breaks again is new again.
      write(root, %{"a/n30.md" => command_page("a.n30", @echo)})
      assert capture_log(fn -> Skillbook.reload(book) end) == ""
      broken.(30..30)
      assert [_] = errors(capture_log(fn -> Skillbook.reload(book) end))
    end

    test "is empty for a book without errors", %{tmp_dir: root} do
      write(root, %{"a/echo.md" => command_page("a.echo", @echo)})
      assert capture_log(fn -> book(sources: [root], store: ":memory:") end) == ""
    end
  end
end
