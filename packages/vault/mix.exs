defmodule Skillbook.Vault.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_vault,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description:
        "Vaults of notes for Skillbook: a full-text index, and commands that read and write."
    ]
  end

  def application do
    [
      mod: {Skillbook.Part, [Skillbook.Vault.Part]},
      extra_applications: [:logger]
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      {:skillbook, path: "../..", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
