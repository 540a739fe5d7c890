defmodule Skillbook.Test.ChatServer do
  @moduledoc false
  # A server of the published chat interface (POST /v1/chat/completions) that plays a script, as
  # `Skillbook.Test.HTTPServer` says. A request that is not as published gets a 400 that says why,
  # and no part of the script. The test process gets `{:chat, %{headers: map, body: map}}` for
  # each request that is.

  import Skillbook.Test.HTTPServer, only: [must: 2]

  alias Skillbook.Test.HTTPServer

  @fields %{
    "model" => :text,
    "messages" => :messages,
    "stream" => true,
    "stream_options" => :stream_options,
    "stop" => :stop,
    "temperature" => :temperature,
    "max_tokens" => :positive,
    "grammar" => :text,
    "response_format" => :response_format,
    "top_p" => :temperature
  }

  @doc "Starts a server under the test's supervisor: `{pid, url}`. The option `:tls` takes " <>
         "options of `:ssl.listen/2`."
  def start(script, options \\ []), do: HTTPServer.start(script, [check: &checked/1] ++ options)

  defp checked(request) do
    case check(request) do
      {:ok, seen} -> {:ok, {:chat, seen}}
      {:error, reason} -> {:instead, refusal(400, reason)}
    end
  end

  @doc "The steps of a whole answer in these pieces."
  def answer(texts, options \\ []) do
    events = for text <- List.wrap(texts), do: delta(text)
    reason = Keyword.get(options, :finish_reason, "stop")
    usage = if counts = options[:usage], do: [usage(counts)], else: []
    stream(events ++ [finish(reason)] ++ usage ++ ["[DONE]"])
  end

  @doc "The steps of a stream of these events' data."
  def stream(data), do: [head() | Enum.map(data, &{:chunk, "data: #{&1}\n\n"})] ++ [:end]

  def head, do: {:head, 200, [{"content-type", "text/event-stream; charset=utf-8"}]}

  def delta(text),
    do: json(%{choices: [%{index: 0, delta: %{content: text}, finish_reason: nil}]})

  def finish(reason), do: json(%{choices: [%{index: 0, delta: %{}, finish_reason: reason}]})

  def usage({prompt, completion}) do
    json(%{
      choices: [],
      usage: %{
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion
      }
    })
  end

  @doc "The steps of an error answer."
  def refusal(status, message, headers \\ []) do
    body = json(%{error: %{message: message, type: "error"}})

    headers = [
      {"content-type", "application/json"},
      {"content-length", to_string(byte_size(body))} | headers
    ]

    [{:head, status, headers}, {:raw, body}]
  end

  def json(value), do: value |> Skillbook.Support.JSON.encode()

  # Requests

  defp check(request) do
    with {:ok, fields} <- HTTPServer.fields(request, "/v1/chat/completions"),
         :ok <-
           must(
             Map.has_key?(fields, "model") and Map.has_key?(fields, "messages"),
             "missing fields"
           ),
         :ok <- each(fields, &field/1),
         do: {:ok, %{headers: request.headers, body: fields}}
  end

  defp field({name, value}) do
    case Map.fetch(@fields, name) do
      {:ok, type} -> must(valid?(type, value), "#{name}: #{inspect(value)}")
      :error -> {:error, "unknown field #{name}"}
    end
  end

  defp valid?(:text, value), do: is_binary(value)
  defp valid?(true, value), do: value == true

  defp valid?(:stream_options, value),
    do: match?(%{"include_usage" => true}, value) and map_size(value) == 1

  defp valid?(:stop, value),
    do: is_list(value) and length(value) in 1..4 and Enum.all?(value, &is_binary/1)

  defp valid?(:temperature, value), do: is_number(value) and value >= 0 and value <= 2
  # As OpenAI documents it: a name, and a schema whose objects are closed. A strict one requires
  # all properties.
  defp valid?(:response_format, value) do
    match?(%{"type" => "json_schema", "json_schema" => %{}}, value) and map_size(value) == 2 and
      json_schema?(value["json_schema"])
  end

  defp valid?(:positive, value), do: is_integer(value) and value > 0

  # As the strictest servers want it: the system first and once, then user and assistant in turns,
  # the user last.
  defp valid?(:messages, messages) do
    is_list(messages) and Enum.all?(messages, &message?/1) and
      messages |> Enum.map_join(&String.first(&1["role"])) |> String.match?(~r/\As?(ua)*u\z/)
  end

  defp message?(%{"role" => role, "content" => content} = message),
    do: map_size(message) == 2 and role in ["system", "user", "assistant"] and is_binary(content)

  defp message?(_message), do: false

  defp json_schema?(%{"name" => name, "schema" => schema, "strict" => strict} = format),
    do:
      map_size(format) == 3 and name =~ ~r/\A[a-zA-Z0-9_-]{1,64}\z/ and is_boolean(strict) and
        schema?(schema, strict)

  defp json_schema?(_format), do: false

  defp schema?(%{"type" => "object", "properties" => properties} = schema, strict) do
    schema["additionalProperties"] == false and
      (not strict or Enum.sort(schema["required"]) == Enum.sort(Map.keys(properties))) and
      Enum.all?(Map.values(properties), &schema?(&1, strict))
  end

  defp schema?(%{"type" => "array", "items" => items}, strict), do: schema?(items, strict)

  defp schema?(%{"type" => type}, _strict),
    do: type in ["string", "number", "integer", "boolean"]

  defp schema?(_schema, _strict), do: false

  defp each(fields, fun) do
    Enum.find_value(fields, :ok, fn field -> with :ok <- fun.(field), do: nil end)
  end
end
