defmodule Skillbook.MCP.Client.Error do
  @moduledoc false
  # A request to an MCP server that is a source has failed, or its answer breaks a rule. Texts of
  # the server are quoted and cut; secrets are in none of them.

  @type kind ::
          :connection
          | :timeout
          | :closed
          | :too_large
          | :malformed
          | :auth
          | :status
          | :rpc
          | :revision
          | :busy
          | :declined
          | :verification
          | :changed
          | :limit
          | :stopped
          | :secret

  @type t :: %__MODULE__{
          kind: kind(),
          server: String.t(),
          reason: String.t(),
          code: integer() | nil,
          data: term()
        }

  @enforce_keys [:kind, :server, :reason]
  defexception [:kind, :server, :reason, :code, :data]

  @impl true
  def message(%{server: server, reason: reason}), do: "the MCP server #{server}: #{reason}"
end
