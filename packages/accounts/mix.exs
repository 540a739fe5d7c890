defmodule Skillbook.Accounts.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_accounts,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      compilers: [:elixir, :skillbook_nif, :app],
      native: native(),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: "Accounts for Skillbook: mail, calendars, files and customers of a profile."
    ]
  end

  def application do
    [
      mod: {Skillbook.Part, [Skillbook.Connections.Part]},
      extra_applications: [:logger]
    ]
  end

  # The library in Rust, see `mix help compile.skillbook_nif`.
  defp native do
    [
      %{
        crate: "skillbook_connect",
        variable: "SKILLBOOK_CONNECT",
        setting: {:connections, true},
        programs: ["skillbook_text"],
        first_build: {180, 150}
      }
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      {:skillbook_http, path: "../http", env: Mix.env()},
      {:skillbook_vault, path: "../vault", env: Mix.env()},
      {:skillbook_agent, path: "../agent", env: Mix.env(), only: :test}
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
