defmodule Skillbook.Handlers.Notes.List do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Skills

  @impl true
  def execute(flags, context), do: Skills.List.list(flags, context, :note)
end
