defmodule Skillbook.Model.Responses do
  @moduledoc """
  A client for OpenAI's Responses API.

      {:ok, model} = Skillbook.Model.Responses.new(model: "gpt-5")
      Skillbook.Agent.run(MyApp.Skills, "What is overdue?", model: model)

  It sends `POST /v1/responses` and streams the answer. The server stores nothing (`store:
  false`). The encrypted reasoning of an answer is in `:opaque` of the answer, and is given back
  as it came. If a server does not send it on its own,
  `extra: %{"include" => ["reasoning.encrypted_content"]}` asks for it; models that do not reason
  refuse that.

  ## Options

    * `:url` - the server. Default: `"https://api.openai.com/v1"`
    * `:model` - the name of the model. Required
    * `:key` - as in `Skillbook.Model.OpenAI`. Default: `{:env, "OPENAI_API_KEY"}`
    * `:structured` - how the server gets the schema of `Skillbook.Model.complete_object/4`:
      `:json_schema`, as the format of its text, or `:prompt`, not at all. Default: `:json_schema`
    * `:cache` - how the server's cache of prompts is used: `true`; `false`, no field is sent for
      it; or `[ttl: "12h", key: "my-app"]`, the least time that an entry stays (`"30m"` or
      `"12h"`) and the key that requests with the same beginning share. The key is made from the
      tools and the system prompt otherwise. Default: `true`
    * `:extra` - a map of further fields of each request, as in `Skillbook.Model.chat/4`, for
      example `%{"reasoning" => %{"effort" => "low"}}`
    * `:connect_timeout`, `:idle_timeout`, `:timeout`, `:retries`, `:backoff`, `:cacertfile`,
      `:proxy`, `:http`, `:sleep` - as in `Skillbook.Model.OpenAI`, and with the same defaults

  `:stop` and `:grammar` of `Skillbook.Model.chat/4` are refused, since the interface has neither.

  ## Examples

      iex> {:ok, model} = Skillbook.Model.Responses.new(model: "gpt-5")
      iex> to_string(model.url)
      "https://api.openai.com/v1/responses"
      iex> inspect(model) =~ "OPENAI_API_KEY"
      false
  """

  @behaviour Skillbook.Model
  @behaviour Skillbook.Model.Client

  alias Skillbook.HTTP.{Failure, Service}
  alias Skillbook.Model.{Answer, Client, Messages, OpenAI}
  alias Skillbook.OptionError
  alias Skillbook.Support.{JSON, JSONSchema}

  @type t :: %__MODULE__{
          url: URI.t(),
          model: String.t(),
          key: {:env, String.t()} | (() -> String.t() | nil) | nil,
          structured: :json_schema | :prompt,
          cache: boolean() | keyword(),
          extra: map(),
          connect_timeout: pos_integer(),
          idle_timeout: pos_integer(),
          timeout: pos_integer(),
          retries: non_neg_integer(),
          backoff: non_neg_integer(),
          cacertfile: Path.t() | nil,
          proxy: :env | nil | String.t() | (() -> String.t() | nil),
          http: module() | {module(), keyword()},
          sleep: (non_neg_integer() -> any())
        }

  @derive {Inspect, except: [:key, :proxy]}
  @enforce_keys [:url, :model]
  defstruct Client.fields()

  @defaults [url: "https://api.openai.com/v1", key: {:env, "OPENAI_API_KEY"}]

  @doc "Builds a model from the options above."
  @spec new(keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    own = [
      structured: {":json_schema or :prompt", &(&1 in [:json_schema, :prompt])},
      cache: Client.cache(["30m", "12h"], [:key])
    ]

    endpoint = fn url, _name -> Service.endpoint(url, "responses") end
    Client.new(__MODULE__, options, @defaults, own, endpoint)
  end

  @doc "Like `new/1`, but raises the error."
  @spec new!(keyword()) :: t()
  def new!(options), do: options |> new() |> Client.new!()

  @impl true
  defdelegate chat(model, messages, options, on_text), to: Client

  @impl true
  def tools?(_model), do: true

  # The request

  @impl true
  def provider(_model), do: "openai"

  @impl true
  def vendor, do: "responses"

  @impl true
  def missing_options, do: [:grammar, :stop]

  @impl true
  def headers(key), do: Service.bearer(key)

  @impl true
  def body(model, messages, options) do
    {system, rest} = Messages.split(messages)
    tools = OpenAI.tools(options[:tools] || [], :openai_responses)

    %{
      "model" => model.model,
      "instructions" => system,
      "input" => Enum.flat_map(rest, &items(&1, model)),
      "tools" => tools,
      "tool_choice" => tools && options[:tool_choice],
      "temperature" => options[:temperature],
      "max_output_tokens" => options[:max_tokens],
      "text" => format(Client.schema(model, options)),
      "store" => false,
      "stream" => true
    }
    |> Map.merge(OpenAI.cache_fields(model, messages, tools))
  end

  defp format(nil), do: nil

  defp format(schema) do
    schema = JSONSchema.without(schema, ["maxLength"])

    %{
      "format" => %{
        "type" => "json_schema",
        "name" => "answer",
        "schema" => schema,
        "strict" => JSONSchema.all_required?(schema)
      }
    }
  end

  # The limit of OpenAI for the ids of calls.
  @max_id 64

  defp items(%{role: :tool} = message, _model) do
    [
      %{
        "type" => "function_call_output",
        "call_id" => Messages.call_id(message.id, @max_id),
        "output" => message.content
      }
    ]
  end

  defp items(%{role: :assistant} = message, model),
    do: message |> Messages.parts(vendor(), model.model) |> Enum.map(&item/1)

  defp items(message, _model),
    do: [%{"role" => to_string(message.role), "content" => message.content}]

  defp item({:data, data}), do: data

  defp item({:text, text, fields}),
    do: Map.merge(fields, %{"role" => "assistant", "content" => text})

  defp item({:call, call, fields}) do
    Map.merge(fields, %{
      "type" => "function_call",
      "call_id" => Messages.call_id(call.id, @max_id),
      "name" => Messages.tool_name(call.name),
      "arguments" => Messages.arguments_text(call.arguments)
    })
  end

  # The answer

  @impl true
  def event(%{"type" => "response.output_text.delta", "delta" => text} = event, answer),
    do: Answer.add_text(answer, text, phase(answer, event["output_index"]))

  def event(%{"type" => "response.refusal.delta", "delta" => text}, answer),
    do: Answer.add_text(%{answer | refused: true}, text)

  def event(
        %{"type" => "response.output_item.added", "output_index" => index, "item" => %{} = item},
        answer
      ),
      do: added(answer, index, item)

  def event(
        %{"type" => "response.function_call_arguments.delta", "output_index" => index} = event,
        answer
      ),
      do: Answer.add_arguments(answer, index, event["delta"])

  def event(
        %{"type" => "response.output_item.done", "output_index" => index, "item" => %{} = item},
        answer
      ),
      do: done(answer, index, item)

  def event(%{"type" => "response." <> status, "response" => %{} = response}, answer)
      when status in ["created", "in_progress", "queued"],
      do: Answer.named(answer, response["model"])

  def event(%{"type" => "response." <> status, "response" => %{} = response}, answer)
      when status in ["completed", "incomplete", "failed"],
      do: ended(answer, response)

  def event(%{"type" => "error"} = event, answer), do: Answer.server_error(answer, event)

  # Events of tools that run on the server, of summaries, and of later versions.
  def event(%{"type" => type}, answer) when is_binary(type), do: answer

  def event(event, answer) do
    event = Failure.excerpt(JSON.encode(event))
    Answer.bad_answer(answer, "one of its events has no type: #{event}")
  end

  # The phase of a message (a comment or the answer), which belongs to its text.
  defp phase(answer, index), do: Map.get(answer.open, index, %{})

  defp added(answer, index, %{"type" => "function_call"} = item),
    do: Answer.start_call(answer, index, item["call_id"], item["name"])

  defp added(answer, index, %{"type" => "message", "phase" => phase}) when is_binary(phase),
    do:
      %{answer | open: Map.put(answer.open, index, %{"phase" => phase})}
      |> Answer.grow(byte_size(phase) + 64)

  defp added(answer, _index, _item), do: answer

  defp done(answer, index, %{"type" => "function_call"} = item) do
    answer = if is_map_key(answer.calls, index), do: answer, else: added(answer, index, item)

    if Answer.arguments?(answer, index),
      do: answer,
      else: Answer.add_arguments(answer, index, item["arguments"])
  end

  # Without its encrypted content the server, which stores nothing, could not find it.
  defp done(answer, _index, %{"type" => "reasoning", "encrypted_content" => content} = item)
       when is_binary(content),
       do: Answer.add_data(answer, Map.reject(item, fn {_name, value} -> value == nil end))

  defp done(answer, _index, _item), do: answer

  defp ended(answer, response) do
    answer = answer |> Answer.named(response["model"]) |> usage(response["usage"])

    case response do
      %{"status" => "failed", "error" => error} when error != nil ->
        Answer.server_error(answer, error)

      %{"status" => "failed"} ->
        Answer.server_error(answer, "no explanation")

      %{"status" => "incomplete"} = response ->
        details = response["incomplete_details"]
        reason = if is_map(details), do: details["reason"]
        %{Answer.finish(answer, incomplete(reason)) | done: true}

      _completed ->
        %{Answer.finish(answer, :stop) | done: true}
    end
  end

  defp incomplete("max_output_tokens"), do: :length
  defp incomplete("content_filter"), do: :filtered
  defp incomplete(_other), do: :other

  defp usage(answer, %{} = usage) do
    details =
      if is_map(usage["input_tokens_details"]), do: usage["input_tokens_details"], else: %{}

    Answer.usage(answer,
      prompt_tokens: usage["input_tokens"],
      completion_tokens: usage["output_tokens"],
      cached_tokens: details["cached_tokens"],
      cache_write_tokens: details["cache_write_tokens"]
    )
  end

  defp usage(answer, _none), do: answer

  @impl true
  def whole(%{"object" => "response", "output" => items} = response, answer)
      when is_list(items) do
    for {%{} = item, index} <- Enum.with_index(items), reduce: answer do
      answer -> answer |> added(index, item) |> content(index, item) |> done(index, item)
    end
    |> ended(response)
  end

  def whole(_body, _answer), do: nil

  defp content(answer, index, %{"type" => "message", "content" => parts}) when is_list(parts) do
    for part <- parts, reduce: answer do
      answer ->
        case part do
          %{"type" => "output_text", "text" => text} ->
            Answer.add_text(answer, text, phase(answer, index))

          %{"type" => "refusal", "refusal" => text} ->
            Answer.add_text(%{answer | refused: true}, text)

          _ ->
            answer
        end
    end
  end

  defp content(answer, _index, _item), do: answer
end
