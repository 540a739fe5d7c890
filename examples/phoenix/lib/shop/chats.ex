defmodule Shop.Chats do
  @moduledoc "The conversations of customers, each a process that starts when it is needed."

  alias Skillbook.Conversation

  @system "You are the assistant of a shop. Be short and friendly. Never invent an order."

  @doc "The options of the book."
  def book do
    [
      name: Shop.Skills,
      sources: [{:priv, :shop, "skills"}, {:modules, :shop}],
      store: Application.fetch_env!(:shop, :store),
      # Conversations go on after a restart of the node.
      durable: true,
      profiles: [[id: "customer", skills: ["orders.*", "returns"]]],
      ask: fn _request -> :pending end,
      agent: [model: Shop.Model.new(), protocol: :tools, system: @system]
    ]
  end

  @doc "Subscribes to the conversation with this id, starts it if needed, and returns its name."
  def open(id) do
    name = {:via, Registry, {Shop.Registry, id}}
    child = {Conversation, book: Shop.Skills, id: id, name: name, profile: "customer"}

    case DynamicSupervisor.start_child(Shop.ChatSupervisor, child) do
      {:ok, _pid} -> :ok
      {:error, {:already_started, _pid}} -> :ok
    end

    :ok = Conversation.subscribe(name)
    name
  end
end
