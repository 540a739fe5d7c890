defmodule Skillbook.Support.ReadFile do
  @moduledoc false
  # Reads files up to a limit. Counts what it reads, because devices and pipes have no size, and
  # a file may grow after its size was checked.

  @chunk 1024 * 1024
  # As the loader: larger files are no documents.
  @max_document 1024 * 1024

  @doc """
  Returns the content of a file of at most `max` bytes, `{:error, :efbig}` for a larger one.

      iex> Skillbook.Support.ReadFile.read("mix.exs", 10)
      {:error, :efbig}

      iex> Skillbook.Support.ReadFile.read("/dev/null", 10)
      {:ok, ""}
  """
  @spec read(Path.t(), non_neg_integer()) :: {:ok, binary()} | {:error, atom()}
  def read(path, max) do
    with {:ok, file} <- :file.open(path, [:read, :raw, :binary]) do
      try do
        read_device(&:file.read(file, &1), max)
      after
        :file.close(file)
      end
    end
  end

  @doc """
  Returns the content of a document as the loader reads it: of a regular file, no link, of at most
  1 MiB by default. Never waits for a pipe or reads a device.

      iex> Skillbook.Support.ReadFile.regular("/dev/zero")
      {:error, :einval}

      iex> {:error, :efbig} = Skillbook.Support.ReadFile.regular("mix.exs", 10)
      iex> Skillbook.Support.ReadFile.regular("none.md")
      {:error, :enoent}
  """
  @spec regular(Path.t(), non_neg_integer()) :: {:ok, binary()} | {:error, atom()}
  def regular(path, max \\ @max_document) do
    case File.lstat(path) do
      {:ok, %{type: :regular}} -> read(path, max)
      {:ok, _other} -> {:error, :einval}
      {:error, reason} -> {:error, reason}
    end
  end

  @doc "As `read/2`, from a function that takes a number of bytes, such as `IO.binread/2`."
  @spec read_device((pos_integer() -> term()), non_neg_integer()) ::
          {:ok, binary()} | {:error, atom()}
  def read_device(read, max), do: read_device(read, max, [])

  defp read_device(read, left, done) do
    case read.(min(left + 1, @chunk)) do
      :eof -> {:ok, done |> Enum.reverse() |> IO.iodata_to_binary()}
      {:error, reason} -> {:error, reason}
      {:ok, bytes} -> add(read, left, done, bytes)
      bytes -> add(read, left, done, bytes)
    end
  end

  defp add(_read, left, _done, bytes) when byte_size(bytes) > left, do: {:error, :efbig}

  defp add(read, left, done, bytes),
    do: read_device(read, left - byte_size(bytes), [bytes | done])
end
