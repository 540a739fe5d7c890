defmodule SupportBot do
  @moduledoc """
  An assistant for the customers of several shops.

  Each shop is a tenant, with its own orders and tickets. The assistant looks up orders, opens
  tickets, and asks for refunds, which a person approves.
  """

  alias Skillbook.Model.OpenAI
  alias SupportBot.Tenants

  @system "You are the support assistant of a shop. Be short and friendly. Never invent an order."

  @doc "The options of the book. Those given replace them."
  def book(options \\ []) do
    defaults = [
      name: SupportBot.Skills,
      sources: [{:priv, :support_bot, "skills"}, {:modules, :support_bot}],
      builtins: ["memory"],
      store: "support.db",
      profiles: [[id: "nightly", skills: ["reports.*"]], {Tenants, :fetch}],
      roles: [[id: "customer", skills: ["orders.*", "tickets.*", "memory.*", "returns"]]],
      ask: fn _request -> :pending end,
      agent: [model: model(), protocol: :tools, system: @system],
      sections: [:memory, {"Shop", {Tenants, :describe}}]
    ]

    Keyword.merge(defaults, options)
  end

  defp model do
    key = {:env, "OPENAI_API_KEY"}
    OpenAI.new!(url: "https://api.openai.com/v1", model: "gpt-5", key: key)
  end

  @doc """
  Answers a message of a customer of a shop, `{shop, customer}`:
  `{:ok, %Skillbook.Agent.Result{}}`.

  `:text` is the answer, `:pending` has the refunds that wait, and `:transcript` goes on with the
  next message.
  """
  def answer(book, {shop, customer}, message, transcript \\ nil) do
    profile = Tenants.id(shop, customer)
    Skillbook.Agent.run(book, message, profile: profile, transcript: transcript)
  end
end
