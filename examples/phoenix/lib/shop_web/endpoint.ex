defmodule ShopWeb.Endpoint do
  use Phoenix.Endpoint, otp_app: :shop

  @session [store: :cookie, key: "_shop", signing_salt: "a chat", same_site: "Lax"]

  socket "/live", Phoenix.LiveView.Socket, websocket: [connect_info: [session: @session]]

  # The scripts that the packages bring, so this needs no build of assets.
  plug Plug.Static, at: "/js", from: {:phoenix, "priv/static"}, only: ~w(phoenix.min.js)

  plug Plug.Static,
    at: "/js",
    from: {:phoenix_live_view, "priv/static"},
    only: ~w(phoenix_live_view.min.js)

  plug Plug.Parsers, parsers: [:urlencoded]
  plug Plug.Session, @session
  plug ShopWeb.Router
end

defmodule ShopWeb.Errors do
  @moduledoc false
  def render(template, _assigns), do: Phoenix.Controller.status_message_from_template(template)
end
