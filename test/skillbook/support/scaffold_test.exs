defmodule Skillbook.Support.ScaffoldTest do
  # The Mix tasks that make files for an application, run in a new one.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.Scaffold
  alias Skillbook.{Catalog, Lint}

  doctest Scaffold

  @moduletag :tmp_dir

  describe "put/2" do
    for {title, before, result} <- [
          {"an empty list on lines of its own", "children = [\n]\n", "children = [\n  NEW\n]\n"},
          {"a list with comments",
           "    children = [\n      # A worker:\n      # {Worker, 1}\n    ]\n",
           "    children = [\n      # A worker:\n      # {Worker, 1}\n      NEW\n    ]\n"},
          {"a last child with a comma", "children = [\n  A,\n]", "children = [\n  A,\n  NEW\n]"},
          {"a comment behind the last child", "children = [\n  A\n  # B\n]",
           "children = [\n  A,\n  # B\n  NEW\n]"},
          {"one line", "children = [A, {B, 1}]", "children = [A, {B, 1}, NEW]"},
          {"an endpoint", "children = [\n  A,\n  MyWeb.Endpoint\n]",
           "children = [\n  A,\n  NEW,\n  MyWeb.Endpoint\n]"},
          {"an endpoint with a comment", "children = [\n  A,\n  # The last\n  MyWeb.Endpoint\n]",
           "children = [\n  A,\n  NEW,\n  # The last\n  MyWeb.Endpoint\n]"},
          {"an endpoint on one line", "children = [A, MyWeb.Endpoint]",
           "children = [A, NEW, MyWeb.Endpoint]"},
          {"an endpoint with options", "children = [\n  {MyWeb.Endpoint, []},\n  B\n]",
           "children = [\n  NEW,\n  {MyWeb.Endpoint, []},\n  B\n]"},
          {"the first of two lists", "children = [A]\nchildren = [B]\n",
           "children = [A, NEW]\nchildren = [B]\n"},
          {"brackets in texts", ~s(x = "children = []"\nchildren = ["]"]\n),
           ~s(x = "children = []"\nchildren = ["]", NEW]\n)}
        ] do
      test title do
        assert Scaffold.put(unquote(before), "NEW") == {:ok, unquote(result)}
      end
    end

    test "refuses a source without a list of children" do
      for text <- ["children = workers()", "kids = []", "children = [", ""],
          do: assert({text, Scaffold.put(text, "NEW")} == {text, :error})
    end
  end

  test "a page has no mistakes, whatever its description", %{tmp_dir: folder} do
    for {description, n} <-
          Enum.with_index(["Plain", ~s(When a customer: "gets" #1), "- é\t{x}", "yes", "1"]) do
      {path, text} = Scaffold.skill("page-#{n}", description)
      write(folder, %{Path.relative_to(path, "priv/skills") => text})
    end

    assert Enum.reject(Lint.run([folder], []), &(&1.severity == :info)) == []
    {:ok, catalog} = Catalog.load([folder])
    entries = Skillbook.View.entries(Skillbook.View.all(catalog))
    assert Enum.at(entries, 1).description == ~s(When a customer: "gets" #1)
  end

  # The part of Igniter that the installer calls; it prints what it is to do.
  @igniter """
  defmodule Rewrite.Source do
    defstruct [:content]
    def get(source, :content), do: source.content
    def update(source, :content, text), do: %{source | content: text}
  end

  defmodule Igniter do
    def exists?(_igniter, path), do: File.exists?(path)
    def create_new_file(igniter, path, _text), do: print(igniter, "creates " <> path)
    def add_notice(igniter, text), do: print(igniter, text)

    def update_file(igniter, path, fun),
      do: print(igniter, fun.(%Rewrite.Source{content: File.read!(path)}).content)

    defp print(igniter, text) do
      IO.puts(text)
      igniter
    end
  end

  defmodule Igniter.Mix.Task.Args do
    defstruct [:options, :argv, :argv_flags]
  end

  alias Mix.Tasks.Skillbook.Install
  args = Install.parse_argv(~w(--yes --skillbook.install.name MyApp.Assistant))
  Install.igniter(%{args: args})
  """

  test "an application is set up, twice, and its tests run", %{tmp_dir: folder} do
    assert {_, 0} = System.cmd("mix", ~w(new my_app --sup), cd: folder)
    app = Path.join(folder, "my_app")
    mixfile = Path.join(app, "mix.exs")

    File.write!(
      mixfile,
      String.replace(File.read!(mixfile), "[:logger]", "[:logger, :skillbook]")
    )

    # As Igniter would do it, of which nothing is written yet.
    planned = mix(app, ["run", "--no-start", "-e", @igniter])
    assert planned =~ "creates priv/skills/house-style/SKILL.md\n"
    assert planned =~ ~r/\{Skillbook,\s+name: MyApp\.Assistant, sources: /

    first = mix(app, ["skillbook.install"])
    assert first =~ "* creating priv/skills/house-style/SKILL.md"
    assert first =~ "* editing lib/my_app/application.ex"

    again = mix(app, ["skillbook.install"])
    assert length(String.split(again, "* unchanged")) == 5
    refute again =~ "creating"

    mix(app, ["skillbook.gen.skill", "refund-rules", "When a customer gets money back"])
    mix(app, ["skillbook.gen.workflow", "reports.morning", "Greets everybody"])
    mix(app, ["skillbook.gen.handler", "orders.find", "Finds the order of a number"])

    assert mix(app, ["test"]) =~ "1 doctest, 4 tests, 0 failures"
    mix(app, ["format", "--check-formatted"])

    for {arguments, text} <- [
          {["skillbook.gen.handler", "orders.find", "Finds"],
           "lib/my_app/skills/orders/find.ex exists already; choose another name, or remove it"},
          {["skillbook.gen.handler", "orders.find-late", "Finds"],
           "expected a name of a domain, a dot and a verb, such as orders.find, got: " <>
             "orders.find-late"},
          {["skillbook.gen.skill", "Refund Rules", "x"],
           "expected a name of lowercase letters, digits and hyphens, such as tea-rules, " <>
             "got: Refund Rules"},
          {["skillbook.gen.workflow", "reports.morning"],
           "skillbook.gen.workflow expects a name and a description in quotes, got: " <>
             "reports.morning"},
          {["skillbook.install", "now"], "skillbook.install expects no arguments, got: now"},
          {["skillbook.install", "--name", "my_book"],
           "expected a module as --name, such as MyApp.Assistant, got: my_book"},
          {["skillbook.install", "--nme", "X"], "skillbook.install has no option --nme"}
        ] do
      assert mix(app, arguments, 1) =~ text
    end
  end

  test "the modules begin as those of the application do", %{tmp_dir: folder} do
    assert {_, 0} = System.cmd("mix", ~w(new my_api --sup --module MyAPI.Core), cd: folder)
    app = Path.join(folder, "my_api")

    first = mix(app, ["skillbook.install"])
    assert first =~ "* editing lib/my_api/core/application.ex"
    assert first =~ "Skillbook.view(MyAPI.Core.Skills)"

    assert File.read!(Path.join(app, "lib/my_api/core/skills/greetings/hello.ex")) =~
             "defmodule MyAPI.Core.Skills.Greetings.Hello do"

    assert File.read!(Path.join(app, "test/my_api/core/skills_test.exs")) =~
             "defmodule MyAPI.Core.SkillsTest do"

    # The book that is there has the name that it was given.
    again = mix(app, ["skillbook.install", "--name", "MyAPI.Helper"])
    assert length(String.split(again, "* unchanged")) == 5
    assert again =~ "Skillbook.view(MyAPI.Core.Skills)"
  end

  # The library is on the code path, as it is for a dependency.
  defp mix(app, arguments, status \\ 0) do
    paths = for path <- :code.get_path(), path = to_string(path), path =~ "skillbook", do: path
    options = Enum.flat_map(paths, &["-pa", &1])
    env = [{"MIX_ENV", "test"}, {"MIX_BUILD_PATH", nil}, {"ELIXIR_ERL_OPTIONS", "+fnu"}]

    {output, exited} =
      System.cmd("elixir", options ++ ["-S", "mix" | arguments],
        cd: app,
        env: env,
        stderr_to_stdout: true
      )

    assert {exited, output} == {status, output}
    output
  end
end
