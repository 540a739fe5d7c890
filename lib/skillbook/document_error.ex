defmodule Skillbook.DocumentError do
  @moduledoc """
  A document could not be read or written.

  ## Fields

    * `:kind` - what stood in the way:
      * `:path` - the path does not name a file below the folder
      * `:link` - a part of the path is a symbolic link
      * `:exists` - the file is there already
      * `:missing` - there is no such file
      * `:io` - the file system refused; `:reason` says why
    * `:path` - the path as given, relative to the folder; for `:link` and `:io` up to the part concerned
    * `:reason` - a POSIX code such as `:enospc`, or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.DocumentError{kind: :exists, path: "finance/report.md"})
      "finance/report.md exists already"
  """

  @type t :: %__MODULE__{
          kind: :path | :link | :exists | :missing | :io,
          path: String.t(),
          reason: File.posix() | nil
        }

  @enforce_keys [:kind, :path]
  defexception [:kind, :path, :reason]

  @impl true
  def message(%{kind: :path, path: path}) do
    "#{inspect(path)} is no path of a file below the folder: " <>
      "write names without a leading dot, joined by slashes, such as finance/report.md"
  end

  def message(%{kind: :link, path: path}),
    do:
      "#{path} is a symbolic link, and links are not followed here: name a folder or file in its place"

  def message(%{kind: :exists, path: path}), do: "#{path} exists already"
  def message(%{kind: :missing, path: path}), do: "#{path} does not exist"

  def message(%{kind: :io, path: path, reason: reason}),
    do: "#{path}: #{:file.format_error(reason)}"
end
