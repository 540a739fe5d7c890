defmodule Skillbook.VaultError do
  @moduledoc """
  An error of `Skillbook.Vault`.

  ## Fields

    * `:kind` - the cause:
      * `:no_vaults` - the book has no vaults that the profile sees
      * `:unknown_vault` - no vault has the name
      * `:which` - there are several vaults, and none was named
      * `:no_folder` - the vault is not a folder, so its notes cannot be written
      * `:common` - the vault is common to all tenants, and the profile belongs to one
      * `:no_text` - an application has put the notes into the vault, so there is no text to read
      * `:not_found` - no note has the name
      * `:ambiguous` - several notes have the name
      * `:exists` - the note already exists
      * `:name` - the title or folder cannot be a file name
      * `:frontmatter` - the edit would change the note's frontmatter
      * `:query` - the query is too long
      * `:place` - a search with a query has an `:after`
      * `:unreadable` - the note cannot be read or written; `:reason` says why
      * `:address` - the text is not the address of a file in a vault
      * `:no_files` - commands may not use the files of the vault
      * `:no_file` - no file has the address
      * `:file_exists` - the file already exists
      * `:file_folder` - the address is that of a folder
      * `:file_name` - a name cannot be that of a file; `:reason` says why
      * `:note` - the file would be a note
      * `:labels` - the vault lacks `:available`, labels that the profile sets on all that it
        writes
      * `:media` - the file is no picture, PDF file or sound, which a model could be shown
      * `:large` - the file has more bytes than the limit
    * `:name` - the name of the vault or note in the call, or the path that is taken
    * `:available` - the names of the vaults, or of notes with similar names
    * `:reason` - text, or nil
    * `:limit` - in bytes, or nil

  ## Examples

      iex> error = %Skillbook.VaultError{kind: :unknown_vault, name: "nots"}
      iex> Exception.message(%{error | available: ["notes", "work"]})
      ~s(there is no vault "nots"; the vaults are notes, work)
  """

  @type t :: %__MODULE__{
          kind: atom(),
          name: String.t() | nil,
          available: [String.t()],
          reason: String.t() | nil,
          limit: pos_integer() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :name, :reason, :limit, available: []]

  # A long value, such as a page in the wrong field, is not repeated in full.
  @max_quoted 100

  @impl true
  def message(%{kind: :no_vaults}),
    do:
      "there are no vaults. Start the book with the option vaults:, " <>
        ~s(for example vaults: ["notes"])

  def message(%{kind: :unknown_vault} = error),
    do: "there is no vault #{quoted(error.name)}; the vaults are #{list(error.available)}"

  def message(%{kind: :which} = error) do
    "expected a vault to write into, one of #{list(error.available)}, got none. " <>
      "Write for example: --vault #{hd(error.available)}"
  end

  def message(%{kind: :no_folder} = error),
    do: "the vault #{quoted(error.name)} is not a folder, so its notes cannot be written"

  def message(%{kind: :common} = error) do
    "the vault #{quoted(error.name)} is common to all tenants, so this profile cannot write " <>
      "to it. Name a vault of the profile's tenant"
  end

  def message(%{kind: :no_text} = error) do
    "the notes of the vault #{quoted(error.name)} can be found and not read: an application " <>
      "has put them there"
  end

  def message(%{kind: :not_found, available: []} = error),
    do: "there is no note #{quoted(error.name)}; `markdown.search` finds notes by their content"

  def message(%{kind: :not_found} = error) do
    suggestions = error.available |> Enum.map(&quoted/1) |> either()
    "there is no note #{quoted(error.name)}; did you mean #{suggestions}?"
  end

  def message(%{kind: :ambiguous} = error) do
    "several notes are called #{quoted(error.name)}: #{list(error.available)}. " <>
      "Write the path of one, and --vault if several vaults have that path"
  end

  def message(%{kind: :exists} = error) do
    "the note #{quoted(error.name)} already exists, and is not overwritten. " <>
      "Change it with `markdown.edit`, or choose another title"
  end

  def message(%{kind: :name} = error) do
    why = if error.reason, do: ": it #{error.reason}. Write", else: ": write"

    "#{quoted(error.name)} cannot be a file name#{why} letters, digits, blanks and dashes, " <>
      "at most 100 characters, without a leading dot"
  end

  def message(%{kind: :frontmatter} = error) do
    "the edit would change the frontmatter of #{quoted(error.name)}, and only its text can be " <>
      "edited. Do not begin the text with ---"
  end

  def message(%{kind: :place}) do
    "expected :after without a query, since ranks change with each write, got both. Take a " <>
      "larger :limit, or filters"
  end

  def message(%{kind: :query}), do: "expected as a query " <> Skillbook.Search.Query.expected()

  def message(%{kind: :unreadable} = error),
    do: "the note #{quoted(error.name)} cannot be read or written: #{error.reason}"

  def message(%{kind: :address} = error) do
    "expected a file of a vault as vault:NAME/PATH, got #{quoted(error.name)}. " <>
      "Write for example: vault:#{hd(error.available)}/report.pdf. " <>
      "The vaults with files are #{list(error.available)}"
  end

  def message(%{kind: :no_files, name: nil}) do
    "there is no vault whose files commands may use. Start the book with one that has a " <>
      ~s(folder and files: true, for example vaults: [[path: "work", files: true]])
  end

  def message(%{kind: :no_files} = error) do
    "commands may not use the files of the vault #{quoted(error.name)}. " <>
      "Start the book with files: true for this vault"
  end

  def message(%{kind: :no_file, available: []} = error),
    do: "there is no file #{quoted(error.name)}"

  def message(%{kind: :no_file} = error) do
    "there is no file #{quoted(error.name)}; did you mean " <>
      "#{error.available |> Enum.map(&quoted/1) |> either()}?"
  end

  def message(%{kind: :media} = error) do
    "#{quoted(error.name)} cannot be shown: expected a picture (PNG, JPEG, GIF, WebP), a PDF " <>
      "file or a sound (WAV, MP3)"
  end

  def message(%{kind: :file_exists} = error) do
    "the file #{quoted(error.name)} already exists. Write another name, or add --overwrite to " <>
      "replace it"
  end

  def message(%{kind: :file_folder} = error) do
    "#{quoted(error.name)} is a folder. To keep the file's own name, write: #{error.name}/"
  end

  def message(%{kind: :file_name} = error) do
    why = if error.reason, do: ": it #{error.reason}", else: ""

    "#{quoted(error.name)} cannot be a file name#{why}. " <>
      "Write the name that it shall have, such as vault:NAME/report.pdf"
  end

  def message(%{kind: :note} = error) do
    "#{quoted(error.name)} would be a note of the vault, and texts of others do not become " <>
      "notes. Write a name with another extension, such as .txt"
  end

  def message(%{kind: :labels} = error) do
    "the vault #{quoted(error.name)} lacks #{list(error.available)}, which this profile must " <>
      "set on all that it writes. Name another vault"
  end

  def message(%{kind: :large} = error) do
    "#{quoted(error.name)} is too large: at most #{size(error.limit)} are allowed"
  end

  defp size(bytes) when rem(bytes, 1_048_576) == 0, do: "#{div(bytes, 1_048_576)} MB"
  defp size(bytes), do: "#{bytes} bytes"

  defp list(names), do: Enum.join(names, ", ")

  defp either([one]), do: one
  defp either(names), do: Enum.join(Enum.drop(names, -1), ", ") <> " or " <> List.last(names)

  defp quoted(text) do
    case String.split_at(text, @max_quoted) do
      {text, ""} -> inspect(text, printable_limit: :infinity)
      {text, _} -> inspect(text <> "...", printable_limit: :infinity)
    end
  end
end
