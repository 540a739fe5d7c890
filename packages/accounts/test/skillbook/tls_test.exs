defmodule Skillbook.TLSTest do
  # Each client of TLS meets each odd certificate: refused, with the reason in words.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Library
  alias Skillbook.HTTP
  alias Skillbook.SQL.{Error, Postgres}
  alias Skillbook.Test.OddCertificates

  @untrusted "TLS: the authority of its certificate is not trusted"
  @other_host "TLS: its certificate is for another host"
  @too_long "TLS: its chain of certificates is longer than allowed"

  @reasons %{
    good: nil,
    self_signed: @untrusted,
    expired: "TLS: its certificate has expired",
    not_yet_valid: "TLS: its certificate is not valid yet",
    wrong_host: @other_host,
    address_for_name: @other_host,
    name_as_common_name: @other_host,
    wildcard: @other_host,
    zero_byte: @other_host,
    constrained: "TLS: the authority of its certificate may not sign for this host",
    missing_intermediate: @untrusted,
    critical_extension: "TLS: its certificate has a critical extension that is not known",
    sha1: "TLS: its certificate uses an unknown signature algorithm",
    rsa_1024: @untrusted,
    long_chain: @too_long,
    huge_chain: "TLS: received corrupt message of type HandshakePayloadTooLarge",
    client_only: "TLS: its certificate is not one for servers",
    authority_as_server: "TLS: its certificate is that of an authority",
    signed_by_server: "TLS: its certificate is signed by a server, which is no authority",
    path_length: @too_long,
    tls_1_1: "TLS: received fatal alert: ProtocolVersion"
  }

  setup_all do
    folder = Path.join(System.tmp_dir!(), "skb-odd-#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    :ok = Library.load()
    %{certificates: Map.new(OddCertificates.kinds(), &{&1, OddCertificates.make(&1, folder)})}
  end

  test "every kind has a row", do: assert(Enum.sort(OddCertificates.kinds()) == kinds())

  for client <- [:http, :imap, :imap_starttls, :smtp, :smtp_starttls, :postgres] do
    @client client

    test "#{client} refuses each of them, with the reason", %{certificates: certificates} do
      for kind <- kinds() do
        %{options: options, authority: authority} = certificates[kind]
        port = serve(&before(@client, &1), &handshake(&1, options))
        assert {kind, ask(@client, port, authority)} == {kind, @reasons[kind]}
      end
    end

    test "#{client} is told of a handshake that is none, or ends" do
      for {bytes, reason} <- [
            {"HTTP/1.1 400 Bad Request\r\n\r\n", no_tls(@client)},
            {<<22, 3, 3, 255, 255>> <> String.duplicate("a", 70_000), "corrupt message"},
            {<<22, 3, 3, 0, 80, 2, 0, 0>>, :closed},
            {"", :closed}
          ] do
        port = serve(&before(@client, &1), &:gen_tcp.send(&1, bytes))
        told = ask(@client, port, nil)

        if reason == :closed,
          do: assert(is_binary(told) and told != ""),
          else: assert({bytes, told =~ reason, told} == {bytes, true, told})
      end
    end
  end

  # Mail servers have another kind of port for that.
  defp no_tls(client) when client in [:imap, :smtp],
    do: "the port begins without encryption; write tls: :starttls"

  defp no_tls(_client), do: "corrupt message of type InvalidContentType"

  defp kinds, do: @reasons |> Map.keys() |> Enum.sort()

  # A server for one connection.
  defp serve(before, work) do
    {:ok, listener} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(listener)

    start_supervised!(
      {Task,
       fn ->
         {:ok, socket} = :gen_tcp.accept(listener)
         # A second try is refused.
         :gen_tcp.close(listener)
         before.(socket)
         work.(socket)
         :gen_tcp.shutdown(socket, :write)
         _ = :gen_tcp.recv(socket, 0, 1_000)
       end},
      id: port
    )

    port
  end

  defp handshake(socket, options) do
    with {:ok, tls} <- :ssl.handshake(socket, [log_level: :none] ++ options, 5_000),
         do: :ssl.close(tls)
  end

  # The part of a protocol before the encryption.
  defp before(client, _socket) when client in [:http, :imap, :smtp], do: :ok

  defp before(:postgres, socket) do
    {:ok, <<8::32, 80_877_103::32>>} = :gen_tcp.recv(socket, 8, 5_000)
    :gen_tcp.send(socket, "S")
  end

  defp before(:imap_starttls, socket) do
    :gen_tcp.send(socket, "* OK hello\r\n")
    {:ok, "s STARTTLS\r\n"} = :gen_tcp.recv(socket, 12, 5_000)
    :gen_tcp.send(socket, "s OK go\r\n")
  end

  defp before(:smtp_starttls, socket) do
    :gen_tcp.send(socket, "220 ready\r\n")
    {:ok, "EHLO" <> _} = :gen_tcp.recv(socket, 0, 5_000)
    :gen_tcp.send(socket, "250 STARTTLS\r\n")
    {:ok, "STARTTLS\r\n"} = :gen_tcp.recv(socket, 10, 5_000)
    :gen_tcp.send(socket, "220 go\r\n")
  end

  # The reason for which a client refuses the server, or `nil`. The good one hangs up after the
  # handshake, which is another error.
  defp ask(:http, port, authority) do
    url = "https://localhost:#{port}/"
    {:error, error} = HTTP.request(url, cacertfile: authority, timeout: 5_000)
    if error.kind != :closed and not (error.reason =~ ~r/refused\z/), do: error.reason
  end

  defp ask(:postgres, port, authority) do
    url = "postgres://ann:secret@localhost:#{port}/book"
    name = :"tls_#{port}"

    {:error, %Error{} = error} =
      Postgres.start_link(url: url, name: name, ssl: true, ssl_ca_file: authority)

    message = Exception.message(error)
    refute message =~ "secret"

    case String.split(message, "TLS: ", parts: 2) do
      [_, reason] -> "TLS: " <> reason
      [other] -> if(other =~ "handshake", do: other)
    end
  end

  defp ask(client, port, authority) do
    reference = make_ref()

    server = %{
      host: "localhost",
      port: port,
      tls: if(client in [:imap, :smtp], do: :implicit, else: :starttls),
      cacertfile: authority,
      username: "ann",
      secret: "secret",
      token: false
    }

    if client in [:imap, :imap_starttls],
      do: Library.imap_open(reference, server, 5_000),
      else: Library.smtp_send(reference, server, "a@b.c", ["d@e.f"], "Subject: x\r\n\r\nx", 5_000)

    receive do
      {^reference, {:error, kind, text, _said}} -> if kind != :closed, do: text
    end
  end
end
