defmodule Skillbook.Web.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_web,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "A page, an API and an HTTP server for Skillbook."
    ]
  end

  def application do
    [
      mod: {Skillbook.Part, [Skillbook.Web.Part]},
      extra_applications: [:logger]
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      {:skillbook_mcp, path: "../mcp", env: Mix.env()},
      {:skillbook_accounts, path: "../accounts", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
