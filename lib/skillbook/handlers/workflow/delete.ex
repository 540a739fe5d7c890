defmodule Skillbook.Handlers.Workflow.Delete do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Workflow.{Folder, Named}
  alias Skillbook.{Context, Document, Profile, Result, Store, View, WorkflowError}

  @impl true
  def execute(%{"name" => name}, %Context{} = context) do
    with {:ok, root} <- Context.fetch_write_to(context),
         {:ok, entry} <- Named.fetch(context.view, name),
         {:ok, path} <- below(root, entry),
         :ok <- Store.check_own_labels(context.view, entry),
         :ok <- built(entry, context.profile),
         {:ok, kept} <- Document.discard(root, path, context.now),
         :ok <- Folder.publish(context) do
      {:ok,
       Result.ok(text(entry, kept) <> back(entry, context),
         data: %{name: entry.name, path: path, kept: Path.join(root, kept)},
         effects: [:skill_deleted],
         metadata: %{skill_name: entry.name}
       )}
    end
  end

  defp below(root, entry) do
    path = entry.path |> Path.expand() |> Path.relative_to(Path.expand(root))

    if Path.type(path) == :relative,
      do: {:ok, path},
      else: {:error, %WorkflowError{kind: :elsewhere, name: entry.name, text: from(entry)}}
  end

  defp from(%{source: "builtin"}), do: "it comes with Skillbook"
  defp from(%{source: source, path: path}), do: "it is from the source #{source}, in #{path}"

  # Other workflows may call it by its name, with rights that who takes the name over does not have.
  defp built(%{data: %{"author" => id}}, %{id: id}), do: :ok

  defp built(entry, profile) do
    if Profile.unrestricted?(profile),
      do: :ok,
      else: {:error, %WorkflowError{kind: :not_built, name: entry.name, text: ""}}
  end

  defp text(entry, kept) do
    "Deleted #{entry.name}. Its page is kept as #{kept} in the folder that workflows are written to; " <>
      "who moves it back has it again."
  end

  # What it stood in front of.
  defp back(_entry, %{book: nil}), do: ""

  defp back(entry, context) do
    case View.fetch(Skillbook.view(context.book, context.profile), entry.name) do
      {:ok, %{name: name, source: source}} ->
        " The name #{name} is that of a page of the source #{source} now."

      {:error, _} ->
        ""
    end
  end
end
