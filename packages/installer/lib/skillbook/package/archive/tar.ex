defmodule Skillbook.Package.Archive.Tar do
  @moduledoc false
  # Reads a tar archive in memory, with or without gzip. `:erl_tar` of OTP 25 is not used: it
  # knows no sizes before it unpacks, follows links that it has created, and reads unknown types
  # as files.
  #
  # Supports the formats of POSIX (ustar, pax) and GNU. Entries of unknown types are `:special`.

  import Bitwise

  alias Skillbook.Package.Item
  alias Skillbook.PackageError
  alias Skillbook.Support.Number

  @block 512
  @min_bomb_size 4 * 1024 * 1024
  @max_ratio 250

  @doc "The files, links and special entries of an archive, without folders."
  @spec read(binary(), String.t()) :: {:ok, [Item.t()]} | {:error, PackageError.t()}
  def read(bytes, place) do
    {:ok, bytes |> plain() |> entries(%{}, %{}, [], 0)}
  catch
    {:refused, reason} -> PackageError.new(:archive, place, reason)
    {:error, %PackageError{}} = error -> error
  end

  defp plain(<<0x1F, 0x8B, _::binary>> = packed) do
    z = :zlib.open()

    try do
      # `:reset` reads all members of a gzip file.
      :ok = :zlib.inflateInit(z, 31, :reset)
      unpacked = inflate(z, :zlib.safeInflate(z, packed), byte_size(packed), [], 0)
      # Raises if the data is truncated.
      :ok = :zlib.inflateEnd(z)
      unpacked
    rescue
      _ in ErlangError -> refuse("cannot be unpacked: its gzip data is broken or truncated")
    after
      :zlib.close(z)
    end
  end

  defp plain(bytes), do: bytes

  defp inflate(z, {step, output}, packed, done, size) do
    size = size + IO.iodata_length(output)

    if size > Item.max_source_size(),
      do: limit("has more than #{Item.max_source_size()} bytes once unpacked")

    if size > @min_bomb_size and size > packed * @max_ratio,
      do: limit("is compressed by more than #{@max_ratio} times, like a zip bomb")

    done = [done | output]

    if step == :continue,
      do: inflate(z, :zlib.safeInflate(z, []), packed, done, size),
      else: IO.iodata_to_binary(done)
  end

  # `next` has the pax fields of the next entry, `global` those of all later entries.
  defp entries(bytes, next, global, done, count) do
    if count > Item.max_source_entries(),
      do: limit("has more than #{Item.max_source_entries()} entries")

    case bytes do
      <<0::size(@block)-unit(8), _::binary>> ->
        finish(next, done)

      <<header::binary-size(@block), rest::binary>> ->
        entry(header(header), rest, next, global, done, count + 1)

      _ ->
        refuse("is not a tar archive, or it is truncated")
    end
  end

  defp finish(next, done) when next == %{}, do: Enum.reverse(done)
  defp finish(_next, _done), do: refuse("is truncated")

  defp entry(%{type: type} = header, rest, next, global, done, count) when type in ~c"xgLK" do
    {content, rest} = content(header.size, rest)

    case type do
      ?x -> entries(rest, Map.merge(next, pax(content, %{})), global, done, count)
      ?g -> entries(rest, next, Map.merge(global, pax(content, %{})), done, count)
      ?L -> entries(rest, Map.put(next, "path", until_zero(content)), global, done, count)
      # The target of a link does not count: links are not taken.
      ?K -> entries(rest, Map.put(next, :link, true), global, done, count)
    end
  end

  defp entry(header, rest, next, global, done, count) do
    fields = Map.merge(global, next)
    path = fields |> Map.get("path", header.path) |> String.replace(~r/\A(\.\/+)+/, "")
    with {:error, _} = error <- Item.inside(path), do: throw(error)
    size = fields |> Map.get("size") |> size(header.size)
    sparse? = is_map_key(fields, :sparse)

    # Only files have content. Programs differ in how they read other entries with a size.
    if header.type not in [0, ?0, ?7, ?S] and size != 0,
      do: refuse("has an entry with a size that is not a file: #{path}")

    if size > Item.max_file_size(),
      do: limit("has #{path} of #{size} bytes, and a file may have #{Item.max_file_size()}")

    {content, rest} = content(size, rest)

    done =
      cond do
        header.type == ?5 or (header.type in [0, ?0] and String.ends_with?(path, "/")) or
            path in ["", "."] ->
          done

        true ->
          [
            item(path, if(sparse?, do: :special, else: type(header.type)), header, size, content)
            | done
          ]
      end

    entries(rest, %{}, global, done, count)
  end

  defp item(path, type, header, size, content) do
    %Item{
      path: path,
      type: type,
      executable: (header.mode &&& 0o111) != 0,
      size: size,
      content: content
    }
  end

  defp type(type) when type in [0, ?0, ?7], do: :file
  # Hard links too.
  defp type(type) when type in ~c"12", do: :link
  defp type(_), do: :special

  defp header(
         <<name::binary-100, mode::binary-8, _owner::binary-16, size::binary-12, _time::binary-12,
           checksum::binary-8, type, _link::binary-100, magic::binary-6, _version::binary-2,
           _names::binary-80, prefix::binary-155, _::binary>> = header
       ) do
    <<before::binary-148, _::binary-8, behind::binary>> = header
    sum = for <<byte <- before <> "        " <> behind>>, reduce: 0, do: (sum -> sum + byte)

    if number(checksum) != sum,
      do: refuse("is not a tar archive, or it is broken: a header has a wrong checksum")

    # GNU tar uses the prefix field of POSIX for other data.
    prefix = if magic == "ustar\0", do: until_zero(prefix), else: ""
    name = until_zero(name)

    %{
      path: if(prefix == "", do: name, else: prefix <> "/" <> name),
      mode: number(mode),
      size: number(size),
      type: type
    }
  end

  # Octal digits, or GNU's base-256 format.
  defp number(<<1::1, high::7, low::binary>>),
    do: :binary.decode_unsigned(<<high, low::binary>>)

  defp number(bytes) do
    case bytes |> until_zero() |> String.trim() do
      "" ->
        0

      digits ->
        case Number.integer(digits, 8) do
          {number, ""} when number >= 0 -> number
          _ -> refuse("is not a tar archive, or it is broken: expected a number in a header")
        end
    end
  end

  defp size(nil, size), do: size

  defp size(digits, _size) do
    case Number.integer(digits) do
      {size, ""} when size >= 0 -> size
      _ -> refuse("has a pax header with a size that is not a number")
    end
  end

  defp content(size, rest) do
    padding = rem(@block - rem(size, @block), @block)

    if size + padding > byte_size(rest), do: refuse("is truncated")
    {content, rest} = :erlang.split_binary(rest, size)
    {_, rest} = :erlang.split_binary(rest, padding)
    {content, rest}
  end

  # A record begins with its length: "12 path=a/b\n".
  defp pax(<<>>, done), do: done

  defp pax(records, done) do
    with {length, " " <> _} when length > 0 <- Number.integer(records),
         true <- length <= byte_size(records),
         {record, rest} = :erlang.split_binary(records, length),
         [_, record] <- String.split(record, " ", parts: 2),
         true <- String.ends_with?(record, "\n"),
         [key, value] <-
           record |> binary_part(0, byte_size(record) - 1) |> String.split("=", parts: 2) do
      pax(rest, put(done, key, value))
    else
      _ -> refuse("has a broken pax header")
    end
  end

  # Only these fields count. Global ones are merged with those of each entry, so their number must
  # not grow with the header.
  defp put(done, key, value) when key in ~w(path size), do: Map.put(done, key, value)
  defp put(done, "GNU.sparse" <> _, _value), do: Map.put(done, :sparse, true)
  defp put(done, _other, _value), do: done

  defp until_zero(bytes), do: bytes |> :binary.split(<<0>>) |> hd()

  @spec refuse(String.t()) :: no_return()
  defp refuse(reason), do: throw({:refused, reason})

  @spec limit(String.t()) :: no_return()
  defp limit(reason), do: throw(PackageError.new(:limit, "the archive", reason))
end
