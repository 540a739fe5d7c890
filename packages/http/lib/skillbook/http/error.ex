defmodule Skillbook.HTTP.Error do
  @moduledoc """
  Returned when an HTTP request fails. A complete response is never an error, even with an error
  status.

  ## Fields

    * `:kind` - the kind of failure:
      * `:request` - invalid request: its URL, method, a header, or the proxy's URL
      * `:connect` - no connection: unknown host, refused, or a proxy refused it
      * `:connect_timeout` - no connection within `:connect_timeout`
      * `:certificate` - untrusted certificate, or no authorities to check it with
      * `:idle_timeout` - nothing arrived for `:idle_timeout`
      * `:timeout` - the whole request took longer than `:timeout`
      * `:closed` - the connection broke before the end of the response
      * `:malformed` - the response is not valid HTTP or gzip
      * `:too_large` - the response exceeds a size limit
      * `:private` - the host is in a private network, and `:addresses` excludes those
      * `:redirect` - too many redirects, or one that is not allowed
    * `:reason` - a description, without headers, bodies or secrets of URLs
    * `:place` - the server's host and port, or `nil`

  ## Examples

      iex> error = %Skillbook.HTTP.Error{kind: :connect, reason: "refused", place: "a.example:80"}
      iex> Exception.message(error)
      "a.example:80: refused"
  """

  @type kind ::
          :request
          | :connect
          | :connect_timeout
          | :certificate
          | :idle_timeout
          | :timeout
          | :closed
          | :malformed
          | :too_large
          | :private
          | :redirect

  @type t :: %__MODULE__{kind: kind(), reason: String.t(), place: String.t() | nil}

  @enforce_keys [:kind, :reason]
  defexception [:kind, :reason, :place]

  @impl true
  def message(%{place: nil, reason: reason}), do: reason
  def message(%{place: place, reason: reason}), do: "#{place}: #{reason}"

  @doc false
  @spec seconds(pos_integer()) :: String.t()
  def seconds(milliseconds) when milliseconds < 1000, do: "#{milliseconds} ms"
  def seconds(milliseconds), do: "#{div(milliseconds, 1000)} s"
end
