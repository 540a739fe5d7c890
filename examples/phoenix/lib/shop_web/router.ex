defmodule ShopWeb.Router do
  use Phoenix.Router
  import Phoenix.LiveView.Router
  import Plug.Conn

  pipeline :browser do
    plug :accepts, ["html"]
    plug :fetch_session
    plug :protect_from_forgery
    plug :put_secure_browser_headers
    plug :put_root_layout, html: {ShopWeb.Layouts, :root}
    plug :put_chat
  end

  scope "/" do
    pipe_through :browser
    live "/", ShopWeb.ChatLive
  end

  # Each browser has a conversation, in its signed session. With users, it is that of the user.
  defp put_chat(conn, _options) do
    if get_session(conn, "chat"),
      do: conn,
      else: put_session(conn, "chat", Base.url_encode64(:crypto.strong_rand_bytes(16)))
  end
end
