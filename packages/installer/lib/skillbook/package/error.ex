defmodule Skillbook.PackageError do
  @moduledoc """
  Returned when a skill cannot be exported, installed, updated, restored or removed.

  ## Fields

    * `:kind` - the reason:
      * `:source` - the source does not exist or is of an unknown kind
      * `:option` - an option does not fit the source, or has a wrong value
      * `:git` - the `git` program failed or is missing
      * `:archive` - the archive is broken or uses an unsupported feature
      * `:limit` - too many or too large files
      * `:name` - a file's name is not allowed
      * `:special` - a link, a device or another special file
      * `:skills` - the source has no skill, or not the requested one
      * `:skill` - the skill is not valid, for example without a description
      * `:exists` - the target exists already
      * `:changed` - files were changed by hand
      * `:unknown` - no skill of this name is installed
      * `:not_accepted` - the `:accept` function refused the skill
      * `:hash` - the fetched content differs from the installed content, or from the digest in
        a website's index
      * `:busy` - another process holds the folder's lock, or has changed the skill
      * `:lock` - the lock file cannot be read
      * `:io` - the file system returned an error
    * `:place` - the path, skill or source that the error is about
    * `:reason` - the error in words
    * `:hint` - how to fix it, or `nil`

  ## Examples

      iex> error = %Skillbook.PackageError{
      ...>   kind: :unknown,
      ...>   place: "pdf",
      ...>   reason: "is not installed",
      ...>   hint: "installed skills: docx"
      ...> }
      iex> Exception.message(error)
      "pdf is not installed; installed skills: docx"
  """

  @type t :: %__MODULE__{
          kind: atom(),
          place: String.t(),
          reason: String.t(),
          hint: String.t() | nil
        }

  @enforce_keys [:kind, :place, :reason]
  defexception [:kind, :place, :reason, :hint]

  @impl true
  def message(%{place: place, reason: reason, hint: nil}), do: printable(place) <> " " <> reason

  def message(%{place: place, reason: reason, hint: hint}),
    do: printable(place) <> " " <> reason <> "; " <> hint

  # File names of untrusted archives may hold control characters.
  defp printable(place) do
    if String.printable?(place) and place != "", do: place, else: inspect(place)
  end

  @doc false
  def new(kind, place, reason, hint \\ nil) do
    {:error, %__MODULE__{kind: kind, place: place, reason: reason, hint: hint}}
  end

  @doc false
  def io(place, reason), do: new(:io, place, "cannot be used: #{:file.format_error(reason)}")
end
