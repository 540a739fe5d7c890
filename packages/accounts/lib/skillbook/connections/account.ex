defmodule Skillbook.Connections.Account do
  @moduledoc """
  An account of a vendor, as a handler works with it for one call.

  `Skillbook.Connections.account/2` returns it, and `Skillbook.Connections.token/2` its token.

  ## Fields

    * `:book` - the name of the book
    * `:name` - the name of the account in the book's `:connections`, such as `:google`
    * `:vendor` - the module of `Skillbook.Connections.Vendor`
    * `:profile` - the id of the profile
    * `:options` - the options of the account; secrets are functions of the profile's id
    * `:url` - the base URL in place of the vendor's hosts, or `nil`
    * `:http` - the adapter of `Skillbook.HTTP`
    * `:deadline` - the end of the call, in milliseconds of monotonic time
    * `:identity` - the address of the person, such as `"ann@example.com"`, or `nil`
    * `:command` - the name of the command, or `nil`
    * `:profiles` - the ids of the profiles that may use it, or `:all`
    * `:services` - the services that it is used for
    * `:server` - the server at which the person signs in, such as an MCP server, or `nil`. It
      has a text as its name
    * `:oauth` - the endpoints and the client of a sign-in at a server, or `nil`

  Inspecting it shows neither options nor addresses.
  """

  alias Skillbook.Support.Options

  @type t :: %__MODULE__{
          book: atom(),
          name: atom() | String.t(),
          vendor: module(),
          profile: String.t() | nil,
          options: map(),
          url: String.t() | nil,
          http: module() | {module(), keyword()},
          deadline: integer() | nil,
          identity: String.t() | nil,
          command: String.t() | nil,
          profiles: :all | [String.t()],
          services: [Skillbook.Connections.Vendor.service()],
          server: Skillbook.Part.sign_in() | nil,
          oauth: Skillbook.Connections.Discovery.t() | nil
        }

  @derive {Inspect, only: [:book, :name, :vendor, :profile, :command]}
  @enforce_keys [:book, :name, :vendor]
  defstruct [
    :book,
    :name,
    :vendor,
    :profile,
    :url,
    :deadline,
    :identity,
    :command,
    :server,
    :oauth,
    options: %{},
    http: Skillbook.HTTP.Native,
    profiles: :all,
    services: []
  ]

  @doc """
  The address of a vendor's URL for this account: with `:url`, below that URL.

      iex> account = %Skillbook.Connections.Account{book: nil, name: :a, vendor: nil}
      iex> Skillbook.Connections.Account.url(account, "https://example.com/v1?a=b")
      "https://example.com/v1?a=b"
      iex> account = %{account | url: "http://127.0.0.1:4000/w/7/"}
      iex> Skillbook.Connections.Account.url(account, "https://example.com/v1?a=b")
      "http://127.0.0.1:4000/w/7/v1?a=b"
  """
  @spec url(t(), String.t()) :: String.t()
  def url(%__MODULE__{url: nil}, url), do: url

  def url(%__MODULE__{url: base}, url) do
    uri = URI.parse(url)
    query = if uri.query, do: "?" <> uri.query, else: ""
    String.trim_trailing(base, "/") <> (uri.path || "/") <> query
  end

  @doc "The milliseconds until its deadline, at least 0."
  @spec time_left(t()) :: non_neg_integer()
  def time_left(%__MODULE__{deadline: deadline}),
    do: max(deadline - System.monotonic_time(:millisecond), 0)

  @doc false
  @spec url?(term()) :: boolean()
  def url?(url) do
    Options.text?(url) and not String.match?(url, ~r/[\s\x00-\x1f]/) and
      match?(
        {:ok, %URI{scheme: scheme, host: host, port: port, userinfo: nil, query: nil}}
        when scheme in ["http", "https"] and host not in [nil, ""] and port in 1..65_535,
        URI.new(url)
      )
  end
end
