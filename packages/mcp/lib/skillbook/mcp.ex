defmodule Skillbook.MCP do
  @moduledoc """
  Serves a book to clients of the Model Context Protocol, such as editors and agents.

  There are two ways:

    * `bin/skillbook mcp` speaks with one client, which starts it, over standard input and output
    * `Skillbook.Web` answers at `/mcp`, for many clients, each with a profile of its own

  | in the book | in the protocol |
  |---|---|
  | a command or a skill that models may see | a tool |
  | a page for people to call: a skill, a workflow, a command without a handler | a prompt |
  | a document, a file of a skill | a resource |
  | a skill | a skill of the extension `io.modelcontextprotocol/skills` |
  | a call that waits for an approval | a question to the user of the client (elicitation) |

  A request sees the view of its profile, and its commands pass every check of
  `Skillbook.Executor`. A hidden entry does not exist for it. See [MCP](docs/mcp.md).

  ## Options

  Those of `Skillbook.Web`'s `:mcp`:

    * `:tools` (keyword list) - which commands and skills are tools: `:names`, `:limit` and
      `:run_command` as for `Skillbook.Tools.list/2`. With `:names`, a call of another one is
      refused as unknown. Defaults to `[]`

  ## Examples

      iex> Skillbook.MCP.revisions()
      ["2026-07-28", "2025-11-25", "2025-06-18"]
      iex> {:error, error} = Skillbook.Web.new(book: MyApp.Skills, mcp: [tools: [limit: 0]])
      iex> Exception.message(error)
      "expected an integer from 1 as the option :limit of the :tools of :mcp, got: 0"
  """

  alias Skillbook.MCP.Protocol
  alias Skillbook.Support.Options
  alias Skillbook.{Native, OptionError}

  @type options :: [tools: [names: [String.t()], limit: pos_integer(), run_command: boolean()]]

  @doc "Returns the revisions of the protocol that are served, the newest first."
  @spec revisions() :: [String.t(), ...]
  defdelegate revisions, to: Protocol

  @doc false
  # Checks the options.
  @spec check(keyword()) :: :ok | {:error, OptionError.t()}
  def check(options) do
    with :ok <- Options.validate(options, "the :mcp of a web", schema()),
         do: Options.validate(options[:tools] || [], "the :tools of :mcp", tools())
  end

  defp schema, do: [tools: {"a keyword list", &Keyword.keyword?/1}]

  defp tools do
    [
      names: {"a list of globs or nil", &(is_nil(&1) or globs?(&1))},
      limit: {"an integer from 1", &Options.positive?/1},
      run_command: {"a boolean", &is_boolean/1}
    ]
  end

  defp globs?(globs), do: Options.texts?(globs) and Native.globs_check(globs) == :ok
end
