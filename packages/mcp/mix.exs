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
      description: "MCP for Skillbook: a server, and servers as sources of skills."
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
      {:skillbook_agent, path: "../agent", env: Mix.env()},
      {:skillbook_installer, path: "../installer", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
