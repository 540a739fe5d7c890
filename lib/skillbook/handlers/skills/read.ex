defmodule Skillbook.Handlers.Skills.Read do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Entry, Flags, Result, Store, StoreError, View}
  alias Skillbook.Handlers.Skills.{Shown, Written}

  @impl true
  def execute(flags, context) do
    with {:ok, _sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.known(flags, ["name", "version"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["name"]),
         :ok <- Flags.require(flags, ["name"]),
         {:ok, flags} <- Flags.cast_text(flags, "name", line: true),
         {:ok, flags} <- Flags.cast_integer(flags, "version", min: 1) do
      read(context.view, flags["name"], flags["version"])
    end
  end

  defp read(view, name, nil) do
    case Store.fetch(view, name) do
      {:ok, stored} -> {:ok, result(view, stored)}
      {:error, %StoreError{kind: :is_file} = error} -> file(view, name, error)
      {:error, error} -> {:error, error}
    end
  end

  defp read(view, name, number) do
    with {:ok, version} <- Store.version(view, name, number), do: {:ok, result(view, version.entry)}
  end

  # Whoever asks for a skill wants its text, wherever it is kept.
  defp file(view, name, error) do
    case Shown.fetch(view, name, [:skill, :note]) do
      {:ok, entry} ->
        data = %{
          name: entry.name,
          title: Shown.title(entry),
          description: entry.description,
          content: String.trim(entry.body),
          tags: entry.tags,
          source: :file,
          version: nil
        }

        facts = [{"source", "a file, which commands do not change"}]
        {:ok, Result.ok(text(data, facts), data: data, metadata: %{activates: [Entry.activation(entry)]})}

      :error ->
        {:error, error}
    end
  end

  defp result(view, stored) do
    facts = [
      {"labels", if(stored.labels != [], do: Enum.join(stored.labels, ", "))},
      {"in the prompt", if(not stored.include_in_prompt, do: "no")},
      {"always in the prompt of", if(stored.proactive_for != [], do: Enum.join(stored.proactive_for, ", "))},
      {"never for", if(stored.excluded_for != [], do: Enum.join(stored.excluded_for, ", "))},
      {"attachments", if(stored.attachments != [], do: Enum.join(stored.attachments, ", "))},
      {"schedule", stored.schedule},
      {"timezone", stored.timezone},
      {"runs", Written.runs(stored)},
      {"source", stored.source},
      {"version",
       "#{stored.version}, written for #{inspect(stored.author)} at #{DateTime.to_iso8601(stored.updated_at)}"},
      {"enabled", if(not stored.enabled, do: "no")}
    ]

    data =
      stored
      |> Map.take([:name, :title, :description, :content, :tags, :source, :version])
      |> Map.merge(Written.timed(stored))

    Result.ok(text(data, facts), data: data, metadata: activates(view, stored))
  end

  defp text(data, facts) do
    tags = if data.tags != [], do: Enum.join(data.tags, ", ")
    facts = [{"description", if(data.description != "", do: data.description)}, {"tags", tags} | facts]
    # Each on one line, so that no text passes for another fact.
    lines = for {name, fact} <- facts, fact, do: "#{name}: #{Written.show(fact)}"
    Enum.join(["#{data.name}: #{data.title}" | lines] ++ ["", data.content], "\n")
  end

  # What is disabled or of another version is no entry's text.
  defp activates(view, stored) do
    with {:ok, %Entry{source: "store"} = entry} <- View.fetch(view, stored.name),
         true <- stored.content |> String.trim() |> String.ends_with?(String.trim(entry.body)) do
      %{activates: [Entry.activation(entry)]}
    else
      _ -> %{}
    end
  end
end
