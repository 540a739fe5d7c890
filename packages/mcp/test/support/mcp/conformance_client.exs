# The program that the conformance suite starts for its scenarios of clients: a book with the
# suite's server as its source. The address is the last argument, the scenario in the environment.

alias Skillbook.Connections
alias Skillbook.MCP.Client
alias Skillbook.Support.JSON

address = List.last(System.argv())
scenario = System.fetch_env!("MCP_CONFORMANCE_SCENARIO")

given = fn ->
  {:ok, context} = JSON.decode(System.get_env("MCP_CONFORMANCE_CONTEXT") || "{}")
  context
end

oauth =
  case scenario do
    "auth/basic-cimd" ->
      [client_metadata: "https://conformance-test.local/client-metadata.json"]

    "auth/pre-registration" ->
      %{"client_id" => id, "client_secret" => secret, "issuer" => issuer} = given.()
      [client_id: id, client_secret: fn -> secret end, issuer: issuer]

    "auth/" <> _other ->
      true

    _other ->
      false
  end

source =
  {:mcp, address,
   label: "suite",
   approve: :all,
   oauth: oauth,
   timeout: 10_000,
   elicit: fn _question -> {:accept, %{}} end}

key = Connections.generate_key()

{:ok, _pid} =
  Skillbook.start_link(
    name: :suite,
    watch: false,
    builtins: false,
    store: if(oauth, do: ":memory:"),
    sources: [source],
    connections: if(oauth, do: [key: fn -> key end], else: [])
  )

:ok = Client.await(:suite)

# A person whose browser agrees to everything, and who signs in again as long as that helps.
sign_in = fn sign_in ->
  redirect = "http://127.0.0.1:50999/callback"

  with {:ok, %{url: url}} <- Connections.authorize(:suite, "suite", redirect: redirect),
       {:ok, %{status: 302, headers: headers}} <- Skillbook.HTTP.request(url),
       %{"location" => [location]} <- headers,
       parameters = location |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query(),
       {:ok, _connection} <- Connections.complete(:suite, parameters) do
    errors = for {_label, error} <- Client.refresh(:suite), do: Exception.message(error)
    IO.puts(errors)
    if Enum.any?(errors, &(&1 =~ "a person can")), do: sign_in.(sign_in)
  else
    other -> IO.inspect(other)
  end
end

if oauth, do: sign_in.(sign_in)
view = Skillbook.View.all(:suite)
for diagnostic <- Skillbook.diagnostics(:suite), do: IO.puts(diagnostic)

# An older server asks on the stream that the client opens beside its requests.
if scenario == "elicitation-sep1034-client-defaults", do: Process.sleep(1_000)

call = fn name, arguments ->
  report = Skillbook.run(view, "```cmd\nsuite.#{name} #{JSON.encode(arguments)}\n```")
  IO.puts(report)
  report
end

# An argument for each flag that a tool needs.
arguments = fn entry ->
  {:ok, declaration} = Skillbook.View.flags(view, entry.name)

  for flag <- declaration.flags, flag.required, into: %{} do
    {flag.name, if(flag.type in [:integer, :number], do: 5, else: "text")}
  end
end

case scenario do
  "http-custom-headers" ->
    %{"toolCalls" => calls} = given.()
    for %{"name" => name, "arguments" => arguments} <- calls, do: call.(name, arguments)

  "json-schema-2020-12-preservation" ->
    {:ok, declaration} = Skillbook.View.flags(view, "suite.json_schema_2020_12_tool")
    call.("json_schema_echo", %{"schema" => declaration.schema})

  # As long as the error says that another sign-in helps.
  "auth/" <> _scenario ->
    Enum.reduce_while(1..10, nil, fn _turn, nil ->
      commands = for %{kind: :command} = one <- Skillbook.View.entries(view), do: one

      reports =
        for entry <- commands do
          report = call.(String.replace_prefix(entry.name, "suite.", ""), arguments.(entry))
          to_string(report)
        end

      if Enum.any?(reports, &(&1 =~ "a person can")),
        do: {:cont, sign_in.(sign_in) && nil},
        else: {:halt, nil}
    end)

  "sep-2640-client-no-prefetch" ->
    IO.inspect(Client.offers(:suite))

  _other ->
    for %{kind: :command} = entry <- Skillbook.View.entries(view),
        do: call.(String.replace_prefix(entry.name, "suite.", ""), arguments.(entry))

    for %{kind: :skill, name: name} <- Skillbook.View.entries(view) do
      IO.puts(Skillbook.run(view, "```cmd\nget_skill: #{name}\n```"))

      for %{name: ^name, files: files} <- Client.offers(:suite),
          file <- files,
          do: IO.puts(Skillbook.run(view, "```cmd\nget_skill: #{name}/#{file}\n```"))
    end
end

Supervisor.stop(:suite)
