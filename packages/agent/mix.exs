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
      description: "Agents for Skillbook: models, the router, approvals, schedules and tests.",
      package: [
        files: ~w(lib priv/agent priv/hand_over mix.exs README.md),
        licenses: ["MIT"],
        links: %{"Documentation" => "https://hexdocs.pm/skillbook"}
      ]
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
      dep(:skillbook_http, "../http")
    ]
  end

  # In a checkout the folder of the other package, else its version on Hex. `mix hex.build` needs
  # SKILLBOOK_HEX=1.
  defp dep(name, path) do
    if System.get_env("SKILLBOOK_HEX") == nil and checkout?(),
      do: {name, path: path, env: Mix.env()},
      else: {name, "~> " <> @version}
  end

  defp checkout?, do: File.dir?(Path.expand("../../native/skillbook_core", __DIR__))

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
