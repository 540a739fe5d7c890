defmodule Skillbook.MCP.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_mcp,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "MCP for Skillbook: a server, and servers as sources of skills.",
      package: [
        files: ~w(lib mix.exs README.md),
        licenses: ["MIT"],
        links: %{"Documentation" => "https://hexdocs.pm/skillbook"}
      ]
    ]
  end

  def application do
    [
      mod: {Skillbook.Part, [Skillbook.MCP.Part]},
      extra_applications: [:logger]
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      dep(:skillbook_agent, "../agent"),
      dep(:skillbook_installer, "../installer"),
      dep(:skillbook_accounts, "../accounts", only: :test)
    ]
  end

  # In a checkout the folder of the other package, else its version on Hex. `mix hex.build` needs
  # SKILLBOOK_HEX=1.
  defp dep(name, path, options \\ []) do
    if System.get_env("SKILLBOOK_HEX") == nil and checkout?(),
      do: {name, [path: path, env: Mix.env()] ++ options},
      else: {name, "~> " <> @version, options}
  end

  defp checkout?, do: File.dir?(Path.expand("../../native/skillbook_core", __DIR__))

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
