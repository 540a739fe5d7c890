defmodule Skillbook.Connections.CipherTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Cipher

  @place ["connection", "ann", "google"]
  @text ~s({"access":"a","refresh":"b","lasts":3600000})

  defp keys(count) do
    secrets = for _ <- 1..count, key = Cipher.generate(), do: fn -> key end
    {:ok, keys} = Cipher.keys(secrets)
    keys
  end

  setup do
    keys = keys(2)
    {id, bytes} = Cipher.encrypt(keys, @place, @text)
    %{keys: keys, id: id, bytes: bytes}
  end

  defp text({:ok, text}), do: text.()
  defp text({:error, reason}), do: reason

  @changed "its row was changed, or copied from another one; connect again"

  test "the same text is never encrypted in the same way", %{keys: keys, bytes: bytes} do
    encrypted = for _ <- 1..20_000, do: elem(Cipher.encrypt(keys, @place, @text), 1)
    assert encrypted |> Enum.map(&binary_part(&1, 0, 13)) |> Enum.uniq() |> length() == 20_000
    refute bytes =~ "access"
  end

  test "a changed bit anywhere is an error", %{keys: keys, id: id, bytes: bytes} do
    assert text(Cipher.decrypt(keys, id, @place, bytes)) == @text

    for at <- 0..(bit_size(bytes) - 1) do
      <<before::bitstring-size(at), bit::1, rest::bitstring>> = bytes
      changed = <<before::bitstring, 1 - bit::1, rest::bitstring>>
      assert {at, text(Cipher.decrypt(keys, id, @place, changed))} == {at, @changed}
    end
  end

  test "so is a cut or a longer text", %{keys: keys, id: id, bytes: bytes} do
    for size <- 0..(byte_size(bytes) - 1) do
      cut = binary_part(bytes, 0, size)
      assert {size, text(Cipher.decrypt(keys, id, @place, cut))} == {size, @changed}
    end

    for more <- [<<0>>, bytes], at_end? <- [true, false] do
      changed = if at_end?, do: bytes <> more, else: more <> bytes
      assert text(Cipher.decrypt(keys, id, @place, changed)) == @changed
    end
  end

  test "a text decrypts only at its own place", %{keys: keys, id: id, bytes: bytes} do
    for place <- [
          ["connection", "ann", "google2"],
          ["connection", "anngoogle", ""],
          ["connection", "bob", "google"],
          ["connection", "google", "ann"],
          ["connection", "ann\0", "google"],
          ["connection", "ANN", "google"],
          ["sign-in", "ann", "google"],
          ["connection", "ann", "google", ""],
          ["connection", "ann"],
          ["connectionann", "google"]
        ] do
      assert {place, text(Cipher.decrypt(keys, id, place, bytes))} == {place, @changed}
    end
  end

  test "and only with its own key, named by its id", %{keys: keys, id: id, bytes: bytes} do
    [_first, {other, _key}] = keys
    assert text(Cipher.decrypt(keys, other, @place, bytes)) == @changed
    assert text(Cipher.decrypt(keys(1), id, @place, bytes)) =~ "encrypted with the key #{id}"
    # An id of four bytes may be the same by chance.
    [{_id, key}] = keys(1)
    assert text(Cipher.decrypt([{id, key}], id, @place, bytes)) == @changed
  end
end
