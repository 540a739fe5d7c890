defmodule Skillbook.Handlers.Markdown.Create do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Flags, Result, Vault}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.known(flags, ~w(title content folder tags labels vault)),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["title"]),
         :ok <- Flags.require(flags, ["title", "content"]),
         {:ok, flags} <- Flags.cast_text(flags, "title", line: true, max: 200),
         {:ok, flags} <- Written.cast_content(flags, "content"),
         {:ok, flags} <- Flags.cast_text(flags, "folder", line: true),
         {:ok, flags} <- Flags.cast_list(flags, "tags"),
         {:ok, flags} <- Flags.cast_list(flags, "labels"),
         {:ok, flags} <- Flags.cast_text(flags, "vault", line: true),
         {:ok, created} <- Vault.create(context.view, fields(flags)) do
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
