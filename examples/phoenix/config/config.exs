import Config

config :phoenix, json_library: Jason

config :shop, ShopWeb.Endpoint,
  adapter: Bandit.PhoenixAdapter,
  http: [ip: {127, 0, 0, 1}, port: 4000],
  server: config_env() == :dev,
  pubsub_server: Shop.PubSub,
  render_errors: [formats: [html: ShopWeb.Errors], layout: false],
  live_view: [signing_salt: "chat-in-a-shop"],
  # For development. An application reads it from its environment in config/runtime.exs.
  secret_key_base: String.duplicate("a secret of development ", 3)

# The database of the book, and milliseconds between two words of the model that plays a script.
config :shop, store: "shop.db", pace: 80

if config_env() == :test do
  config :shop, store: ":memory:", pace: 0
  config :logger, level: :warning
end
