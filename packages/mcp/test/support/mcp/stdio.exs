# Serves the book of the judges over standard input and output, as `bin/skillbook mcp` serves one:
# elixir -pa EBIN stdio.exs
Logger.configure_backend(:console, device: :standard_error)
{:ok, _} = Application.ensure_all_started(:skillbook_mcp)

alias Skillbook.MCP.Stdio
alias Skillbook.Test.{MCPBook, MCPJudges}

sources = [MCPJudges.path("pages"), MCPJudges.skills() | MCPBook.commands()]
{:ok, _} = MCPBook.start(:judges, sources: sources)
:io.setopts(:standard_io, encoding: :latin1)
read = Stdio.device_lines(:standard_io)
:ok = Stdio.serve(:judges, "ann", [], read, &IO.binwrite/1)
