defmodule SupportBot.Skills.DailyReport do
  @moduledoc "Counts the tickets of each shop. It runs every evening."

  use Skillbook.Skill,
    name: "reports.daily",
    description: "Counts the tickets of all shops",
    effects: :read,
    flags: [],
    schedule: "0 18 * * *",
    run_as: "nightly"

  @impl true
  def execute(_flags, _context) do
    counts = Enum.frequencies_by(SupportBot.Shop.tickets(), & &1.shop)
    {:ok, Enum.map_join(Enum.sort(counts), ", ", fn {shop, count} -> "#{shop}: #{count}" end)}
  end
end
