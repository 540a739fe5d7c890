defmodule Skillbook.Reply.ToolCall do
  @moduledoc false
  # A tool call in a vendor's form, as the line of a command, and a result in that vendor's form.

  alias Skillbook.Support.JSON
  alias Skillbook.{Command, JSONError, Result, ToolCallError}

  @enforce_keys [:shape]
  defstruct [:shape, :id, :name, arguments: %{}]

  @type t :: %__MODULE__{
          shape: :openai | :openai_response | :anthropic | :mcp,
          id: term(),
          name: term(),
          arguments: term()
        }

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

      call ->
        %__MODULE__{shape: :mcp, name: call["name"], arguments: call["arguments"]}
    end
  end

  def read(_call), do: %__MODULE__{shape: :mcp}

  # What has another key was not decoded from JSON, and is in no call.
  defp strings(map),
    do:
      for(
        {key, value} <- map,
        is_binary(key) or is_atom(key),
        into: %{},
        do: {to_string(key), value}
      )

  @doc "The arguments as a map with string keys."
  @spec arguments(t()) :: {:ok, map()} | {:error, ToolCallError.t()}
  # Models leave them out, or write nothing, where a tool needs none.
  def arguments(%__MODULE__{arguments: empty}) when empty in [nil, ""], do: {:ok, %{}}

  def arguments(%__MODULE__{arguments: text} = call) when is_binary(text) do
    case JSON.decode(text) do
      {:ok, arguments} when is_map(arguments) ->
        {:ok, arguments}

      {:ok, other} ->
        {:error, error(call, "expected one JSON object, got #{describe(other)}")}

      {:error, %JSONError{} = error} ->
        {:error, error(call, "no JSON: #{Exception.message(error)}")}
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

  @doc "The command that does the same: a JSON object behind the name, or flags where the name has to be in quotes."
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

  @doc "A result as the vendor's answer to the call."
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

  def answer(%__MODULE__{shape: :mcp}, result),
    do: %{
      "content" => [%{"type" => "text", "text" => result.content}],
      "isError" => error?(result)
    }

  # Where a shape has no field for it, the text says so, as a report does.
  defp content(result),
    do: if(error?(result), do: "error\n" <> result.content, else: result.content)

  defp error?(%Result{status: status}), do: status in [:error, :skipped]
end
