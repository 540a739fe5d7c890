defmodule Skillbook.Embedder.OpenAI do
  @moduledoc """
  A client for servers with the OpenAI embeddings interface: OpenAI, llama.cpp, vLLM, Ollama, LM
  Studio and many more.

      {:ok, embedder} =
        Skillbook.Embedder.OpenAI.new(
          url: "https://api.openai.com/v1",
          model: "text-embedding-3-small",
          key: {:env, "OPENAI_API_KEY"}
        )

      {:ok, [vector]} = Skillbook.Embedder.embed(embedder, ["Which invoices are overdue?"])

  It sends `POST /v1/embeddings`, with several texts in each request.

  ## Options

    * `:url` - the server, for example `"http://localhost:8080"`, or with the path before
      `embeddings`, for example `"https://api.openai.com/v1"`. Default path: `/v1`. Required
    * `:model` - the name of the model. Required
    * `:key` - `{:env, "OPENAI_API_KEY"}` for an environment variable, or a function that returns
      the key. It is read for each call. The key itself is not accepted. Default: `nil`, no key
    * `:dimensions` - the number of dimensions to ask for, from 1 to 16,384, of models that offer
      several. A vector of another size is an error. Default: `nil`, that of the model
    * `:encoding` - `:float` or `:base64`: how the server is asked to write the numbers. The
      second needs a quarter of the bytes, and not all servers have it. Both are read. Default:
      `:float`
    * `:batch` - texts of one request, from 1 to 2,048. An answer may have at most 8,000,000
      numbers. Default: 64
    * `:batch_bytes` - bytes of the texts of one request. A longer text is sent alone. Default:
      131,072
    * `:max_text` - bytes of one text; of a longer one the beginning is sent. Servers refuse texts
      that are longer than the model's context. Default: 8,192
    * `:name` - the name under which vectors are kept. Default: the model's name, with the
      dimensions if these are set. Two servers whose models have the same name but other vectors
      need two names
    * `:timeout` - milliseconds for all texts of a call, retries included. Default: 60,000
    * `:connect_timeout`, `:idle_timeout`, `:retries`, `:backoff`, `:cacertfile`, `:proxy`,
      `:http`, `:sleep` - as in `Skillbook.Model.OpenAI`, and with the same defaults

  ## Retries

  A request is repeated if the connection fails, after the statuses 408, 409, 429 and 500 to 599,
  and after an answer that is the report of an error; the header `x-should-retry` takes
  precedence. The delay is the server's `retry-after-ms` or `Retry-After`, if it sends one. If
  that is more than a minute or than the rest of `:timeout`, the error is returned at once.

  The server's certificate is always verified. Redirects are not followed, since the key would be
  sent along.

  ## Examples

      iex> options = [url: "http://localhost:8080", model: "nomic-embed", key: {:env, "KEY"}]
      iex> {:ok, embedder} = Skillbook.Embedder.OpenAI.new(options)
      iex> to_string(embedder.url)
      "http://localhost:8080/v1/embeddings"
      iex> inspect(embedder) =~ "KEY"
      false
      iex> Skillbook.Embedder.info(embedder)
      %{model: "nomic-embed", size: nil}
      iex> Skillbook.Embedder.info(%{embedder | dimensions: 256})
      %{model: "nomic-embed 256", size: 256}

      iex> {:error, error} = Skillbook.Embedder.OpenAI.new(url: "localhost:8080", model: "m")
      iex> Exception.message(error)
      ~s(expected a URL such as "https://api.openai.com/v1" as the option :url of an ) <>
        ~s(embedder, got: "localhost:8080")
  """

  @behaviour Skillbook.Embedder

  alias Skillbook.{Embedder, EmbedderError}
  alias Skillbook.HTTP.{Failure, Response, Service}
  alias Skillbook.Support.{JSON, Options, UntilError}

  @max_size 16_384
  # Numbers of an answer. They take about 640 MB.
  @max_numbers 8_000_000
  # Keys and values of an answer beside its numbers, and those for each text.
  @max_fields 1_000
  @max_fields_for_text 50
  # Bytes of a number in JSON, with its comma.
  @max_number 32
  # Bytes of an answer beside its numbers, and of the other fields for each text.
  @max_rest 64 * 1024

  use Service,
    subject: "an embedder",
    path: "embeddings",
    timeout: 60_000,
    options: [
      dimensions:
        {pos_integer() | nil, nil,
         {"a whole number from 1 to #{@max_size}, or nil", &(&1 in 1..@max_size or is_nil(&1))}},
      encoding: [:float, :base64],
      batch: {pos_integer(), 64, {"a whole number from 1 to 2048", &(&1 in 1..2048)}},
      batch_bytes: {pos_integer(), 128 * 1024, {"a whole number from 1", &Options.positive?/1}},
      max_text: {pos_integer(), 8 * 1024, {"a whole number from 1", &Options.positive?/1}},
      name: {String.t() | nil, nil, {"text or nil", &(is_nil(&1) or Options.text?(&1))}}
    ]

  @impl true
  def info(%{name: nil, dimensions: nil, model: model}), do: %{model: model, size: nil}

  def info(%{name: name, dimensions: size, model: model}),
    do: %{model: name || "#{model} #{size}", size: size}

  @impl true
  def embed(%__MODULE__{} = embedder, texts, options) do
    case Service.key(embedder) do
      {:ok, key} -> batches(embedder, key, texts, options)
      {:error, reason} -> {:error, %EmbedderError{kind: :key, reason: reason}}
    end
  end

  defp batches(embedder, key, texts, options) do
    deadline = Service.deadline(embedder, options[:timeout])

    texts
    |> Enum.map(&text(&1, embedder.max_text))
    |> split(embedder)
    |> UntilError.map(&request(embedder, key, &1, deadline))
    |> case do
      {:ok, batches} -> {:ok, Enum.concat(batches)}
      error -> error
    end
  end

  # OpenAI refuses an empty text.
  defp text("", _max), do: " "
  defp text(text, max), do: with("" <- Embedder.cut(text, max), do: " ")

  # The first text of a request is always taken.
  defp split(texts, %{batch: batch, batch_bytes: bytes}) do
    Enum.chunk_while(
      texts,
      {[], 0, 0},
      fn text, {chunk, count, size} ->
        larger = size + byte_size(text)

        if chunk == [] or (count < batch and larger <= bytes),
          do: {:cont, {[text | chunk], count + 1, larger}},
          else: {:cont, Enum.reverse(chunk), {[text], 1, byte_size(text)}}
      end,
      fn {chunk, _, _} -> {:cont, Enum.reverse(chunk), nil} end
    )
  end

  defp request(embedder, key, texts, deadline) do
    body = body(embedder, texts)
    count = length(texts)
    max = @max_rest + max_numbers(embedder, count) * @max_number
    start = fn -> %{status: nil, headers: %{}, body: [], size: 0, max: max} end
    request = [deadline: deadline, accept: "application/json", compressed: true]
    read = {start, &part/2, &result(&1, embedder, count)}
    Service.request(embedder, key, body, request, read)
  end

  defp max_numbers(embedder, count),
    do: min(count * (embedder.dimensions || @max_size), @max_numbers)

  defp body(embedder, texts) do
    fields = %{
      "model" => embedder.model,
      "input" => texts,
      "dimensions" => embedder.dimensions,
      "encoding_format" => if(embedder.encoding == :base64, do: "base64")
    }

    fields |> Map.reject(fn {_name, value} -> value == nil end) |> JSON.encode()
  end

  # The response

  defp part({:head, status, headers}, answer) do
    max = if status in 200..299, do: answer.max, else: Failure.max_body()
    {:cont, %{answer | status: status, headers: headers, max: max}}
  end

  defp part({:data, data}, answer) do
    answer = %{answer | body: [answer.body, data], size: answer.size + byte_size(data)}
    {if(answer.size <= answer.max, do: :cont, else: :halt), answer}
  end

  defp result({_, %{status: status} = answer}, embedder, _count) when status not in 200..299,
    do: refused(embedder, answer)

  defp result({:halted, answer}, _embedder, _count),
    do: bad_answer("it has more than #{answer.max} bytes")

  defp result({:ok, answer}, embedder, count) do
    body = IO.iodata_to_binary(answer.body)
    most = max_numbers(embedder, count) + count * @max_fields_for_text + @max_fields

    case JSON.decode(body, most) do
      {:ok, %{"error" => error}} when error != nil ->
        Failure.result(EmbedderError, :server, Failure.error_text(error))

      {:ok, %{"data" => data}} when is_list(data) ->
        vectors(data, count)

      {:ok, _other} ->
        bad_answer("expected a JSON object with `data`, got: #{Failure.excerpt(body)}")

      {:error, error} ->
        type = Response.header(answer.headers, "content-type") || "no type"

        bad_answer(
          "expected JSON, got #{Failure.excerpt(type)} (#{Exception.message(error)}): " <>
            Failure.excerpt(body)
        )
    end
  end

  # The status says enough, even if the rest of the body is missing.
  defp result({:error, _reason, %{status: status} = answer}, embedder, _count)
       when status != nil and status not in 200..299,
       do: refused(embedder, answer)

  defp result({:error, error, _answer}, _embedder, _count) do
    {kind, reason} = Failure.kind(error)
    Failure.result(EmbedderError, kind, reason)
  end

  @too_long ~r/too (long|large)|context length|maximum context|batch size|max(imum)? .*tokens/i

  # Servers word this in many ways, and some call it a failure of theirs.
  defp refused(embedder, answer) do
    body = IO.iodata_to_binary(answer.body)

    {how, error} =
      Failure.response(EmbedderError, answer.status, answer.headers, body, embedder.url)

    if answer.status != 429 and error.reason =~ @too_long do
      hint =
        "; if a text is longer than the model's context, set the option :max_text of the " <>
          "embedder lower (now #{embedder.max_text} bytes)"

      {:error, %{error | reason: error.reason <> hint}}
    else
      {how, error}
    end
  end

  defp vectors(data, count) when length(data) != count,
    do: bad_answer("expected #{count} vectors, one for each text, got: #{length(data)}")

  defp vectors(data, count) do
    with {:ok, vectors} <- UntilError.map(data, &vector/1),
         vectors = Map.new(vectors),
         :ok <- indices(vectors, count),
         do: {:ok, for(index <- 0..(count - 1), do: vectors[index])}
  end

  defp vector(%{"index" => index, "embedding" => numbers})
       when is_integer(index) and is_list(numbers),
       do: {:ok, {index, numbers}}

  defp vector(%{"index" => index, "embedding" => text})
       when is_integer(index) and is_binary(text) do
    case Base.decode64(text) do
      {:ok, numbers} -> {:ok, {index, numbers}}
      :error -> bad_answer("expected base64 as an embedding, got: #{Failure.excerpt(text)}")
    end
  end

  defp vector(other) do
    bad_answer(
      "expected an index and an embedding of each vector, got: " <>
        inspect(other, limit: 5, printable_limit: 100)
    )
  end

  defp indices(vectors, count) do
    case Enum.find(0..(count - 1), &(not Map.has_key?(vectors, &1))) do
      nil ->
        :ok

      missing ->
        got = vectors |> Map.keys() |> Enum.sort() |> inspect(limit: 10)
        bad_answer("expected the indices 0 to #{count - 1}, got no #{missing} in: #{got}")
    end
  end

  defp bad_answer(reason), do: Failure.result(EmbedderError, :bad_answer, reason)
end
