defmodule Skillbook.HTTP.Failure do
  @moduledoc false
  # Failures of servers of models, as errors of the module that the caller names: `ModelError` or
  # `EmbedderError`, which have the same fields.

  alias Skillbook.HTTP.{Error, Response}
  alias Skillbook.Support.{JSON, Number, Redact}

  # Bytes of an error response: enough to find its message.
  @max_body 64 * 1024
  @max_excerpt 300
  @cut " …"

  @type result(error) :: {:retry, error} | {:error, error}

  @doc "The bytes of an error response that are worth reading."
  @spec max_body() :: pos_integer()
  def max_body, do: @max_body

  @doc """
  The error for a response with a status from 300. `{:retry, error}` is a failure after which the
  request may be repeated.
  """
  @spec response(module(), 300..999, Skillbook.HTTP.headers(), binary(), URI.t()) ::
          result(Exception.t())
  def response(module, status, headers, _body, _url) when status in 300..399 do
    location = excerpt(Response.header(headers, "location") || "nowhere")
    reason = "the server redirects to #{location}; use that as the URL"

    {:error, struct!(module, kind: :bad_answer, status: status, reason: reason)}
  end

  def response(module, status, headers, body, url) do
    kind = status_kind(status)
    # The query may contain a secret.
    place = if kind == :refused, do: "#{%{url | query: nil}}: ", else: ""

    error =
      struct!(module,
        kind: kind,
        status: status,
        reason: place <> explain(body),
        retry_after: retry_after(headers, body)
      )

    {if(retry?(status, headers), do: :retry, else: :error), error}
  end

  defp status_kind(408), do: :timeout
  defp status_kind(429), do: :rate_limited
  defp status_kind(status) when status >= 500, do: :server
  defp status_kind(_status), do: :refused

  # OpenAI and Anthropic say it in a header, for example that a used-up quota stays used up.
  defp retry?(status, headers) do
    case Response.header(headers, "x-should-retry") do
      "true" -> true
      "false" -> false
      _ -> status in [408, 409, 429] or status >= 500
    end
  end

  @doc """
  The kind of an error that a server reports within an answer, by the names that vendors give to
  it, its message, and the milliseconds after which the server wants to be asked again.
  """
  @spec reported(term()) :: {:rate_limited | :refused | :server, String.t(), integer() | nil}
  def reported(error) do
    names = if is_map(error), do: for(name <- ~w(type code status), do: error[name]), else: []
    {Enum.find_value(names, :server, &named_kind/1), error_text(error), delay_in(error)}
  end

  @limited ~w(rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED insufficient_quota)
  @refused ~w(invalid_request_error invalid_prompt authentication_error permission_error
    billing_error not_found_error request_too_large INVALID_ARGUMENT FAILED_PRECONDITION
    PERMISSION_DENIED UNAUTHENTICATED NOT_FOUND context_length_exceeded)

  defp named_kind(name) when name in @limited, do: :rate_limited
  defp named_kind(name) when name in @refused, do: :refused
  defp named_kind(429), do: :rate_limited
  defp named_kind(code) when is_integer(code) and code in 400..499, do: :refused
  defp named_kind(_name), do: nil

  @repeatable [:connection, :server, :rate_limited, :cut_off]

  @doc """
  The error for a failure of a kind. `{:retry, error}` is one after which the request may be
  repeated. `:settings` is a failure of the connection that repeating cannot help.
  """
  @spec result(module(), atom(), String.t(), non_neg_integer() | nil) :: result(Exception.t())
  def result(module, kind, reason, retry_after \\ nil)

  def result(module, :settings, reason, _retry_after),
    do: {:error, struct!(module, kind: :connection, reason: reason)}

  def result(module, kind, reason, retry_after) do
    how = if kind in @repeatable, do: :retry, else: :error
    {how, struct!(module, kind: kind, reason: reason, retry_after: retry_after)}
  end

  @doc """
  The kind and the reason of a failed request. `:settings` is a failure of the connection that
  repeating the request cannot help.
  """
  @spec kind(Error.t()) :: {atom(), String.t()}
  def kind(%{kind: kind} = error) when kind in [:connect, :connect_timeout],
    do: {:connection, Exception.message(error)}

  def kind(%{kind: :closed} = error),
    do: {:connection, "#{error.place}: closed before an answer"}

  def kind(%{kind: kind} = error) when kind in [:certificate, :request],
    do: {:settings, Exception.message(error)}

  def kind(%{kind: kind, reason: reason}) when kind in [:idle_timeout, :timeout],
    do: {:timeout, reason}

  def kind(%{reason: reason}), do: {:bad_answer, reason}

  @doc """
  The milliseconds after which a server wants to be asked again, or `nil`: OpenAI's header, the
  standard one, or the field of Google's errors.
  """
  @spec retry_after(Skillbook.HTTP.headers(), binary()) :: non_neg_integer() | nil
  def retry_after(headers, body) do
    with nil <- milliseconds(Response.header(headers, "retry-after-ms")),
         nil <- standard(headers),
         {:ok, body} <- JSON.decode(body) do
      delay_in(error_of(body))
    else
      {:error, _not_json} -> nil
      milliseconds -> milliseconds
    end
  end

  defp milliseconds(nil), do: nil

  defp milliseconds(text) do
    case Number.float(String.trim(text)) do
      {number, ""} when number >= 0 and number < 1.0e12 -> ceil(number)
      _ -> nil
    end
  end

  defp delay_in(%{"details" => details}) when is_list(details) do
    Enum.find_value(details, fn
      %{"retryDelay" => delay} when is_binary(delay) -> seconds(delay)
      _ -> nil
    end)
  end

  defp delay_in(_error), do: nil

  # A duration of protocol buffers, such as `34.07s`.
  defp seconds(text) do
    case Number.float(text) do
      {number, "s"} when number >= 0 and number < 1.0e9 -> ceil(number * 1000)
      _ -> nil
    end
  end

  # Seconds, or a date, which is compared with the server's own clock if it sends one.
  defp standard(headers) do
    value = Response.header(headers, "retry-after") || ""

    with :error <- whole_seconds(value),
         {:ok, date} <- date(value) do
      now =
        with :error <- date(Response.header(headers, "date") || ""), do: {:ok, DateTime.utc_now()}

      max(DateTime.diff(date, elem(now, 1), :millisecond), 0)
    else
      seconds when is_integer(seconds) -> seconds * 1000
      :error -> nil
    end
  end

  defp whole_seconds(value) do
    case Number.integer(String.trim(value)) do
      {seconds, ""} when seconds >= 0 -> seconds
      _ -> :error
    end
  end

  # The form of dates that servers must send (RFC 9110, 5.6.7).
  @date ~r/\A\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT\z/
  @months ~w(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec)

  defp date(value) do
    with [_, day, month, year, time] <- Regex.run(@date, value),
         month when month != nil <- Enum.find_index(@months, &(&1 == month)),
         month = String.pad_leading("#{month + 1}", 2, "0"),
         {:ok, date, 0} <- DateTime.from_iso8601("#{year}-#{month}-#{day}T#{time}Z") do
      {:ok, date}
    else
      _ -> :error
    end
  end

  # Texts of errors

  @doc "The message in the body of an error response."
  @spec explain(binary()) :: String.t()
  def explain(body) do
    case JSON.decode(body) do
      {:ok, [%{"error" => error} | _]} when error != nil -> error_text(error)
      {:ok, %{"error" => error}} when error != nil -> error_text(error)
      {:ok, %{"message" => text}} when is_binary(text) -> excerpt(text)
      {:ok, %{"detail" => text}} when is_binary(text) -> excerpt(text)
      _ -> if(String.trim(body) == "", do: "no explanation", else: excerpt(body))
    end
  end

  # Google's servers wrap the error of a stream in a list.
  defp error_of([first | _]), do: error_of(first)
  defp error_of(%{"error" => error}), do: error
  defp error_of(_body), do: nil

  @doc "The message in the field `error` of a JSON answer."
  @spec error_text(term()) :: String.t()
  def error_text(%{"message" => text}) when is_binary(text), do: excerpt(text)
  def error_text(text) when is_binary(text), do: excerpt(text)
  def error_text(other), do: other |> JSON.encode() |> excerpt()

  @doc "The start of a text as one line, without control characters for terminals."
  @spec excerpt(binary()) :: String.t()
  def excerpt(text) do
    text = if String.valid?(text), do: text, else: inspect(text, printable_limit: @max_excerpt)
    line = text |> String.replace(~r/[\s\x00-\x1f\x7f-\x9f]+/u, " ") |> String.trim()

    if String.length(line) > @max_excerpt,
      do: String.slice(line, 0, @max_excerpt) <> @cut,
      else: line
  end

  @doc "Removes the key from an error: a server may repeat it, and an excerpt may end within it."
  @spec hide_key(result, (() -> String.t()) | nil) :: result when result: term()
  def hide_key({how, %{__exception__: true, reason: reason} = error}, key) when key != nil do
    key = key.()
    reason = Redact.secrets(reason, [key], "[key]")

    cut =
      Enum.find(
        (byte_size(key) - 1)..1//-1,
        &String.contains?(reason, binary_part(key, 0, &1) <> @cut)
      )

    reason =
      if cut,
        do: String.replace(reason, binary_part(key, 0, cut) <> @cut, "[key]" <> @cut),
        else: reason

    {how, %{error | reason: reason}}
  end

  def hide_key(result, _key), do: result
end
