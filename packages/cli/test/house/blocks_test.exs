defmodule Skillbook.House.BlocksTest do
  # The code blocks of the README, of docs/ and of the packages' pages run as they stand.
  use ExUnit.Case, async: false

  alias Skillbook.Test.{Blocks, Checkout}

  @pages Checkout.wildcard(["README.md", "docs/*.md", "packages/*/README.md"])

  # Each block that cannot run, by its reason. A new one fails the test below, so that somebody
  # looks at it: most can run after a `setup`.
  @not_run %{
    "README.md" => %{"waits for a person, or serves until it is stopped" => 1},
    "docs/agent.md" => %{
      "a person answers it" => 1,
      "needs a model for the agent" => 1,
      "needs an account of Anthropic" => 1,
      "needs servers of models" => 1
    },
    "docs/authoring.md" => %{"serves until it is stopped" => 1},
    "docs/calendar.md" => %{"needs an account with a calendar" => 1},
    "docs/chat.md" => %{"needs React" => 1},
    "docs/command-line.md" => %{
      "builds a program" => 1,
      "needs an application" => 1,
      "writes into the home of the user" => 1
    },
    "docs/connections.md" => %{"needs Phoenix" => 1, "needs an account of Google" => 3},
    "docs/development.md" => %{
      "installs Sphinx" => 1,
      "needs cargo-fuzz" => 1,
      "runs a bench" => 1,
      "runs a test" => 1,
      "runs all tests" => 1
    },
    "docs/drive.md" => %{"needs an account of Google" => 1},
    "docs/ecto.md" => %{"needs Ecto" => 4},
    "docs/embeddings.md" => %{"compiles an application" => 1, "needs a model" => 1},
    "docs/installation.md" => %{
      "needs a container engine" => 1,
      "compiles an application" => 2,
      "needs PostgreSQL" => 1,
      "needs a server of a model" => 1,
      "needs an application without the package" => 1,
      "the library is built in tests" => 1
    },
    "docs/mail.md" => %{"needs an account of Google" => 1, "needs an account with mail" => 1},
    "docs/mcp.md" => %{"needs Claude Code" => 1, "needs a server of MCP" => 4},
    "docs/microsoft.md" => %{"needs an account of Microsoft" => 1},
    "docs/models.md" => %{"needs an account of Anthropic" => 2},
    "docs/oban.md" => %{"needs Oban" => 4},
    "docs/packages.md" => %{
      "needs a website with skills" => 3,
      "needs skills on the internet" => 1,
      "serves until it is stopped" => 1
    },
    "docs/page.md" => %{"addresses" => 1},
    "docs/production.md" => %{"is for systemd" => 1},
    "docs/schedules.md" => %{"needs Quantum" => 1, "runs until it is stopped" => 1},
    "docs/skills.md" => %{"a picture of folders" => 1},
    "docs/telemetry.md" => %{
      "a line of a log" => 1,
      "needs :telemetry" => 1,
      "needs OpenTelemetry" => 1
    },
    "docs/testing.md" => %{
      "needs a server of a model" => 2,
      "records a model of the application" => 1
    },
    "docs/usage.md" => %{"an example of four weeks" => 1},
    "docs/vaults.md" => %{
      "a list of words, which query_test.exs compares" => 1,
      "needs a server of a model" => 1
    },
    "docs/web.md" => %{
      "needs Phoenix" => 1,
      "nginx_test.exs runs it" => 1,
      "prints a random token" => 1,
      "serves until it is stopped" => 3,
      "snippets_test.exs runs it" => 2
    }
  }

  # The current folder, the environment and the code path are the page's.
  setup context do
    if folder = context[:tmp_dir], do: enter(folder)
    :ok
  end

  for page <- @pages do
    @tag :tmp_dir
    @tag page: page
    test "#{page} runs as it stands", %{page: page} do
      supervisor = start_supervised!(supervisor())
      faults = Blocks.run(page, Blocks.read!(page), supervisor)
      assert faults == [], Enum.join(faults, "\n\n")
    end
  end

  test "a block that does not run has a reason that is known" do
    found =
      for page <- @pages, reasons = Blocks.not_run(Blocks.read!(page)), reasons != %{} do
        {page, reasons}
      end

    assert Map.new(found) == @not_run
  end

  test "three of four blocks run" do
    {run, all} =
      @pages
      |> Enum.map(&(&1 |> Blocks.read!() |> Blocks.count()))
      |> Enum.reduce(fn {run, all}, {runs, alls} -> {run + runs, all + alls} end)

    assert run >= 0.74 * all, "#{run} of #{all}"
  end

  test "each package has a page with an example that runs" do
    packages = Checkout.wildcard("packages/*/mix.exs")

    for package <- packages,
        page = Path.join(Path.dirname(package), "README.md"),
        do: assert({page, Checkout.read!(page) =~ "iex> "} == {page, true})
  end

  defp supervisor do
    start = {Supervisor, :start_link, [[], [strategy: :one_for_one]]}
    %{id: :page, type: :supervisor, start: start}
  end

  defp enter(folder) do
    here = File.cwd!()
    kept = System.get_env()
    System.put_env("HOME", folder)
    File.cd!(folder)

    on_exit(fn ->
      File.cd!(here)
      for {name, _} <- System.get_env(), not is_map_key(kept, name), do: System.delete_env(name)
      System.put_env(kept)
      Code.delete_path(Path.join(folder, "my_app/ebin"))
      Application.unload(:my_app)

      for {module, _} <- :code.all_loaded(),
          String.starts_with?(Atom.to_string(module), "Elixir.MyApp"),
          do: :code.delete(module) && :code.purge(module)
    end)
  end
end
