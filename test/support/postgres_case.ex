defmodule Skillbook.PostgresCase do
  @moduledoc false
  # A database per test on the server of SKILLBOOK_POSTGRES, and separate servers.

  import ExUnit.Callbacks

  alias Skillbook.SQL.Postgres

  @doc "The URL of a superuser of the test server."
  def url do
    case System.get_env("SKILLBOOK_POSTGRES") do
      url when url in [nil, ""] ->
        raise """
        expected the URL of a PostgreSQL server in SKILLBOOK_POSTGRES; start one for the tests:

            bin/postgres-for-tests run mix test

        (bin/test does this automatically.)
        """

      url ->
        url
    end
  end

  @doc "The URL of a new database, which is dropped after the test."
  def database(server \\ url()) do
    name = "skillbook_#{System.pid()}_#{System.unique_integer([:positive])}"
    psql!(server, "create database #{name}")
    on_exit(fn -> psql!(server, "drop database #{name} with (force)") end)
    %{URI.parse(server) | path: "/#{name}"} |> URI.to_string()
  end

  @doc "The handle of a new database; takes options of `Skillbook.SQL.Postgres`."
  def start(options \\ []) do
    name = :"postgres_#{System.unique_integer([:positive])}"
    url = options[:url] || database()

    start_supervised!({Postgres, Keyword.merge([url: url, name: name], options)},
      id: options[:name] || name
    )

    Postgres.handle(options[:name] || name)
  end

  @doc "The same for the conformance suite."
  def start_for(context) do
    start(for {:busy_timeout, patience} <- Map.to_list(context), do: {:queue_timeout, patience})
  end

  @doc "Starts a server for the test: its folder and the URL of its superuser."
  def server(settings \\ []) do
    folder =
      Path.join(
        System.tmp_dir!(),
        "skillbook_server_#{System.pid()}_#{System.unique_integer([:positive])}"
      )

    File.mkdir_p!(folder)

    on_exit(fn ->
      script(["stop", folder, "immediate"])
      File.rm_rf!(folder)
    end)

    {folder, start_server(folder, settings)}
  end

  @doc "Starts a stopped server again, and returns its URL."
  def start_server(folder, settings \\ []),
    do: script(["start", folder | settings]) |> String.trim()

  def stop_server(folder, mode \\ "fast"), do: script(["stop", folder, mode])

  @doc "Runs a statement as the superuser, outside of any transaction."
  def psql!(url, statement) do
    args = [
      "--no-psqlrc",
      "--quiet",
      "--tuples-only",
      "--no-align",
      "-v",
      "ON_ERROR_STOP=1",
      "-c",
      statement,
      url
    ]

    {output, 0} = System.cmd(psql(), args, stderr_to_stdout: true)
    String.trim(output)
  end

  defp psql do
    System.find_executable("psql") ||
      List.last(Path.wildcard("/usr/lib/postgresql/*/bin/psql")) ||
      raise("expected psql, PostgreSQL's own client, on the PATH")
  end

  defp script(args) do
    {output, 0} = System.cmd(Path.expand("../../bin/postgres-for-tests", __DIR__), args)
    output
  end
end
