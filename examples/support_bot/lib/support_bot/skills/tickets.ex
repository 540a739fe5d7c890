defmodule SupportBot.Skills.OpenTicket do
  @moduledoc "Opens a ticket for the people of the shop, if nothing else helps the customer."

  use Skillbook.Skill,
    name: "tickets.open",
    description: "Opens a ticket for a person to answer",
    effects: :write,
    flags: [
      subject: [type: :text, required: true, description: "The question, in one line"],
      priority: [type: :one_of, values: [:low, :normal, :high], default: :normal]
    ]

  @impl true
  def execute(
        %{"subject" => subject, "priority" => priority},
        %{assigns: %{shop: shop}} = context
      ) do
    ticket = %{shop: shop.id, subject: subject, priority: priority, at: context.now}
    {:ok, "Opened ticket #{SupportBot.Shop.open_ticket(ticket)}."}
  end
end

defmodule SupportBot.Skills.ListTickets do
  @moduledoc "Lists the shop's tickets."

  use Skillbook.Skill,
    name: "tickets.list",
    description: "Lists the open tickets",
    effects: :read,
    flags: []

  @impl true
  def execute(_flags, %{assigns: %{shop: shop}}) do
    lines =
      for %{shop: id} = t <- SupportBot.Shop.tickets(),
          id == shop.id,
          do: "#{t.number}: #{t.subject}"

    {:ok, if(lines == [], do: "No tickets.", else: Enum.join(lines, "\n"))}
  end
end
