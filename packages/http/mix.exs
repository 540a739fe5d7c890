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
        "An HTTP client for Skillbook: requests, streams and adapters for Req and Finch."
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
      %{crate: "skillbook_http", variable: "SKILLBOOK_HTTP", first_build: {100, 70}}
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
