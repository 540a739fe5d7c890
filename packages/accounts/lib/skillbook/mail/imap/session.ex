defmodule Skillbook.Mail.IMAP.Session do
  @moduledoc false
  # One connection to the IMAP server of an account, for one call, and mails handed to its SMTP
  # server. The native library keeps connections for the next call and limits their number.
  #
  # Within `run/2` a failure is thrown, since nearly every step of a call can fail, and `run/2`
  # returns it. Every wait ends before the account's deadline.

  alias Skillbook.Connections
  alias Skillbook.Connections.{Account, Library}
  alias Skillbook.HTTP.Failure
  alias Skillbook.{MailError, ServiceError, Telemetry}
  alias Skillbook.Support.{Hidden, Redact}

  @enforce_keys [:account, :native, :token]
  defstruct [:account, :native, :token]

  @type t :: %__MODULE__{
          account: Account.t(),
          native: reference(),
          token: (() -> String.t())
        }

  @typedoc "A command of the native library (`Call` in native/skillbook_connect/src/imap/mod.rs)."
  @type command :: atom() | tuple()

  # Milliseconds, for an account without a deadline.
  @default_time 30_000

  @doc """
  Calls `fun` with a session. Returns its result, or the failure that it threw. `method` is
  the name of the call for telemetry, such as `"imap.search"`.
  """
  @spec run(Account.t(), String.t(), (t() -> result)) :: {:ok, result} | {:error, Exception.t()}
        when result: term()
  def run(account, method, fun) do
    began = System.monotonic_time()
    deadline = System.monotonic_time(:millisecond) + @default_time
    account = %{account | deadline: account.deadline || deadline}

    result =
      with :ok <- load(),
           {:ok, token} <- Connections.token(account, []),
           {:ok, session} <- open(account, token),
           do: within(session, fun)

    tell(account, method, result, began)
    result
  end

  defp within(session, fun) do
    {:ok, fun.(session)}
  catch
    {__MODULE__, error} -> {:error, error}
  after
    Library.imap_leave(session.native)
  end

  defp tell(account, method, result, began) do
    kind =
      case result do
        {:ok, _} -> nil
        {:error, %{kind: kind}} when is_atom(kind) -> kind
        {:error, _not_found} -> :not_found
      end

    metadata = %{
      book: account.book,
      profile: account.profile,
      account: account.name,
      method: method,
      status: nil,
      kind: kind,
      attempts: 1
    }

    measurements = %{duration: System.monotonic_time() - began}
    Telemetry.event([:skillbook, :connection, :request], measurements, metadata)
  end

  @doc "Ends the call with an error."
  @spec fail(Exception.t() | :unclear) :: no_return()
  def fail(error), do: throw({__MODULE__, error})

  @doc "Calls `fun`, and ends the call with this error if `fun` fails."
  @spec instead(Exception.t(), (() -> result)) :: result when result: term()
  def instead(error, fun) do
    fun.()
  catch
    {__MODULE__, _failure} -> fail(error)
  end

  defp load do
    with {:error, text} <- Library.load() do
      {:error, %MailError{kind: :library, reason: text}}
    end
  end

  defp open(account, token) do
    reference = make_ref()

    native =
      native(fn ->
        Library.imap_open(reference, imap(account, token), Account.time_left(account))
      end)

    case answer(reference) do
      :ok -> {:ok, %__MODULE__{account: account, native: native, token: token}}
      {:error, kind, text, said} -> {:error, failure(account, token, kind, text, said)}
    end
  end

  @doc "Runs a command and returns its answer."
  @spec call(t(), command()) :: term()
  def call(%{account: account} = session, command) do
    case try_call(session, command) do
      {:ok, answer} -> answer
      {:error, kind, text, said} -> fail(failure(account, session.token, kind, text, said))
    end
  end

  @doc "The same, with a refusal of the server as `:refused`."
  @spec ask(t(), command()) :: {:ok, term()} | :refused
  def ask(%{account: account} = session, command) do
    case try_call(session, command) do
      {:ok, answer} -> {:ok, answer}
      {:error, :refused, _text, _said} -> :refused
      {:error, kind, text, said} -> fail(failure(account, session.token, kind, text, said))
    end
  end

  defp try_call(session, command) do
    reference = make_ref()

    native(fn ->
      Library.imap_call(session.native, reference, command, Account.time_left(session.account))
    end)

    answer(reference)
  end

  @doc """
  Hands a mail to the SMTP server. `:unclear` is a connection that was lost after the mail had
  been handed over.
  """
  @spec submit(t(), String.t(), [String.t()], binary()) :: :ok | :unclear
  def submit(%{account: account} = session, from, recipients, raw) do
    reference = make_ref()
    server = smtp(account, session.token)

    native(fn ->
      time = Account.time_left(account)
      Library.smtp_send(reference, server, from, recipients, raw, time)
    end)

    case answer(reference) do
      :ok -> :ok
      {:error, :unclear, _text, _said} -> :unclear
      {:error, kind, text, said} -> fail(failure(account, session.token, kind, text, said))
    end
  end

  @doc "Whether the SMTP server takes addresses with letters outside ASCII before the `@`."
  @spec utf8?(t()) :: boolean()
  def utf8?(%{account: account} = session) do
    reference = make_ref()
    server = smtp(account, session.token)
    native(fn -> Library.smtp_utf8(reference, server, Account.time_left(account)) end)

    case answer(reference) do
      {:ok, takes?} -> takes?
      {:error, kind, text, said} -> fail(failure(account, session.token, kind, text, said))
    end
  end

  # The library answers before the limit that it was given.
  defp answer(reference) do
    receive do
      {^reference, answer} -> answer
    end
  end

  # The arguments have the password, which the stack trace of an error in the library would show.
  defp native(fun) do
    fun.()
  rescue
    _error in [ArgumentError, ErlangError] -> raise "the library of connections failed"
  end

  # Servers

  defp imap(account, token), do: server(account.options, account.options, token)

  defp smtp(%{options: options}, token) do
    smtp = Map.new(options[:smtp] || [])
    server = server(Map.put_new(smtp, :host, options.host), options, token)
    port = smtp[:port] || if(server.tls == :implicit, do: 465, else: 587)
    %{server | port: port}
  end

  defp server(place, options, token) do
    tls = place[:tls] || :implicit

    %{
      host: place.host,
      port: place[:port] || if(tls == :implicit, do: 993, else: 143),
      tls: tls,
      cacertfile: options[:cacertfile],
      username: options.username,
      secret: token.(),
      token: options[:auth] == :xoauth2
    }
  end

  # Failures

  defp failure(account, token, kind, text, said) do
    said = said(said, token)

    case kind do
      :login ->
        hint =
          "check :username and :password of this account in the book's :connections" <>
            if(text == "", do: "", else: " (#{text})")

        error(account, :unauthorized, reason: said, hint: hint)

      :refused ->
        error(account, :invalid, reason: said, hint: if(text != "", do: text))

      :later ->
        hint = if text != "", do: "#{text} for now; try again later"
        error(account, :rate_limited, reason: said, hint: hint)

      :request ->
        error(account, :invalid, hint: text)

      :timeout ->
        error(account, :timeout, [])

      :too_large ->
        error(account, :too_large, hint: text)

      :malformed ->
        error(account, :bad_answer, hint: text)

      kind when kind in [:certificate, :starttls] ->
        error(account, :connection, hint: "#{text}; the account's settings have to be mended")

      _connect_or_closed ->
        hint = if text != "", do: "#{text}; try again later"
        error(account, :connection, reason: said, hint: hint)
    end
  end

  @doc "An error of the account's server."
  @spec error(Account.t(), atom(), keyword()) :: ServiceError.t()
  def error(account, kind, fields) do
    fields = [kind: kind, service: account.options.host, account: account.name] ++ fields
    struct!(ServiceError, fields)
  end

  # A server may repeat the password.
  defp said(nil, _token), do: nil

  defp said(text, token) do
    text
    |> Redact.secrets([token.()], "[secret]")
    |> Failure.excerpt()
    |> Hidden.line()
    |> String.replace("\"", "'")
  end
end
