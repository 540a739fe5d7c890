defmodule Skillbook.Handlers.Notes.Add do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Flags, Result, Store}
  alias Skillbook.Handlers.Skills.Written

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["content", "expected-version" | Written.fields()]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["title"]),
         :ok <- Flags.require(flags, ~w(title content)),
         {:ok, flags} <- Flags.cast_text(flags, "content"),
         {:ok, flags} <- Flags.cast_integer(flags, "expected-version", min: 1),
         {:ok, flags} <- Written.cast_fields(flags),
         fields = Written.taken(flags, Written.fields() -- ["title"]),
         options = [fields: fields] ++ Written.options(context, flags),
         {:ok, how, stored} <- Store.put_note(context.view, flags["title"], flags["content"], options) do
      {:ok, result(how, stored, flags, context)}
    end
  end

  defp result(how, stored, flags, context) do
    data = Map.take(stored, [:name, :title, :version])

    case how do
      :added ->
        Result.ok("Added the note \"#{stored.title}\" (#{stored.name}).", data: data, effects: [:note_added])

      :updated ->
        text = "Updated \"#{stored.title}\" (#{stored.name}) to version #{stored.version}."

        Result.ok(text <> Written.lost(flags, stored.name, stored.version - 1, context),
          data: data,
          effects: [:note_updated]
        )

      :unchanged ->
        text =
          "Nothing changed, it is so already: \"#{stored.title}\" (#{stored.name}) is at version #{stored.version}."

        Result.ok(text, data: data)
    end
  end
end
