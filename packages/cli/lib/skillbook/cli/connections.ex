defmodule Skillbook.CLI.Connections do
  @moduledoc false
  # `skillbook connections`: lists connections, and replaces the key of their tokens.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Accounts, Arguments, Session, Terminal}
  alias Skillbook.{Connections, Part}

  @impl true
  def switches, do: [json: :boolean] ++ Arguments.inputs([:connections])

  @impl true
  def args([]), do: {:ok, ["list"]}
  def args([action]) when action in ["list", "rotate"], do: {:ok, [action]}
  def args([other | _]), do: {:error, "expected list or rotate, got: #{other}"}

  @impl true
  def run(%{args: ["list"]} = options) do
    Session.with_book(options, :read, fn book ->
      given = if options.profile_given, do: [profile: options.profile], else: []
      given = given ++ Keyword.take(options.flags, [:limit, :after])

      with {:ok, connections} <- Connections.list(book, given), do: put(connections, options)
    end)
  end

  def run(%{args: ["rotate"]} = options), do: Accounts.replace_key(fn -> rotate(options) end)

  defp rotate(options) do
    Session.with_book(options, :write, fn book ->
      with {:ok, count} <- Connections.rotate(book) do
        tokens = if count == 1, do: "1 connection", else: "#{count} connections"
        Terminal.put("Encrypted the tokens of #{tokens} again")
      end
    end)
  end

  defp put(connections, options) do
    cond do
      options.flags[:json] ->
        :connections |> Part.json(connections) |> Terminal.put_json()

      connections == [] ->
        Terminal.put("No connections. `skillbook connect --help` says how to make one.")

      true ->
        terminal = Terminal.new(options.color)
        connections |> Enum.map_intersperse("\n", &text(&1, terminal)) |> Terminal.put()
    end
  end

  defp text(connection, terminal) do
    services = Enum.map_join(connection.services, ", ", &to_string/1)

    lines =
      [
        state(connection),
        if(services != "", do: "for " <> services),
        if(connection.scopes != [],
          do: "scopes: " <> Enum.map_join(connection.scopes, ", ", &scope/1)
        )
      ]
      |> Enum.filter(& &1)
      |> Enum.map(&["\n  ", Terminal.line(&1)])

    name = "#{connection.account}#{if connection.identity, do: " as #{connection.identity}"}"
    [Terminal.style(terminal, :bright, Terminal.line(name)), lines]
  end

  # As the documentation names them; --json has them in full.
  defp scope(scope), do: String.replace_prefix(scope, "https://www.googleapis.com/auth/", "")

  defp state(%{sign_in: false, profile: nil}), do: "with a secret of the application"
  defp state(%{sign_in: false} = one), do: "with a secret of the application, #{profile(one)}"

  defp state(%{status: :revoked} = one),
    do: "withdrawn, #{profile(one)}; connect again with `skillbook connect #{one.account}`"

  defp state(one), do: "connected on #{Terminal.time(one.connected_at)}, #{profile(one)}"

  defp profile(connection), do: "for the profile #{connection.profile}"
end
