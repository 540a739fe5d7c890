defmodule Skillbook.Handlers.Memory.Save do
  @moduledoc false
  # `memory.save`: stores a memory of the caller's profile.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Memory.{Memory, Table}
  alias Skillbook.{Book, Context, Flags, Result}

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.cast_keyword(flags, "category"),
         {:ok, memory} <- Table.insert(sql, context.profile, memory(flags, context)) do
      Book.embed(context.book, :documents)
      {:ok, Result.ok("Saved #{Memory.text(memory)}", data: memory, effects: [:memory_saved])}
    end
  end

  defp memory(flags, context) do
    %Memory{
      content: String.trim(flags["content"]),
      category: flags["category"],
      tags: flags["tags"] || [],
      created_at: DateTime.truncate(context.now, :second)
    }
  end
end
