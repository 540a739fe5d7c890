defmodule Skillbook.Model.OpenAI do
  @moduledoc """
  A model behind a server of the OpenAI chat interface (`POST /v1/chat/completions`, streamed): OpenAI's own, llama.cpp,
  vLLM, Ollama, LM Studio and many more.

  ## Options

    * `:url` - the server: `"http://localhost:8080"`, or with the path up to `chat/completions`, such as
      `"https://api.openai.com/v1"`. Without a path it is `/v1`. Required
    * `:model` - the model's name. Required
    * `:key` - `{:env, "OPENAI_API_KEY"}`, the environment variable that holds the key, or a function that gives it; it is
      asked for each request. `nil` (the default) sends none. The key itself is not taken, so that no struct, log or crash
      report can show it
    * `:system_role` - `:system` (the default), or `:user` for a model that knows no system messages, such as Gemma: the
      system prompt then stands at the beginning of the first message
    * `:connect_timeout` - milliseconds until there is a connection; 10,000 by default
    * `:idle_timeout` - milliseconds in which something must come, 120,000 by default: the first word may take long
    * `:timeout` - milliseconds for the whole answer with all attempts; 600,000 by default
    * `:retries` - how many more attempts there are; 2 by default
    * `:backoff` - milliseconds before the second attempt, then twice as long each time, up to 30 seconds; 500 by default.
      The half of it is left to chance, so that many clients do not come back at once
    * `:cacertfile` - a PEM file with the certificates to trust, instead of the system's
    * `:proxy` - as in `Skillbook.HTTP`; `:env` by default, the proxy that the environment names
    * `:http` - the client: an adapter of `Skillbook.HTTP`, such as `{Skillbook.HTTP.Finch, name: MyApp.Finch}`;
      `Skillbook.HTTP.Native` by default
    * `:sleep` - the function that waits so many milliseconds; `&Process.sleep/1` by default

  ## Attempts

  Another attempt is made if there is no connection, if it breaks before a word of the answer has come, and after the
  statuses 429 and 500 to 599. If the server says how long to wait (`Retry-After`), it is so long; if that is more than a
  minute or than `:timeout` leaves, the error comes back at once. Once text was handed out there is no other attempt.

  The server's certificate is always checked. Redirects are not followed, since the key would go with them.

  The limit of tokens is sent as `max_tokens`, to `api.openai.com` as `max_completion_tokens`, since newer models there refuse the
  other. `extra: %{"max_tokens" => nil, "max_completion_tokens" => 500}` sends it so to any server.

  ## Examples

      iex> {:ok, model} = Skillbook.Model.OpenAI.new(url: "http://localhost:8080", model: "qwen3", key: {:env, "KEY"})
      iex> to_string(model.url)
      "http://localhost:8080/v1/chat/completions"
      iex> inspect(model) =~ "KEY"
      false

      iex> {:error, error} = Skillbook.Model.OpenAI.new(url: "localhost:8080", model: "qwen3")
      iex> Exception.message(error)
      "expected a URL such as \\"https://api.openai.com/v1\\" as the option :url of a model, got: \\"localhost:8080\\""
  """

  @behaviour Skillbook.Model

  alias Skillbook.HTTP.Response
  alias Skillbook.Model.SSE
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{HTTP, ModelError, OptionError}

  @type t :: %__MODULE__{
          url: URI.t(),
          model: String.t(),
          key: {:env, String.t()} | (() -> String.t() | nil) | nil,
          connect_timeout: pos_integer(),
          idle_timeout: pos_integer(),
          timeout: pos_integer(),
          retries: non_neg_integer(),
          backoff: non_neg_integer(),
          cacertfile: Path.t() | nil,
          proxy: :env | nil | String.t() | (() -> String.t() | nil),
          http: module() | {module(), keyword()},
          system_role: :system | :user,
          sleep: (non_neg_integer() -> any())
        }

  @derive {Inspect, except: [:key, :proxy]}
  @enforce_keys [:url, :model]
  defstruct [
    :url,
    :model,
    :key,
    :cacertfile,
    proxy: :env,
    http: HTTP.Native,
    system_role: :system,
    connect_timeout: 10_000,
    idle_timeout: 120_000,
    timeout: 600_000,
    retries: 2,
    backoff: 500,
    sleep: &Process.sleep/1
  ]

  @longest_backoff 30_000
  @longest_wait 60_000
  # A reply that the extractor would refuse need not be received.
  @longest_text 16 * 1024 * 1024
  # Of what is no answer, enough to find its error's message.
  @longest_other 64 * 1024
  @shown 300
  @cut " …"

  @doc "Makes a model of the options above."
  @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    with :ok <- options |> hide_key() |> Options.validate("a model", schema()) |> hide_login(),
         {:ok, url} <- fetch(options, :url),
         {:ok, _name} <- fetch(options, :model) do
      {:ok, struct!(__MODULE__, Keyword.put(options, :url, endpoint(url)))}
    end
  end

  @doc "As `new/1`, but raises the error."
  @spec new!(keyword()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, model} -> model
      {:error, error} -> raise error
    end
  end

  @impl true
  def chat(%__MODULE__{} = model, messages, options, on_text) do
    with {:ok, key} <- key(model.key) do
      timeout = min(options[:timeout] || model.timeout, model.timeout)

      attempt(1, %{
        model: model,
        key: key,
        body: body(model, messages, options),
        deadline: System.monotonic_time(:millisecond) + timeout,
        on_text: on_text,
        on_retry: options[:on_retry] || fn _ -> :ok end
      })
    end
  end

  # The key stays in a closure, whose inside no crash report shows.
  defp key(nil), do: {:ok, nil}

  defp key({:env, name}) do
    case String.trim(System.get_env(name, "")) do
      "" -> no_key("the environment variable #{name} is not set, or empty")
      key -> sendable(fn -> key end, "what the environment variable #{name} holds")
    end
  end

  defp key(function) when is_function(function, 0) do
    case function.() do
      nil ->
        no_key("the function that the option :key names gave nil")

      key when is_binary(key) ->
        sendable(fn -> key end, "what the function gave that the option :key names")

      _ ->
        no_key("the function that the option :key names gave no text")
    end
  end

  defp sendable(key, what) do
    if key.() =~ ~r/\A[\x21-\x7e]+\z/,
      do: {:ok, key},
      else: no_key("#{what} has characters that no key has, such as a space or a line break")
  end

  defp no_key(reason), do: {:error, %ModelError{kind: :key, reason: reason}}

  # Attempts

  defp attempt(number, call) do
    with {:again, error} <- once(call) do
      delay = error.retry_after || backoff(call.model.backoff, number)
      left = call.deadline - System.monotonic_time(:millisecond)

      if number <= call.model.retries and delay < min(left, @longest_wait) do
        call.on_retry.(%{attempt: number + 1, delay: delay, error: error})
        call.model.sleep.(delay)
        attempt(number + 1, call)
      else
        {:error, error}
      end
    end
  end

  defp backoff(first, number) do
    longest = min(first * Integer.pow(2, number - 1), @longest_backoff)
    div(longest, 2) + :rand.uniform(div(longest, 2) + 1) - 1
  end

  defp once(%{model: model} = call) do
    # A packer would hold the words of a stream back.
    options = [
      adapter: model.http,
      connect_timeout: model.connect_timeout,
      idle_timeout: model.idle_timeout,
      timeout: max(call.deadline - System.monotonic_time(:millisecond), 1),
      cacertfile: model.cacertfile,
      proxy: model.proxy,
      compressed: false
    ]

    answer = %{
      mode: nil,
      headers: %{},
      other: "",
      sse: SSE.new(),
      texts: [],
      size: 0,
      usage: nil,
      finish_reason: nil,
      done: false,
      error: nil,
      on_text: call.on_text
    }

    [method: :post, url: model.url, headers: fn -> headers(call.key) end, body: call.body]
    |> HTTP.stream(options, answer, &part/2)
    |> outcome(model)
    |> without_key(call.key)
  end

  defp headers(key) do
    authorization = if key, do: [{"authorization", "Bearer " <> key.()}], else: []
    [{"content-type", "application/json"}, {"accept", "text/event-stream"} | authorization]
  end

  defp body(model, messages, options) do
    fields = %{
      "model" => model.model,
      "messages" =>
        messages |> Enum.map(&Map.take(&1, [:role, :content])) |> system(model.system_role),
      "stream" => true,
      "stream_options" => %{"include_usage" => true},
      "stop" => options[:stop],
      "temperature" => options[:temperature],
      limit_field(model.url) => options[:max_tokens],
      "grammar" => options[:grammar]
    }

    fields
    |> Map.merge(options[:extra] || %{})
    |> Map.reject(fn {_name, value} -> value == nil end)
    |> JSON.encode()
  end

  defp system([%{role: :system, content: system}, %{role: :user} = first | rest], :user),
    do: [%{first | content: system <> "\n\n" <> first.content} | rest]

  defp system([%{role: :system} = system | rest], :user), do: [%{system | role: :user} | rest]
  defp system(messages, _role), do: messages

  # OpenAI's newer models refuse the field that all other servers know.
  @doc false
  @spec limit_field(URI.t()) :: String.t()
  def limit_field(%URI{host: "api.openai.com"}), do: "max_completion_tokens"
  def limit_field(%URI{}), do: "max_tokens"

  # The answer, part by part

  defp part({:head, status, headers}, answer) do
    type = String.downcase(Response.header(headers, "content-type") || "")
    stream? = status in 200..299 and String.starts_with?(type, "text/event-stream")
    answer = %{answer | mode: if(stream?, do: :stream, else: {:other, status}), headers: headers}

    case String.downcase(Response.header(headers, "content-encoding") || "identity") do
      "identity" -> {:cont, answer}
      other -> {:halt, encoded(answer, stream?, other)}
    end
  end

  defp part({:data, data}, %{mode: :stream} = answer) do
    case SSE.feed(answer.sse, data) do
      {:ok, events, sse} -> events(events, %{answer | sse: sse})
      :error -> {:halt, bad_answer(answer, "an event of it is too large")}
    end
  end

  defp part({:data, data}, answer) do
    other = answer.other <> data
    {if(byte_size(other) < @longest_other, do: :cont, else: :halt), %{answer | other: other}}
  end

  # None was asked for. Of an error, the status says enough.
  defp encoded(answer, true, encoding),
    do: bad_answer(answer, "it is encoded as #{shown(encoding)}, which was not asked for")

  defp encoded(answer, false, _encoding), do: answer

  defp events([], answer), do: {:cont, answer}

  defp events([%{data: data} | events], answer) do
    case event(data, answer) do
      %{error: nil, done: false} = answer -> events(events, answer)
      answer -> {:halt, answer}
    end
  end

  defp event("[DONE]", answer), do: %{answer | done: true}

  defp event(data, answer) do
    case JSON.decode(data) do
      {:ok, %{"error" => error}} when error != nil ->
        reported(answer, error)

      {:ok, %{"choices" => [choice | _]} = event} ->
        answer |> usage(event) |> choice(choice)

      {:ok, %{"choices" => []} = event} ->
        usage(answer, event)

      {:ok, %{"usage" => %{}} = event} ->
        usage(answer, event)

      {:ok, _other} ->
        bad_answer(answer, "an event of it has no choices: #{shown(data)}")

      {:error, error} ->
        bad_answer(
          answer,
          "an event of it is no JSON (#{Exception.message(error)}): #{shown(data)}"
        )
    end
  end

  defp choice(answer, %{"delta" => %{} = delta} = choice) do
    answer = finish(answer, choice["finish_reason"])

    case delta["content"] do
      empty when empty in [nil, ""] ->
        answer

      text when is_binary(text) ->
        text(answer, text)

      other ->
        bad_answer(
          answer,
          "expected text as the content of an event, got: #{inspect(other, limit: 5)}"
        )
    end
  end

  defp choice(answer, choice),
    do:
      bad_answer(
        answer,
        "an event of it has no delta: #{inspect(choice, limit: 5, printable_limit: @shown)}"
      )

  defp text(%{size: size} = answer, text) when size + byte_size(text) > @longest_text,
    do: bad_answer(answer, "it is longer than #{div(@longest_text, 1024 * 1024)} MiB")

  defp text(answer, text) do
    answer.on_text.(text)
    %{answer | texts: [text | answer.texts], size: answer.size + byte_size(text)}
  end

  defp finish(answer, nil), do: answer
  defp finish(answer, "stop"), do: %{answer | finish_reason: :stop}
  defp finish(answer, "length"), do: %{answer | finish_reason: :length}
  defp finish(answer, "content_filter"), do: %{answer | finish_reason: :filtered}
  defp finish(answer, _other), do: %{answer | finish_reason: :other}

  defp usage(answer, %{"usage" => %{"prompt_tokens" => prompt, "completion_tokens" => completion}})
       when is_integer(prompt) and is_integer(completion) and prompt >= 0 and completion >= 0,
       do: %{answer | usage: %{prompt_tokens: prompt, completion_tokens: completion}}

  defp usage(answer, _event), do: answer

  defp reported(answer, error), do: %{answer | error: {:server, reported_text(error)}}
  defp bad_answer(answer, reason), do: %{answer | error: {:bad_answer, reason}}

  # What became of it: `{:ok, answer}`, `{:error, error}`, or `{:again, error}` for an attempt that may be made again

  defp outcome({_how, %{mode: {:other, status}} = answer}, model),
    do: refused(answer, status, model)

  defp outcome({_how, %{error: {kind, reason}} = answer}, _model),
    do: broken(answer, kind, reason)

  defp outcome({_how, %{done: done, finish_reason: reason} = answer}, _model)
       when done or reason != nil do
    {:ok, %{text: written(answer), usage: answer.usage, finish_reason: reason || :stop}}
  end

  defp outcome({:ok, answer}, _model),
    do: broken(answer, :cut_off, "the stream ended before it said so")

  # Whatever follows the reason to finish is of no use.
  defp outcome({:error, _reason, %{finish_reason: reason, error: nil} = answer}, model)
       when reason != nil,
       do: outcome({:ok, answer}, model)

  defp outcome({:error, _reason, %{mode: {:other, status}} = answer}, model),
    do: refused(answer, status, model)

  defp outcome({:error, %{kind: :closed}, %{mode: :stream} = answer}, _model),
    do: broken(answer, :cut_off, "the connection broke")

  defp outcome({:error, error, answer}, _model) do
    {kind, text} = failure(error)
    broken(answer, kind, text)
  end

  defp failure(%{kind: kind} = error) when kind in [:connect, :connect_timeout],
    do: {:connection, Exception.message(error)}

  defp failure(%{kind: :closed} = error),
    do: {:connection, "#{error.place}: it was closed before there was an answer"}

  defp failure(%{kind: kind} = error) when kind in [:certificate, :request],
    do: {:settings, Exception.message(error)}

  defp failure(%{kind: kind, reason: reason}) when kind in [:idle_timeout, :timeout],
    do: {:timeout, reason}

  defp failure(%{reason: reason}), do: {:bad_answer, reason}

  defp broken(answer, :settings, reason),
    do: {:error, %ModelError{kind: :connection, reason: reason, text: written(answer)}}

  defp broken(%{texts: []}, kind, reason) when kind in [:connection, :server, :cut_off],
    do: {:again, %ModelError{kind: kind, reason: reason}}

  defp broken(answer, kind, reason),
    do: {:error, %ModelError{kind: kind, reason: reason, text: written(answer)}}

  defp refused(answer, status, _model) when status in 200..299 do
    reason =
      "expected a stream of events (text/event-stream), got #{Response.header(answer.headers, "content-type") || "no type"}: " <>
        explained(answer.other)

    {:error, %ModelError{kind: :bad_answer, status: status, reason: reason}}
  end

  defp refused(answer, status, _model) when status in 300..399 do
    reason =
      "the server redirects to #{shown(Response.header(answer.headers, "location") || "nowhere")}; give that as the URL"

    {:error, %ModelError{kind: :bad_answer, status: status, reason: reason}}
  end

  defp refused(answer, 429, _model) do
    error = %ModelError{kind: :rate_limited, status: 429, reason: explained(answer.other)}
    {:again, %{error | retry_after: retry_after(answer.headers)}}
  end

  defp refused(answer, status, _model) when status >= 500 do
    error = %ModelError{kind: :server, status: status, reason: explained(answer.other)}
    {:again, %{error | retry_after: retry_after(answer.headers)}}
  end

  defp refused(answer, status, model) do
    # A query may hold a secret.
    reason = "#{%{model.url | query: nil}}: #{explained(answer.other)}"
    {:error, %ModelError{kind: :refused, status: status, reason: reason}}
  end

  # Seconds, or a date: the time until then by the server's own clock, if it tells it.
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

  # Words for errors

  defp explained(body) do
    case JSON.decode(body) do
      {:ok, %{"error" => error}} when error != nil -> reported_text(error)
      {:ok, %{"message" => text}} when is_binary(text) -> shown(text)
      {:ok, %{"detail" => text}} when is_binary(text) -> shown(text)
      _ -> if(String.trim(body) == "", do: "it says nothing more", else: shown(body))
    end
  end

  defp reported_text(%{"message" => text}) when is_binary(text), do: shown(text)
  defp reported_text(text) when is_binary(text), do: shown(text)
  defp reported_text(other), do: other |> JSON.encode() |> shown()

  # On one line, and nothing in it that could drive a terminal.
  defp shown(text) do
    text = if String.valid?(text), do: text, else: inspect(text, printable_limit: @shown)
    line = text |> String.replace(~r/[\s\x00-\x1f\x7f-\x9f]+/u, " ") |> String.trim()
    if String.length(line) > @shown, do: String.slice(line, 0, @shown) <> @cut, else: line
  end

  defp written(answer), do: answer.texts |> Enum.reverse() |> IO.iodata_to_binary()

  # A server may repeat the key that it refuses, and what it says may be cut within it.
  defp without_key({how, %ModelError{} = error}, key) when key != nil do
    key = key.()
    reason = String.replace(error.reason, key, "[key]")

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

  defp without_key(outcome, _key), do: outcome

  # Options

  # Who gives the key itself is told that it is none, without it. A proxy's URL may have a password.
  defp hide_key([{:key, key} | options]) when is_binary(key), do: [{:key, :hidden} | options]
  defp hide_key([option | options]), do: [option | hide_key(options)]
  defp hide_key(options), do: options

  # What stands before the host is a secret, even in what is no URL.
  defp hide_login(
         {:error, %OptionError{option: :url, problem: {:invalid, expected, url}} = error}
       )
       when is_binary(url) do
    shown = String.replace(url, ~r{\A(\w+://)?.*@}s, "\\1[hidden]@")
    {:error, %{error | problem: {:invalid, expected, shown}}}
  end

  defp hide_login(other), do: other

  defp fetch(options, option) do
    with :error <- Keyword.fetch(options, option),
         do: {:error, %OptionError{subject: "a model", option: option, problem: :missing}}
  end

  @doc false
  @spec endpoint(String.t()) :: URI.t()
  def endpoint(url) do
    url = URI.parse(url)
    path = String.trim_trailing(url.path || "", "/")

    cond do
      String.ends_with?(path, "/chat/completions") -> %{url | path: path}
      path == "" -> %{url | path: "/v1/chat/completions"}
      true -> %{url | path: path <> "/chat/completions"}
    end
  end

  defp schema do
    milliseconds = {"a number of milliseconds", &Options.milliseconds?/1}
    number = {"a whole number from 0", &(is_integer(&1) and &1 >= 0)}

    [
      url: {~s(a URL such as "https://api.openai.com/v1"), &url?/1},
      model: {"text", &Options.text?/1},
      key: {"{:env, name}, a function without arguments, or nil", &key?/1},
      system_role: {":system or :user", &(&1 in [:system, :user])},
      connect_timeout: milliseconds,
      idle_timeout: milliseconds,
      timeout: milliseconds,
      retries: number,
      backoff: number,
      cacertfile: {"a path or nil", &(is_nil(&1) or Options.text?(&1))},
      proxy: {":env, nil, a URL or a function that gives one", &HTTP.proxy?/1},
      http: {HTTP.adapter_expected(), &HTTP.adapter?/1},
      sleep: {"a function of one argument", &is_function(&1, 1)}
    ]
  end

  defp url?(url) do
    Options.text?(url) and not String.match?(url, ~r/[\s\x00-\x1f]/) and
      match?(
        {:ok, %URI{scheme: scheme, host: host, port: port, userinfo: nil}}
        when scheme in ["http", "https"] and host not in [nil, ""] and port in 1..65_535,
        URI.new(url)
      )
  end

  defp key?({:env, name}), do: Options.text?(name)
  defp key?(key), do: is_nil(key) or is_function(key, 0)
end
