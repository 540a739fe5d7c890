defmodule Skillbook.HTTP.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :skillbook_http,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      build_path: "../../_build",
      compilers: [:elixir, :skillbook_nif, :app],
      native: native(),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description:
        "An HTTP client for Skillbook: requests, streams and adapters for Req and Finch.",
      package: [
        files: ~w(lib mix.exs README.md),
        licenses: ["MIT"],
        links: %{"Documentation" => "https://hexdocs.pm/skillbook"}
      ]
    ]
  end

  def application do
    [
      extra_applications: [:logger]
    ]
  end

  # The library in Rust, see `mix help compile.skillbook_nif`.
  defp native do
    [
      %{crate: "skillbook_http", variable: "SKILLBOOK_HTTP", first_build: {100, 50}}
    ]
  end

  # In tests they come with what their own tests use.
  defp deps do
    [
      dep(:skillbook, "../..")
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
