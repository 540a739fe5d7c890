defmodule Skillbook.HTTP.Failure do
  @moduledoc false
  # Failures of servers of models, as errors of the module that the caller names: `ModelError` or
  # `EmbedderError`, which have the same fields.

  alias Skillbook.HTTP.{Error, Response}
  alias Skillbook.Support.JSON

  # Bytes of an error response: enough to find its message.
  @max_body 64 * 1024
  @max_excerpt 300
  @cut " …"

  @type result(error) :: {:retry, error} | {:error, error}

  @doc "The message of such an error. `failure` is the text of its kind."
  @spec message(Exception.t(), String.t()) :: String.t()
  def message(error, failure),
    do: "#{failure}#{status(error.status)}#{again(error.retry_after)}: #{error.reason}"

  defp status(nil), do: ""
  defp status(status), do: " (#{status})"

  defp again(nil), do: ""
  defp again(milliseconds), do: ", again in #{ceil(milliseconds / 1000)} s"

  @doc "The text for a kind of failure that all servers have. `whose` is like `the model`."
  @spec text(atom(), String.t()) :: String.t()
  def text(:key, whose), do: "no key for #{whose}'s server"
  def text(:connection, whose), do: "no connection to #{whose}'s server"
  def text(:timeout, whose), do: "#{whose} took too long"
  def text(:rate_limited, whose), do: "#{whose}'s server accepts no more requests for now"
  def text(:server, whose), do: "#{whose}'s server failed"
  def text(:refused, whose), do: "#{whose}'s server refused the request"

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

  def response(module, status, headers, body, _url) when status == 429 or status >= 500 do
    kind = if status == 429, do: :rate_limited, else: :server

    {:retry,
     struct!(module,
       kind: kind,
       status: status,
       reason: explain(body),
       retry_after: retry_after(headers)
     )}
  end

  def response(module, status, _headers, body, url) do
    # The query may contain a secret.
    reason = "#{%{url | query: nil}}: #{explain(body)}"
    {:error, struct!(module, kind: :refused, status: status, reason: reason)}
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

  # Seconds, or a date, which is compared with the server's own clock if it sends one.
  defp retry_after(headers) do
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
    case Integer.parse(String.trim(value)) do
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
      {:ok, %{"error" => error}} when error != nil -> error_text(error)
      {:ok, %{"message" => text}} when is_binary(text) -> excerpt(text)
      {:ok, %{"detail" => text}} when is_binary(text) -> excerpt(text)
      _ -> if(String.trim(body) == "", do: "no explanation", else: excerpt(body))
    end
  end

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
    reason = String.replace(reason, key, "[key]")

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
