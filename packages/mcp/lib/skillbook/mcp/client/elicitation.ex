defmodule Skillbook.MCP.Client.Elicitation do
  @moduledoc false
  # The server's own questions. It may ask for input of the user if the application gave a
  # function, which decides; without one everything is declined. Nothing else is offered to it.

  alias Skillbook.MCP.Client.{Error, Settings}
  alias Skillbook.Support.JSON

  require Logger

  @max_text 4_000
  @max_requests 10
  @max_state 65_536

  @doc """
  Answers the questions of an `input_required` result. Returns the parameters for the next round.
  """
  @spec inputs(Settings.t(), map(), map()) :: {:ok, map()} | {:error, Error.t()}
  def inputs(settings, params, result) do
    requests = Map.get(result, "inputRequests", %{})
    state = result["requestState"]

    cond do
      not is_map(requests) or map_size(requests) > @max_requests or
          not (is_nil(state) or (is_binary(state) and byte_size(state) <= @max_state)) ->
        malformed(settings)

      requests == %{} and state == nil ->
        malformed(settings)

      true ->
        responses = Map.new(requests, fn {key, request} -> {key, input(settings, request)} end)

        if Enum.any?(responses, fn {_key, answer} -> answer == :unknown end) do
          reason = "it asked for input that this client does not offer"
          {:error, %Error{kind: :declined, server: settings.label, reason: reason}}
        else
          params = Map.drop(params, ["inputResponses", "requestState"])

          params =
            if responses == %{}, do: params, else: Map.put(params, "inputResponses", responses)

          {:ok, if(state, do: Map.put(params, "requestState", state), else: params)}
        end
    end
  end

  defp malformed(settings) do
    reason = "expected inputRequests or a requestState in an answer that needs input"
    {:error, %Error{kind: :malformed, server: settings.label, reason: reason}}
  end

  defp input(settings, %{"method" => "elicitation/create", "params" => %{} = params}),
    do: elicit(settings, params)

  defp input(_settings, _request), do: :unknown

  @doc "Answers a request of an older server: the fields of the response."
  @spec answer(Settings.t(), map()) :: map()
  def answer(_settings, %{"method" => "ping"}), do: %{"result" => %{}}

  def answer(settings, %{"method" => "elicitation/create", "params" => %{} = params}),
    do: %{"result" => elicit(settings, params)}

  def answer(_settings, _message),
    do: %{"error" => %{"code" => -32_601, "message" => "Method not found"}}

  defp elicit(%{elicit: nil}, _params), do: %{"action" => "decline"}

  defp elicit(settings, %{"message" => message} = params) when is_binary(message) do
    schema = params["requestedSchema"]

    if Map.get(params, "mode", "form") == "form" and is_map(schema) and
         byte_size(JSON.encode(schema)) <= @max_text do
      question = %{
        server: settings.label,
        message: String.slice(message, 0, @max_text),
        schema: schema
      }

      settings.elicit |> call(question) |> action(schema)
    else
      %{"action" => "decline"}
    end
  end

  defp elicit(_settings, _params), do: %{"action" => "decline"}

  # An exception of the application's code may quote the text of the user.
  defp call(function, question) do
    function.(question)
  rescue
    error ->
      Logger.error("the :elicit function of an MCP source raised #{inspect(error.__struct__)}")
      :cancel
  end

  defp action({:accept, %{} = content}, schema) do
    scalar? = fn value -> is_binary(value) or is_number(value) or is_boolean(value) end

    value? = fn value ->
      scalar?.(value) or (is_list(value) and Enum.all?(value, &is_binary/1))
    end

    if Enum.all?(content, fn {key, value} -> is_binary(key) and value?.(value) end),
      do: %{"action" => "accept", "content" => Map.merge(defaults(schema), content)},
      else: %{"action" => "decline"}
  end

  defp action(:cancel, _schema), do: %{"action" => "cancel"}
  defp action(_declined, _schema), do: %{"action" => "decline"}

  defp defaults(%{"properties" => %{} = properties}) do
    for {name, %{"default" => default}} <- properties, into: %{}, do: {name, default}
  end

  defp defaults(_schema), do: %{}
end
