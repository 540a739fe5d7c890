defmodule Skillbook.SQL.Postgres.Settings do
  @moduledoc false
  # Validates the options of `Skillbook.SQL.Postgres` and converts them for the driver.
  #
  # Errors must not contain a password, so they never contain the URL.

  alias Skillbook.Support.{Number, Options}

  @modes ~w(disable prefer require verify-ca verify-full)

  @address %{
    host: "localhost",
    port: 5432,
    user: nil,
    password: nil,
    database: nil,
    application_name: "skillbook",
    ssl: "prefer",
    ssl_ca_file: nil
  }
  @limits %{timeout: 15_000, queue_timeout: 5_000, connect_timeout: 5_000}
  @options [:url, :name, :pool_size] ++
             [:host, :port, :user, :password, :database, :application_name, :ssl, :ssl_ca_file] ++
             [:timeout, :queue_timeout, :connect_timeout]

  # The names of options in URLs.
  @parameters %{
    "host" => :host,
    "port" => :port,
    "user" => :user,
    "password" => :password,
    "dbname" => :database,
    "application_name" => :application_name,
    "sslmode" => :ssl,
    "sslrootcert" => :ssl_ca_file,
    "connect_timeout" => :connect_timeout
  }

  @doc "Wraps secrets in functions, so that supervisor reports do not show them."
  def hide(options) do
    Enum.map(options, fn
      {key, value} when key in [:url, :password] and is_binary(value) -> {key, fn -> value end}
      option -> option
    end)
  end

  @doc "`{name, pool_size, address, limits}`; raises `ArgumentError`."
  def read!(options) do
    Options.known!(options, @options)
    options = Enum.map(options, &reveal/1)
    own = for {key, value} <- options, key not in [:url, :name, :pool_size], do: {key, value}

    values =
      Map.merge(@address, @limits) |> Map.merge(url(options[:url])) |> Map.merge(Map.new(own))

    values = Map.update!(values, :ssl, &ssl/1)
    # The defaults of libpq.
    user = values.user || System.get_env("USER") || "postgres"
    values = %{values | user: user, database: values.database || user}
    Enum.each(values, &check!/1)

    name = options[:name]
    pool_size = Keyword.get(options, :pool_size, 10)
    check(is_atom(name) and name != nil, :name, "an atom", name)

    check(
      is_integer(pool_size) and pool_size > 0,
      :pool_size,
      "a number of connections from 1",
      pool_size
    )

    {name, pool_size, Map.take(values, Map.keys(@address)), Map.take(values, Map.keys(@limits))}
  end

  defp reveal({key, secret}) when key in [:url, :password] and is_function(secret, 0),
    do: {key, secret.()}

  defp reveal(option), do: option

  defp ssl(true), do: "verify-full"
  defp ssl(false), do: "disable"
  defp ssl(mode) when is_atom(mode), do: mode |> to_string() |> String.replace("_", "-")
  defp ssl(mode), do: mode

  defp check!({key, value}) when key in [:timeout, :queue_timeout, :connect_timeout],
    do: check(Options.milliseconds?(value), key, "milliseconds", value)

  defp check!({:port, value}),
    do: check(is_integer(value) and value in 1..65_535, :port, "a number from 1 to 65535", value)

  defp check!({:ssl, value}),
    do: check(value in @modes, :ssl, "true, false or one of #{Enum.join(@modes, ", ")}", value)

  defp check!({:password, value}),
    do: value == nil or text?(value) or raise(ArgumentError, "expected :password to be a text")

  defp check!({:ssl_ca_file, nil}), do: :ok
  defp check!({key, value}), do: check(text?(value) and value != "", key, "a text", value)

  defp check(true, _option, _expected, _value), do: :ok

  defp check(false, option, expected, value),
    do:
      raise(
        ArgumentError,
        "expected #{inspect(option)} to be #{expected}, got: #{inspect(value)}"
      )

  defp text?(value),
    do: is_binary(value) and String.valid?(value) and not String.contains?(value, "\0")

  defp url(nil), do: %{}

  defp url(url) when is_binary(url) do
    with {:ok, uri} <- URI.new(url),
         true <- uri.scheme in ["postgres", "postgresql"],
         false <- String.contains?(uri.host || "", ",") do
      {user, password} = userinfo(uri.userinfo)

      %{
        host: uri.host,
        port: uri.port,
        user: user,
        password: password,
        database: database(uri.path)
      }
      |> Map.reject(fn {_key, value} -> value in [nil, ""] end)
      |> Map.merge(query(uri.query))
    else
      _ ->
        raise ArgumentError,
              "expected :url to be postgres://user:password@host:port/database?sslmode=..."
    end
  end

  defp url(_other), do: raise(ArgumentError, "expected :url to be a text")

  defp userinfo(nil), do: {nil, nil}

  defp userinfo(info) do
    case String.split(info, ":", parts: 2) do
      [user] -> {URI.decode(user), nil}
      [user, password] -> {URI.decode(user), URI.decode(password)}
    end
  end

  defp database(nil), do: nil
  defp database(path), do: path |> String.trim_leading("/") |> URI.decode()

  defp query(nil), do: %{}

  defp query(query) do
    Map.new(URI.query_decoder(query), fn {name, value} ->
      case @parameters do
        %{^name => key} ->
          {key, parameter(key, value)}

        _ ->
          known = @parameters |> Map.keys() |> Enum.join(", ")

          raise ArgumentError,
                "expected :url to have no parameters but #{known}, got: #{inspect(name)}"
      end
    end)
  end

  # Seconds in libpq, milliseconds here.
  defp parameter(:connect_timeout, value), do: whole(value, &(&1 * 1000))
  defp parameter(:port, value), do: whole(value, & &1)
  defp parameter(_key, value), do: value

  defp whole(value, fun) do
    case Number.integer(value) do
      {number, ""} -> fun.(number)
      _ -> value
    end
  end
end
