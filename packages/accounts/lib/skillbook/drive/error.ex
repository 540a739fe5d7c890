defmodule Skillbook.DriveError do
  @moduledoc """
  An error of `Skillbook.Drive`: a file that cannot be used in this way.

  ## Fields

    * `:kind` - the cause:
      * `:changed` - the file has changed since the revision in the call
      * `:unread` - the text is to be replaced, and has not been read; `:ids` has the file's id
      * `:no_folder` - no folder has the id or name
      * `:which` - several folders have the name
      * `:no_text` - files of this type have no text; `:reason` is the type
      * `:no_bytes` - files of this type cannot be saved; `:reason` is the type
      * `:unreadable` - the text cannot be taken out of the file; `:reason` says why
      * `:folder` - a folder has no content
      * `:fixed` - files of this type cannot be written; `:reason` is the type
      * `:own` - documents of the service's own are not replaced by files; `:ids` has the id
      * `:too_large` - the content has more bytes than the limit
      * `:too_many` - the folder has more files than the limit
      * `:shared` - others see the folder, so a new file there would be shared with them
      * `:shared_in_part` - some permissions were given, and others not; `:reason` says which
      * `:no_access` - those in `:reason` have no access of their own; `:ids` has the file's id
      * `:owner` - the owner in `:reason` keeps access
      * `:cut` - the file to send was changed while it was sent
      * `:format` - the file cannot be saved in the format in `:reason`; `:ids` has its formats
      * `:not_built` - the program that reads documents is not built
    * `:name` - the name of the file or folder
    * `:ids` - the ids of the folders, for `:which`, or of the file, or its formats
    * `:limit` - in bytes, or a number of files
    * `:reason` - text, or nil

  ## Examples

      iex> error = %Skillbook.DriveError{kind: :too_large, name: "Film.mp4", limit: 26_214_400}
      iex> Exception.message(error)
      ~s("Film.mp4" is too large: at most 25 MB can be read)
  """

  alias Skillbook.Support.External

  @type t :: %__MODULE__{
          kind: atom(),
          name: String.t() | nil,
          ids: [String.t()],
          limit: pos_integer() | nil,
          reason: String.t() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :name, :limit, :reason, ids: []]

  @max_shown 100

  @impl true
  def message(%{kind: :changed} = error) do
    "#{name(error)} has changed since you read it, so nothing was written. " <>
      "Read it again with `drive.read`, and write your change on top of the new text"
  end

  def message(%{kind: :unread, ids: [id]} = error) do
    "the text of #{name(error)} is replaced as a whole, so read it first: drive.read #{id}. " <>
      "Then write your change on top of it, with the revision that it shows as --revision"
  end

  def message(%{kind: :no_folder} = error) do
    "there is no folder #{name(error)}; `drive.search --type folder` lists the folders with " <>
      "their ids"
  end

  def message(%{kind: :which} = error) do
    "several folders are named #{name(error)}. Write the id of one: " <>
      Enum.join(error.ids, ", ")
  end

  def message(%{kind: :no_text} = error) do
    "#{name(error)} has no text to read: its type is #{External.line(error.reason, @max_shown)}"
  end

  def message(%{kind: :no_bytes} = error) do
    "#{name(error)} cannot be saved as a file: its type is " <>
      External.line(error.reason, @max_shown)
  end

  def message(%{kind: :unreadable} = error),
    do: "the text of #{name(error)} cannot be read: #{error.reason}"

  def message(%{kind: :folder} = error) do
    "#{name(error)} is a folder and has no text; `drive.list` shows the files in it"
  end

  def message(%{kind: :fixed} = error) do
    "the content of #{name(error)} cannot be replaced by text: its type is " <>
      "#{External.line(error.reason, @max_shown)}. Only documents and files of text can"
  end

  def message(%{kind: :own, ids: [id]} = error) do
    "#{name(error)} is a document of the drive's own, whose content no file replaces. Write " <>
      "its text with `drive.update #{id} --content`, or make a new file with " <>
      "`drive.create --file`"
  end

  def message(%{kind: :too_large} = error) do
    "#{name(error)} is too large: at most #{size(error.limit)} can be read"
  end

  def message(%{kind: :cut}),
    do: "the file was changed while it was sent. Send it again"

  def message(%{kind: :format, ids: []} = error) do
    "#{name(error)} is saved as it is, and not as #{External.line(error.reason, @max_shown)}. " <>
      "Leave out --type"
  end

  def message(%{kind: :format} = error) do
    "#{name(error)} cannot be saved as #{External.line(error.reason, @max_shown)}, only as " <>
      "#{Enum.join(error.ids, ", ")}. Write for example: --type #{hd(error.ids)}"
  end

  def message(%{kind: :too_many} = error) do
    "the folder #{name(error)} has more than #{error.limit} files and folders; " <>
      "choose a folder below it"
  end

  def message(%{kind: :shared} = error) do
    "others can see the folder #{name(error)}, and so what is put there. Make the file " <>
      "without --folder, and move it with `drive.update --folder`, which asks the user"
  end

  def message(%{kind: :shared_in_part} = error), do: "#{name(error)}: #{error.reason}"

  def message(%{kind: :no_access, ids: [id]} = error) do
    "#{name(error)} is not shared with #{error.reason}; `drive.access #{id}` lists who has access"
  end

  def message(%{kind: :owner} = error),
    do: "#{error.reason} owns #{name(error)}, and keeps access to it"

  def message(%{kind: :not_built} = error) do
    "the text of #{name(error)} cannot be read: the program that reads documents is not " <>
      "built. Set `config :skillbook, connections: true` and compile again"
  end

  defp size(bytes) when rem(bytes, 1_048_576) == 0, do: "#{div(bytes, 1_048_576)} MB"
  defp size(bytes), do: "#{bytes} bytes"

  defp name(error), do: External.line(error.name, @max_shown)
end
