# The program that the conformance suite starts for its scenarios of clients: a book with the
# suite's server as its source. The address is the last argument, the scenario in the environment.

alias Skillbook.MCP.Client
alias Skillbook.Support.JSON

address = List.last(System.argv())
scenario = System.fetch_env!("MCP_CONFORMANCE_SCENARIO")

source =
  {:mcp, address,
   label: "suite", approve: :all, timeout: 10_000, elicit: fn _question -> {:accept, %{}} end}

{:ok, _pid} = Skillbook.start_link(name: :suite, watch: false, builtins: false, sources: [source])
:ok = Client.await(:suite)
view = Skillbook.View.all(:suite)
for diagnostic <- Skillbook.diagnostics(:suite), do: IO.puts(diagnostic)

# An older server asks on the stream that the client opens beside its requests.
if scenario == "elicitation-sep1034-client-defaults", do: Process.sleep(1_000)

call = fn name, arguments ->
  report = Skillbook.run(view, "```cmd\nsuite.#{name} #{JSON.encode(arguments)}\n```")
  IO.puts(report)
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
    {:ok, %{"toolCalls" => calls}} = JSON.decode(System.fetch_env!("MCP_CONFORMANCE_CONTEXT"))
    for %{"name" => name, "arguments" => arguments} <- calls, do: call.(name, arguments)

  "json-schema-2020-12-preservation" ->
    {:ok, declaration} = Skillbook.View.flags(view, "suite.json_schema_2020_12_tool")
    call.("json_schema_echo", %{"schema" => declaration.schema})

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
