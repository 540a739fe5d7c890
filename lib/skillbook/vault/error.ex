defmodule Skillbook.VaultError do
  @moduledoc """
  What was asked of a vault cannot be done.

  ## Fields

    * `:kind` - what stands in the way:
      * `:no_vaults` - the book has none that the profile sees
      * `:unknown_vault` - there is none of the name
      * `:which` - there are several, and none was named
      * `:no_folder` - nothing can be written into the vault: it is no folder
      * `:not_found` - there is no note of the name
      * `:ambiguous` - several notes have the name
      * `:exists` - the note is there already
      * `:name` - a name that cannot be a file's
      * `:frontmatter` - the edit would change what the note's frontmatter says
      * `:unreadable` - the note cannot be read, `:reason` says why
    * `:name` - the vault or the note as it was named, or the path that is taken
    * `:available` - the vaults there are, or the notes that may be meant
    * `:reason` - text, or nil

  ## Examples

      iex> Exception.message(%Skillbook.VaultError{kind: :unknown_vault, name: "nots", available: ["notes", "work"]})
      ~s(there is no vault "nots"; the vaults are notes, work)
  """

  @type t :: %__MODULE__{
          kind: atom(),
          name: String.t() | nil,
          available: [String.t()],
          reason: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :name, :reason, available: []]

  # Who pasted a page into the wrong place must not get the page back.
  @shown 100

  @impl true
  def message(%{kind: :no_vaults}),
    do:
      ~s(there are no vaults. Whoever runs the book sets the option `vaults:`, for example vaults: ["notes"])

  def message(%{kind: :unknown_vault} = error),
    do: "there is no vault #{show(error.name)}; the vaults are #{list(error.available)}"

  def message(%{kind: :which} = error) do
    "expected the vault to write into, one of #{list(error.available)}, got none. " <>
      "Write for example: --vault #{hd(error.available)}"
  end

  def message(%{kind: :no_folder} = error),
    do: "the vault #{show(error.name)} is no folder, and nothing can be written into it"

  def message(%{kind: :not_found, available: []} = error),
    do: "there is no note #{show(error.name)}; `markdown.search` finds notes by what they say"

  def message(%{kind: :not_found} = error),
    do:
      "there is no note #{show(error.name)}; did you mean #{error.available |> Enum.map(&show/1) |> either()}?"

  def message(%{kind: :ambiguous} = error),
    do:
      "several notes are called #{show(error.name)}: #{list(error.available)}. Write the path of one, and --vault if several have it"

  def message(%{kind: :exists} = error) do
    "there is a note #{show(error.name)} already, and nothing is written over it. " <>
      "Change it with `markdown.edit`, or take another title"
  end

  def message(%{kind: :name} = error) do
    "#{show(error.name)} cannot be the name of a file: write letters, digits, blanks and dashes, at most 100 characters, " <>
      "without a dot in front"
  end

  def message(%{kind: :frontmatter} = error) do
    "the edit would change what the frontmatter of #{show(error.name)} says, and only its text can be edited. " <>
      "Begin the text with something else than ---"
  end

  def message(%{kind: :unreadable} = error), do: "#{error.name} cannot be edited: #{error.reason}"

  defp list(names), do: Enum.join(names, ", ")

  defp either([one]), do: one
  defp either(names), do: Enum.join(Enum.drop(names, -1), ", ") <> " or " <> List.last(names)

  defp show(text) do
    case String.split_at(text, @shown) do
      {text, ""} -> inspect(text, printable_limit: :infinity)
      {text, _} -> inspect(text <> "...", printable_limit: :infinity)
    end
  end
end
