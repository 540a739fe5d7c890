defmodule Skillbook.Support.ReadFileTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.ReadFile

  doctest ReadFile

  test "a file of the limit is read, a larger one is not, however it arrives" do
    path = Path.join(System.tmp_dir!(), "read-file-#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm!(path) end)
    megabyte = 1024 * 1024

    for size <- [0, 1, 9, 10, megabyte - 1, megabyte, megabyte + 1, 3 * megabyte],
        max <- [0, 10, megabyte, 2 * megabyte] do
      text = String.duplicate("x", size)
      File.write!(path, text)
      expected = if size <= max, do: {:ok, text}, else: {:error, :efbig}
      assert ReadFile.read(path, max) == expected

      {:ok, device} = StringIO.open(text)
      one_by_one = &IO.binread(device, min(&1, 100_000))
      assert ReadFile.read_device(one_by_one, max) == expected
    end
  end

  test "devices without an end are refused, other errors returned" do
    assert ReadFile.read("/dev/zero", 1000) == {:error, :efbig}
    assert ReadFile.read("no/such", 1000) == {:error, :enoent}
    assert ReadFile.read("lib", 1000) == {:error, :eisdir}
  end
end
