defmodule Skillbook.Test.Services do
  @moduledoc false
  # Gmail, Google Calendar, Google Drive, Outlook, OneDrive, HubSpot and the authorization servers
  # of Google and Microsoft, played by a server that checks requests and answers by the vendors'
  # descriptions. Seeds, faults, entries of the log and judges are those of
  # test/support/services/server.py.

  import ExUnit.Assertions, only: [flunk: 1]

  alias Skillbook.HTTP
  alias Skillbook.Support.JSON

  @doc "The URL of the server."
  def server do
    System.get_env("SKILLBOOK_SERVICES") ||
      raise "SKILLBOOK_SERVICES is not set. To start a server and set it: " <>
              "bin/services-for-tests run mix test"
  end

  @doc """
  A world of the test's own: `url`, `tokens`, `refresh_tokens`, `service_account` and `client`.

  At the end the test fails if a request was sent that the vendor does not allow, or if the server
  itself failed. `violations: true` in place of that leaves violations to the test.
  """
  def world(seed \\ %{}, options \\ []) do
    world = make(seed)
    ExUnit.Callbacks.on_exit(fn -> check(world, Keyword.get(options, :violations, false)) end)
    world
  end

  @doc "A world that nothing checks at the end, for processes beside the test's own."
  def make(seed) do
    made = post("/worlds", Map.new(seed))

    %{
      url: made["url"],
      path: String.replace_prefix(made["url"], server(), ""),
      tokens: made["tokens"],
      refresh_tokens: made["refresh_tokens"],
      service_account: made["service_account"],
      client: made["client"]
    }
  end

  @doc """
  Options of an account of Google in a book: a service account, which acts for the person whose
  address begins with the profile's id.
  """
  def google(world) do
    [
      vendor: :google,
      url: world.url,
      service_account: fn -> JSON.encode(world.service_account) end,
      subject: &"#{&1}@example.com"
    ]
  end

  @doc "Options of an account of Google in a book, whose people sign in."
  def google_client(world) do
    secret = world.client["secret"]

    [
      vendor: :google,
      url: world.url,
      client_id: world.client["id"],
      client_secret: fn -> secret end
    ]
  end

  @doc "Options of an account of Microsoft in a book, whose people sign in."
  def microsoft(world), do: world |> google_client() |> Keyword.put(:vendor, :microsoft)

  @doc "Fails unless all requests were allowed, and the server did not fail."
  def check(world, violations? \\ false) do
    %{"log" => log, "broken" => broken} = state(world)
    wrong = if violations?, do: [], else: Enum.filter(log, & &1["violation"])

    if wrong != [] or broken != [] do
      lines = Enum.map(wrong, &"#{&1["http"]} #{&1["path"]}: #{&1["violation"]}")
      flunk("Requests that the vendor does not allow:\n" <> Enum.join(lines ++ broken, "\n"))
    end

    :ok
  end

  @doc "The requests so far, without those of the judge."
  def log(world), do: state(world)["log"]

  @doc "The log, and the faults of the server itself: `log` and `broken`."
  def state(world), do: get(world, "log")

  @doc "The ids of the methods that were called, in order; parts of batches by their own ids."
  def methods(world), do: world |> log() |> Enum.map(& &1["method"])

  @doc "All tokens, codes and keys of the world so far."
  def secrets(world), do: get(world, "secrets")

  def clear_log(world), do: control(world, :delete, "log", nil)

  @doc ~S|Adds faults: `fault(world, method: "gmail.users.messages.list", status: 429)`.|
  def fault(world, [{_key, _value} | _] = fault), do: faults(world, [Map.new(fault)])
  def faults(world, faults), do: control(world, :post, "faults", Enum.map(faults, &Map.new/1))
  def clear_faults(world), do: control(world, :delete, "faults", nil)

  @doc "Moves the world's clock forward, by which tokens expire."
  def advance(world, seconds), do: control(world, :post, "clock", %{advance: seconds})

  @doc "Tokens for a person: `user:`, `scopes:` (a list or \"all\"), `expires_in:`."
  def token(world, fields), do: control(world, :post, "token", Map.new(fields))

  @doc "Who answers the page of consent, and how: `user:`, `answer:`."
  def browser(world, fields), do: control(world, :post, "browser", Map.new(fields))

  @doc "Adds data to services: `seed(world, gmail: %{...})`."
  def seed(world, seed), do: control(world, :post, "seed", Map.new(seed))

  @doc """
  The state as Google's own client reads it: `judge(world, "gmail.messages", user: "ann@…")`.
  """
  def judge(world, kind, query \\ []) do
    get(world, "judge/#{kind}?" <> URI.encode_query(query))
  end

  @doc "Opens an address as a browser does that does not follow redirects: `{status, location}`."
  def open(url) do
    {:ok, %{status: status, headers: headers}} = HTTP.request(url)
    {status, List.first(Map.get(headers, "location", []))}
  end

  defp get(world, name), do: control(world, :get, name, nil)

  defp control(world, method, name, value),
    do: request(method, "#{world.path}/control/#{name}", value)

  defp post(path, value), do: request(:post, path, value)

  defp request(method, path, value) do
    body =
      if value == nil,
        do: [],
        else: [body: JSON.encode(value), headers: [{"content-type", "application/json"}]]

    case HTTP.request([method: method, url: server() <> path] ++ body, max_body: 268_435_456) do
      {:ok, %{status: 200, body: body}} ->
        {:ok, value} = JSON.decode(body)
        value

      {:ok, %{body: body}} ->
        raise "#{method} #{path}: #{body}"

      {:error, error} ->
        raise error
    end
  end
end
