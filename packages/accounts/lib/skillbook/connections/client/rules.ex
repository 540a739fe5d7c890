defmodule Skillbook.Connections.Client.Rules do
  @moduledoc false
  # The rules of a vendor's interface: its failures, its published quotas, its pages. A module of
  # `Skillbook.Connections.Vendor` names them in `rules/0`; without it those of any HTTP server
  # apply.

  alias Skillbook.HTTP.{Failure, Response}
  alias Skillbook.ServiceError
  alias Skillbook.Support.Number

  @typedoc """
  A refused request. `again` says when it may be repeated: `:always` if it was surely not carried
  out, `:idempotent` if it may have been, `:never` if repeating cannot help.
  """
  @type failure :: %{
          kind: ServiceError.kind(),
          again: :always | :idempotent | :never,
          code: String.t() | nil,
          text: String.t() | nil,
          hint: String.t() | nil,
          retry_after: non_neg_integer() | nil
        }

  @typedoc "At most so many units within so many seconds."
  @type quota :: {pos_integer(), pos_integer()}

  @doc "The name of the service at a URL, for errors."
  @callback service(URI.t()) :: String.t()

  @doc "Whether the account's token may be sent to a host."
  @callback host?(String.t()) :: boolean()

  @doc "The failure that an answer with a status outside of 200 to 299 means."
  @callback failure(100..999, Skillbook.HTTP.headers(), term(), binary()) :: failure()

  @doc "The quotas that a request counts for, and the units of one that names no cost."
  @callback quotas(URI.t()) :: [{atom(), quota(), pos_integer()}]

  @doc "The query of a request for a part of each object."
  @callback fields(String.t()) :: [{String.t(), String.t()}]

  @doc "The token of the next page of an answer, or `nil`."
  @callback next(map()) :: String.t() | nil

  @doc "A request for the page of a token."
  @callback page(keyword(), String.t()) :: keyword()

  @doc "The URL to which a request is sent together with others, and their largest number."
  @callback batch(URI.t()) :: {String.t(), pos_integer()} | nil

  @doc "The rules of an account's vendor."
  @spec of(module()) :: module()
  def of(vendor) do
    if Code.ensure_loaded?(vendor) and function_exported?(vendor, :rules, 0),
      do: vendor.rules(),
      else: Skillbook.Connections.Client.HTTPRules
  end

  @doc "The kind of failure of a status by RFC 9110, and when to repeat the request."
  @spec status(100..999) :: {ServiceError.kind(), :always | :idempotent | :never}
  def status(401), do: {:unauthorized, :never}
  def status(402), do: {:quota, :never}
  def status(403), do: {:forbidden, :never}
  def status(status) when status in [404, 410], do: {:not_found, :never}
  def status(408), do: {:timeout, :idempotent}
  def status(status) when status in [409, 412], do: {:conflict, :never}
  def status(413), do: {:too_large, :never}
  def status(423), do: {:conflict, :always}
  def status(425), do: {:server, :always}
  def status(429), do: {:rate_limited, :always}
  def status(501), do: {:invalid, :never}
  def status(status) when status >= 500, do: {:server, :idempotent}
  def status(status) when status in 400..499, do: {:invalid, :never}
  def status(_status), do: {:bad_answer, :never}

  @doc "A code of a vendor, if it looks like one: it stands in our own words."
  @spec code(term()) :: String.t() | nil
  def code(code) when is_binary(code),
    do: if(code =~ ~r/\A[A-Za-z][A-Za-z0-9_.-]{0,63}\z/, do: code)

  def code(_other), do: nil

  @doc "The number of milliseconds in a header, or `nil`."
  @spec milliseconds(Skillbook.HTTP.headers(), String.t()) :: non_neg_integer() | nil
  def milliseconds(headers, name) do
    case Number.integer(Response.header(headers, name) || "") do
      {number, ""} when number >= 0 -> number
      _ -> nil
    end
  end

  @doc "A request with a parameter of its query, in place of one with this name."
  @spec put_query(keyword(), String.t(), String.t()) :: keyword()
  def put_query(request, name, value) do
    others = Enum.reject(request[:query] || [], fn {other, _} -> to_string(other) == name end)
    Keyword.put(request, :query, others ++ [{name, value}])
  end

  # The text of an answer that is no page of HTML, which proxies send.
  @doc "The message in the body of an answer, or `nil`."
  @spec text(binary()) :: String.t() | nil
  def text(body) do
    trimmed = body |> binary_part(0, min(byte_size(body), 65_536)) |> String.trim_leading()

    if trimmed == "" or String.starts_with?(trimmed, "<"),
      do: nil,
      else: Failure.explain(body)
  end
end
