defmodule Skillbook.CLI.Connect do
  @moduledoc false
  # `skillbook connect`: signs a person in to an account, with the redirect of the browser to this
  # machine, or with the address that the person pastes.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Accounts, Loopback, Servers, Session, Terminal}
  alias Skillbook.Connections

  # Seconds.
  @limit 300

  @impl true
  def switches do
    [
      for: :keep,
      scope: :keep,
      client_id: :string,
      client_secret_file: :string,
      browser: :boolean,
      wait: {:number, 1, 3_600}
    ]
  end

  @impl true
  def args([account]), do: {:ok, [account]}
  def args([]), do: {:error, "`connect` needs an ACCOUNT, such as google"}
  def args([_, more | _]), do: {:error, "`connect` takes one ACCOUNT, got also: #{more}"}

  @impl true
  def run(%{args: [account]} = options) do
    with :ok <- client(account, options),
         {:ok, key} <- Accounts.create_key() do
      if key == :created,
        do: Terminal.note("Made the key #{Accounts.key_path()}; without it no token can be read.")

      Session.with_book(options, :write, &connect(&1, account, options))
    end
  end

  # A server names its own authorization server.
  defp client(account, %{flags: flags} = options) do
    if Servers.sign_in?(options.servers, account) do
      :ok
    else
      with :ok <- Accounts.save_client(account, flags[:client_id], flags[:client_secret_file]),
           do: Accounts.check(account)
    end
  end

  defp connect(book, account, options) do
    with {:ok, loopback} <- Loopback.listen(),
         {:ok, sign_in} <- begin(book, account, loopback, options) do
      Loopback.serve(loopback, sign_in.state)

      try do
        show(sign_in.url, options)
        reader = if options.flags[:browser] == false, do: read_lines(self())
        outcome = wait(book, options, deadline(options))
        if reader, do: Process.exit(reader, :kill)
        Terminal.clear_progress()
        report(outcome, account, options)
      after
        Loopback.close(loopback)
      end
    else
      {:error, reason} -> report({:error, reason}, account, options)
    end
  end

  defp begin(book, account, loopback, options) do
    commands = Keyword.get_values(options.flags, :for)
    more = if commands == [], do: [], else: [for: commands]
    scopes = Keyword.get_values(options.flags, :scope)
    more = if scopes == [], do: more, else: [scopes: scopes] ++ more
    given = [profile: options.profile, redirect: Loopback.redirect(loopback)] ++ more
    Connections.authorize(book, account, given)
  end

  defp show(url, options) do
    Terminal.note(["Open this address in a browser, and sign in:\n\n  ", url, "\n"])

    if options.flags[:browser] == false do
      Terminal.note(
        "Then paste the address to which the browser was sent, and press Enter.\n" <>
          "It begins with http://127.0.0.1, and may show an error on another machine.\n"
      )
    else
      open_browser(url)
    end
  end

  # Only for a person at a terminal.
  defp open_browser(url) do
    names = ["xdg-open", "open"]
    program = Terminal.progress?() && Enum.find_value(names, &System.find_executable/1)

    if program do
      spawn(fn -> System.cmd(program, [url], stderr_to_stdout: true) end)
    end

    :ok
  end

  defp read_lines(owner) do
    spawn(fn ->
      Stream.repeatedly(fn -> IO.gets("") end)
      |> Stream.take_while(&is_binary/1)
      |> Enum.each(&send(owner, {:pasted, String.trim(&1)}))
    end)
  end

  defp deadline(options),
    do: System.monotonic_time(:millisecond) + 1_000 * (options.flags[:wait] || @limit)

  defp wait(book, options, deadline) do
    left = deadline - System.monotonic_time(:millisecond)

    if left <= 0 do
      {:error, "nobody signed in within #{options.flags[:wait] || @limit} seconds"}
    else
      minutes = div(left, 60_000)
      seconds = left |> div(1_000) |> rem(60) |> Integer.to_string() |> String.pad_leading(2, "0")
      Terminal.progress("Waiting for the sign-in, #{minutes}:#{seconds} left")

      receive do
        {:redirected, parameters, reply} ->
          outcome = complete(book, parameters, options)
          reply.(shown(outcome))
          outcome

        {:pasted, ""} ->
          wait(book, options, deadline)

        {:pasted, text} ->
          pasted(text, book, options, deadline)
      after
        min(left, 1_000) -> wait(book, options, deadline)
      end
    end
  end

  defp complete(book, parameters, options),
    do: Connections.complete(book, parameters, profile: options.profile)

  defp shown({:ok, connection}) do
    {:ok, "#{connection.account} is connected#{as(connection)}. You can close this page."}
  end

  defp shown({:error, _error}),
    do: {:error, "The account was not connected. The command line says why."}

  defp pasted(text, book, options, deadline) do
    with %URI{query: query} when is_binary(query) <- URI.parse(text),
         %{"state" => _} = parameters <- decode(query) do
      complete(book, parameters, options)
    else
      _other ->
        Terminal.complain(
          "expected the whole address to which the browser was sent, with `state` and `code`"
        )

        wait(book, options, deadline)
    end
  end

  defp decode(query) do
    URI.decode_query(query)
  rescue
    ArgumentError -> %{}
  end

  # The outcome

  defp report({:ok, connection}, account, options) do
    terminal = Terminal.new(options.color)
    services = Enum.map_join(connection.services, ", ", &to_string/1)
    missing = missing(connection, Keyword.get_values(options.flags, :for))

    Terminal.put([
      Terminal.style(terminal, :green, "Connected "),
      Terminal.line("#{account}#{as(connection)}, for the profile #{connection.profile}"),
      if(services == "", do: "", else: ": " <> services)
    ])

    if missing == [],
      do: :ok,
      else: {:error, "you have not allowed what #{Enum.join(missing, ", ")} needs"}
  end

  defp report({:error, reason}, _account, _options), do: {:error, reason}

  defp as(%{identity: nil}), do: ""
  defp as(%{identity: identity}), do: " as #{identity}"

  # The person may leave out some of what was asked for.
  defp missing(connection, commands) do
    Enum.reject(commands, fn command ->
      scopes = Connections.Vendor.scopes(connection.vendor, command)
      Enum.any?(scopes, &(&1 in connection.scopes))
    end)
  end
end
