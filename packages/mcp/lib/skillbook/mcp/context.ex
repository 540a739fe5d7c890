defmodule Skillbook.MCP.Context do
  @moduledoc false
  # The context of one request of a client: its caller, its revision, and the capabilities of the
  # client. The view is made once for each request, and everything that the request reads comes
  # from it.

  alias Skillbook.{Profile, View}

  @typedoc """
  Fields:

    * `:view`, `:profile` - the caller's view and profile
    * `:revision` - the revision of the protocol, such as `"2026-07-28"`
    * `:capabilities` - those that the client declared
    * `:client` - the name that the client gave itself, for people; or `nil`
    * `:options` - the options of `Skillbook.MCP`
    * `:web` - the `Skillbook.Web`, or `nil` for stdio
    * `:ask_client` - sends a request to the client and returns its answer, in the revisions that
      have this; or `nil`
    * `:progress` - reports the progress of this request, if its client asked for that; or `nil`
    * `:session` - the process of a session of an older revision, or `nil`
  """
  @type t :: %__MODULE__{
          view: View.t(),
          profile: Profile.t(),
          revision: String.t(),
          capabilities: map(),
          client: String.t() | nil,
          options: keyword(),
          web: struct() | nil,
          ask_client: (String.t(), map(), timeout() -> {:ok, map()} | {:error, term()}) | nil,
          progress: (number(), number() | nil, String.t() | nil -> :ok) | nil,
          session: pid() | nil
        }

  @enforce_keys [:view, :profile, :revision]
  defstruct [
    :view,
    :profile,
    :revision,
    :client,
    :web,
    :ask_client,
    :progress,
    :session,
    capabilities: %{},
    options: []
  ]

  @doc "Whether the revision has no sessions, and each request says everything itself."
  @spec stateless?(t()) :: boolean()
  def stateless?(%__MODULE__{revision: revision}), do: revision >= "2026-07-28"

  @doc "Whether the client can ask its user by a form."
  @spec elicits?(t()) :: boolean()
  def elicits?(%__MODULE__{capabilities: %{"elicitation" => %{} = modes}}),
    do: modes == %{} or is_map_key(modes, "form")

  def elicits?(_context), do: false
end
