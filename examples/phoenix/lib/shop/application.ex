defmodule Shop.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    children = [
      {Phoenix.PubSub, name: Shop.PubSub},
      Shop.Orders,
      {Skillbook, Shop.Chats.book()},
      {Registry, keys: :unique, name: Shop.Registry},
      {DynamicSupervisor, name: Shop.ChatSupervisor, max_children: 1_000},
      ShopWeb.Endpoint
    ]

    Supervisor.start_link(children, strategy: :one_for_one, name: Shop.Supervisor)
  end

  @impl true
  def config_change(changed, _new, removed), do: ShopWeb.Endpoint.config_change(changed, removed)
end
