defmodule Skillbook.Handlers.Notes.Delete do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Skills

  @impl true
  def execute(flags, context), do: Skills.Delete.delete(flags, context, "title")
end
