defmodule Skillbook.Model.Platform do
  @moduledoc false
  # The platforms of clouds that serve models of vendors: Google's Vertex AI and Amazon's Bedrock.
  # They differ from the vendor's own server in addresses and keys, and Bedrock in how it streams.

  alias Skillbook.HTTP.Service
  alias Skillbook.Model.AWS

  @providers %{vertex: "gcp.vertex_ai", bedrock: "aws.bedrock"}

  @doc "The platform of a server, by its URL, which is not checked yet."
  @spec of(term()) :: :vertex | :bedrock | nil
  def of(url) do
    host = is_binary(url) && (URI.parse(url).host || "")

    cond do
      host in [false, ""] -> nil
      host =~ ~r/(\A|[.-])aiplatform\.googleapis\.com\z/ -> :vertex
      host =~ ~r/\Abedrock-runtime[a-z0-9.-]*\.amazonaws\.com(\.cn)?\z/ -> :bedrock
      true -> nil
    end
  end

  @doc "The check of the option `:platform`."
  @spec option([atom()]) :: {String.t(), (term() -> boolean())}
  def option(platforms) do
    names = Enum.map_join(platforms, ", ", &inspect/1)
    {"#{names} or nil", &(&1 in [nil | platforms])}
  end

  @doc "The check of the option `:credentials`."
  @spec credentials() :: {String.t(), (term() -> boolean())}
  def credentials,
    do: {"a function without arguments or nil", &(is_nil(&1) or is_function(&1, 0))}

  @doc "The name of the provider in telemetry; `own` on the vendor's own server."
  @spec provider(struct(), String.t()) :: String.t()
  def provider(%{platform: platform}, own), do: Map.get(@providers, platform, own)

  @doc """
  The model with all that its requests need, and the secret that no error may have: the key, or of
  credentials the token, which is sent, and without one the secret, which only signs.
  """
  @spec key(struct()) :: {:ok, struct(), Service.key()} | {:error, String.t()}
  def key(%{platform: :bedrock, key: nil} = model) do
    with {:ok, credentials} <- AWS.credentials(model.credentials) do
      secret = credentials.session_token || credentials.secret_access_key
      {:ok, %{model | credentials: fn -> credentials end}, fn -> secret end}
    end
  end

  def key(model), do: with({:ok, key} <- Service.key(model), do: {:ok, model, key})
end
