defmodule Skillbook.Handlers.Email.Attachments do
  @moduledoc false
  # The files behind `--attachments`: a note or skill of the book, a file of a skill, an
  # attachment of a mail (`mail:ID/PART`), a file of a vault (`vault:NAME/PATH`), or a file of a
  # drive by its id.

  alias Skillbook.Catalog.SkillFile
  alias Skillbook.Connections.Account
  alias Skillbook.Handlers.Skills.Load
  alias Skillbook.Support.{MediaType, UntilError}

  alias Skillbook.{
    Connections,
    Context,
    Drive,
    Entry,
    Mail,
    MailError,
    NotFoundError,
    Vault,
    View
  }

  @doc "Fetches all files. The error is of the first one that cannot be had."
  @spec fetch(Account.t(), [String.t()], Context.t()) ::
          {:ok, [Mail.file()]} | {:error, Exception.t()}
  def fetch(account, names, context) do
    limit = Mail.max_attachments(account)

    result =
      UntilError.reduce(names, {[], 0}, fn name, {files, size} ->
        with {:ok, file} <- file(account, name, context, limit) do
          size = size + byte_size(file.data)
          if size <= limit, do: {:ok, {[file | files], size}}, else: too_large(size, limit)
        end
      end)

    with {:ok, {files, _size}} <- result, do: {:ok, Enum.reverse(files)}
  end

  @doc "Fetches the attachments of a mail."
  @spec of_mail(Account.t(), Mail.message()) :: {:ok, [Mail.file()]} | {:error, Exception.t()}
  def of_mail(account, %{id: id, attachments: files}) do
    limit = Mail.max_attachments(account)
    size = files |> Enum.map(& &1.size) |> Enum.sum()

    if size > limit,
      do: too_large(size, limit),
      else: UntilError.map(files, &Mail.attachment(account, id, &1.part))
  end

  defp file(account, "mail:" <> place = name, _context, _limit) do
    case String.split(place, "/", parts: 2) do
      [id, part] -> Mail.attachment(account, id, part)
      _ -> missing(name)
    end
  end

  defp file(_account, "vault:" <> _ = address, context, limit) do
    Vault.open_file(
      context.view,
      address,
      fn file ->
        with {:ok, data} <- Drive.part({:file, file.device, file.size}, 0, file.size) do
          type = MediaType.of(file.path) || "application/octet-stream"
          {:ok, %{name: Path.basename(file.path), type: type, data: data}}
        end
      end,
      max_bytes: limit
    )
  end

  defp file(_account, name, context, limit) do
    case Load.fetch(context.view, name, [:note, :skill]) do
      {:ok, entry} ->
        {:ok, %{name: file_name(entry), type: "text/markdown", data: entry.body}}

      {:error, error} ->
        {:error, error}

      :error ->
        with :error <- of_skill(context.view, name, limit), do: of_drive(context, name)
    end
  end

  defp file_name(entry),
    do: String.replace(Load.title(entry), ~r/[^\p{L}\p{N} ._-]+/u, "-") <> ".md"

  # A file beside a SKILL.md, which the catalog has listed.
  defp of_skill(view, name, limit) do
    with [skill, path] <- String.split(name, "/", parts: 2),
         {:ok, %Entry{kind: :skill} = entry} <- View.fetch(view, skill) do
      case SkillFile.read(entry, path, limit) do
        {:ok, data} ->
          type = MediaType.of(path) || "application/octet-stream"
          {:ok, %{name: Path.basename(path), type: type, data: data}}

        {:error, :efbig} ->
          too_large(limit + 1, limit)

        :error ->
          :error
      end
    else
      _ -> :error
    end
  end

  # Without a drive there is no such file.
  defp of_drive(context, id) do
    case Connections.account(context, :drive) do
      {:ok, account} -> Drive.download(account, id)
      {:error, _} -> missing(id)
    end
  end

  defp too_large(size, limit),
    do: {:error, %MailError{kind: :too_large, size: size, limit: limit}}

  defp missing(name),
    do: {:error, %NotFoundError{kind: "file", id: name, find: "drive.search"}}
end
