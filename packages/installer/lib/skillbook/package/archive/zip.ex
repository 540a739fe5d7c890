defmodule Skillbook.Package.Archive.Zip do
  @moduledoc false
  # Reads a zip archive in memory. `:zip` of OTP 25 is not used: it writes wherever a name
  # leads, and unpacks without limits.
  #
  # The central directory decides. Each local header must agree with it, and no two files may
  # share bytes; otherwise two programs could read different files from one archive.

  import Bitwise

  alias Skillbook.Package.Item
  alias Skillbook.PackageError

  @end_size 22
  @max_comment 65_535
  # A file larger than this must not be compressed by more than `@max_ratio` times.
  @min_bomb_size 1024 * 1024
  @max_ratio 250

  @doc "The files, links and special entries of an archive, without folders."
  @spec read(binary(), String.t()) :: {:ok, [Item.t()]} | {:error, PackageError.t()}
  def read(bytes, place) do
    read_all(bytes)
  catch
    {:refused, reason} -> PackageError.new(:archive, place, reason)
    {:error, %PackageError{}} = error -> error
  end

  defp read_all(bytes) do
    {count, size, offset} = directory(bytes)

    if count > Item.max_source_entries(),
      do: limit("has #{count} entries, and may have #{Item.max_source_entries()}")

    entries = entries(part(bytes, offset, size), count, [])
    entries = Enum.map(entries, &Map.put(&1, :data, data(&1, bytes)))
    check_overlaps(entries, offset)

    total = entries |> Enum.map(& &1.size) |> Enum.sum()

    if total > Item.max_source_size(),
      do: limit("has #{total} bytes once unpacked, and may have #{Item.max_source_size()}")

    items = for entry <- entries, not String.ends_with?(entry.name, "/"), do: item(entry, bytes)
    {:ok, items}
  end

  defp directory(bytes) do
    from = max(byte_size(bytes) - @end_size - @max_comment, 0)
    tail = binary_part(bytes, from, byte_size(bytes) - from)

    with {at, 4} <- tail |> :binary.matches("PK\x05\x06") |> List.last(),
         {_,
          <<"PK\x05\x06", 0::32, n::16-little, n::16-little, size::32-little, offset::32-little,
            comment::16-little, rest::binary>>} <- :erlang.split_binary(tail, at),
         true <- byte_size(rest) == comment,
         true <- n != 0xFFFF and size != 0xFFFFFFFF and offset != 0xFFFFFFFF,
         true <- offset + size == from + at do
      {n, size, offset}
    else
      _ -> refuse("is not a complete zip archive in one part; zip64 is not supported")
    end
  end

  defp entries(<<>>, 0, done), do: Enum.reverse(done)

  defp entries(
         <<"PK\x01\x02", made_by::16-little, _needs::16, flags::16-little, method::16-little,
           _time::32, crc::32-little, packed::32-little, size::32-little, name_size::16-little,
           extra_size::16-little, comment_size::16-little, disk::16-little, _internal::16,
           external::32-little, offset::32-little, name::binary-size(name_size),
           _extra::binary-size(extra_size), _comment::binary-size(comment_size), rest::binary>>,
         count,
         done
       )
       when count > 0 do
    with {:error, _} = error <- Item.inside(name), do: throw(error)
    if disk != 0, do: refuse("has several parts")
    if (flags &&& 0x2041) != 0, do: refuse("is encrypted")

    if method not in [0, 8],
      do: refuse("has #{name} packed by method #{method}; only methods 0 and 8 are supported")

    if size > Item.max_file_size(),
      do: limit("has #{name} of #{size} bytes, and a file may have #{Item.max_file_size()}")

    if size > @min_bomb_size and size > packed * @max_ratio,
      do: limit("has #{name}, compressed #{div(size, max(packed, 1))} times, like a zip bomb")

    entry = %{
      name: name,
      method: method,
      crc: crc,
      packed: packed,
      size: size,
      offset: offset,
      mode: if((made_by >>> 8) in [3, 19], do: external >>> 16, else: 0)
    }

    entries(rest, count - 1, [entry | done])
  end

  defp entries(_rest, _count, _done), do: refuse("has a broken directory")

  # The offset of a file's packed bytes.
  defp data(entry, bytes) do
    case part(bytes, entry.offset, 30) do
      <<"PK\x03\x04", _needs::16, _flags::16, method::16-little, _time::32, _crc::32, _packed::32,
        _size::32, name_size::16-little, extra_size::16-little>> ->
        if method != entry.method or part(bytes, entry.offset + 30, name_size) != entry.name,
          do:
            refuse(
              "has a file with a local header that differs from the directory: #{entry.name}"
            )

        entry.offset + 30 + name_size + extra_size

      _ ->
        refuse("has no file at the offset in its directory: #{entry.name}")
    end
  end

  defp check_overlaps(entries, directory) do
    entries
    |> Enum.sort_by(& &1.offset)
    |> Enum.reduce(0, fn entry, free ->
      if entry.offset < free, do: refuse("has files that share bytes: #{entry.name}")
      entry.data + entry.packed
    end)
    |> then(&if &1 > directory, do: refuse("has a file that overlaps its directory"))
  end

  defp item(entry, bytes) do
    packed = part(bytes, entry.data, entry.packed)
    content = unpack(entry, packed)

    if byte_size(content) != entry.size or :erlang.crc32(content) != entry.crc,
      do: refuse("has a file with a wrong size or checksum: #{entry.name}")

    %Item{
      path: entry.name,
      type: type(entry.mode &&& 0o170000),
      executable: (entry.mode &&& 0o111) != 0,
      size: entry.size,
      content: content
    }
  end

  defp type(kind) when kind in [0, 0o100000], do: :file
  defp type(0o120000), do: :link
  defp type(_), do: :special

  defp unpack(%{method: 0}, packed), do: packed

  defp unpack(%{method: 8} = entry, packed) do
    z = :zlib.open()

    try do
      # Raw deflate data, without a zlib header.
      :ok = :zlib.inflateInit(z, -15)
      inflate(z, :zlib.safeInflate(z, packed), entry, [], 0)
    rescue
      _ in ErlangError -> refuse("has a file that cannot be unpacked: #{entry.name}")
    after
      :zlib.close(z)
    end
  end

  defp inflate(z, {step, output}, entry, done, size) do
    size = size + IO.iodata_length(output)
    if size > entry.size, do: refuse("has a file with a wrong size or checksum: #{entry.name}")
    done = [done | output]

    if step == :continue,
      do: inflate(z, :zlib.safeInflate(z, []), entry, done, size),
      else: IO.iodata_to_binary(done)
  end

  defp part(bytes, from, size) when from + size <= byte_size(bytes),
    do: binary_part(bytes, from, size)

  defp part(_bytes, _from, _size), do: refuse("is truncated")

  @spec refuse(String.t()) :: no_return()
  defp refuse(reason), do: throw({:refused, reason})

  @spec limit(String.t()) :: no_return()
  defp limit(reason), do: throw(PackageError.new(:limit, "the archive", reason))
end
