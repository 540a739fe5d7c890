defmodule Skillbook.Installer.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_installer,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "Installs and publishes packages of skills for Skillbook."
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
      {:skillbook_http, path: "../http", env: Mix.env()},
      {:skillbook_agent, path: "../agent", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
