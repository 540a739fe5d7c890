# Commands made of functions, without an application: mix run examples/functions.exs
alias Skillbook.{Catalog, Skill, View}

stock = %{"tea" => 12, "coffee" => 3}

count =
  Skill.new!(
    name: "stock.count",
    description: "Counts the packets of a product in stock",
    effects: :read,
    flags: [product: [type: :text, required: true, description: "The name of the product"]],
    run: fn %{"product" => product}, _context ->
      case stock do
        %{^product => count} ->
          {:ok, "#{count} packets of #{product}"}

        _ ->
          {:error, "there is no #{product}; the products are #{Enum.join(Map.keys(stock), ", ")}"}
      end
    end
  )

today =
  Skill.new!(
    name: "clock.today",
    description: "Returns today's date",
    effects: :read,
    run: fn _flags, context -> {:ok, Date.to_iso8601(DateTime.to_date(context.now))} end
  )

{:ok, catalog} = Catalog.load([count, today])
view = View.all(catalog)

# From a model, which has read Skillbook.prompt(view).
reply = """
Let me look.

```cmd
stock.count --product tea
stock.count --product milk
```
"""

report = Skillbook.run(view, reply, now: ~U[2026-11-27 08:00:00Z])
IO.puts(report.text)
IO.puts(report)
