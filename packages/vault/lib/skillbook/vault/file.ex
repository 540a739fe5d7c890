defmodule Skillbook.Vault.File do
  @moduledoc false
  # Files of folder vaults, of any type, for commands that fetch them from a service or send them
  # there. Their bytes go from file to file and never into a result.
  #
  # A file has the address `vault:NAME/PATH`, and the labels of its vault. Markdown files are
  # notes: they have labels of their own, and are never written here, since a stranger's text
  # would become a note without a mark.

  alias Skillbook.{Document, Profile, VaultError, View}
  alias Skillbook.Support.{Closest, FileName, ReadFile}
  alias Skillbook.Vault.{Config, Folder, Note, Search}

  @type place :: %{
          vault: String.t(),
          path: String.t(),
          root: Path.t(),
          max: pos_integer(),
          config: Config.t()
        }
  @type opened :: %{
          vault: String.t(),
          path: String.t(),
          size: non_neg_integer(),
          device: :file.io_device()
        }

  # Names of a folder that are compared with a missing one.
  @max_compared 1_000

  @doc "Opens a file for reading, and calls the function with it."
  @spec open(View.t(), String.t(), pos_integer() | nil, (opened() -> value)) ::
          value | {:error, Exception.t()}
        when value: term()
  def open(view, address, max, fun) do
    with {:ok, place} <- place(view, address),
         :ok <- check_readable(view, place) do
      max = min(max || place.max, place.max)

      opened =
        Document.open(place.root, place.path, fn
          _device, size when size > max ->
            {:error, too_large(place, max)}

          device, size ->
            fun.(%{vault: place.vault, path: place.path, size: size, device: device})
        end)

      with {:error, %{kind: :missing}} <- opened, do: missing(place)
    end
  end

  # The labels of a note are in its text. If they cannot be read, nobody knows its readers.
  defp check_readable(view, %{path: path} = place) do
    if note?(path) do
      with :ok <- Document.open(place.root, path, fn _device, _size -> :ok end),
           {:ok, text} <- ReadFile.read(Path.join(place.root, path), Note.max_bytes()),
           {:ok, %{labels: labels}, _warning} <- Note.read(path, path, text),
           [] <- Profile.foreign(view.profile, labels) do
        :ok
      else
        {:error, %{kind: kind} = error} when kind in [:path, :link] -> {:error, error}
        _missing_or_hidden -> missing(place)
      end
    else
      :ok
    end
  end

  @doc """
  Writes a file in one step, with the function that gets the open file and the most bytes.

  An existing file is an error without `replace: true`.
  """
  @spec save(
          View.t(),
          String.t(),
          keyword(),
          (:file.io_device(), pos_integer() ->
             :ok | {:error, Exception.t()})
        ) ::
          {:ok, %{vault: String.t(), path: String.t(), size: non_neg_integer()}}
          | {:error, Exception.t()}
  def save(view, address, options, fun) do
    with {:ok, place} <- check(view, address, options) do
      write = &write(&1, place, fun)

      saved =
        if options[:replace],
          do: Document.replace(place.root, place.path, write),
          else: Document.create(place.root, place.path, write)

      case saved do
        {:ok, file} -> {:ok, %{vault: place.vault, path: place.path, size: File.stat!(file).size}}
        {:error, %{kind: :exists}} -> exists(place)
        error -> error
      end
    end
  end

  defp write(device, place, fun) do
    with :ok <- fun.(device, place.max),
         {:ok, size} <- :file.position(device, :eof) do
      if size > place.max, do: {:error, too_large(place, place.max)}, else: :ok
    end
  end

  @doc """
  Checks, as far as possible without its name and content, that a file could be saved at an
  address, which may be that of a folder and end with `/`.
  """
  @spec check_target(View.t(), String.t(), keyword()) :: :ok | {:error, Exception.t()}
  def check_target(view, address, options) do
    if String.ends_with?(address, "/") do
      with {:ok, place} <- place(view, address <> "file"), do: check_writable(view, place)
    else
      with {:ok, _place} <- check(view, address, options), do: :ok
    end
  end

  @doc "Checks that a file could be saved."
  @spec check(View.t(), String.t(), keyword()) :: {:ok, place()} | {:error, Exception.t()}
  def check(view, address, options) do
    with {:ok, place} <- place(view, address),
         :ok <- check_writable(view, place) do
      case Document.stat(place.root, place.path) do
        {:ok, :directory, _size} -> {:error, error(:file_folder, place)}
        {:ok, _file, _size} -> if options[:replace], do: {:ok, place}, else: exists(place)
        {:error, %{kind: :missing}} -> {:ok, place}
        error -> error
      end
    end
  end

  defp check_writable(view, %{config: vault} = place) do
    missing = view.profile.labels -- vault.labels

    cond do
      note?(place.path) -> {:error, error(:note, place)}
      not Profile.writes?(view.profile, vault.tenant) -> {:error, error(:common, place)}
      missing != [] -> {:error, %{error(:labels, place) | available: missing}}
      true -> :ok
    end
  end

  @doc """
  The address of a file: an address that ends with `/` gets a name that a stranger chose.

      iex> Skillbook.Vault.File.named("vault:work/mail/", "../a: b?.pdf")
      {:ok, "vault:work/mail/a b.pdf"}
      iex> Skillbook.Vault.File.named("vault:work/plan.pdf", "x.docx")
      {:ok, "vault:work/plan.pdf"}
  """
  @spec named(String.t(), String.t()) :: {:ok, String.t()} | {:error, VaultError.t()}
  def named(address, name) do
    if String.ends_with?(address, "/"),
      do: with({:ok, name} <- file_name(name), do: {:ok, address <> name}),
      else: {:ok, address}
  end

  @max_name 200

  defp file_name(given) do
    name =
      given
      |> String.replace(~r/[\/\\:*?"<>|\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]+/u, " ")
      |> String.split()
      |> Enum.join(" ")
      |> String.replace(~r/\A[. ]+|[. ]+(?=\.[^.]*\z)/u, "")

    extension = name |> Path.extname() |> short(20)
    base = name |> Path.rootname() |> short(@max_name) |> String.trim()
    name = String.trim_trailing(base <> extension, ".")

    with false <- base == "",
         :ok <- FileName.check(name) do
      {:ok, name}
    else
      true -> {:error, %VaultError{kind: :file_name, name: given}}
      {:error, reason} -> {:error, %VaultError{kind: :file_name, name: given, reason: reason}}
    end
  end

  # Up to so many bytes, in whole characters.
  defp short(text, max) when byte_size(text) <= max, do: text
  defp short(text, max), do: text |> String.slice(0, max) |> cut(max)
  defp cut(text, max) when byte_size(text) <= max, do: text
  defp cut(text, max), do: text |> String.slice(0..-2//1) |> cut(max)

  # Addresses

  # Bytes; systems have no longer paths.
  @max_address 4_096

  defp place(view, address) do
    case address do
      "vault:" <> place when byte_size(place) <= @max_address ->
        place |> String.split("/", parts: 2) |> place(view, address)

      _other ->
        wrong_address(view, address)
    end
  end

  defp place([name, path], view, _address) when name != "" and path != "" do
    with {:ok, [vault]} <- Search.visible_vaults(view, name) do
      case vault do
        %{files: max, producer: {Folder, options}} when is_integer(max) ->
          {:ok, %{vault: name, path: path, root: options[:path], max: max, config: vault}}

        _notes ->
          {:error, %VaultError{kind: :no_files, name: name}}
      end
    end
  end

  defp place(_parts, view, address), do: wrong_address(view, address)

  defp wrong_address(view, address) do
    with {:ok, vaults} <- Search.visible_vaults(view, nil) do
      case for(%{files: max} = vault when max != nil <- vaults, do: vault.name) do
        [] -> {:error, %VaultError{kind: :no_files}}
        names -> {:error, %VaultError{kind: :address, name: address, available: names}}
      end
    end
  end

  # Notes may be hidden, so they are no suggestions.
  defp missing(place) do
    folder = Path.dirname(place.path)
    names = with {:ok, names} <- list(place.root, folder), do: names, else: (_ -> [])

    similar =
      for name <- Closest.several(Path.basename(place.path), names, 3) do
        path = if folder == ".", do: name, else: folder <> "/" <> name
        "vault:#{place.vault}/#{path}"
      end

    {:error, %{error(:no_file, place) | available: similar}}
  end

  defp list(root, folder) do
    # A folder that is a link leads elsewhere.
    names = if folder == ".", do: [], else: String.split(folder, "/")
    parts = names |> Enum.scan(&Path.join(&2, &1)) |> Enum.map(&Path.join(root, &1))

    if Enum.all?(parts, &match?({:ok, %{type: :directory}}, File.lstat(&1))) do
      with {:ok, names} <- File.ls(Path.join(root, folder)) do
        shown = Enum.reject(names, &(String.starts_with?(&1, ".") or note?(&1)))
        {:ok, Enum.take(shown, @max_compared)}
      end
    else
      :error
    end
  end

  @doc "Whether the file of a path is a note."
  @spec note?(String.t()) :: boolean()
  def note?(path), do: path =~ ~r/\.(md|markdown)\z/i

  defp exists(place), do: {:error, error(:file_exists, place)}
  defp too_large(place, max), do: %{error(:large, place) | limit: max}
  defp error(kind, place), do: %VaultError{kind: kind, name: name(kind, place)}
  defp name(kind, place) when kind in [:common, :labels], do: place.vault
  defp name(_kind, place), do: "vault:#{place.vault}/#{place.path}"
end
