defmodule Skillbook.Handlers.Drive.Read do
  @moduledoc false
  # `drive.read`: shows the text of a file, some lines at a time; or a picture, to models and
  # clients that take those.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Drive.Files
  alias Skillbook.{Connections, Drive, FlagError, Result}
  alias Skillbook.Support.External

  # Characters of one result.
  @max 20_000
  # Longer lines are broken, so that each line fits into a result.
  @max_line 4_000
  # The types of pictures that all vendors of models take, and their bytes.
  @pictures ~w(image/jpeg image/png image/gif image/webp)
  @max_picture 5 * 1024 * 1024

  @impl true
  def execute(%{"from" => from} = flags, context) do
    with {:ok, account} <- Connections.account(context, :drive),
         {:ok, file} <- Drive.file(account, flags["id"]) do
      if file.type in @pictures and (file.size || 0) <= @max_picture,
        do: picture(account, file),
        else: text(account, file, from)
    end
  end

  defp picture(account, file) do
    with {:ok, %{data: data}} <- Drive.content(account, file) do
      content = External.block(Files.head(file), "A picture.", max: @max)

      media =
        if byte_size(data) in 1..@max_picture, do: [%{type: file.type, data: data}], else: []

      metadata = %{external: true, media: media}
      {:ok, Result.ok(content, data: %{file: file}, metadata: metadata)}
    end
  end

  defp text(account, file, from) do
    with {:ok, text} <- Drive.text(account, file),
         lines = lines(text),
         {:ok, shown} <- shown(lines, from) do
      data = %{file: file, text: text}
      content = content(file, shown, from, length(lines))
      {:ok, Result.ok(content, data: data, metadata: %{external: true})}
    end
  end

  defp lines(text) do
    text
    |> String.trim_trailing()
    |> String.split(["\r\n", "\n", "\r"])
    |> Enum.flat_map(&pieces/1)
  end

  defp pieces(line) when byte_size(line) <= @max_line, do: [line]

  defp pieces(line) do
    case String.split_at(line, @max_line) do
      {piece, ""} -> [piece]
      {piece, rest} -> [piece | pieces(rest)]
    end
  end

  defp shown(lines, from) do
    case Enum.drop(lines, from - 1) do
      [] -> beyond(from, length(lines))
      rest -> {:ok, take(rest, @max, [])}
    end
  end

  # At least one line, and as many as fit with their marks and line breaks.
  defp take([], _room, taken), do: Enum.reverse(taken)

  defp take([line | rest], room, taken) do
    case room - String.length(line) - 3 do
      left when left >= 0 or taken == [] -> take(rest, left, [line | taken])
      _full -> Enum.reverse(taken)
    end
  end

  defp beyond(from, count) do
    expected = "a whole number up to #{count}, the last line of the file"
    FlagError.invalid("from", from, expected, "#{count}")
  end

  defp content(file, shown, from, count) do
    last = from + length(shown) - 1
    block = External.block(Files.head(file), Enum.join(shown, "\n"), max: @max * 2)

    cond do
      last < count ->
        block <>
          "\nLines #{from} to #{last} of #{count}. To read on, write: " <>
          "drive.read #{Files.id(file)} --from #{last + 1}"

      from > 1 ->
        block <> "\nLines #{from} to #{last} of #{count}, the end."

      true ->
        block
    end
  end
end
