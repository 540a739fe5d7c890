defmodule Skillbook.Ecto.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_ecto,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "Keeps a book of Skillbook in the database of an Ecto repo."
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
      {:skillbook, path: "../..", env: Mix.env()}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
