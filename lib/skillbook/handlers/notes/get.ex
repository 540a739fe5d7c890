defmodule Skillbook.Handlers.Notes.Get do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Flags
  alias Skillbook.Handlers.Skills.Shown

  @kinds [:note, :skill]

  @impl true
  def execute(flags, %{view: view} = context) do
    with {:ok, flags} <- Flags.known(flags, ["title"]),
         {:ok, %{"title" => title}} <- Shown.cast_name(flags, context.command.args, "title") do
      case Shown.fetch(view, title, @kinds) do
        {:ok, entry} -> {:ok, Shown.result(view, entry, Shown.title(entry))}
        :error -> Shown.not_found(view, "note", title, @kinds, &Shown.title/1)
      end
    end
  end
end
