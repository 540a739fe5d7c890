defmodule Skillbook.HTTP.Addresses do
  @moduledoc false
  # Whether a host is on the public internet: by its text, and by the addresses that its name
  # leads to.
  #
  # A name may lead elsewhere when the connection is made. Then the certificate of that server is
  # not for the name, so no request is sent: callers allow other hosts only over https.

  @private_names ~w(localhost local internal intranet lan home.arpa)

  @doc """
  Whether the host is one of a private network, by its name or its address, in any spelling that
  is read as one. A public name that leads to a private address is not.

      iex> alias Skillbook.HTTP.Addresses
      iex> {Addresses.inside?("printer.local"), Addresses.inside?("127.1")}
      {true, true}
      iex> Addresses.inside?("example.com")
      false
  """
  @spec inside?(String.t()) :: boolean()
  def inside?(host) do
    host = plain(host)

    case host |> String.to_charlist() |> :inet.parse_address() do
      {:ok, address} ->
        private?(address)

      {:error, _} ->
        not String.contains?(host, ".") or
          Enum.any?(@private_names, &String.ends_with?(host, "." <> &1))
    end
  end

  @doc """
  Whether the host is this machine by its text, as in an address that needs no https.

      iex> alias Skillbook.HTTP.Addresses
      iex> Enum.map(["localhost", "127.0.0.1", "::1"], &Addresses.loopback?/1)
      [true, true, true]
      iex> Addresses.loopback?("127.0.0.1.example.com")
      false
  """
  @spec loopback?(String.t()) :: boolean()
  def loopback?(host), do: host in ["localhost", "::1"] or host =~ ~r/\A127(\.\d{1,3}){3}\z/

  @doc """
  Returns an error if the host is one of a private network, or one of the addresses of its name
  is. A name that cannot be looked up has none: the connection fails, or a proxy knows it.
  """
  @spec check_public(String.t(), timeout()) :: :ok | {:error, String.t()}
  def check_public(host, timeout) do
    if inside?(host) or Enum.any?(addresses(plain(host), timeout), &private?/1),
      do: {:error, "its address is in a private network"},
      else: :ok
  end

  defp addresses(host, timeout) do
    for family <- [:inet, :inet6],
        {:ok, addresses} <- [:inet.getaddrs(String.to_charlist(host), family, timeout)],
        address <- addresses,
        do: address
  end

  defp plain(host),
    do:
      host
      |> String.downcase()
      |> String.trim_trailing(".")
      |> String.trim("[")
      |> String.trim("]")

  # RFC 6890: not of the public internet.
  defp private?({0, _, _, _}), do: true
  defp private?({10, _, _, _}), do: true
  defp private?({100, b, _, _}) when b in 64..127, do: true
  defp private?({127, _, _, _}), do: true
  defp private?({169, 254, _, _}), do: true
  defp private?({172, b, _, _}) when b in 16..31, do: true
  defp private?({192, 0, 0, _}), do: true
  defp private?({192, 168, _, _}), do: true
  defp private?({198, b, _, _}) when b in 18..19, do: true
  defp private?({a, _, _, _}) when a >= 224, do: true
  defp private?({_, _, _, _}), do: false

  # An address of IPv4 in one of IPv6, and by NAT64.
  defp private?({0, 0, 0, 0, 0, 0xFFFF, high, low}), do: private?(v4(high, low))
  defp private?({0x64, 0xFF9B, 0, 0, 0, 0, high, low}), do: private?(v4(high, low))
  # Global unicast, apart from 6to4 and Teredo, which lead to addresses of IPv4.
  defp private?({0x2002, _, _, _, _, _, _, _}), do: true
  defp private?({0x2001, 0, _, _, _, _, _, _}), do: true
  defp private?({a, _, _, _, _, _, _, _}), do: a not in 0x2000..0x3FFF

  defp v4(high, low), do: {div(high, 256), rem(high, 256), div(low, 256), rem(low, 256)}
end
