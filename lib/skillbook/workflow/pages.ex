defmodule Skillbook.Workflow.Pages do
  @moduledoc false
  # Workflow pages as the workflow handlers and the import share them: the one named by `--name`,
  # new pages, and the catalog before and after a page is written or deleted.
  #
  # Pages that a writer cannot see must not show in an answer, so only visible ones take a name. A
  # new page says `replaces: false`: if a hidden page has its name, readers of both use that one.
  # If the hidden page has its file, the new page gets another file, which no answer mentions.

  alias Skillbook.{
    Context,
    Document,
    DocumentError,
    Entry,
    FlagError,
    Frontmatter,
    Profile,
    UnknownSkillError,
    View
  }

  # `get_skill email.all` and `--help` would never reach a command of these names.
  @reserved ~w(all help)
  @max_files 99

  @doc "Whether a text can be the domain or the action of a new page."
  @spec word?(String.t()) :: boolean()
  def word?(text), do: text =~ ~r/\A[a-z][a-z0-9_]{0,63}\z/

  @doc "Whether no command can have this domain or action."
  @spec reserved?(String.t()) :: boolean()
  def reserved?(word), do: word in @reserved

  @doc """
  Writes the page of a new command, whose name the view does not show, and returns its path.

  The error is `:taken` if the view shows an entry of its file, and `:skill` if the folder of its
  domain is a skill, where every page would be a resource.
  """
  @spec create(Path.t(), String.t(), String.t(), View.t(), pos_integer()) ::
          {:ok, Path.t()} | {:error, :taken | :skill | Exception.t()}
  def create(root, name, text, view, number \\ 1)
  def create(_root, _name, _text, _view, number) when number > @max_files, do: {:error, :taken}

  # The name of a command follows from the last folder, so any folder may contain the domain's.
  # Among pages that yield, the first by path is used, so an older page comes before a later one.
  def create(root, name, text, view, number) do
    folder = if number == 1, do: "", else: "~#{String.pad_leading("#{number}", 2, "0")}/"
    [domain, action] = String.split(name, ".")
    file = "#{folder}#{domain}/#{action}.md"

    with :ok <- check_folder(root, folder <> domain, view),
         {:error, %DocumentError{kind: :exists}} <- Document.create(root, file, text) do
      if shows_file?(view, root, file),
        do: {:error, :taken},
        else: create(root, name, text, view, number + 1)
    else
      :hidden -> create(root, name, text, view, number + 1)
      other -> other
    end
  end

  defp check_folder(root, folder, view) do
    index = folder <> "/SKILL.md"

    with {:ok, text} <- Document.read(root, index),
         {:ok, %{data: %{"name" => _} = data}} when not is_map_key(data, "domain") <-
           Frontmatter.parse(text) do
      if shows_file?(view, root, index), do: {:error, :skill}, else: :hidden
    else
      _ -> :ok
    end
  end

  defp shows_file?(view, root, file) do
    path = Path.expand(file, root)

    Profile.unrestricted?(view.profile) or
      Enum.any?(View.entries(view), &(Path.expand(&1.path) == path))
  end

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

    FlagError.invalid("name", name, expected, "workflows.report")
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
