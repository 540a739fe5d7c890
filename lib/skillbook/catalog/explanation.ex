defmodule Skillbook.Explanation do
  @moduledoc """
  What became of a name: every file that could be meant by it, up to its place in a profile's prompt.

  It tells of what the profile may not see and why, so it is for the application's people and other trusted code; none of it
  belongs in a model's reply. `to_string/1` gives the text that `skillbook explain` prints.

  ## Fields

    * `:name` - the name that was asked for
    * `:profile` - the id of the profile
    * `:files` - a map for each file that is meant by its entry's name, by an alias, by its own name or its folder's; those
      that are used come first
    * `:close` - names close to it, where there is no file

  A file's map has:

    * `:path` - the file
    * `:name` - the name of its entry, or `nil`
    * `:source` - the name of its source, or `nil` if it became no entry
    * `:state` - `:used`, `:index` (of a domain), `:shadowed` (by a later source, or by the title of an entry of the
      store), `:duplicate` (of another file in its source), `:not_selected` (by the globs of its source), `:refused` (of low trust, where
      another source has its name) or `:no_entry` (its diagnostics say why). What the profile does not see takes no part
      in what it sees; of that it says what becomes of it for `Skillbook.View.all/1`
    * `:by` - the file that is used in its place, or `nil`
    * `:hidden` - why the profile does not see it, a list of texts
    * `:prompt` - where it stands in the profile's prompt, or `nil` if it is not seen
    * `:diagnostics` - what was found out about it

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> explanation = Skillbook.explain(catalog, "haiku", id: "guest", skills: ["email.*"])
      iex> [file] = explanation.files
      iex> {file.state, file.hidden}
      {:used, ["no glob of the profile's skills matches its name"]}
      iex> to_string(Skillbook.explain(catalog, "haikus", id: "guest"))
      "haikus: no file gives this name; close to it: haiku"
  """

  alias Skillbook.{Book, Catalog, Native, Profile, Prompt, View}

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
          close: [String.t()]
        }

  @enforce_keys [:name, :profile]
  defstruct [:name, :profile, files: [], close: []]

  @doc false
  @spec new(Catalog.t() | atom(), String.t(), String.t() | Profile.t() | keyword(), keyword()) ::
          t()
  def new(%Catalog{} = catalog, name, profile, prompt) do
    case View.new(catalog, profile) do
      {:ok, view} -> of(view, name, prompt)
      {:error, error} -> raise error
    end
  end

  def new(book, name, profile, prompt) do
    book = Book.fetch!(book)

    new(
      book.catalog,
      name,
      if(is_list(profile), do: profile, else: Book.profile(book, profile)),
      prompt
    )
  end

  defp of(view, name, prompt) do
    {files, close} = Native.view_explain(view.ref, name, Prompt.to_native(prompt))
    %__MODULE__{name: name, profile: view.profile.id, files: files, close: close}
  end

  defimpl String.Chars do
    def to_string(%{files: []} = explanation) do
      close =
        if explanation.close == [],
          do: "",
          else: "; close to it: #{Enum.join(explanation.close, ", ")}"

      "#{explanation.name}: no file gives this name#{close}"
    end

    def to_string(explanation),
      do: Enum.map_join(explanation.files, "\n\n", &file(&1, explanation.profile))

    defp file(file, profile) do
      [
        file.path,
        if(file.source, do: "from the source `#{file.source}`"),
        state(file),
        Enum.map(file.hidden, &"hidden from `#{profile}`: #{&1}"),
        if(file.prompt, do: "in the prompt of `#{profile}`: #{file.prompt}"),
        Enum.map(file.diagnostics, &diagnostic/1)
      ]
      |> List.flatten()
      |> Enum.reject(&is_nil/1)
      |> Enum.join("\n  ")
    end

    defp state(%{state: :used, name: name}), do: "used as `#{name}`"
    defp state(%{state: :index}), do: "the index of the domain"

    defp state(%{state: :shadowed} = file),
      do: "not used: `#{file.name}` comes from a later source, #{file.by}"

    defp state(%{state: :duplicate} = file),
      do: "not used: `#{file.name}` comes first in its source from #{file.by}"

    defp state(%{state: :not_selected} = file),
      do: "not used: no glob of its source selects `#{file.name}`"

    defp state(%{state: :refused} = file),
      do:
        "not used: its source has low trust, and `#{file.name}` is that of #{file.by || "another source"}"

    defp state(%{state: :no_entry}), do: "not an entry"

    defp diagnostic(diagnostic), do: Kernel.to_string(%{diagnostic | path: nil, hint: nil})
  end
end
