defmodule Skillbook.Handlers.Workflow.Pages do
  @moduledoc false
  # Workflow pages as the workflow handlers share them: the one named by `--name`, and the catalog
  # before and after a page is written or deleted.

  alias Skillbook.{Context, Entry, FlagError, UnknownSkillError, View}

  @domain "workflows"

  @doc "Whether an entry is a workflow: a command without a handler, or one of their own domain."
  @spec workflow?(Entry.t()) :: boolean()
  def workflow?(%Entry{kind: :command, handler: handler, domain: domain}),
    do: handler == nil or domain == @domain

  def workflow?(%Entry{}), do: false

  @doc "The entry named by `--name`, if it is a workflow."
  @spec fetch(View.t(), String.t()) ::
          {:ok, Entry.t()} | {:error, UnknownSkillError.t() | FlagError.t()}
  def fetch(view, name) do
    case View.fetch(view, name) do
      {:ok, entry} -> if(workflow?(entry), do: {:ok, entry}, else: not_a_workflow(entry.name))
      error -> error
    end
  end

  defp not_a_workflow(name) do
    expected = "the name of a workflow (`workflow.list` lists them)"

    {:error,
     %FlagError{
       kind: :invalid,
       flag: "name",
       value: name,
       expected: expected,
       example: "workflows.report"
     }}
  end

  @doc """
  The current view of the profile.

  The book is reloaded first, since people may have changed the folder.
  """
  @spec current(Context.t()) :: {:ok, View.t()} | {:error, Exception.t()}
  def current(%{book: nil, view: view}), do: {:ok, view}

  def current(%{book: book, profile: profile} = context),
    do: with(:ok <- reload(context), do: {:ok, Skillbook.view(book, profile)})

  @doc "Makes a written or deleted page take effect."
  @spec reload(Context.t()) :: :ok | {:error, Exception.t()}
  def reload(%{book: nil}), do: :ok
  def reload(%{book: book}), do: Skillbook.reload(book)
end
