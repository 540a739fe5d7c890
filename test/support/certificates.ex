defmodule Skillbook.Test.Certificates do
  @moduledoc false
  # A server's certificate with an authority of its own, in the tests' folder for files.

  # rustls refuses the parameters that OTP writes for other elliptic curves, and for RSA from
  # OTP 28.
  @strong [key: {:namedCurve, :ed25519}]

  @doc """
  `{options for :ssl.listen/2, path of the authority}`. Names are texts, or tuples for addresses;
  `options` are those of `:public_key.pkix_test_data/1` for the server's certificate, such as
  `:validity`.
  """
  def make(names, options \\ []) do
    names = for name <- names, do: name(name)
    peer = [extensions: [{:Extension, {2, 5, 29, 17}, false, names}]] ++ options ++ @strong

    %{server_config: server, client_config: client} =
      :public_key.pkix_test_data(%{
        server_chain: %{root: @strong, intermediates: [], peer: peer},
        client_chain: %{root: @strong, intermediates: [], peer: @strong}
      })

    pem =
      :public_key.pem_encode(for der <- client[:cacerts], do: {:Certificate, der, :not_encrypted})

    path =
      Path.join(System.tmp_dir!(), "ca-#{System.pid()}-#{System.unique_integer([:positive])}.pem")

    File.write!(path, pem)
    ExUnit.Callbacks.on_exit(fn -> File.rm(path) end)
    {Keyword.take(server, [:cert, :key, :cacerts]), path}
  end

  defp name(address) when is_tuple(address),
    do: {:iPAddress, address |> Tuple.to_list() |> :binary.list_to_bin()}

  defp name(host), do: {:dNSName, to_charlist(host)}
end
