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
        "Gives language-model assistants their skills: a catalog, a command language, execution."
    ]
  end

  def application do
    [
      mod: {Skillbook.Application, []},
      extra_applications: applications(Mix.env()),
      env: [skillbook_parts: parts()]
    ]
  end

  # The libraries in Rust, see `mix help compile.skillbook_nif`.
  defp native do
    [
      %{crate: "skillbook_nif", variable: "SKILLBOOK_NIF", first_build: {80, 80}},
      %{crate: "skillbook_sql", variable: "SKILLBOOK_SQL", first_build: {70, 70}},
      %{crate: "skillbook_http", variable: "SKILLBOOK_HTTP", first_build: {30, 40}},
      %{
        crate: "skillbook_embed",
        variable: "SKILLBOOK_EMBED",
        setting: {:embedder, :local},
        first_build: {90, 110}
      },
      %{
        crate: "skillbook_connect",
        variable: "SKILLBOOK_CONNECT",
        setting: {:connections, true},
        programs: ["skillbook_text"],
        first_build: {180, 150}
      }
    ]
  end

  # The parts of every book, in the order in which they read its options and start.
  defp parts do
    [
      Skillbook.Agent.Part,
      Skillbook.Scheduler.Part,
      Skillbook.Connections.Part,
      Skillbook.MCP.Part,
      Skillbook.Web.Part
    ]
  end

  # The servers of tests speak TLS.
  defp applications(:test), do: [:logger, :crypto, :public_key, :ssl]
  defp applications(_), do: [:logger, :crypto, :public_key]

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
