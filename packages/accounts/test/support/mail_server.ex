defmodule Skillbook.Test.MailServer do
  @moduledoc false
  # Accounts on the mail server of bin/mail-for-tests.

  alias Skillbook.Connections.Account
  alias Skillbook.Connections.IMAP, as: Vendor

  @doc "The settings in SKILLBOOK_MAIL_SERVER."
  def settings do
    case System.get_env("SKILLBOOK_MAIL_SERVER") do
      empty when empty in [nil, ""] ->
        raise """
        expected the settings of a mail server in SKILLBOOK_MAIL_SERVER; start one for the tests:

            bin/mail-for-tests run mix test

        (bin/test does this automatically.)
        """

      query ->
        query
        |> URI.decode_query()
        |> Map.new(fn {name, value} -> {String.to_atom(name), number(value)} end)
    end
  end

  defp number(value) do
    case Integer.parse(value) do
      {number, ""} when number < 65_536 -> number
      _ -> value
    end
  end

  @doc "The address of a mailbox that no other test uses, such as `ann-12@example.org`."
  def address(name),
    do: "#{name}-#{System.pid()}-#{System.unique_integer([:positive])}@example.org"

  @doc "An account of a mailbox. `options` replace those of `Skillbook.Connections.IMAP`."
  def account(address, options \\ []) do
    settings = settings()

    defaults = %{
      host: settings.host,
      port: settings.imaps,
      tls: :implicit,
      username: address,
      password: fn -> settings.password end,
      cacertfile: settings.cacertfile,
      smtp: [port: settings.smtps]
    }

    %Account{
      book: nil,
      name: :post,
      vendor: Vendor,
      profile: "ann",
      options: Map.merge(defaults, Map.new(options)),
      deadline: System.monotonic_time(:millisecond) + 20_000
    }
  end

  @doc "An access token for XOAUTH2."
  def token(address) do
    now = System.os_time(:second)
    header = part(%{"alg" => "HS256", "typ" => "JWT"})
    signed = header <> "." <> part(%{"sub" => address, "iat" => now, "exp" => now + 600})

    signed <>
      "." <>
      Base.url_encode64(:crypto.mac(:hmac, :sha256, settings().jwt_key, signed), padding: false)
  end

  defp part(claims),
    do: claims |> Skillbook.Support.JSON.encode() |> Base.url_encode64(padding: false)
end
