defmodule Skillbook.MCP.Client.Auth do
  @moduledoc false
  # The token of a server with the option `:oauth`. A person signs in to the server as to an
  # account, and the part of the book that keeps connections gives the token
  # (`c:Skillbook.Part.token/5`): that of one profile for all, or that of the profile that calls.
  # A request that the server refuses is repeated once, if there is another token for it.

  alias Skillbook.HTTP
  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.{Error, Session, Settings, State}
  alias Skillbook.{Part, Profile}

  @typedoc "The challenge of a server, with its `error`."
  @type challenge :: %{
          metadata: String.t() | nil,
          scopes: [String.t()] | nil,
          error: String.t() | nil
        }

  # Bytes of a header, its parameters, and scopes.
  @max_header 8_192
  @max_parameters 50
  @max_scopes 100
  @max_scope 1_000

  @doc "The servers of a book at which people sign in."
  @spec sign_ins([Settings.t()]) :: [Part.sign_in()]
  def sign_ins(servers) do
    for %{oauth: oauth, place: {:url, url}} = settings when oauth != nil <- servers do
      {profile, options} = Keyword.pop!(oauth, :profile)

      %{
        name: settings.label,
        profile: profile,
        sees?: &sees?(settings, &1),
        url: url,
        http: settings.http,
        options: Keyword.delete(options, :list_as),
        challenge: fn id -> asked(Settings.called_by(settings, Profile.new!(id: id))) end
      }
    end
  end

  # Whether a profile may see entries of the server.
  defp sees?(settings, profile) do
    Profile.reads?(profile, settings.tenant) and
      (profile.grants == :all or settings.labels -- profile.grants == [])
  end

  # With the scopes that a call has lacked.
  defp asked(settings) do
    with {:ok, challenge} <- Client.HTTP.challenge(settings) do
      scopes = Enum.uniq((challenge.scopes || []) ++ State.scopes(settings))
      {:ok, %{metadata: challenge.metadata, scopes: if(scopes != [], do: scopes)}}
    end
  end

  @doc """
  Calls the function with the token, `nil` without a sign-in; once more with another one, if the
  server refuses it.
  """
  @spec attempt(Settings.t(), integer() | nil, (Part.token() | nil -> result)) ::
          result | {:error, Error.t()}
        when result: term()
  def attempt(%{oauth: nil}, _deadline, fun), do: fun.(nil)

  def attempt(settings, deadline, fun) do
    deadline = deadline || Session.deadline(settings)

    with {:ok, token} <- token(settings, nil, deadline),
         {:error, %Error{kind: :auth, data: %{} = challenge} = error} = refused <- fun.(token) do
      case refusal(error.code, challenge, token) do
        nil ->
          refused

        refusal ->
          with {:scopes, scopes, _token} <- refusal, do: State.put_scopes(settings, scopes)
          with {:ok, next} <- token(settings, refusal, deadline), do: fun.(next)
      end
    end
  end

  defp refusal(401, _challenge, token), do: {:refused, token}

  defp refusal(403, %{error: "insufficient_scope", scopes: [_ | _] = scopes}, token),
    do: {:scopes, scopes, token}

  defp refusal(_code, _challenge, _token), do: nil

  defp token(settings, refusal, deadline) do
    profile = settings.caller || Settings.lists_as(settings)
    arguments = [settings.book, settings.label, profile, refusal, deadline]

    case Part.first(Part.of(settings.book), :token, arguments) do
      {:ok, token} ->
        {:ok, token}

      {:error, error} ->
        Session.error(settings, :auth, Exception.message(error))

      :other ->
        reason =
          "its option :oauth needs the package skillbook_accounts: add it to the deps in mix.exs"

        Session.error(settings, :auth, reason)
    end
  end

  @doc """
  Reads the challenge for bearer tokens in the headers `www-authenticate` (RFC 9110, 11.6.1).

      iex> header = ~s(Basic realm="a", Bearer scope="read b", resource_metadata="https://a")
      iex> Skillbook.MCP.Client.Auth.challenge(%{"www-authenticate" => [header]})
      %{metadata: "https://a", scopes: ["read", "b"], error: nil}
      iex> Skillbook.MCP.Client.Auth.challenge(%{})
      %{metadata: nil, scopes: nil, error: nil}
  """
  @spec challenge(HTTP.headers()) :: challenge()
  def challenge(headers) do
    given =
      headers
      |> Map.get("www-authenticate", [])
      |> Enum.join(", ")
      |> binary_slice(0, @max_header)
      |> words()
      |> bearer()

    %{
      metadata: given["resource_metadata"],
      scopes: scopes(given["scope"]),
      error: given["error"]
    }
  end

  # Schemes, and parameters with their values.
  @word ~r/([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/s

  defp words(header) do
    if String.valid?(header),
      do: @word |> Regex.scan(header, capture: :all_but_first) |> Enum.take(@max_parameters),
      else: []
  end

  defp bearer(words) do
    words
    |> Enum.drop_while(&(not scheme?(&1, "bearer")))
    |> Enum.drop(1)
    |> Enum.take_while(&match?([_name, _value | _], &1))
    |> Map.new(fn
      [name, quoted] -> {String.downcase(name), String.replace(quoted, ~r/\\(.)/s, "\\1")}
      [name, "", plain] -> {String.downcase(name), plain}
    end)
  end

  defp scheme?([word], scheme), do: String.downcase(word) == scheme
  defp scheme?(_parameter, _scheme), do: false

  defp scopes(nil), do: nil

  defp scopes(text) do
    found =
      for scope <- String.split(text),
          byte_size(scope) <= @max_scope,
          scope =~ ~r/\A[\x21\x23-\x5b\x5d-\x7e]+\z/,
          do: scope

    case found |> Enum.uniq() |> Enum.take(@max_scopes) do
      [] -> nil
      scopes -> scopes
    end
  end
end
