defmodule Skillbook.CLI.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_cli,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "The command line of Skillbook."
    ]
  end

  def application do
    [
      extra_applications: [:logger]
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      {:skillbook_web, path: "../web", env: Mix.env()},
      {:skillbook_embedder, path: "../embedder", env: Mix.env()},
      {:skillbook_ecto, path: "../ecto", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
