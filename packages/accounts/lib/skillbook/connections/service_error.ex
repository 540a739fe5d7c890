defmodule Skillbook.ServiceError do
  @moduledoc """
  Returned when a vendor's service, such as Gmail or HubSpot, does not do what a command asks.

  The message says what happened, what to do next, and what the service itself says: that part
  is a text from outside, one line of at most 300 characters, in quotes.

  ## Fields

    * `:kind` - the kind of failure:
      * `:rate_limited` - too many requests for now, even after the repeats
      * `:quota` - an amount is used up, such as the requests of a day or the storage
      * `:unauthorized` - the service no longer accepts the connection
      * `:scope` - the connection lacks a scope
      * `:forbidden` - the account may not do this
      * `:not_found` - there is no such thing, or the account may not see it
      * `:conflict` - it exists already, or has changed in the meantime
      * `:invalid` - the service refused the request
      * `:too_large` - the request or the answer is over a limit
      * `:server` - the service failed
      * `:connection` - no connection, or one that broke
      * `:timeout` - the caller's time limit was reached
      * `:bad_answer` - the answer cannot be read
    * `:service` - the name of the service
    * `:account` - the name of the book's connection
    * `:status` - the HTTP status, or `nil`
    * `:code` - the service's own name for the failure, such as `"rateLimitExceeded"`, or `nil`
    * `:reason` - the text of the service, or `nil`
    * `:hint` - more about the next step, such as the missing scopes, or `nil`
    * `:retry_after` - how long the service asks to wait, in milliseconds, or `nil`
    * `:attempts` - how often the request was sent
    * `:unclear` - whether the change may have been made all the same

  ## Examples

      iex> error = %Skillbook.ServiceError{kind: :rate_limited, service: "Gmail", status: 429,
      ...>   code: "rateLimitExceeded", attempts: 5, retry_after: 30_000}
      iex> Exception.message(error)
      "Gmail accepts no more requests for now (429, rateLimitExceeded; sent 5 times): try " <>
        "again in 30 s"

      iex> error = %Skillbook.ServiceError{kind: :server, service: "HubSpot", status: 504,
      ...>   attempts: 1, unclear: true, reason: "Gateway timeout"}
      iex> Exception.message(error)
      "HubSpot failed (504): the change may have been made all the same; look before you " <>
        "repeat it. HubSpot says: \\"Gateway timeout\\""
  """

  alias Skillbook.Support.External

  @type kind ::
          :rate_limited
          | :quota
          | :unauthorized
          | :scope
          | :forbidden
          | :not_found
          | :conflict
          | :invalid
          | :too_large
          | :server
          | :connection
          | :timeout
          | :bad_answer

  @type t :: %__MODULE__{
          kind: kind(),
          service: String.t(),
          account: atom() | nil,
          status: pos_integer() | nil,
          code: String.t() | nil,
          reason: String.t() | nil,
          hint: String.t() | nil,
          retry_after: non_neg_integer() | nil,
          attempts: non_neg_integer(),
          unclear: boolean()
        }

  @enforce_keys [:kind, :service]
  defexception [
    :kind,
    :service,
    :account,
    :status,
    :code,
    :reason,
    :hint,
    :retry_after,
    attempts: 0,
    unclear: false
  ]

  @impl true
  def message(error) do
    "#{error.service} #{happened(error.kind)}#{details(error)}: #{next(error)}#{says(error)}"
  end

  defp happened(:rate_limited), do: "accepts no more requests for now"
  defp happened(:quota), do: "has a limit that is used up"
  defp happened(:unauthorized), do: "no longer accepts the connection"
  defp happened(:scope), do: "needs a scope that the connection lacks"
  defp happened(:forbidden), do: "does not allow this account to do it"
  defp happened(:not_found), do: "has nothing there"
  defp happened(:conflict), do: "has another state than expected"
  defp happened(:invalid), do: "refused the request"
  defp happened(:too_large), do: "is limited to less data"
  defp happened(:server), do: "failed"
  defp happened(:connection), do: "cannot be reached"
  defp happened(:timeout), do: "took too long"
  defp happened(:bad_answer), do: "gave an answer that cannot be read"

  defp details(%{status: status, code: code, attempts: attempts}) do
    place = [status, code] |> Enum.reject(&is_nil/1) |> Enum.join(", ")
    times = if attempts > 1, do: ["sent #{attempts} times"], else: []
    parts = if place == "", do: times, else: [place | times]
    if parts == [], do: "", else: " (#{Enum.join(parts, "; ")})"
  end

  defp next(%{unclear: true}),
    do: "the change may have been made all the same; look before you repeat it"

  defp next(%{hint: hint}) when hint != nil, do: hint
  defp next(%{kind: :rate_limited} = error), do: again(error.retry_after)
  defp next(%{kind: :quota}), do: "repeating does not help; the account's owner can raise it"
  defp next(%{kind: :unauthorized}), do: "somebody has to connect it again"
  defp next(%{kind: :scope}), do: "somebody has to grant it"
  defp next(%{kind: :forbidden}), do: "somebody with more rights has to do or allow it"
  defp next(%{kind: :not_found}), do: "check the id, or search for it"
  defp next(%{kind: :conflict}), do: "read it again before you change it"
  defp next(%{kind: :invalid}), do: "correct the command"
  defp next(%{kind: :too_large}), do: "ask for less at once"
  defp next(%{kind: :server} = error), do: again(error.retry_after)
  defp next(%{kind: :connection}), do: "try again later"
  defp next(%{kind: :timeout}), do: "ask for less at once, or try again later"
  defp next(%{kind: :bad_answer}), do: "try again later, or tell the operator"

  defp again(nil), do: "try again later"
  defp again(milliseconds), do: "try again in #{max(ceil(milliseconds / 1000), 1)} s"

  defp says(%{reason: nil}), do: ""

  defp says(%{reason: reason, service: service}),
    do: ". #{service} says: #{External.line(reason, 300)}"
end
