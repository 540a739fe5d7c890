defmodule Skillbook.Handlers.Workflow.Delete do
  @moduledoc false
  # `workflow.delete`: moves a page that the profile built to the trash of the workflow folder.

  @behaviour Skillbook.Handler

  alias Skillbook.Workflow.Pages
  alias Skillbook.{Context, Document, Profile, Result, Store, View, WorkflowError}

  @impl true
  def execute(%{"name" => name}, %Context{} = context) do
    with {:ok, root} <- Context.fetch_write_to(context),
         {:ok, entry} <- Pages.fetch(context.view, name),
         {:ok, path} <- path_below(root, entry),
         :ok <- Store.check_owned(context.view, entry),
         :ok <- check_author(entry, context.profile),
         {:ok, trashed} <- Document.discard(root, path, context.now),
         :ok <- Pages.reload(context) do
      text =
        "Deleted #{entry.name}. Its page was moved to the trash in the folder for workflows; " <>
          "moving it back restores it."

      {:ok,
       Result.ok(text <> uncovered(entry, context),
         data: %{name: entry.name, path: path, kept: Path.join(root, trashed)},
         effects: [:skill_deleted],
         metadata: %{skill_name: entry.name}
       )}
    end
  end

  defp path_below(root, entry) do
    path = entry.path |> Path.expand() |> Path.relative_to(Path.expand(root))

    if Path.type(path) == :relative,
      do: {:ok, path},
      else: {:error, %WorkflowError{kind: :elsewhere, name: entry.name, text: origin(entry)}}
  end

  defp origin(%{source: "builtin"}), do: "it comes with Skillbook"
  defp origin(%{source: source, path: path}), do: "it is from the source #{source}, in #{path}"

  # Other workflows may call it by name, with rights that another author of that name lacks.
  defp check_author(%{data: %{"author" => id}}, %{id: id}), do: :ok

  defp check_author(entry, profile) do
    if Profile.unrestricted?(profile),
      do: :ok,
      else: {:error, %WorkflowError{kind: :not_built, name: entry.name, text: ""}}
  end

  # The entry that the page replaced is visible again.
  defp uncovered(_entry, %{book: nil}), do: ""

  defp uncovered(entry, context) do
    case View.fetch(Skillbook.view(context.book, context.profile), entry.name) do
      {:ok, %{name: name, source: source}} ->
        " #{name} is now the page of the source #{source}."

      {:error, _} ->
        ""
    end
  end
end
