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
      description: "Accounts for Skillbook: mail, calendars, files and customers of a profile.",
      package: [
        files: ~w(lib priv/connections mix.exs README.md),
        licenses: ["MIT"],
        links: %{"Documentation" => "https://hexdocs.pm/skillbook"}
      ]
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
        first_build: {180, 95}
      }
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      dep(:skillbook_http, "../http"),
      dep(:skillbook_vault, "../vault"),
      dep(:skillbook_agent, "../agent", only: :test)
    ]
  end

  # In a checkout the folder of the other package, else its version on Hex. `mix hex.build` needs
  # SKILLBOOK_HEX=1.
  defp dep(name, path, options \\ []) do
    if System.get_env("SKILLBOOK_HEX") == nil and checkout?(),
      do: {name, [path: path, env: Mix.env()] ++ options},
      else: {name, "~> " <> @version, options}
  end

  defp checkout?, do: File.dir?(Path.expand("../../native/skillbook_core", __DIR__))

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]
end
