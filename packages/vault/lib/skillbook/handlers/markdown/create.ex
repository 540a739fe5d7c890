defmodule Skillbook.Handlers.Markdown.Create do
  @moduledoc false
  # `markdown.create`: creates a note in a vault.

  @behaviour Skillbook.Handler

  alias Skillbook.{Result, Vault}

  @impl true
  def execute(flags, context) do
    with {:ok, created} <- Vault.create(context.view, fields(flags)) do
      text = "Created #{created.path} in the vault #{created.vault}."
      {:ok, Result.ok(text, data: created, effects: [:note_created])}
    end
  end

  defp fields(flags) do
    for name <- [:title, :content, :folder, :tags, :labels, :vault],
        value = flags[to_string(name)],
        into: %{},
        do: {name, value}
  end
end
