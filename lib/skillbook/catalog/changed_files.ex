defmodule Skillbook.Catalog.ChangedFiles do
  @moduledoc false
  # The files beside skills that have changed. The catalog lists them and does not read them, so
  # their changes make no generation.
  #
  # The watcher knows the paths. It finds the names that the skills of these paths may have, of
  # all labels. Each subscriber looks the names up in its own view, and compares the paths with
  # the files there, so it learns nothing about skills that it cannot see.

  alias Skillbook.{Entry, Frontmatter, View}
  alias Skillbook.Support.ReadFile

  @typedoc "Names of skills with paths in their folders; `:all` after reports were lost."
  @type t :: [{String.t(), Path.t()}] | :all

  @page "SKILL.md"
  @max_page 1_048_576

  @doc """
  Returns the skills that may have a file at one of the paths, or below it.

  A root itself is not looked at: it is reported when a watch begins.
  """
  @spec of([Path.t()] | :all, [Path.t()]) :: t()
  def of(:all, _roots), do: :all

  def of(paths, roots) do
    folders = for path <- paths, folder <- folders(path, roots), do: {folder, path}

    for {folder, pairs} <- Enum.group_by(folders, &elem(&1, 0), &elem(&1, 1)),
        name <- names(folder),
        path <- pairs,
        uniq: true,
        do: {name, path}
  end

  # The folders from a path up to its root. A file is no folder, and has no page.
  defp folders(path, roots) do
    for root <- roots,
        String.starts_with?(path, root <> "/"),
        folder <- up(path, root),
        do: folder
  end

  defp up(root, root), do: [root]
  defp up(path, root), do: [path | up(Path.dirname(path), root)]

  # A page without a name, or with one that cannot be read, is named after its folder.
  defp names(folder) do
    page = Path.join(folder, @page)

    with {:ok, %{type: :regular}} <- File.stat(page),
         {:ok, text} <- ReadFile.read(page, @max_page) do
      [Path.basename(folder) | given(Frontmatter.parse(text))]
    else
      _ -> []
    end
  end

  defp given({:ok, %{data: %{"name" => name}}}) when is_binary(name) or is_number(name),
    do: [name |> to_string() |> String.trim()]

  defp given(_none), do: []

  @doc "Whether a file of an entry may have changed."
  @spec file?(t(), Entry.t(), String.t()) :: boolean()
  def file?(:all, _entry, _file), do: true

  def file?(changed, %Entry{name: name} = entry, file),
    do: Enum.any?(changed, fn {of, path} -> of == name and at?(entry, file, path) end)

  @doc "Whether one of the files that `files` returns for an entry of the view may have changed."
  @spec any?(t(), View.t(), (Entry.t() -> [String.t()])) :: boolean()
  def any?(:all, _view, _files), do: true

  def any?(changed, view, files) do
    Enum.any?(changed, fn {name, path} ->
      case View.find(view, name) do
        %Entry{name: ^name} = entry -> Enum.any?(files.(entry), &at?(entry, &1, path))
        _other -> false
      end
    end)
  end

  # A folder may have been replaced with all its files.
  defp at?(entry, file, path) do
    full = Path.join(Path.dirname(entry.path), file)
    full == path or String.starts_with?(full, path <> "/")
  end

  @doc "Both changes."
  @spec merge(t(), t()) :: t()
  def merge(a, b) when is_list(a) and is_list(b), do: Enum.uniq(a ++ b)
  def merge(_a, _b), do: :all
end
