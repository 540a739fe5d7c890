defmodule MyApp.MixProject do
  use Mix.Project

  def project do
    [
      app: :my_app,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [
        {:skillbook, path: "../.."},
        {:quantum, "~> 3.5"}
      ]
    ]
  end

  def application, do: [mod: {MyApp.Application, []}, extra_applications: [:logger]]
end
