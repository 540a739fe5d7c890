defmodule Skillbook.Shop do
  @moduledoc false
  # The handlers of test/support/fixtures/shop, a small application for tests.

  defmodule Find do
    @moduledoc false
    @behaviour Skillbook.Handler
    @impl true
    def execute(%{"id" => 7}, _context), do: {:ok, "Order 7: 2 lamps, 40 EUR, paid"}
    def execute(%{"id" => id}, _context), do: {:error, "there is no order #{id}"}
  end

  defmodule Refund do
    @moduledoc false
    @behaviour Skillbook.Handler
    @impl true
    def execute(%{"id" => id}, context),
      do: {:ok, "Refunded order #{id} for #{context.assigns[:user] || "nobody"}."}
  end

  defmodule Report do
    @moduledoc false
    @behaviour Skillbook.Handler
    @impl true
    def execute(_flags, context), do: {:ok, "Orders of #{DateTime.to_date(context.now)}"}
  end
end
