defmodule Skillbook.Handlers.Workflow.Folder do
  @moduledoc false
  # The folder into which workflows are written, as the catalog has it, and the indexes of its domains.

  alias Skillbook.{Context, Document, DocumentError, Frontmatter, View}
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
         {:ok, _} <- Document.replace(root, index(domain), Index.refresh(text, rows)),
         do: :ok
  end

  defp index_text(root, domain, everything) do
    case Document.read(root, index(domain)) do
      {:error, %DocumentError{kind: :missing}} ->
        {:ok, everything |> View.domains() |> Enum.find(&(&1.name == domain)) |> new_index(domain)}

      other ->
        other
    end
  end

  # A domain of another source keeps its index: this file takes that one's place and begins as its copy.
  defp new_index(%{path: path, description: description, body: body}, domain) when is_binary(path),
    do: Frontmatter.write([{"domain", domain}, {"description", description}], body)

  defp new_index(_, domain) do
    title = domain |> String.replace("_", " ") |> String.capitalize()
    Frontmatter.write([{"domain", domain}, {"description", "#{title}: workflows"}], "# #{title}\n")
  end

  @doc "What to add to an answer if the index was not brought up to date."
  @spec problem(String.t(), :ok | {:error, DocumentError.t()}) :: String.t()
  def problem(_domain, :ok), do: ""

  def problem(domain, {:error, error}),
    do: "\nThe list in #{index(domain)} was not brought up to date: #{Exception.message(error)}"
end
