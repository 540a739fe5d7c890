defmodule Skillbook.Connections.ServiceAccount do
  @moduledoc false
  # Tokens of a service account of Google, which acts for a person by domain-wide delegation: a
  # signed assertion by RFC 7523 in exchange for a token. Nothing is stored.

  alias Skillbook.Connections.{Account, OAuth}
  alias Skillbook.Support.{JSON, Secret}

  @grant_type "urn:ietf:params:oauth:grant-type:jwt-bearer"
  # Seconds; the longest that Google takes.
  @lasts 3_600

  @doc """
  Asks for a token with one of the scopes, in their order: a domain may have delegated only some
  of them.
  """
  @spec token(Account.t(), [String.t()], timeout()) ::
          {:ok, OAuth.grant()} | {:error, OAuth.failure()}
  def token(account, scopes, timeout) do
    with {:ok, key} <- key(account),
         {:ok, subject} <- subject(account) do
      deadline = System.monotonic_time(:millisecond) + timeout
      first_of(scopes, account, key, subject, deadline)
    end
  end

  defp first_of([scope | rest], account, key, subject, deadline) do
    left = max(deadline - System.monotonic_time(:millisecond), 1)

    # Made once: the reason of a failure must not repeat the assertion that was sent.
    assertion = assertion(key, subject, scope)
    form = fn -> [{"grant_type", @grant_type}, {"assertion", assertion}] end

    case OAuth.request_token(account, account.vendor.oauth(account.options).token, form, left) do
      {:error, {:refused, code, _reason}}
      when code in ["unauthorized_client", "access_denied", "invalid_scope"] and rest != [] ->
        first_of(rest, account, key, subject, deadline)

      {:ok, grant} ->
        {:ok, %{grant | scopes: [scope]}}

      other ->
        other
    end
  end

  defp assertion(key, subject, scope) do
    now = System.os_time(:second)
    fields = key.()
    head = %{"alg" => "RS256", "typ" => "JWT", "kid" => fields.id}

    claims = %{
      "iss" => fields.email,
      "scope" => scope,
      "aud" => fields.audience,
      "iat" => now,
      "exp" => now + @lasts
    }

    claims = if subject, do: Map.put(claims, "sub", subject), else: claims
    text = part(head) <> "." <> part(claims)
    text <> "." <> OAuth.base64url(:public_key.sign(text, :sha256, fields.private))
  end

  defp part(fields), do: fields |> JSON.encode() |> OAuth.base64url()

  # The key file

  defp key(account) do
    with {:ok, text} <- read(account.options.service_account, account.profile),
         {:ok, fields} <- fields(text) do
      {:ok, fields}
    else
      {:error, reason} -> {:error, {:secret, "the option :service_account: #{reason}"}}
    end
  end

  defp read(secret, profile), do: Secret.read(secret, profile)

  defp fields(text) do
    with {:ok, %{"client_email" => email, "private_key" => pem} = json} <- JSON.decode(text.()),
         true <- is_binary(email) and is_binary(pem),
         {:ok, private} <- private(pem) do
      id = json["private_key_id"]
      audience = json["token_uri"] || "https://oauth2.googleapis.com/token"
      {:ok, fn -> %{email: email, private: private, id: id, audience: audience} end}
    else
      _ ->
        {:error,
         "expected the JSON of a service account's key, with client_email and private_key"}
    end
  end

  # `:public_key` raises for texts that only look like PEM.
  defp private(pem) do
    with [entry | _] <- :public_key.pem_decode(pem),
         key when elem(key, 0) == :RSAPrivateKey <- :public_key.pem_entry_decode(entry),
         do: {:ok, key},
         else: (_ -> :error)
  rescue
    _error -> :error
  catch
    _kind, _reason -> :error
  end

  defp subject(account) do
    case account.options do
      %{subject: text} when is_binary(text) -> {:ok, text}
      %{subject: function} -> called(function, account.profile)
      _none -> {:ok, nil}
    end
  end

  # Without a person the account would act for itself, so another answer is an error.
  defp called(function, profile) do
    with {:error, reason} <- Secret.read(function, profile) do
      {:error, {:secret, "the option :subject: #{reason}"}}
    else
      {:ok, subject} -> {:ok, subject.()}
    end
  end
end
