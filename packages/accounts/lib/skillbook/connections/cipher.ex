defmodule Skillbook.Connections.Cipher do
  @moduledoc false
  # Encrypts tokens for the database by AES-256-GCM, with keys of the application.
  #
  # The first key encrypts, and all of them decrypt, so that a key can be replaced. A row has the
  # id of its key, and belongs to one profile and account: copied to another row it does not
  # decrypt.

  alias Skillbook.Support.{Secret, UntilError}

  @typedoc "A key in a function, so that no report shows it, with its id."
  @type key :: {id :: String.t(), (() -> <<_::256>>)}

  @typedoc "The values that a text belongs to, the first of which is its kind."
  @type place :: [String.t(), ...]

  @version 1
  @iv 12
  @tag 16

  @doc "Makes a key: 32 random bytes in base64."
  @spec generate() :: String.t()
  def generate, do: Base.encode64(:crypto.strong_rand_bytes(32))

  @doc "Reads the keys of a book's options, the first first, or says why they cannot be read."
  @spec keys([Secret.t()]) :: {:ok, [key(), ...]} | {:error, String.t()}
  def keys([]) do
    {:error,
     "the option :key of the book's :connections is missing; it takes 32 random bytes in " <>
       "base64, which Skillbook.Connections.generate_key/0 makes"}
  end

  def keys(secrets) do
    secrets
    |> Enum.with_index(1)
    |> UntilError.map(fn {secret, position} ->
      with {:error, reason} <- key(secret),
           do: {:error, "key #{position} of the option :key: #{reason}"}
    end)
  end

  defp key(secret) do
    with {:ok, text} <- Secret.read(secret, nil) do
      case decode(String.trim(text.())) do
        {:ok, <<key::binary-size(32)>>} -> {:ok, {id(key), fn -> key end}}
        _ -> {:error, "expected 32 bytes in base64, got another text"}
      end
    end
  end

  defp decode(text) do
    with :error <- Base.decode64(text, padding: false),
         do: Base.url_decode64(text, padding: false)
  end

  # Tells keys apart and says nothing about them.
  defp id(key) do
    :hmac
    |> :crypto.mac(:sha256, key, "skillbook key id")
    |> binary_part(0, 4)
    |> Base.encode16(case: :lower)
  end

  @doc "Encrypts a text with the first key; returns the id of the key too."
  @spec encrypt([key(), ...], place(), String.t()) :: {key_id :: String.t(), binary()}
  def encrypt([{id, key} | _], place, text) do
    iv = :crypto.strong_rand_bytes(@iv)
    aad = associated(place)

    {bytes, tag} = :crypto.crypto_one_time_aead(:aes_256_gcm, key.(), iv, text, aad, @tag, true)

    {id, <<@version, iv::binary, tag::binary, bytes::binary>>}
  end

  @doc "Decrypts a text with the key of this id, or says why that is not possible."
  @spec decrypt([key(), ...], String.t(), place(), binary()) ::
          {:ok, (() -> String.t())} | {:error, String.t()}
  def decrypt(keys, id, place, bytes) do
    with {^id, key} <- List.keyfind(keys, id, 0, :missing),
         <<@version, iv::binary-size(@iv), tag::binary-size(@tag), bytes::binary>> <- bytes,
         aad = associated(place),
         text when is_binary(text) <-
           :crypto.crypto_one_time_aead(:aes_256_gcm, key.(), iv, bytes, aad, tag, false) do
      {:ok, fn -> text end}
    else
      :missing ->
        ids = Enum.map_join(keys, ", ", &elem(&1, 0))

        {:error,
         "it was encrypted with the key #{id}, and the option :key has #{ids}; add the former " <>
           "key to the list, or connect again"}

      _changed ->
        {:error, "its row was changed, or copied from another one; connect again"}
    end
  end

  # With lengths, so that no two places have the same bytes.
  defp associated(place), do: for(value <- place, into: "", do: <<byte_size(value)::32>> <> value)
end
