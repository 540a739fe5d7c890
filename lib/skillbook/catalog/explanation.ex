defmodule Skillbook.Explanation do
  @moduledoc """
  Explains which file a name resolves to for a profile, and why other files of that name are not
  used.

  `Skillbook.explain/3` returns it. It includes files that the profile may not see, so use it in
  trusted code and never in an answer to a model. `to_string/1` returns the text that
  `skillbook explain` prints.

  ## Fields

    * `:name` - the name
    * `:profile` - the id of the profile
    * `:files` - a map for each file whose entry, alias, file name or folder matches the name;
      files that are used come first
    * `:close` - similar names, if no file matches
    * `:builtin` - the item of the option `:builtins` that adds this name, if it is a built-in
      skill that the book leaves out
    * `:text` - all of it as text

  The map of a file has:

    * `:path` - the file
    * `:name` - the name of its entry, or `nil`
    * `:source` - the name of its source, or `nil` if it is not an entry
    * `:state` - one of
      * `:used`
      * `:index` - the index of a domain
      * `:shadowed` - replaced by a later source, or by the title of an entry of the store
      * `:duplicate` - another file of the same source has the name
      * `:not_selected` - no glob of its source selects it
      * `:refused` - its source has low trust, and another source has the name
      * `:no_entry` - see its diagnostics
    * `:by` - the file that is used instead, or `nil`
    * `:hidden` - why the profile does not see it, a list of texts
    * `:prompt` - its section of the profile's prompt, or `nil` if the profile does not see it
    * `:diagnostics` - the diagnostics of the file

  Files that the profile does not see have the state that they have in `Skillbook.View.all/1`.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> guest = [id: "guest", skills: ["notes.*"]]
      iex> explanation = Skillbook.explain(catalog, "tasks.get", profile: guest)
      iex> [file] = explanation.files
      iex> {file.state, file.hidden}
      {:used, ["no glob of the profile's skills matches its name"]}
      iex> to_string(Skillbook.explain(catalog, "task.get", profile: guest))
      "task.get: no file has this name; similar names: tasks.get, notes.get"
  """

  alias Skillbook.Book.Builtins
  alias Skillbook.{Book, Catalog, Native, OptionError, Part, Prompt, View}

  @type file :: %{
          path: Path.t(),
          name: String.t() | nil,
          source: String.t() | nil,
          state: :used | :index | :shadowed | :duplicate | :not_selected | :refused | :no_entry,
          by: Path.t() | nil,
          hidden: [String.t()],
          prompt: String.t() | nil,
          diagnostics: [Skillbook.Diagnostic.t()]
        }

  @type t :: %__MODULE__{
          name: String.t(),
          profile: String.t(),
          files: [file()],
          close: [String.t()],
          builtin: String.t() | nil,
          text: String.t()
        }

  @enforce_keys [:name, :profile, :text]
  defstruct [:name, :profile, :text, :builtin, files: [], close: []]

  @doc false
  @spec new(Catalog.t() | atom(), String.t(), keyword()) :: t()
  def new(%Catalog{} = catalog, name, options) do
    {profile, options} = Keyword.pop(options, :profile)
    {tenant, prompt} = Keyword.pop(options, :tenant, :all)

    if profile == nil,
      do: raise(%OptionError{subject: "an explanation", option: :profile, problem: :missing})

    view = View.new!(catalog, profile)
    with {:error, error} <- Catalog.fetch(catalog, tenant), do: raise(error)
    of(view, tenant, name, prompt)
  end

  def new(book, name, options) do
    book = Book.fetch!(book)
    profile = Keyword.get(options, :profile, "default")

    profile =
      if is_binary(profile) or is_nil(profile), do: Book.profile(book, profile), else: profile

    book.catalog
    |> new(name, Keyword.put(options, :profile, profile))
    |> left_out(book)
  end

  # No profile sees a built-in skill that the book leaves out, so only its operator is told.
  defp left_out(%{files: []} = explanation, book) do
    case Builtins.item(explanation.name, Part.flat(book.parts, :builtins, [book])) do
      nil ->
        explanation

      item ->
        more = "; it is built in, and the option builtins: [#{inspect(item)}] of the book adds it"
        %{explanation | builtin: item, text: explanation.text <> more}
    end
  end

  defp left_out(explanation, _book), do: explanation

  defp of(view, tenant, name, prompt) do
    prompt = Prompt.to_native(view, prompt)
    {files, close, text} = Native.view_explain(view.ref, tenant, name, prompt)
    %__MODULE__{name: name, profile: view.profile.id, files: files, close: close, text: text}
  end

  defimpl String.Chars do
    def to_string(explanation), do: explanation.text
  end
end
