defmodule Skillbook.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      # The NIF's compiler is a module of this project, so it runs after Elixir's compiler.
      compilers: [:elixir, :skillbook_nif, :app],
      native: native(),
      start_permanent: Mix.env() == :prod,
      deps: [],
      description:
        "Gives language-model assistants their skills: a catalog, a command language, execution.",
      package: package(),
      name: "Skillbook",
      docs: docs()
    ]
  end

  def application do
    [
      mod: {Skillbook.Application, []},
      extra_applications: applications(Mix.env())
    ]
  end

  # All that the library needs where it is compiled: the crates of all packages, which those build
  # from here, the pages, one of which the crates read, and the digests of prebuilt libraries, if
  # `bin/prebuild` has made some.
  defp package do
    [
      files:
        ~w(lib priv/skills priv/assistant mix.exs .formatter.exs Cargo.toml Cargo.lock) ++
          ~w(native/*/src native/*/Cargo.toml native/*/build.rs native/*/clippy.toml) ++
          ~w(native/skillbook_cli/help docs/*.md README.md CHANGELOG.md ARCHITECTURE.md LICENSE) ++
          Path.wildcard("native/prebuilt.sha256"),
      licenses: ["MIT"],
      links: %{
        "Documentation" => "https://hexdocs.pm/skillbook",
        "Changelog" => "https://hexdocs.pm/skillbook/changelog.html"
      }
    ]
  end

  @guides ~w(first-assistant authoring skills finding tenants approvals ci production scaling mcp) ++
            ~w(connections agent-skills peers figures)

  @reference [
    Pages: ~w(frontmatter flags workflows handlers sources repairs diagnostics),
    Conversations:
      ~w(commands prompt agent conversations durable-runs hand-overs hooks models routing tools
         chat testing),
    Books:
      ~w(installation profiles running store ecto schedules oban telemetry usage embeddings) ++
        ["vaults"],
    Programs: ~w(command-line web page packages mcp-reference),
    Accounts: ~w(mail calendar drive microsoft hubspot connections-reference)
  ]

  # For ExDoc, of the library and all packages: the order of pages is that of the README.
  defp docs do
    page = &"docs/#{&1}.md"

    [
      main: "readme",
      extras:
        ["README.md"] ++
          Enum.map(@guides ++ Enum.concat(Keyword.values(@reference)), page) ++
          ["ARCHITECTURE.md", "docs/development.md", "CHANGELOG.md", "LICENSE"],
      # As the README and the pages name them.
      assets: %{"docs/images" => "images", "./docs/images" => "docs/images"},
      # They name files beside the pages, and modules that are not for users.
      skip_undefined_reference_warnings_on: ~w(README.md ARCHITECTURE.md docs/development.md),
      groups_for_extras:
        [Guides: Enum.map(@guides, page)] ++
          for({group, pages} <- @reference, do: {group, Enum.map(pages, page)}),
      groups_for_modules: [
        Books: ~r/^Skillbook(\.(Profile|Source|Store|Usage|Workflow|Schedule|Context|Handler))?$/,
        Skills:
          ~r/^Skillbook\.(Catalog|View|Entry|Skill|Document|Frontmatter|Flags|Lint|Diag\w+)$/,
        Commands: ~r/^Skillbook\.(Command|Extractor|Router|Executor|Report|Result|Request|Help)$/,
        Agents: ~r/^Skillbook\.(Agent|Transcript|Preflight|Tools|Grammar|Scheduler|Oban)(\.|$)/,
        Models: ~r/^Skillbook\.(Model|Embedder)(\.|$)/,
        Databases: ~r/^Skillbook\.(SQL|Vault)/,
        Accounts: ~r/^Skillbook\.(Mail|Calendar|Drive|Connections?)(\.|$)/,
        Web: ~r/^Skillbook\.(Web|HTTP|MCP)/,
        Packages: ~r/^Skillbook\.Package/,
        Tests: ~r/^Skillbook\.Test/,
        Errors: ~r/Error$/,
        Values: ~r/^Skillbook\./
      ]
    ]
  end

  # The libraries in Rust, see `mix help compile.skillbook_nif`.
  defp native do
    [
      %{crate: "skillbook_nif", variable: "SKILLBOOK_NIF", first_build: {75, 75}},
      %{crate: "skillbook_sql", variable: "SKILLBOOK_SQL", first_build: {20, 25}},
      %{crate: "skillbook_postgres", variable: "SKILLBOOK_PG", alone: true, first_build: {95, 45}}
    ]
  end

  # The servers of tests speak TLS.
  defp applications(:test), do: [:logger, :crypto, :public_key, :ssl]
  defp applications(_), do: [:logger, :crypto, :public_key]

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
