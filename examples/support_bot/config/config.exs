import Config

config :support_bot, start: config_env() != :test
