defmodule Skillbook.HTTP.Gzip do
  @moduledoc false
  # Unpacks gzip piece by piece, so a bomb takes no memory. A body may have several members.

  @type t :: :none | :zlib.zstream()

  @spec new() :: t()
  def new, do: :none

  @doc "Unpacks data: a piece and the function for the next, or `:more` when all is unpacked."
  @spec feed(t(), iodata()) :: {:data, binary(), (() -> tuple() | :error)} | {:more, t()} | :error
  def feed(:none, data) do
    zlib = :zlib.open()
    # 16 says that it is gzip, 15 is the largest window.
    :ok = :zlib.inflateInit(zlib, 16 + 15, :reset)
    feed(zlib, data)
  end

  def feed(zlib, data) do
    case :zlib.safeInflate(zlib, data) do
      {:continue, []} -> feed(zlib, [])
      {:finished, []} -> {:more, zlib}
      {:continue, out} -> {:data, IO.iodata_to_binary(out), fn -> feed(zlib, []) end}
      {:finished, out} -> {:data, IO.iodata_to_binary(out), fn -> {:more, zlib} end}
    end
  rescue
    ErlangError -> :error
  end

  @doc "Whether the last member is complete. No data at all, as after `HEAD`, is complete."
  @spec ended?(t()) :: boolean()
  def ended?(:none), do: true

  def ended?(zlib) do
    :zlib.inflateEnd(zlib) == :ok
  rescue
    ErlangError -> false
  end
end
