defmodule Skillbook.Connections.IMAP do
  @moduledoc """
  Mail accounts on servers with IMAP and SMTP.

  ## Options

    * `:host` (text) - the name of the IMAP server. Required
    * `:port` (number) - its port. Defaults to that of the `:tls`: 993 or 143
    * `:tls` (`:implicit` or `:starttls`) - how the connection is encrypted. Defaults to
      `:implicit`
    * `:username` (text) - required
    * `:password` (secret) - required
    * `:auth` (`:password` or `:xoauth2`) - `:xoauth2` if the secret in `:password` is an access
      token of OAuth 2. Defaults to `:password`
    * `:from` (text) - the sender of mails, such as `Ann <ann@example.org>`. Defaults to the
      `:username`
    * `:cacertfile` (text) - a PEM file with the authorities to trust, instead of the system's
    * `:smtp` (keyword list) - the server that sends mails: `:host`, `:port` and `:tls`. Defaults
      to the same host, `:implicit` and the port 465; with `:starttls` to 587

  Connections are always encrypted: a server that does not offer STARTTLS is refused.
  """

  @behaviour Skillbook.Connections.Vendor

  alias Skillbook.Support.Options

  @impl true
  def schema do
    [
      host: {"text", &Options.text?/1, :required},
      port: {"a port", &port?/1, :optional},
      tls: {":implicit or :starttls", &tls?/1, :optional},
      username: {"text", &Options.text?/1, :required},
      password: {:secret, :required},
      auth: {":password or :xoauth2", &(&1 in [:password, :xoauth2]), :optional},
      from: {"text", &Options.text?/1, :optional},
      cacertfile: {"text", &Options.text?/1, :optional},
      smtp: {"a keyword list with :host, :port and :tls", &smtp?/1, :optional}
    ]
  end

  defp port?(port), do: is_integer(port) and port in 1..65_535
  defp tls?(tls), do: tls in [:implicit, :starttls]

  defp smtp?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn
        {:host, host} -> Options.text?(host)
        {:port, port} -> port?(port)
        {:tls, tls} -> tls?(tls)
        _other -> false
      end)
  end

  @impl true
  def auth(_options), do: {:secret, :password}

  @impl true
  def services(_options), do: [mail: Skillbook.Mail.IMAP]

  @impl true
  def commands, do: %{}
end
