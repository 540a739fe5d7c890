defmodule Skillbook.Reply.ToolCall do
  @moduledoc false
  # Converts a tool call of a vendor's API to a command line, and a result to the answer of that
  # API.

  alias Skillbook.Support.JSON
  alias Skillbook.{Command, JSONError, Result, ToolCallError}

  @enforce_keys [:shape]
  defstruct [:shape, :id, :name, arguments: %{}]

  @type t :: %__MODULE__{
          shape: :openai | :openai_response | :anthropic | :gemini | :mcp,
          id: term(),
          name: term(),
          arguments: term()
        }

  @doc "Reads a call: OpenAI's two forms, Anthropic's, Gemini's, or MCP's."
  @spec read(term()) :: t()
  def read(call) when is_map(call) and not is_struct(call) do
    case strings(call) do
      %{"function" => %{} = function} = call ->
        function = strings(function)

        %__MODULE__{
          shape: :openai,
          id: call["id"],
          name: function["name"],
          arguments: function["arguments"]
        }

      %{"type" => "function_call"} = call ->
        %__MODULE__{
          shape: :openai_response,
          id: call["call_id"],
          name: call["name"],
          arguments: call["arguments"]
        }

      %{"type" => "tool_use"} = call ->
        %__MODULE__{
          shape: :anthropic,
          id: call["id"],
          name: call["name"],
          arguments: call["input"]
        }

      %{"functionCall" => %{} = call} ->
        gemini(strings(call))

      %{"args" => _arguments} = call when not is_map_key(call, "arguments") ->
        gemini(call)

      call ->
        %__MODULE__{shape: :mcp, name: call["name"], arguments: call["arguments"]}
    end
  end

  def read(_call), do: %__MODULE__{shape: :mcp}

  defp gemini(call),
    do: %__MODULE__{shape: :gemini, id: call["id"], name: call["name"], arguments: call["args"]}

  # Other keys cannot come from JSON and are dropped.
  defp strings(map),
    do:
      for(
        {key, value} <- map,
        is_binary(key) or is_atom(key),
        into: %{},
        do: {to_string(key), value}
      )

  @doc "Returns the arguments as a map with string keys."
  @spec arguments(t()) :: {:ok, map()} | {:error, ToolCallError.t()}
  # Some models send no arguments, or an empty text, for a tool that needs none.
  def arguments(%__MODULE__{arguments: empty}) when empty in [nil, ""], do: {:ok, %{}}

  def arguments(%__MODULE__{arguments: text} = call) when is_binary(text) do
    case JSON.decode(text) do
      {:ok, arguments} when is_map(arguments) ->
        {:ok, arguments}

      {:ok, other} ->
        {:error, error(call, "expected one JSON object, got #{describe(other)}")}

      {:error, %JSONError{} = error} ->
        {:error, error(call, "not JSON: #{Exception.message(error)}")}
    end
  end

  def arguments(%__MODULE__{arguments: arguments})
      when is_map(arguments) and not is_struct(arguments),
      do: {:ok, strings(arguments)}

  def arguments(%__MODULE__{arguments: other} = call),
    do: {:error, error(call, "expected one JSON object, got #{describe(other)}")}

  defp error(call, reason), do: %ToolCallError{kind: :arguments, name: call.name, reason: reason}

  defp describe(value) when is_binary(value), do: "text"
  defp describe(value) when is_list(value), do: "a list"
  defp describe(nil), do: "null"
  defp describe(value) when is_boolean(value), do: to_string(value)
  defp describe(value) when is_number(value), do: "a number"
  defp describe(_value), do: "something else"

  @doc """
  Returns the command line for a call: the name and a JSON object, or flags if the name needs
  quotes.
  """
  @spec line(String.t(), map()) :: String.t()
  def line(name, arguments) do
    cond do
      Command.word(name) != name ->
        given =
          for {flag, value} <- arguments, value not in [nil, false], into: %{}, do: {flag, value}

        Command.line(%Command{name: name, raw: name, flags: given})

      arguments == %{} ->
        name

      true ->
        "#{name} #{JSON.encode(arguments)}"
    end
  end

  @doc "Returns a result as the vendor's answer to the call."
  @spec answer(t(), Result.t()) :: map()
  def answer(%__MODULE__{shape: :openai} = call, result),
    do: %{"role" => "tool", "tool_call_id" => call.id, "content" => content(result)}

  def answer(%__MODULE__{shape: :openai_response} = call, result),
    do: %{"type" => "function_call_output", "call_id" => call.id, "output" => content(result)}

  def answer(%__MODULE__{shape: :anthropic} = call, result) do
    %{
      "type" => "tool_result",
      "tool_use_id" => call.id,
      "content" => result.content,
      "is_error" => error?(result)
    }
  end

  def answer(%__MODULE__{shape: :gemini} = call, result) do
    field = if error?(result), do: "error", else: "output"
    response = %{"name" => call.name, "response" => %{field => result.content}}
    response = if call.id, do: Map.put(response, "id", call.id), else: response
    %{"functionResponse" => response}
  end

  def answer(%__MODULE__{shape: :mcp}, result),
    do: %{
      "content" => [%{"type" => "text", "text" => result.content}],
      "isError" => error?(result)
    }

  # These shapes have no field for errors, so the text starts with `error`, as in a report.
  defp content(result),
    do: if(error?(result), do: "error\n" <> result.content, else: result.content)

  defp error?(%Result{status: status}), do: status in [:error, :skipped]
end
