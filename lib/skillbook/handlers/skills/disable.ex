defmodule Skillbook.Handlers.Skills.Disable do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Result, Store}
  alias Skillbook.Handlers.Skills.{Enable, Written}

  @impl true
  def execute(flags, context) do
    with {:ok, stored} <- Enable.switch(flags, context, &Store.disable/3) do
      text =
        "Disabled #{stored.name}: nobody finds it but `skills.read` and `skills.list --include-disabled`. " <>
          "`skills.enable #{stored.name}` undoes it."

      data = Map.take(stored, [:name, :enabled])
      {:ok, Result.ok(text <> Written.back(context, stored), data: data, effects: [:skill_disabled])}
    end
  end
end
