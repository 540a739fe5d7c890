defmodule Skillbook.Package.IntoFolder do
  @moduledoc false
  # Imports an exported workflow, which the store cannot hold, as a page of the book's folder
  # `write_to:`, where `workflow.build` writes its pages.
  #
  # The page says `trust: low`: models read it as the text of a stranger, and its steps do not run
  # until somebody has reviewed it and removed the field. It has no handler, schedule and other
  # profile to run as, it takes no name from another entry, and only profiles with its labels see
  # it.

  alias Skillbook.Workflow.Pages
  alias Skillbook.{Book, Context, Document, Entry, Frontmatter, PackageError, Profile, Store}
  alias Skillbook.{StoreError, View}

  # Fields of the exported page that choose code, rights, times or names in this book.
  @left_out ~w(name description metadata domain handler tool schedule timezone run_as aliases
               visibility_labels labels proactive_for_profile_ids exclude_from_prompt_profile_ids
               include_in_prompt include_in_prompt_default replaces trust author created on_error)

  @typedoc "The folder, and the page that is replaced."
  @type place :: {Path.t(), Entry.t() | nil}

  @doc "The name of the command in the data of an exported page, or nil."
  @spec command(map()) :: String.t() | nil
  def command(%{"metadata" => %{"skillbook-command" => name}}) when is_binary(name), do: name
  def command(_data), do: nil

  @doc """
  Checks that a command can be imported: its name, the folder and the labels.

  Returns the folder, and the page that an earlier import wrote if `:force` replaces it.
  """
  @spec check(View.t(), String.t(), map(), [String.t()], keyword()) ::
          {:ok, place()} | {:error, Exception.t()}
  def check(view, name, data, labels, options) do
    with :ok <- check_name(name),
         :ok <- check_flags(name, data),
         {:ok, root} <- root(view, name),
         :ok <- Store.check_held_labels(view, labels(view, labels)),
         :ok <- check_visible(view, name),
         {:ok, before} <- check_free(view, root, name, options[:force]),
         do: {:ok, {root, before}}
  end

  @doc "Writes the page; the book has it afterwards."
  @spec write(View.t(), place(), String.t(), [String.t()], String.t(), map()) ::
          {:ok, :imported | :updated | :unchanged} | {:error, Exception.t()}
  def write(view, {root, before}, name, labels, text, data) do
    page = page(view, name, labels(view, labels), text, data)

    with {:ok, done} <- put(root, before, name, page, view),
         :ok <- Skillbook.reload(view.book),
         do: {:ok, done}
  end

  defp put(root, nil, name, page, view) do
    case Pages.create(root, name, page, view) do
      {:ok, _path} -> {:ok, :imported}
      {:error, :taken} -> exists(name)
      {:error, :skill} -> PackageError.new(:exists, name, "has the domain of a skill's folder")
      error -> error
    end
  end

  defp put(root, %Entry{path: path}, _name, page, _view) do
    case File.read(path) do
      {:ok, ^page} ->
        {:ok, :unchanged}

      _other ->
        with {:ok, _} <- Document.replace(root, below(root, path), page), do: {:ok, :updated}
    end
  end

  # Checks

  defp check_name(name) do
    words = String.split(name, ".")

    if length(words) == 2 and Enum.all?(words, &(Pages.word?(&1) and not Pages.reserved?(&1))) do
      :ok
    else
      reason = "is not the name of a workflow"
      hint = "write small letters, digits and underscores, as in workflows.weekly_report"
      PackageError.new(:skill, inspect(name, printable_limit: 80), reason, hint)
    end
  end

  # Words before the first flag become values of flags in their order, which a map does not have.
  defp check_flags(name, %{"flags" => %{} = flags}) when map_size(flags) > 1 do
    reason = "has its flags in the frontmatter, and an import would lose their order"
    PackageError.new(:skill, name, reason, "use `install`, which keeps the page as it is")
  end

  defp check_flags(_name, _data), do: :ok

  defp root(%View{book: book, profile: profile}, name) do
    case Book.fetch!(book).write_to do
      nil ->
        reason = "is a workflow, and the book has no folder for it"
        hint = "start the book with `write_to:`, or use `install`, which keeps it a command"
        PackageError.new(:skill, name, reason, hint)

      folder ->
        if Context.may_write_to?(book, profile, folder),
          do: {:ok, folder},
          else: {:error, %Skillbook.SetupError{command: "import", option: :tenant}}
    end
  end

  defp check_visible(%View{profile: profile}, name) do
    if Profile.names?(profile, name),
      do: :ok,
      else: {:error, %StoreError{kind: :not_visible, name: name}}
  end

  # Only a page that nobody has reviewed is replaced.
  defp check_free(view, root, name, force) do
    case View.fetch(Skillbook.view(view.book, view.profile), name) do
      {:ok, %Entry{name: ^name, trust: :low, data: %{"trust" => "low"}} = entry} when force ->
        if below(root, entry.path), do: {:ok, entry}, else: exists(name)

      {:ok, _entry} ->
        exists(name)

      {:error, _unknown} ->
        {:ok, nil}
    end
  end

  defp exists(name) do
    hint = "remove or rename that one; --force replaces only an import that nobody has reviewed"
    PackageError.new(:exists, name, "already exists in the book", hint)
  end

  defp below(root, path) do
    relative = path |> Path.expand() |> Path.relative_to(Path.expand(root))
    if Path.type(relative) == :relative, do: relative
  end

  # The page

  defp labels(view, labels), do: Enum.sort(Enum.uniq(labels ++ view.profile.labels))

  defp page(view, name, labels, text, data) do
    metadata = data["metadata"]
    {:ok, %{body: body}} = Frontmatter.parse(text)
    rest = data |> Map.drop(@left_out) |> Enum.sort()

    own = [
      {"name", name},
      {"description", data["description"]},
      {"title", unless(data["title"], do: metadata["title"])},
      {"tags", unless(data["tags"], do: tags(metadata["tags"]))},
      {"on_error", if(metadata["skillbook-on-error"] == "continue", do: "continue")},
      {"visibility_labels", labels},
      {"trust", "low"},
      {"replaces", false},
      {"author", if(view.profile.id != "", do: view.profile.id)}
    ]

    Frontmatter.write(
      for({key, value} <- own, value not in [nil, []], do: {key, value}) ++ rest,
      body
    )
  end

  defp tags(tags) when is_binary(tags), do: String.split(tags, [",", " "], trim: true)
  defp tags(_none), do: nil
end
