defmodule Skillbook.HTTP.Response do
  @moduledoc """
  A whole HTTP response.

    * `:status` - the status, such as 200
    * `:headers` - the values of each header, by its lower-case name
    * `:body` - the body, unpacked if it was in gzip

  ## Examples

      iex> headers = %{"vary" => ["accept", "origin"]}
      iex> Skillbook.HTTP.Response.header(headers, "vary")
      "accept, origin"
      iex> Skillbook.HTTP.Response.header(headers, "etag")
      nil
  """

  @type t :: %__MODULE__{status: 100..999, headers: Skillbook.HTTP.headers(), body: binary()}

  # Headers may set cookies, and the body may be anything.
  @derive {Inspect, only: [:status]}
  @enforce_keys [:status, :headers, :body]
  defstruct [:status, :headers, :body]

  @doc "The values of a header, joined by commas; `nil` if it is missing."
  @spec header(Skillbook.HTTP.headers(), String.t()) :: String.t() | nil
  def header(headers, name) do
    case headers do
      %{^name => values} -> Enum.join(values, ", ")
      _ -> nil
    end
  end
end
