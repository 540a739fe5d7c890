defmodule Skillbook.Handlers.Markdown.Read do
  @moduledoc false
  # `markdown.read`: shows the text of a note in a vault. The report cuts a long one, and
  # `results.read` reads on. A file of a vault with `files` is shown to models and clients that
  # take pictures, PDF files or sounds.

  @behaviour Skillbook.Handler

  alias Skillbook.{Result, Vault, VaultError}
  alias Skillbook.Support.External
  alias Skillbook.Vault.Note

  # Bytes of a file; results may have 8 MiB together.
  @max_file 5 * 1024 * 1024

  @impl true
  def execute(%{"note" => "vault:" <> place = address} = flags, context)
      when not is_map_key(flags, "vault") do
    case {Vault.File.note?(place), String.split(place, "/", parts: 2)} do
      {true, [vault, path]} -> execute(%{"note" => path, "vault" => vault}, context)
      _file -> file(address, context.view)
    end
  end

  def execute(flags, context) do
    with {:ok, note} <- Vault.read(context.view, flags["note"], vault: flags["vault"]),
         do: {:ok, Result.ok(text(note), data: note, metadata: metadata(note))}
  end

  # Its bytes are those that a command has fetched from somewhere.
  defp file(address, view) do
    read = fn file -> with {:ok, data} <- bytes(file), do: {:ok, file, data} end

    with {:ok, file, data} <- Vault.open_file(view, address, read, max_bytes: @max_file),
         {:ok, type} <- type(data, address) do
      origin = "#{External.line(file.path)} in the vault #{file.vault}"
      medium = %{type: type, data: data}
      # A client of MCP gets any other file with its address.
      medium = if type =~ "pdf", do: Map.put(medium, :uri, URI.encode(address)), else: medium
      data = Map.take(file, [:vault, :path, :size]) |> Map.put(:type, type)
      content = External.block(origin, "A file: #{type}, #{file.size} bytes.")
      {:ok, Result.ok(content, data: data, metadata: %{external: true, media: [medium]})}
    end
  end

  defp bytes(%{size: 0}), do: {:ok, ""}
  defp bytes(%{device: device, size: size}), do: :file.read(device, size)

  # What its bytes are, whatever its name says: a model's server refuses others, again and again.
  defp type(<<137, "PNG\r\n", 26, 10, _::binary>>, _), do: {:ok, "image/png"}
  defp type(<<255, 216, 255, _::binary>>, _), do: {:ok, "image/jpeg"}
  defp type(<<"GIF8", _::binary>>, _), do: {:ok, "image/gif"}
  defp type(<<"RIFF", _::32, "WEBP", _::binary>>, _), do: {:ok, "image/webp"}
  defp type(<<"RIFF", _::32, "WAVE", _::binary>>, _), do: {:ok, "audio/wav"}
  defp type(<<"ID3", _::binary>>, _), do: {:ok, "audio/mpeg"}
  defp type(<<255, 7::3, _::5, _::binary>>, _), do: {:ok, "audio/mpeg"}
  defp type(<<"%PDF-", _::binary>>, _), do: {:ok, "application/pdf"}
  defp type(_data, address), do: {:error, %VaultError{kind: :media, name: address}}

  defp metadata(%{external: true}), do: %{external: true}
  defp metadata(_note), do: %{}

  # A document of a drive is a stranger's text.
  defp text(%{external: true} = note) do
    tags = Enum.map_join(note.tags, &" #{External.line("#" <> &1, 60)}")
    origin = "#{External.line(note.path)} in the vault #{note.vault}"

    External.block("#{origin}: #{External.line(note.title)}#{tags}", note.content,
      max: Note.max_bytes()
    )
  end

  # The text comes last, so nothing of it can be taken for the line about the note.
  defp text(note) do
    tags = Enum.map_join(note.tags, &" ##{&1}")
    title = String.replace(note.title, ~r/\s+/u, " ")
    "#{note.path} in the vault #{note.vault}: #{title}#{tags}\n\n#{note.content}"
  end
end
