defmodule SupportBot.MixProject do
  use Mix.Project

  def project do
    [
      app: :support_bot,
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      # Agents come with the library beneath them.
      deps: [{:skillbook_agent, path: "../../packages/agent"}]
    ]
  end

  def application, do: [mod: {SupportBot.Application, []}, extra_applications: [:logger]]
end
