defmodule Skillbook.PackageError do
  @moduledoc """
  A skill could not be exported, installed, updated, restored or removed.

  ## Fields

    * `:kind` - what stood in the way:
      * `:source` - there is nothing to install from, or it is of no kind that is known
      * `:option` - an option does not fit the source, or has a wrong value
      * `:git` - the `git` program failed or is missing
      * `:archive` - an archive is broken, or not of a form that is read
      * `:limit` - more or larger files than are taken
      * `:name` - a file has a name that is not taken
      * `:special` - a link, a device or something else that is no file
      * `:skills` - the source has no skill, or not the one that was asked for
      * `:skill` - its `SKILL.md` is none
      * `:exists` - something else is in the way
      * `:changed` - files were changed by hand
      * `:unknown` - no skill of this name is installed
      * `:not_accepted` - what a skill can do was not accepted
      * `:hash` - what was fetched is not what was installed
      * `:busy` - another process is at work in the folder
      * `:lock` - the lock file cannot be read
      * `:io` - the file system refused
    * `:place` - what it is about: a path, a skill's name, a source
    * `:reason` - what was expected and what came
    * `:hint` - what to do instead, or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.PackageError{kind: :unknown, place: "pdf", reason: "is not installed", hint: "installed are: docx"})
      "pdf is not installed; installed are: docx"
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
  def message(%{place: place, reason: reason, hint: nil}), do: show(place) <> " " <> reason

  def message(%{place: place, reason: reason, hint: hint}),
    do: show(place) <> " " <> reason <> "; " <> hint

  # Names come from strangers' archives.
  defp show(place) do
    if String.printable?(place) and place != "", do: place, else: inspect(place)
  end

  @doc false
  def new(kind, place, reason, hint \\ nil) do
    {:error, %__MODULE__{kind: kind, place: place, reason: reason, hint: hint}}
  end

  @doc false
  def io(place, reason), do: new(:io, place, "could not be used: #{:file.format_error(reason)}")
end
