defmodule Skillbook.CLI.Libraries do
  @moduledoc false
  # Loads the native libraries that a command line uses, before anything else. `bin/skillbook`
  # builds those that are missing, which takes longer than any time limit of a call.

  alias Skillbook.CLI.{Accounts, Arguments, ModelFlags}
  alias Skillbook.{CLI, Connections, Embedder, HTTP, SQL}

  # These use HTTP with any options.
  @http [CLI.Serve, CLI.Connect, CLI.Disconnect]
  # These run commands, which use the accounts.
  @runs [CLI.Run, CLI.Shell, CLI.Chat, CLI.Serve, CLI.MCP, CLI.Schedule] ++
          [CLI.Approvals, CLI.Runs]

  @doc "Loads the libraries; the error is a text."
  @spec load(Arguments.t()) :: :ok | {:error, String.t()}
  def load(options) do
    case Enum.reject(wanted(options), &loaded?/1) do
      [] ->
        :ok

      missing ->
        {:error, "cannot load the native libraries #{Enum.map_join(missing, ", ", &inspect/1)}"}
    end
  end

  # A module that loads its library itself has no such module while it cannot.
  defp loaded?(library) do
    Code.ensure_loaded?(library) and
      (library.loaded?() or match?(:ok, library.load()))
  end

  @doc "The modules of the libraries that a command line uses."
  @spec wanted(Arguments.t()) :: [module()]
  def wanted(%{command: command, flags: flags} = options) do
    accounts = if command in @runs, do: accounts(), else: []
    embedder = flags[:embedder]

    for {library, true} <- [
          {SQL.Postgres.Library, postgres?(options.db)},
          {HTTP.Library,
           command in @http or accounts != [] or model?(flags) or servers?(options.servers) or
             match?("http" <> _, embedder)},
          {Embedder.Library, embedder != nil and not match?("http" <> _, embedder)},
          {Connections.Library, command == CLI.Connect or Enum.any?(accounts, &protocols?/1)}
        ],
        do: library
  end

  defp postgres?(nil), do: false
  defp postgres?(db), do: match?({:ok, {SQL.Postgres, _}}, SQL.Location.read(db))

  defp model?(flags), do: Enum.any?(Keyword.keys(ModelFlags.switches()), &flags[&1])

  # The others are programs.
  defp servers?(servers), do: Enum.any?(servers, &match?({:mcp, url, _} when is_binary(url), &1))

  # A file that is wrong is an error of the subcommand.
  defp accounts do
    case Accounts.read() do
      {:ok, [_ | _] = accounts} -> Keyword.delete(accounts, :key)
      _ -> []
    end
  end

  # The vendors behind IMAP and CalDAV, which the library of connections speaks.
  defp protocols?({_name, options}), do: options[:vendor] in [:imap, :caldav]
end
