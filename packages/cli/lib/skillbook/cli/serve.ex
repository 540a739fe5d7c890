defmodule Skillbook.CLI.Serve do
  @moduledoc false
  # `skillbook serve`: serves the book over HTTP until it is stopped.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.Book
  alias Skillbook.CLI.{ModelFlags, Schedule, Session, Signals, Terminal}
  alias Skillbook.Support.{Count, Duration}
  alias Skillbook.Web.{Access, CORS, Proxies, Server, Sessions, Tokens}

  @areas [:page, :mcp, :api, :chat, :discovery]
  @port 4004
  @model [model_url: :string] ++ Keyword.delete(ModelFlags.switches(), :url)

  @impl true
  def switches do
    [
      port: {:number, 0, 65_535},
      host: :string,
      socket: :string,
      auth: :boolean,
      url: :string,
      trusted_proxies: :string,
      origins: :string,
      tls_cert: :string,
      tls_key: :string,
      serve: :string,
      publish: :string,
      schedules: :boolean,
      enable: :keep
    ] ++ @model
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`serve` takes no argument, got: #{arg}"}

  @impl true
  def run(options) do
    with {:ok, given} <- read(options),
         {:ok, agent} <- agent(options.flags) do
      mode = if options.flags[:schedules], do: {:web, agent}, else: {:show, agent}
      Session.with_book(options, mode, &serve(&1, given, options), [:problems, :offers])
    else
      {:error, message} ->
        Terminal.usage_error(message, "serve --help")
    end
  end

  # The options

  # `--url` is the address of this server, so that of the model has another name.
  defp agent(flags) do
    model = Keyword.delete(flags, :url) ++ if(url = flags[:model_url], do: [url: url], else: [])

    # The page talks to the model too, without schedules.
    with {:error, message} <- Schedule.agent("serve", model, :schedules, true),
         do: {:error, String.replace(message, "--url", "--model-url")}
  end

  defp read(%{flags: flags} = options) do
    with {:ok, place} <- place(flags),
         {:ok, areas} <- areas(flags[:serve]),
         {:ok, tls} <- tls(flags),
         {:ok, proxies} <- proxies(flags[:trusted_proxies], flags),
         {:ok, origins} <- origins(flags[:origins]),
         :ok <- url(flags[:url], place) do
      auth = if flags[:auth] == false, do: :none, else: :tokens

      {:ok,
       place ++
         tls ++
         [
           authenticate: auth,
           profile: options.profile,
           serve: areas,
           url: flags[:url],
           trusted_proxies: proxies,
           origins: origins,
           publish: flags[:publish]
         ]}
    end
  end

  defp place(flags) do
    cond do
      flags[:socket] && (flags[:port] || flags[:host]) ->
        {:error, "--socket takes the place of --port and --host"}

      socket = flags[:socket] ->
        {:ok, [socket: Path.expand(socket)]}

      true ->
        with {:ok, ip} <- ip(flags[:host] || "127.0.0.1"),
             do: {:ok, [ip: ip, port: flags[:port] || @port]}
    end
  end

  defp ip("localhost"), do: {:ok, {127, 0, 0, 1}}

  defp ip(text) do
    case text |> String.to_charlist() |> :inet.parse_strict_address() do
      {:ok, ip} -> {:ok, ip}
      {:error, _} -> {:error, "--host expects an address such as 127.0.0.1 or ::1, got: #{text}"}
    end
  end

  # Callers of the chat run commands, so it has to be named.
  defp areas(nil), do: {:ok, @areas -- [:chat]}

  defp areas(text) do
    areas = for name <- list(text), do: Enum.find(@areas, &(to_string(&1) == name))

    if nil in areas,
      do: {:error, "--serve expects some of page,mcp,api,discovery, got: #{text}"},
      else: {:ok, Enum.uniq(areas)}
  end

  defp list(nil), do: []
  defp list(text), do: text |> String.split(",") |> Enum.map(&String.trim/1)

  defp proxies(text, flags) do
    proxies = for name <- list(text), do: if(name == "unix", do: :unix, else: name)

    cond do
      not Enum.all?(proxies, &(Proxies.network(&1) != :error)) ->
        {:error,
         "--trusted-proxies expects addresses, networks such as 10.0.0.0/8 and unix, with " <>
           "commas, got: #{text}"}

      proxies != [] and flags[:auth] == false ->
        {:error, "--no-auth is for this machine alone, and a proxy is reached by others"}

      :unix in proxies and flags[:url] == nil ->
        {:error, "--trusted-proxies with unix needs --url, the address that clients use"}

      true ->
        {:ok, proxies}
    end
  end

  defp origins(text) do
    origins = list(text)

    if Enum.all?(origins, &CORS.origin?/1),
      do: {:ok, origins},
      else:
        {:error,
         "--origins expects origins such as http://localhost:6274, with commas and without a " <>
           "path, got: #{text}"}
  end

  defp tls(flags) do
    case {flags[:tls_cert], flags[:tls_key]} do
      {nil, nil} -> {:ok, []}
      {cert, key} when cert != nil and key != nil -> {:ok, [tls: [certfile: cert, keyfile: key]]}
      _other -> {:error, "--tls-cert and --tls-key are needed together"}
    end
  end

  defp url(nil, place) do
    if place[:ip] in [{0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}],
      do: {:error, "--host with all addresses needs --url, the address that clients use"},
      else: :ok
  end

  defp url(url, _place) do
    if Access.url?(url),
      do: :ok,
      else: {:error, "--url expects a URL such as https://skills.example.com, got: #{url}"}
  end

  # The server

  defp serve(book, given, options) do
    Signals.trap(fn ->
      case Server.start_link([book: book, drain: drain(book)] ++ given) do
        {:ok, server} ->
          greet(book, server, given, options)
          read_lines(self())
          wait(book, server, given, options)

        {:error, error} ->
          {:error, message(error)}
      end
    end)
  end

  # The same time for requests as for all else.
  defp drain(book), do: max(Book.fetch!(book).drain, 1)

  # The errors name options of Elixir.
  defp message(%{option: :authenticate}) do
    "--no-auth is for this machine alone: leave out --host, or leave out --no-auth and give " <>
      "clients tokens with `skillbook token add`"
  end

  defp message(error),
    do: error |> Exception.message() |> String.replace(~r/(?<=[ (]):(?=port|socket|ip)/, "--")

  defp greet(book, server, given, options) do
    url = given[:url] || Server.info(server).url
    Terminal.put("Serving #{names(given[:serve])} at #{url}")
    link(book, url, given, options)

    for {area, path} <- [mcp: "mcp", api: "api/skills", discovery: ".well-known/agent-skills"],
        area in given[:serve],
        given[:socket] == nil,
        do: Terminal.put("  #{name(area)}: #{String.trim_trailing(url, "/")}/#{path}")

    if given[:authenticate] == :tokens and given[:serve] != [:page],
      do: Terminal.put("Clients send a token; `skillbook token add` makes one.")

    schedules(book, options)
    warn(url, given)
    Terminal.put("Ctrl-C stops.")
  end

  # Says whether schedules run here, if there are any.
  defp schedules(book, options) do
    with {:ok, agenda} <- Skillbook.schedule(Skillbook.View.all(book), last: 1) do
      count = Enum.count(agenda.next, &(not &1.off))

      case {count, options.flags[:schedules]} do
        {0, true} -> Terminal.put("No skill has a schedule yet.")
        {count, true} -> Terminal.put("#{Count.text(count, "skill")} on a schedule.")
        {0, _no} -> :ok
        {count, _no} -> Terminal.put([scheduled(count), " not run here; --schedules runs them."])
      end
    end
  end

  defp scheduled(1), do: "1 scheduled skill does"
  defp scheduled(count), do: "#{count} scheduled skills do"

  defp names(areas) do
    case areas |> Enum.map(&name/1) |> Enum.split(-1) do
      {[], [last]} -> last
      {names, [last]} -> Enum.join(names, ", ") <> " and " <> last
    end
  end

  defp name(:page), do: "the page"
  defp name(:mcp), do: "MCP"
  defp name(:api), do: "the API"
  defp name(:chat), do: "conversations"
  defp name(:discovery), do: "discovery"

  # Tokens and cookies could be read on the way.
  defp warn(url, given) do
    ip = given[:ip]

    if ip != nil and not Access.loopback?(ip) and String.starts_with?(url, "http:") do
      Terminal.complain(
        "without TLS, others in the network can read tokens: give --tls-cert and --tls-key, " <>
          "or a --url with https and a proxy there"
      )
    end
  end

  defp link(book, url, given, options) do
    cond do
      :page not in given[:serve] or given[:socket] != nil ->
        :ok

      given[:authenticate] == :none ->
        Terminal.put(["\n  ", url, "\n"])

      true ->
        case Tokens.link(book, profile: options.profile, operator: true, url: url) do
          {:ok, link} ->
            Terminal.put(["\n  ", link.(), "\n"])
            minutes = div(Sessions.link_seconds(), 60)

            Terminal.put(
              "The link signs in one browser, within #{minutes} minutes; " <>
                "Enter prints another one."
            )

          {:error, error} ->
            Terminal.complain(Exception.message(error))
        end
    end
  end

  defp wait(book, server, given, options) do
    receive do
      :stop_signal ->
        Terminal.note(
          "Stopping; what has begun may take #{Duration.text(drain(book))}. " <>
            "Ctrl-C again stops at once."
        )

        GenServer.stop(server, :normal, :infinity)
        # While a second signal is still a way out.
        Session.stop(book)

      :line ->
        link(book, given[:url] || Server.info(server).url, given, options)
        wait(book, server, given, options)

      {:EXIT, _pid, reason} ->
        Terminal.complain(["stopped: ", Exception.format_exit(reason)])
        1
    end
  end

  # Only for a person at a terminal.
  defp read_lines(owner) do
    if Terminal.person?() do
      spawn(fn ->
        Stream.repeatedly(fn -> IO.gets("") end)
        |> Stream.take_while(&is_binary/1)
        |> Enum.each(fn _line -> send(owner, :line) end)
      end)
    end
  end
end
