defmodule Skillbook.Package.Archive.Pack do
  @moduledoc false
  # Writes a `.tar.gz` whose bytes depend only on the files: their paths, contents, and whether
  # they are executable. Two nodes, or two releases, must write the same bytes, because an index
  # names an archive by its digest. So files are sorted, owners and times are constant, and the
  # gzip data is stored and not deflated: the output of deflate differs among zlib's versions.

  alias Skillbook.Package.Item

  @block 512
  # Two empty blocks end an archive.
  @ending <<0::size(@block)-unit(16)>>
  # 1980-01-01. GNU tar warns about older times.
  @time 315_532_800
  # The format's largest stored block.
  @stored 65_535

  @doc "The bytes of an archive with these files at its root."
  @spec tar_gz([{Item.t(), binary()}]) :: binary()
  def tar_gz(files) do
    files
    |> Enum.sort_by(fn {item, _} -> item.path end)
    |> Enum.map(fn {item, bytes} -> [header(item, byte_size(bytes)), padded(bytes)] end)
    |> then(&IO.iodata_to_binary([&1, @ending]))
    |> gzip()
  end

  # Tar

  defp header(item, size) do
    mode = if item.executable, do: 0o755, else: 0o644

    case split(item.path) do
      {prefix, name} ->
        block(name, prefix, mode, size, ?0)

      nil ->
        # POSIX's extension for long paths. Readers that do not know it see a shortened path.
        record = pax("path", item.path)
        short = binary_part(item.path, 0, 100)

        [
          block("pax", "", 0o644, byte_size(record), ?x),
          padded(record),
          block(short, "", mode, size, ?0)
        ]
    end
  end

  # A path of up to 100 bytes, or of up to 155 and 100 bytes around one of its slashes.
  defp split(path) when byte_size(path) <= 100, do: {"", path}

  defp split(path) do
    path
    |> :binary.matches("/")
    |> Enum.find_value(fn {at, 1} ->
      {prefix, "/" <> name} = :erlang.split_binary(path, at)
      if at in 1..155 and byte_size(name) in 1..100, do: {prefix, name}
    end)
  end

  # A record begins with its own length: "12 path=a/b\n".
  defp pax(key, value) do
    rest = " #{key}=#{value}\n"

    Enum.find_value(1..9, fn digits ->
      length = byte_size(rest) + digits
      if byte_size(to_string(length)) == digits, do: "#{length}#{rest}"
    end)
  end

  defp block(name, prefix, mode, size, type) do
    before = [field(name, 100), octal(mode, 8), octal(0, 8), octal(0, 8), octal(size, 12)]
    before = IO.iodata_to_binary([before, octal(@time, 12)])

    behind =
      IO.iodata_to_binary([
        type,
        field("", 100),
        "ustar\0",
        "00",
        field("", 32),
        field("", 32),
        octal(0, 8),
        octal(0, 8),
        field(prefix, 155),
        field("", 12)
      ])

    sum = for <<byte <- before <> "        " <> behind>>, reduce: 0, do: (sum -> sum + byte)
    checksum = sum |> Integer.to_string(8) |> String.pad_leading(6, "0")
    [before, checksum, "\0 ", behind]
  end

  defp field(text, size), do: [text, <<0::size(size - byte_size(text))-unit(8)>>]

  defp octal(number, size),
    do: [number |> Integer.to_string(8) |> String.pad_leading(size - 1, "0"), 0]

  defp padded(bytes),
    do: [bytes, <<0::size(rem(@block - rem(byte_size(bytes), @block), @block))-unit(8)>>]

  # Gzip: no name, no time, an unknown system.

  defp gzip(bytes) do
    IO.iodata_to_binary([
      <<0x1F, 0x8B, 8, 0, 0::32, 0, 255>>,
      stored(bytes),
      <<:erlang.crc32(bytes)::32-little, byte_size(bytes)::32-little>>
    ])
  end

  defp stored(<<first::binary-size(@stored), rest::binary>>) when rest != "",
    do: [stored(0, first) | stored(rest)]

  defp stored(last), do: [stored(1, last)]

  defp stored(final, bytes) do
    size = byte_size(bytes)
    [<<final, size::16-little, Bitwise.bxor(size, 0xFFFF)::16-little>>, bytes]
  end
end
