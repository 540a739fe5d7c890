defmodule Skillbook.Drive do
  @moduledoc """
  Behaviour for services that store files, and the functions that call the one of an account.

  The commands `drive.search`, `drive.read` and so on, and vaults with the option `drive:`, work
  with every module that implements it. `Skillbook.Drive.Google` uses Google Drive's interface,
  `Skillbook.Drive.OneDrive` that of Microsoft 365.
  The vendor of an account names its module under `drive` (see `Skillbook.Connections.Vendor`).

  ## Ids

  Ids of files and folders are texts that only the service understands. A file keeps its id when
  it is renamed, moved or changed. `"root"` is the folder at the top of the account's own files.

  ## Texts of strangers

  Names, owners and texts were written by others. A service returns them unchanged, in valid
  UTF-8. The commands mark them and show hidden characters.

  ## Errors

  Functions return `{:error, exception}`:

    * `Skillbook.NotFoundError` of the kind `"file"`, if the file does not exist or the account
      may not see it
    * `Skillbook.ConnectionError`, if the account is not connected or lacks a scope
    * `Skillbook.ServiceError`, if the service fails, refuses the call or is too slow
    * `Skillbook.DriveError`, if the file cannot be used in this way

  All of them keep `account.deadline`.
  """

  alias Skillbook.Connections.Account
  alias Skillbook.Drive.Text
  alias Skillbook.{DriveError, NotFoundError}

  @typedoc """
  A file or folder.

    * `:type` - its media type
    * `:kind` - the sort of file, as in `t:query/0`; `:other` for types that are not there
    * `:own` - whether it is in a format of the service's own, without bytes that can be
      downloaded
    * `:size` - in bytes, or `nil`
    * `:modified` - when its content was changed last
    * `:owner` - a name or an address, or `nil`
    * `:shared` - whether other people may see it
    * `:folder` - the id of its folder, or `nil`
    * `:drive` - the id of the shared drive that it is in, or `nil`
    * `:revision` - a text that changes with its content
    * `:url` - where people open it, or `nil`
    * `:trashed` - whether it is in the trash
  """
  @type file :: %{
          id: String.t(),
          name: String.t(),
          type: String.t(),
          kind: kind(),
          own: boolean(),
          size: non_neg_integer() | nil,
          modified: DateTime.t(),
          owner: String.t() | nil,
          shared: boolean(),
          folder: String.t() | nil,
          drive: String.t() | nil,
          revision: String.t(),
          url: String.t() | nil,
          trashed: boolean()
        }

  @type kind ::
          :document
          | :spreadsheet
          | :presentation
          | :markdown
          | :text
          | :pdf
          | :image
          | :audio
          | :video
          | :folder
          | :other

  @typedoc """
  The conditions of a search. All must hold; `nil` is none.

    * `:text` - words of names and texts; `"phrases"` in quotes
    * `:name` - the exact name
    * `:kind` - the sort of file
    * `:folder` - the id of the folder that it is in, not below it; with `:drive`, the `:drive` of
      that folder
    * `:owner` - the address of its owner, or `"me"`
    * `:after` - changed on this day (UTC) or later; `:before` - changed before this day
    * `:shared` - `true` for files that others shared with the account
    * `:limit` - the maximum number of files, 1 to 1,000

  Files in the trash are never found.
  """
  @type query :: %{
          optional(:text) => String.t() | nil,
          optional(:name) => String.t() | nil,
          optional(:kind) => kind() | nil,
          optional(:folder) => String.t() | nil,
          optional(:drive) => String.t() | nil,
          optional(:owner) => String.t() | nil,
          optional(:after) => Date.t() | nil,
          optional(:before) => Date.t() | nil,
          optional(:shared) => boolean() | nil,
          required(:limit) => pos_integer()
        }

  @typedoc """
  A new file.

    * `:kind` - `:document`, which is made from Markdown; `:folder`; or `:file`, whose content is
      stored as it is, with `:type`
    * `:content` - of a file also an [open file](`t:source/0`)
    * `:folder` - the id of its folder. Default: `"root"`
  """
  @type new :: %{
          required(:name) => String.t(),
          required(:kind) => :document | :folder | :file,
          optional(:type) => String.t(),
          optional(:content) => binary() | source(),
          optional(:folder) => String.t() | nil
        }

  @typedoc """
  Changes of a file; those that are missing or `nil` change nothing.

    * `:name` - its new name
    * `:content` - its new content. For a document it is Markdown. An [open file](`t:source/0`)
      replaces the content of a file of any type, with `:type` as its new media type
    * `:folder` - the id of the folder that it is moved to
    * `:trashed` - whether it is in the trash
    * `:revision` - the `:revision` that the change is based on. If the content is another by now,
      nothing changes and the error is a `Skillbook.DriveError` of the kind `:changed`
  """
  @type changes :: %{
          optional(:name) => String.t() | nil,
          optional(:content) => binary() | source() | nil,
          optional(:type) => String.t() | nil,
          optional(:folder) => String.t() | nil,
          optional(:trashed) => boolean() | nil,
          optional(:revision) => String.t() | nil
        }

  @typedoc """
  Content in an open file of the calling process, with its size in bytes. It is sent part by part,
  so that a large file is never in memory. Services without `c:save/5` get it as bytes.
  """
  @type source :: {:file, :file.io_device(), non_neg_integer()}

  @typedoc """
  A permission to give.

    * `:to` - `{:user, address}`, `{:group, address}`, `{:domain, name}` or `:anyone`, which is
      everyone who has the link
    * `:notify` - whether the service tells people and groups by mail, with `:message`
  """
  @type grant :: %{
          to: grantee(),
          role: :reader | :commenter | :writer,
          notify: boolean(),
          message: String.t() | nil
        }

  @type grantee :: {:user | :group | :domain, String.t()} | :anyone

  @typedoc """
  A permission that somebody has. `:id` names it at the service, `:name` is a person's or group's
  name.
  """
  @type permission :: %{
          id: String.t(),
          to: grantee(),
          role: :owner | :reader | :commenter | :writer,
          name: String.t() | nil
        }

  @typedoc "The content of a file. `:type` is its media type, such as `text/csv`."
  @type content :: %{
          required(:name) => String.t(),
          required(:type) => String.t(),
          required(:data) => binary(),
          optional(:charset) => String.t() | nil
        }

  @doc """
  Finds files. `:more` is whether there are more than the limit.

  The best match comes first, and without `:text` the file that was changed last. With `:folder`
  alone, folders come first and files follow by name.
  """
  @callback search(Account.t(), query()) ::
              {:ok, %{files: [file()], more: boolean()}} | {:error, Exception.t()}

  @doc "Returns a file, in the trash or not. A shortcut is its target."
  @callback file(Account.t(), id :: String.t()) :: {:ok, file()} | {:error, Exception.t()}

  @doc """
  Returns the content of a file: bytes that are stored as they are. The service's own documents
  have no bytes and are exported:

    * `:file` - in a format for people, such as PDF; the name gets its extension
    * `:text` - in the format that shows the text best: Markdown, plain text or a workbook
  """
  @callback content(Account.t(), file(), :file | :text) ::
              {:ok, content()} | {:error, Exception.t()}

  @doc """
  The extensions, such as `"pdf"`, of the formats that `c:save/5` exports a file in, the default
  first. Empty for a file with bytes of its own, which is saved as it is; if the service converts
  it too, its own extension is the first.

  Optional, with `c:save/5`.
  """
  @callback formats(file()) :: [String.t()]

  @doc """
  Writes the content of a file to an open file, in one of its formats, or `nil` if it has none. At
  most `max` bytes; more are a `Skillbook.DriveError` of the kind `:too_large`.

  Optional: without it, `c:content/3` is called for the bytes.
  """
  @callback save(
              Account.t(),
              file(),
              format :: String.t() | nil,
              :file.io_device(),
              max :: pos_integer()
            ) :: :ok | {:error, Exception.t()}

  @optional_callbacks formats: 1, save: 5

  @doc """
  Makes a file. An unclear failure never leaves two of them: before it is repeated, the service
  is asked for the first one.
  """
  @callback create(Account.t(), new()) :: {:ok, file()} | {:error, Exception.t()}

  @doc "Changes a file."
  @callback update(Account.t(), file(), changes()) :: {:ok, file()} | {:error, Exception.t()}

  @doc "Gives a permission. A permission that exists gets the new role."
  @callback share(Account.t(), file(), grant()) :: :ok | {:error, Exception.t()}

  @doc "Lists the permissions of a file, those of its folders included."
  @callback permissions(Account.t(), file()) :: {:ok, [permission()]} | {:error, Exception.t()}

  @doc "Takes a permission away. One that is gone is no error."
  @callback unshare(Account.t(), file(), permission()) :: :ok | {:error, Exception.t()}

  @doc """
  Returns everything in folders, without the trash: files, and folders with their ids only one
  level deep. At most `limit` of them; more are a `Skillbook.DriveError` of the kind `:too_many`.
  """
  @callback children(Account.t(), folders :: [file()], limit :: pos_integer()) ::
              {:ok, [file()]} | {:error, Exception.t()}

  @doc """
  Returns the changes since a token: the id of each changed file, with the file, or `nil` if it is
  gone. With `nil` as the token there are no changes, and the answer has the token of the present.

  `drive` is the `:drive` of the files. `{:error, :expired}` means that the service no longer
  knows the changes since the token.
  """
  @callback changes(Account.t(), drive :: String.t() | nil, token :: String.t() | nil) ::
              {:ok, %{changes: [{id :: String.t(), file() | nil}], token: String.t()}}
              | {:error, Exception.t() | :expired}

  @doc """
  Reads an id as people paste it: an id, or the address of a file in the service. `:error` for any
  other text.
  """
  @callback id(String.t()) :: {:ok, String.t()} | :error

  @doc false
  @spec search(Account.t(), query()) ::
          {:ok, %{files: [file()], more: boolean()}} | {:error, Exception.t()}
  def search(account, query), do: adapter(account).search(account, query)

  @doc false
  # A file, not in the trash, by its id or address.
  @spec file(Account.t(), String.t()) :: {:ok, file()} | {:error, Exception.t()}
  def file(account, id) do
    case any_file(account, id) do
      {:ok, %{trashed: true}} -> {:error, missing(id)}
      result -> result
    end
  end

  @doc false
  # As `file/2`, also of the trash.
  @spec any_file(Account.t(), String.t()) :: {:ok, file()} | {:error, Exception.t()}
  def any_file(account, id) do
    adapter = adapter(account)

    case adapter.id(id) do
      {:ok, known} -> adapter.file(account, known)
      :error -> {:error, missing(id)}
    end
  end

  @doc false
  # The content of a file for a person, such as an attachment of a mail.
  @spec download(Account.t(), String.t()) :: {:ok, content()} | {:error, Exception.t()}
  def download(account, id) do
    with {:ok, file} <- file(account, id), do: content(account, file)
  end

  @doc false
  # The bytes of a file.
  @spec content(Account.t(), file()) :: {:ok, content()} | {:error, Exception.t()}
  def content(account, file), do: adapter(account).content(account, file, :file)

  @doc false
  # The text of a file.
  @spec text(Account.t(), file()) :: {:ok, String.t()} | {:error, Exception.t()}
  def text(account, file) do
    with {:ok, content} <- adapter(account).content(account, file, :text),
         do: Text.read(content, account.deadline)
  end

  @doc false
  @spec formats(Account.t(), file()) :: [String.t()]
  def formats(account, file) do
    adapter = adapter(account)
    if streams?(adapter), do: adapter.formats(file), else: []
  end

  @doc false
  @spec save(Account.t(), file(), String.t() | nil, :file.io_device(), pos_integer()) ::
          :ok | {:error, Exception.t()}
  def save(account, file, format, device, max) do
    adapter = adapter(account)

    if streams?(adapter) do
      adapter.save(account, file, format, device, max)
    else
      with {:ok, %{data: data}} <- adapter.content(account, file, :file) do
        if byte_size(data) > max, do: too_large(file, max), else: write(device, data)
      end
    end
  end

  defp too_large(file, max),
    do: {:error, %DriveError{kind: :too_large, name: file.name, limit: max}}

  defp write(device, data) do
    with {:error, reason} <- :file.write(device, data),
         do: {:error, %File.Error{reason: reason, action: "write", path: "the file"}}
  end

  defp streams?(adapter),
    do: Code.ensure_loaded?(adapter) and function_exported?(adapter, :save, 5)

  @doc false
  @spec create(Account.t(), new()) :: {:ok, file()} | {:error, Exception.t()}
  def create(account, new) do
    adapter = adapter(account)
    with {:ok, new} <- in_memory(adapter, new), do: adapter.create(account, new)
  end

  @doc false
  @spec update(Account.t(), file(), changes()) :: {:ok, file()} | {:error, Exception.t()}
  def update(account, file, changes) do
    adapter = adapter(account)
    with {:ok, changes} <- in_memory(adapter, changes), do: adapter.update(account, file, changes)
  end

  defp in_memory(adapter, %{content: {:file, _device, size} = source} = fields) do
    if streams?(adapter) do
      {:ok, fields}
    else
      with {:ok, data} <- part(source, 0, size), do: {:ok, %{fields | content: data}}
    end
  end

  defp in_memory(_adapter, fields), do: {:ok, fields}

  @doc false
  @spec size(binary() | source()) :: non_neg_integer()
  def size({:file, _device, size}), do: size
  def size(data), do: byte_size(data)

  @doc false
  # A part of a content. The file may have been cut meanwhile.
  @spec part(binary() | source(), non_neg_integer(), non_neg_integer()) ::
          {:ok, binary()} | {:error, Exception.t()}
  def part(_content, _from, 0), do: {:ok, ""}

  def part({:file, device, _size}, from, size) do
    case :file.pread(device, from, size) do
      {:ok, data} when byte_size(data) == size ->
        {:ok, data}

      {:error, reason} ->
        {:error, %File.Error{reason: reason, action: "read", path: "the file"}}

      _shorter ->
        {:error, %DriveError{kind: :cut}}
    end
  end

  def part(data, from, size), do: {:ok, binary_part(data, from, size)}

  @doc false
  @spec share(Account.t(), file(), grant()) :: :ok | {:error, Exception.t()}
  def share(account, file, grant), do: adapter(account).share(account, file, grant)

  @doc false
  @spec permissions(Account.t(), file()) :: {:ok, [permission()]} | {:error, Exception.t()}
  def permissions(account, file), do: adapter(account).permissions(account, file)

  @doc false
  @spec unshare(Account.t(), file(), permission()) :: :ok | {:error, Exception.t()}
  def unshare(account, file, permission),
    do: adapter(account).unshare(account, file, permission)

  @doc false
  @spec children(Account.t(), [file()], pos_integer()) ::
          {:ok, [file()]} | {:error, Exception.t()}
  def children(account, folders, limit), do: adapter(account).children(account, folders, limit)

  @doc false
  @spec changes(Account.t(), String.t() | nil, String.t() | nil) ::
          {:ok, %{changes: [{String.t(), file() | nil}], token: String.t()}}
          | {:error, Exception.t() | :expired}
  def changes(account, drive, token), do: adapter(account).changes(account, drive, token)

  @doc false
  # A folder by its id, its address or its exact name.
  @spec folder(Account.t(), String.t()) :: {:ok, file()} | {:error, Exception.t()}
  def folder(account, text) do
    with {:error, %NotFoundError{}} <- file(account, text) do
      query = %{name: text, kind: :folder, limit: 10}

      with {:ok, %{files: files}} <- search(account, query) do
        case files do
          [folder] -> {:ok, folder}
          [] -> {:error, %DriveError{kind: :no_folder, name: text}}
          several -> {:error, %DriveError{kind: :which, name: text, ids: ids(several)}}
        end
      end
    else
      {:ok, %{kind: :folder} = folder} -> {:ok, folder}
      {:ok, _file} -> {:error, %DriveError{kind: :no_folder, name: text}}
      error -> error
    end
  end

  defp ids(files), do: Enum.map(files, & &1.id)

  defp missing(id), do: %NotFoundError{kind: "file", id: id, find: "drive.search"}

  defp adapter(account), do: Keyword.fetch!(account.vendor.services(account.options), :drive)
end
