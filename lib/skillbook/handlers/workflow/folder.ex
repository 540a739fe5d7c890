defmodule Skillbook.Handlers.Workflow.Folder do
  @moduledoc false
  # The folder into which workflows are written, as the catalog has it, and the indexes of its domains.

  alias Skillbook.{Book, Context, Document, DocumentError, Frontmatter, Profile, View}
  alias Skillbook.Handlers.Workflow.Index

  @doc """
  All that there is, hidden entries as well, with what people put into the folder or took out of it since the last reload.
  """
  @spec everything(Context.t()) :: {:ok, View.t()} | {:error, Exception.t()}
  def everything(%{book: nil, view: view}), do: {:ok, view}
  def everything(%{book: book} = context), do: with(:ok <- publish(context), do: {:ok, View.all(book)})

  @doc "Has the book read what was written."
  @spec publish(Context.t()) :: :ok | {:error, Exception.t()}
  def publish(%{book: nil}), do: :ok
  def publish(%{book: book}), do: Skillbook.reload(book)

  @doc "The path of a domain's index."
  @spec index(String.t()) :: String.t()
  def index(domain), do: "#{domain}/SKILL.md"

  @doc """
  Brings the table in a domain's index up to date: all commands that there are but `gone`, and `new`, a list of `{name,
  description}`.

  Hidden commands are listed too: a view leaves out the lines of those it does not show.
  """
  @spec refresh_index(Path.t(), String.t(), View.t(), new: [{String.t(), String.t()}], gone: String.t()) ::
          :ok | {:error, DocumentError.t()}
  def refresh_index(root, domain, everything, changes) do
    rows =
      for entry <- View.entries(everything, domain: domain, kind: :command),
          entry.name != changes[:gone],
          do: {entry.name, entry.description}

    rows = Keyword.get(changes, :new, []) ++ rows

    with {:ok, text} <- index_text(root, domain, everything),
         {:ok, _} <- Document.replace(root, index(domain), Index.refresh(text, rows)) do
      :ok
    else
      :elsewhere -> :ok
      error -> error
    end
  end

  defp index_text(root, domain, everything) do
    with {:error, %DocumentError{kind: :missing}} <- Document.read(root, index(domain)) do
      case find(everything, domain) do
        %{path: path} = known when is_binary(path) -> copy(known, find(nobody(everything), domain))
        _ -> {:ok, new_index(domain)}
      end
    end
  end

  defp find(view, domain), do: view |> View.domains() |> Enum.find(&(&1.name == domain))

  # What it sees, everybody sees whom no entry excludes.
  defp nobody(%View{book: nil} = view), do: view

  defp nobody(%View{book: book}) do
    {:ok, view} = View.new(Book.fetch!(book).catalog, %Profile{id: ""})
    view
  end

  # A domain of another source keeps its index: this file takes that one's place and begins as its copy. A copy would show one
  # that not all may read to those who may not, so it stays alone; views show what there is beside it.
  defp copy(%{path: path, body: body, name: name}, %{path: path, description: description}) do
    if open?(path),
      do: {:ok, Frontmatter.write([{"domain", name}, {"description", description}], body)},
      else: :elsewhere
  end

  defp copy(_known, _seen), do: :elsewhere

  defp open?(path) do
    with {:ok, text} <- File.read(path),
         {:ok, %{data: data}} <- Frontmatter.parse(text),
         do: not is_map_key(data, "exclude_from_prompt_profile_ids"),
         else: (_ -> false)
  end

  defp new_index(domain) do
    title = domain |> String.replace("_", " ") |> String.capitalize()
    Frontmatter.write([{"domain", domain}, {"description", "#{title}: workflows"}], "# #{title}\n")
  end

  @doc "What to add to an answer if the index was not brought up to date."
  @spec problem(String.t(), :ok | {:error, DocumentError.t()}) :: String.t()
  def problem(_domain, :ok), do: ""

  def problem(domain, {:error, error}),
    do: "\nThe list in #{index(domain)} was not brought up to date: #{Exception.message(error)}"
end
