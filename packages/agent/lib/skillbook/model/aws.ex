defmodule Skillbook.Model.AWS do
  @moduledoc false
  # Signs requests to Amazon's services (Signature Version 4).

  @type credentials :: %{
          access_key_id: String.t(),
          secret_access_key: String.t(),
          session_token: String.t() | nil
        }

  @names [:access_key_id, :secret_access_key, :session_token]

  @doc "Credentials of a function, or of the environment; or why there are none."
  @spec credentials((() -> term()) | nil) :: {:ok, credentials()} | {:error, String.t()}
  def credentials(nil) do
    found = for name <- @names, value = env(name), into: %{}, do: {name, value}

    case Enum.find([:access_key_id, :secret_access_key], &(not is_map_key(found, &1))) do
      nil ->
        {:ok, Map.put_new(found, :session_token, nil)}

      missing ->
        {:error, "the environment variable #{variable(missing)} is not set, or empty"}
    end
  end

  def credentials(function) do
    given = function.()
    given = if Keyword.keyword?(given), do: Map.new(given), else: given

    with %{access_key_id: id, secret_access_key: secret} when is_binary(id) <- given,
         true <- is_binary(secret) and (given[:session_token] || "") |> is_binary() do
      {:ok, %{access_key_id: id, secret_access_key: secret, session_token: given[:session_token]}}
    else
      _other ->
        {:error,
         "the function in the option :credentials did not return texts as :access_key_id and " <>
           ":secret_access_key, and perhaps :session_token"}
    end
  end

  defp env(name) do
    case String.trim(System.get_env(variable(name), "")) do
      "" -> nil
      value -> value
    end
  end

  defp variable(name), do: "AWS_" <> String.upcase(to_string(name))

  @doc """
  The headers that sign a `POST` of a body, for a service in a region.

      iex> credentials = %{access_key_id: "AKIDEXAMPLE", session_token: nil,
      ...>   secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
      iex> url = URI.parse("https://example.amazonaws.com/")
      iex> place = {"us-east-1", "service"}
      iex> now = ~U[2015-08-30 12:36:00Z]
      iex> headers = Skillbook.Model.AWS.sign(url, "", credentials, place, now)
      iex> {"authorization", text} = List.last(headers)
      iex> String.split(text, "Signature=") |> List.last()
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
  """
  @spec sign(URI.t(), iodata(), credentials(), {String.t(), String.t()}, DateTime.t()) ::
          [{String.t(), String.t()}]
  def sign(url, body, credentials, {region, service}, now) do
    time = Calendar.strftime(now, "%Y%m%dT%H%M%SZ")
    day = binary_part(time, 0, 8)
    token = credentials.session_token
    own = [{"x-amz-date", time}] ++ if(token, do: [{"x-amz-security-token", token}], else: [])
    # In the order of their names.
    headers = [{"host", host(url)} | own]
    signed = Enum.map_join(headers, ";", &elem(&1, 0))

    request = [
      "POST\n#{path(url.path)}\n#{url.query}\n",
      for({name, value} <- headers, do: "#{name}:#{value}\n"),
      "\n#{signed}\n",
      hash(body)
    ]

    scope = "#{day}/#{region}/#{service}/aws4_request"
    text = "AWS4-HMAC-SHA256\n#{time}\n#{scope}\n#{hash(request)}"

    key =
      Enum.reduce(
        [day, region, service, "aws4_request"],
        "AWS4" <> credentials.secret_access_key,
        &:crypto.mac(:hmac, :sha256, &2, &1)
      )

    signature = Base.encode16(:crypto.mac(:hmac, :sha256, key, text), case: :lower)

    authorization =
      "AWS4-HMAC-SHA256 Credential=#{credentials.access_key_id}/#{scope}, " <>
        "SignedHeaders=#{signed}, Signature=#{signature}"

    own ++ [{"authorization", authorization}]
  end

  defp host(%{host: host, port: port} = url),
    do: if(port == URI.default_port(url.scheme), do: host, else: "#{host}:#{port}")

  # Each segment is encoded once more than in the URL.
  defp path(path) do
    (path || "/")
    |> String.split("/")
    |> Enum.map_join("/", &URI.encode(&1, fn char -> URI.char_unreserved?(char) end))
  end

  defp hash(data), do: Base.encode16(:crypto.hash(:sha256, data), case: :lower)

  @doc "The region in the host of a service, or that of the environment."
  @spec region(URI.t()) :: String.t()
  def region(%{host: host}) do
    case Regex.run(~r/\A[a-z-]+\.([a-z0-9-]+)\.amazonaws\.com/, host) do
      [_, region] -> region
      nil -> System.get_env("AWS_REGION") || System.get_env("AWS_DEFAULT_REGION") || "us-east-1"
    end
  end
end
