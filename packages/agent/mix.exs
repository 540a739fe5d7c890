defmodule Skillbook.Agent.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_agent,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "Agents for Skillbook: models, the router, approvals, schedules and tests."
    ]
  end

  def application do
    [
      mod: {Skillbook.Part, [Skillbook.Agent.Part, Skillbook.Scheduler.Part]},
      extra_applications: [:logger]
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      {:skillbook_http, path: "../http", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
