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
      extra_applications: applications(Mix.env())
    ]
  end

  # The libraries in Rust, see `mix help compile.skillbook_nif`.
  defp native do
    [
      %{crate: "skillbook_nif", variable: "SKILLBOOK_NIF", first_build: {80, 100}},
      %{crate: "skillbook_sql", variable: "SKILLBOOK_SQL", first_build: {70, 80}}
    ]
  end

  # The servers of tests speak TLS.
  defp applications(:test), do: [:logger, :crypto, :public_key, :ssl]
  defp applications(_), do: [:logger, :crypto, :public_key]

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
