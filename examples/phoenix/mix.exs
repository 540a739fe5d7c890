defmodule Shop.MixProject do
  use Mix.Project

  def project do
    [
      app: :shop,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [{:skillbook_agent, path: "../../packages/agent"} | deps()]
    ]
  end

  def application, do: [mod: {Shop.Application, []}, extra_applications: [:logger]]

  @hex [
    {:phoenix, "~> 1.7"},
    {:phoenix_live_view, "~> 1.0"},
    {:phoenix_html, "~> 4.0"},
    {:bandit, "~> 1.5"},
    {:jason, "~> 1.4"},
    # The application's own tests use it with LiveView 1.0.
    {:floki, "~> 0.36", only: :test}
  ]

  # Without a network: SHOP_DEPS is a folder with the sources of each of them, and of all that
  # they need, in a folder of its name.
  defp deps do
    case System.get_env("SHOP_DEPS") do
      nil ->
        @hex

      folder ->
        for path <- Path.wildcard(Path.join(Path.expand(folder), "*")),
            do: {path |> Path.basename() |> String.to_atom(), path: path, override: true}
    end
  end
end
