defmodule Skillbook.Web.Proxies do
  @moduledoc false
  # Finds the client of a request that came through proxies: its address, and the scheme and host
  # that it used.
  #
  # The headers count only if the peer is a trusted proxy. Each proxy adds the address that it was
  # reached from at the right, so the client is the first address from the right that is no
  # trusted proxy. Anything further left is the client's own text, and is not read.
  #
  # A client can send the kind of header that the proxies do not use, so two kinds that differ are
  # refused, and so is a header that cannot be read: the limits of the client would count for
  # someone else.

  import Bitwise

  alias Skillbook.Support.Number
  alias Skillbook.Web.{Access, Request, Response}

  @typedoc "A network: the bits of all its addresses, how many they are, and 32 or 128."
  @type network :: {non_neg_integer(), non_neg_integer(), 32 | 128} | :unix

  # Trusted proxies in a row.
  @max_hops 20

  @ipv4 "(?:0|[1-9]\\d{0,2})(?:\\.(?:0|[1-9]\\d{0,2})){3}"
  @address Regex.compile!("\\A(?:#{@ipv4}|[0-9a-f:]*:(?:[0-9a-f]{0,4}|#{@ipv4}))\\z", "i")

  @doc """
  Reads a trusted proxy: an address, a network such as `"10.0.0.0/8"`, or `:unix`. A network of
  all addresses is refused: then a client could give any address as its own.
  """
  @spec network(term()) :: {:ok, network()} | :error
  def network(:unix), do: {:ok, :unix}

  def network(text) when is_binary(text) do
    {address, bits} =
      case String.split(text, "/", parts: 2) do
        [address, bits] -> {address, bits}
        [address] -> {address, nil}
      end

    with {:ok, ip} <- ip(address),
         {number, size} = number(ip),
         {:ok, bits} <- bits(bits, mapped?(address, ip), size) do
      {:ok, {number >>> (size - bits), bits, size}}
    end
  end

  def network(_other), do: :error

  @doc "The first address of each network as text, with its bits, for the native library."
  @spec texts([network()]) :: [{String.t(), 1..128}]
  def texts(proxies) do
    for {network, bits, size} <- proxies do
      number = <<network <<< (size - bits)::size(size)>>

      ip =
        if size == 32,
          do: for(<<byte <- number>>, do: byte),
          else: for(<<group::16 <- number>>, do: group)

      {ip |> List.to_tuple() |> :inet.ntoa() |> to_string(), bits}
    end
  end

  # The prefix of an address of IPv4 in IPv6 has 96 bits more.
  defp bits(nil, _mapped?, size), do: {:ok, size}

  defp bits(text, mapped?, size) do
    with true <- text =~ ~r/\A[1-9]\d{0,2}\z/,
         bits = Number.integer!(text) - if(mapped?, do: 96, else: 0),
         true <- bits in 1..size,
         do: {:ok, bits},
         else: (_wrong -> :error)
  end

  defp mapped?(text, ip), do: tuple_size(ip) == 4 and String.contains?(text, ":")

  @doc "Reads an address; one of IPv4 in IPv6 is one of IPv4."
  @spec ip(String.t()) :: {:ok, :inet.ip_address()} | :error
  def ip(text) do
    # `:inet` also reads octal and hexadecimal numbers, and zones.
    with true <- text =~ @address,
         {:ok, ip} <- text |> String.to_charlist() |> :inet.parse_strict_address(),
         do: {:ok, plain(ip)},
         else: (_wrong -> :error)
  end

  defp plain({0, 0, 0, 0, 0, 0xFFFF, high, low}),
    do: {high >>> 8, high &&& 255, low >>> 8, low &&& 255}

  defp plain(ip), do: ip

  defp number({a, b, c, d}), do: {a <<< 24 ||| b <<< 16 ||| c <<< 8 ||| d, 32}

  defp number(ip) do
    parts = Tuple.to_list(ip)
    {Enum.reduce(parts, 0, fn part, number -> number <<< 16 ||| part end), 128}
  end

  @doc """
  Returns the request as the client sent it to the first proxy. One that did not come from a
  trusted proxy is unchanged.
  """
  @spec client(Request.t(), [network()]) :: {:ok, Request.t()} | {:refused, Response.t()}
  def client(request, []), do: {:ok, request}

  def client(%Request{peer: peer} = request, proxies) do
    with true <- trusted?(peer, proxies),
         {:ok, client} <- read(request, proxies) do
      {:ok,
       %{
         request
         | peer: client.peer,
           scheme: client.scheme || request.scheme,
           host: client.host || request.host
       }}
    else
      false -> {:ok, request}
      {:error, text} -> {:refused, Response.error(request, 400, text)}
    end
  end

  defp trusted?(nil, _proxies), do: false
  defp trusted?(:unix, proxies), do: :unix in proxies

  defp trusted?(ip, proxies) do
    {number, size} = ip |> plain() |> number()

    Enum.any?(
      proxies,
      &match?({network, bits, ^size} when number >>> (size - bits) == network, &1)
    )
  end

  @differ "The headers forwarded and x-forwarded-for, -proto and -host differ. The proxy has " <>
            "to set one kind, and to remove the other."

  defp read(request, proxies) do
    with {:ok, de_facto} <- de_facto(request, proxies),
         {:ok, standard} <- standard(request, proxies) do
      case Enum.uniq(for client when client != nil <- [de_facto, standard], do: client) do
        [] -> {:ok, found(request.peer)}
        [client] -> {:ok, client}
        _two -> {:error, @differ}
      end
    end
  end

  defp found(peer, scheme \\ nil, host \\ nil), do: %{peer: peer, scheme: scheme, host: host}

  # x-forwarded-for, x-forwarded-proto and x-forwarded-host

  defp de_facto(request, proxies) do
    [chain, scheme, host] =
      for name <- ["for", "proto", "host"], do: Request.header(request, "x-forwarded-" <> name)

    if chain || scheme || host do
      hops = for hop <- list(chain), do: %{"for" => hop}

      with {:ok, peer, _hop} <- walk(Enum.reverse(hops), request.peer, proxies),
           {:ok, scheme} <- scheme |> list() |> one("x-forwarded-proto"),
           {:ok, host} <- host |> list() |> one("x-forwarded-host"),
           {:ok, scheme} <- scheme(scheme),
           {:ok, host} <- host(host),
           do: {:ok, found(peer, scheme, host)}
    else
      {:ok, nil}
    end
  end

  defp list(nil), do: []

  defp list(value),
    do: value |> String.split(",") |> Enum.map(&String.trim/1) |> Enum.reject(&(&1 == ""))

  # They do not say which proxy added which value.
  defp one(values, name) do
    case Enum.uniq_by(values, &String.downcase/1) do
      [] -> {:ok, nil}
      [value] -> {:ok, value}
      _more -> {:error, "The header #{name} has several values. The proxy has to set it."}
    end
  end

  # forwarded (RFC 7239)

  defp standard(request, proxies) do
    case Request.header(request, "forwarded") do
      nil ->
        {:ok, nil}

      value ->
        with {:ok, hops} <- hops(value, %{}, []),
             {:ok, peer, hop} <- walk(hops, request.peer, proxies),
             {:ok, scheme} <- scheme(hop["proto"]),
             {:ok, host} <- host(hop["host"]),
             do: {:ok, found(peer, scheme, host)}
    end
  end

  # A value may be in quotes. Addresses with a port have to be, and often are not.
  @pair ~r/\A([\w!#$%&'*+.^`|~-]+)=
           (?: ([\w!#$%&'*+.^`|~:\[\]-]++) | "((?:[^"\\]++|\\.)*+)" )
           [\ \t]*(?=[;,]|\z)/x

  # The last hop first.
  defp hops(text, hop, done) do
    case String.trim_leading(text) do
      "" -> {:ok, next(hop, done)}
      "," <> rest -> hops(rest, %{}, next(hop, done))
      ";" <> rest -> hops(rest, hop, done)
      rest -> pair(rest, hop, done)
    end
  end

  defp pair(text, hop, done) do
    with [all, name | value] <- Regex.run(@pair, text),
         name = String.downcase(name),
         false <- Map.has_key?(hop, name) do
      rest = binary_part(text, byte_size(all), byte_size(text) - byte_size(all))
      hops(rest, Map.put(hop, name, value |> List.last() |> unescape()), done)
    else
      _wrong -> {:error, unreadable("forwarded", ~s(pairs such as for=203.0.113.7), text)}
    end
  end

  defp next(hop, done) when hop == %{}, do: done
  defp next(hop, done), do: [hop | done]

  defp unescape(value), do: String.replace(value, ~r/\\(.)/s, "\\1")

  # The chain

  # Returns the client, and the hop that says so.
  defp walk(hops, peer, proxies, count \\ 0)
  defp walk([], peer, _proxies, _count), do: {:ok, peer, %{}}

  defp walk(_hops, _peer, _proxies, @max_hops),
    do: {:error, "The request came through more than #{@max_hops} trusted proxies."}

  defp walk([hop | more], peer, proxies, count) do
    case address(hop["for"]) do
      # The proxy does not know or say it.
      :unknown ->
        {:ok, peer, hop}

      {:ok, ip} ->
        if more != [] and trusted?(ip, proxies),
          do: walk(more, ip, proxies, count + 1),
          else: {:ok, ip, hop}

      :error ->
        expected = "an address such as 203.0.113.7 or [2001:db8::7]:443"
        {:error, unreadable("forwarded or x-forwarded-for", expected, hop["for"])}
    end
  end

  # An address with or without a port, which may be hidden: `_` and a name (RFC 7239, 6).
  defp address(nil), do: :unknown
  defp address("_" <> _name), do: :unknown

  defp address(text) do
    case Regex.run(~r/\A(?:\[([^\]]*)\]|([^:]*))(?::(?:\d{1,5}|_[\w.-]+))?\z/, text) do
      [_all, ip] -> if String.contains?(ip, ":"), do: ip(ip), else: :error
      [_all, "", name] -> if String.downcase(name) == "unknown", do: :unknown, else: ip(name)
      # An address of IPv6 without brackets has no port.
      nil -> ip(text)
    end
  end

  # The values

  defp scheme(nil), do: {:ok, nil}

  defp scheme(text) do
    case String.downcase(text) do
      "http" -> {:ok, :http}
      "https" -> {:ok, :https}
      _other -> {:error, unreadable("forwarded or x-forwarded-proto", "http or https", text)}
    end
  end

  defp host(nil), do: {:ok, nil}

  defp host(text) do
    if Access.host?(text) do
      {:ok, String.downcase(text)}
    else
      expected = "a host such as skills.example.com"
      {:error, unreadable("forwarded or x-forwarded-host", expected, text)}
    end
  end

  defp unreadable(header, expected, text) do
    "The header #{header} of a proxy cannot be read: expected #{expected}, got: " <>
      inspect(text, printable_limit: 100)
  end
end
