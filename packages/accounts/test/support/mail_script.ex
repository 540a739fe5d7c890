defmodule Skillbook.Test.MailScript do
  @moduledoc false
  # A mail server that plays a script, with the certificate of bin/mail-for-tests. Each connection
  # plays the steps of one list, in order:
  #
  #   * `:tls` - a handshake
  #   * `{:send, bytes}` - these bytes
  #   * `{:read, beginning}` - a line that starts like this, in any case; the test gets
  #     `{:read, line}`
  #   * `:data` - lines up to the end of a mail; the test gets `{:data, bytes}`
  #   * `:silent` - nothing more, until the client hangs up; the test gets `:hung_up`
  #   * `{:endless, bytes}` - these bytes, until the client hangs up; the test gets
  #     `{:sent, count}`
  #   * `{:drip, bytes, pause}` - these bytes again and again, one at a time, with so many
  #     milliseconds between them, until the client hangs up; the test gets `:hung_up`
  #   * `{:serve, fun}` - an answer to each line, until the client hangs up: `fun` gets the tag
  #     and the rest of the line, and returns bytes, or steps
  #
  # After the last step the connection is closed. A line that is not expected closes it too, and
  # the test gets `{:unexpected, line}`. Connections without a script are refused.

  alias Skillbook.Test.MailServer

  @doc "Starts a server with a script for each connection. Returns its port."
  def start(scripts) do
    test = self()

    {:ok, listener} =
      :gen_tcp.listen(0, [:binary, active: false, packet: :raw, ip: {127, 0, 0, 1}])

    {:ok, port} = :inet.port(listener)

    pid =
      spawn_link(fn ->
        for script <- scripts do
          {:ok, socket} = :gen_tcp.accept(listener)
          play({:gen_tcp, socket}, script, test)
        end

        :gen_tcp.close(listener)
        Process.sleep(:infinity)
      end)

    :ok = :gen_tcp.controlling_process(listener, pid)
    port
  end

  @doc "The steps of a sign-in to an IMAP server, after the greeting."
  def signed_in(capabilities \\ "IMAP4rev1 AUTH=PLAIN SASL-IR") do
    [
      {:read, "s1 CAPABILITY"},
      {:send, "* CAPABILITY #{capabilities}\r\ns1 OK done\r\n"},
      {:read, "s2 "},
      {:send, "s2 OK done\r\n"},
      {:read, "s3 CAPABILITY"},
      {:send, "* CAPABILITY #{capabilities}\r\ns3 OK done\r\n"}
    ]
  end

  @doc "The steps of an SMTP server up to the recipient."
  def submission do
    [
      {:send, "220 ready\r\n"},
      {:read, "EHLO"},
      {:send, "250-localhost\r\n250-8BITMIME\r\n250 AUTH PLAIN\r\n"},
      {:read, "AUTH PLAIN"},
      {:send, "235 welcome\r\n"},
      {:read, "MAIL FROM:"},
      {:send, "250 ok\r\n"},
      {:read, "RCPT TO:"},
      {:send, "250 ok\r\n"}
    ]
  end

  defp play(socket, [], _test), do: close(socket)

  defp play({_, tcp} = socket, [:tls | steps], test) do
    folder = Path.dirname(MailServer.settings().cacertfile)

    options = [
      certfile: Path.join(folder, "server.pem"),
      keyfile: Path.join(folder, "server.key"),
      log_level: :none
    ]

    case :ssl.handshake(tcp, options, 5_000) do
      {:ok, tls} -> play({:ssl, tls}, steps, test)
      {:error, _} -> close(socket)
    end
  end

  defp play(socket, [{:send, bytes} | steps], test) do
    send_bytes(socket, bytes)
    play(socket, steps, test)
  end

  defp play(socket, [{:read, beginning} | steps], test) do
    line = line(socket, "")

    if String.starts_with?(String.downcase(line), String.downcase(beginning)) do
      send(test, {:read, line})
      play(socket, steps, test)
    else
      send(test, {:unexpected, line})
      close(socket)
    end
  end

  defp play(socket, [:data | steps], test) do
    send(test, {:data, data(socket, "")})
    play(socket, steps, test)
  end

  defp play(socket, [:silent | _], test) do
    hung_up(socket)
    send(test, :hung_up)
    close(socket)
  end

  defp play(socket, [{:endless, bytes} | _], test) do
    send(test, {:sent, endless(socket, bytes, 0)})
    close(socket)
  end

  defp play(socket, [{:drip, bytes, pause} | _], test) do
    drip(socket, Stream.cycle(:binary.bin_to_list(bytes)), pause)
    send(test, :hung_up)
    close(socket)
  end

  defp play(socket, [{:serve, fun} | _] = steps, test) do
    with line when line != "" <- line(socket, ""),
         [tag, command] <- String.split(line, " ", parts: 2) do
      case fun.(tag, command) do
        answer when is_binary(answer) -> play(socket, [{:send, answer} | steps], test)
        more -> play(socket, more, test)
      end
    else
      _closed -> close(socket)
    end
  end

  defp drip(socket, bytes, pause) do
    Enum.find(bytes, fn byte ->
      Process.sleep(pause)
      send_bytes(socket, <<byte>>) != :ok
    end)
  end

  defp endless(socket, bytes, count) do
    case send_bytes(socket, bytes) do
      :ok -> endless(socket, bytes, count + byte_size(bytes))
      {:error, _} -> count
    end
  end

  defp hung_up(socket), do: if(recv(socket, 0) == :closed, do: :ok, else: hung_up(socket))

  defp line(socket, read) do
    case recv(socket, 1) do
      "\n" -> String.trim_trailing(read, "\r")
      :closed -> read
      byte -> line(socket, read <> byte)
    end
  end

  defp data(socket, read) do
    case recv(socket, 0) do
      :closed ->
        read

      bytes ->
        read = read <> bytes
        if String.ends_with?(read, "\r\n.\r\n"), do: read, else: data(socket, read)
    end
  end

  defp recv({module, socket}, count) do
    case module.recv(socket, count, 30_000) do
      {:ok, bytes} -> bytes
      {:error, _} -> :closed
    end
  end

  defp send_bytes({module, socket}, bytes), do: module.send(socket, bytes)

  defp close({module, socket}), do: module.close(socket)
end
