defmodule Skillbook.MCP.Error do
  @moduledoc false
  # An error of the protocol: an error of JSON-RPC that a client reads. A command that fails is
  # none; its result has `isError`.
  #
  # `status` is that of the HTTP response. It is 200 for errors that the older revisions send, and
  # the newest one does not name.

  @type t :: %__MODULE__{
          code: integer(),
          message: String.t(),
          data: map() | nil,
          status: 200..599
        }

  defexception [:code, :message, :data, status: 200]

  @doc "The message is no JSON."
  @spec parse(String.t()) :: t()
  def parse(reason), do: %__MODULE__{code: -32_700, message: "not JSON: #{reason}", status: 400}

  @doc "The message is JSON, and no message of JSON-RPC."
  @spec request(String.t()) :: t()
  def request(text), do: %__MODULE__{code: -32_600, message: text, status: 400}

  @doc "No such method in the revision of the request."
  @spec method(String.t(), String.t()) :: t()
  def method(method, revision) do
    message = "unknown method #{quoted(method)} in the revision #{revision}"
    %__MODULE__{code: -32_601, message: message, status: 404}
  end

  @doc "Wrong parameters, or a name that the caller cannot see."
  @spec params(String.t(), map() | nil) :: t()
  def params(text, data \\ nil), do: %__MODULE__{code: -32_602, message: text, data: data}

  @doc "A field that every request of the revision has is missing or wrong."
  @spec meta(String.t()) :: t()
  def meta(text), do: %{params(text) | status: 400}

  @doc "An error of ours."
  @spec internal(String.t()) :: t()
  def internal(text), do: %__MODULE__{code: -32_603, message: text}

  @doc "A limit of the server. The code is outside the range that JSON-RPC and MCP reserve."
  @spec limit(String.t()) :: t()
  def limit(text), do: %__MODULE__{code: 429, message: text, status: 429}

  @doc "The session of a request has ended, or does not answer."
  @spec session(:gone | :busy) :: t()
  def session(:gone),
    do: %{request("no such session; begin one with initialize") | status: 404}

  def session(:busy),
    do: %{internal("the session did not answer within 5 s; send it again") | status: 503}

  @doc "A header of HTTP that differs from the message."
  @spec header(String.t()) :: t()
  def header(text), do: %__MODULE__{code: -32_020, message: text, status: 400}

  @doc "A revision that is not served."
  @spec version(String.t(), [String.t()]) :: t()
  def version(requested, supported) do
    %__MODULE__{
      code: -32_022,
      message:
        "expected the protocol version #{Enum.join(supported, ", ")}, got: #{quoted(requested)}",
      data: %{"supported" => supported, "requested" => requested},
      status: 400
    }
  end

  @doc "The status of HTTP for the code of an error, in the newest revision."
  @spec status(integer()) :: 200..499
  def status(-32_601), do: 404
  def status(code) when code in [-32_600, -32_700, -32_020, -32_021, -32_022], do: 400
  def status(429), do: 429
  def status(_code), do: 200

  @doc "A text of a client for an error: short, and in quotes."
  @spec quoted(term()) :: String.t()
  def quoted(text) when is_binary(text), do: Skillbook.Support.External.line(text, 100)
  def quoted(_value), do: "a value that is no text"

  @doc "The error as JSON-RPC has it."
  @spec fields(t()) :: map()
  def fields(%__MODULE__{code: code, message: message, data: nil}),
    do: %{"code" => code, "message" => message}

  def fields(%__MODULE__{} = error),
    do: Map.put(fields(%{error | data: nil}), "data", error.data)
end
