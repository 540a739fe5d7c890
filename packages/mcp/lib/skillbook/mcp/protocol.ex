defmodule Skillbook.MCP.Protocol do
  @moduledoc false
  # The messages of JSON-RPC that MCP uses, and the revisions of MCP. Reads any bytes: those
  # that are no message are an error, with the id of the request if that can be read.

  alias Skillbook.MCP.Error
  alias Skillbook.Support.JSON

  @typedoc "The id of a request."
  @type id :: String.t() | integer()

  @type message ::
          {:request, id(), method :: String.t(), params :: map()}
          | {:notification, method :: String.t(), params :: map()}
          | {:response, id(), {:ok, map()} | {:error, map()}}

  # The newest is first.
  @revisions ["2026-07-28", "2025-11-25", "2025-06-18"]
  @version Mix.Project.config()[:version]
  @meta "io.modelcontextprotocol/"

  @max_bytes 4 * 1024 * 1024
  @max_depth 64
  @max_id 256
  @max_method 128

  @doc "The revisions that are served, the newest first."
  @spec revisions() :: [String.t(), ...]
  def revisions, do: @revisions

  @doc "The most bytes of a message."
  @spec max_bytes() :: pos_integer()
  def max_bytes, do: @max_bytes

  @doc "The name of a field of `_meta` that the protocol reserves."
  @spec meta(String.t()) :: String.t()
  def meta(name), do: @meta <> name

  @doc "The name and version of Skillbook, as servers and clients give theirs."
  @spec info() :: map()
  def info, do: %{"name" => "skillbook", "title" => "Skillbook", "version" => @version}

  @doc "The `_meta` of every result of a server of the newest revision."
  @spec server_meta() :: map()
  def server_meta, do: %{meta("serverInfo") => info()}

  @doc ~S"""
  Reads a message.

      iex> Skillbook.MCP.Protocol.read(~S({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
      {:ok, {:request, 1, "ping", %{}}}
      iex> {:error, error, 7} = Skillbook.MCP.Protocol.read(~S({"jsonrpc": "2.0", "id": 7}))
      iex> error.message
      "expected a `method`, a `result` or an `error`, got none of them"
  """
  @spec read(binary()) :: {:ok, message()} | {:error, Error.t(), id() | nil}
  def read(bytes) when byte_size(bytes) > @max_bytes do
    text = "expected a message of at most #{@max_bytes} bytes, got #{byte_size(bytes)}"
    {:error, %{Error.request(text) | status: 413}, nil}
  end

  def read(bytes) do
    case JSON.decode(bytes) do
      {:ok, value} -> value |> message() |> checked(value)
      {:error, error} -> {:error, Error.parse(Exception.message(error)), nil}
    end
  end

  defp checked({:ok, message}, value) do
    if deeper?(value, @max_depth) do
      text = "expected a message nested at most #{@max_depth} deep"
      {:error, Error.request(text), id(value)}
    else
      {:ok, message}
    end
  end

  defp checked({:error, error}, value), do: {:error, error, id(value)}

  defp message(list) when is_list(list),
    do: {:error, Error.request("expected one message, got a list: batches are not served")}

  defp message(value) when not is_map(value),
    do: {:error, Error.request("expected a message, an object of JSON-RPC")}

  defp message(%{"jsonrpc" => "2.0"} = map) do
    case map do
      %{"id" => id} when not (is_binary(id) or is_integer(id)) ->
        {:error, Error.request("expected text or a whole number as `id`")}

      %{"id" => id} when is_binary(id) and byte_size(id) > @max_id ->
        {:error, Error.request("expected an `id` of at most #{@max_id} bytes")}

      %{"method" => _, "result" => _} ->
        {:error, Error.request("expected a request or a response, got both")}

      %{"method" => _, "error" => _} ->
        {:error, Error.request("expected a request or a response, got both")}

      %{"method" => method} when not is_binary(method) or byte_size(method) > @max_method ->
        {:error, Error.request("expected a text of at most #{@max_method} bytes as `method`")}

      %{"method" => method} ->
        called(map, method, Map.get(map, "params", %{}))

      %{"id" => id, "result" => result} when is_map(result) and not is_map_key(map, "error") ->
        {:ok, {:response, id, {:ok, result}}}

      %{"id" => id, "error" => error} when is_map(error) and not is_map_key(map, "result") ->
        {:ok, {:response, id, {:error, error}}}

      map when is_map_key(map, "result") or is_map_key(map, "error") ->
        {:error, Error.request("expected a response with an `id` and one object as its outcome")}

      _ ->
        text = "expected a `method`, a `result` or an `error`, got none of them"
        {:error, Error.request(text)}
    end
  end

  defp message(_map), do: {:error, Error.request("expected `jsonrpc` to be \"2.0\"")}

  defp called(map, method, params) do
    cond do
      not is_map(params) -> {:error, Error.meta("expected an object as `params`")}
      not is_map(Map.get(params, "_meta", %{})) -> {:error, wrong_meta()}
      is_map_key(map, "id") -> {:ok, {:request, map["id"], method, params}}
      true -> {:ok, {:notification, method, params}}
    end
  end

  defp wrong_meta, do: Error.meta("expected an object as `params._meta`")

  # The id, if it is one.
  defp id(%{"id" => id}) when is_integer(id), do: id
  defp id(%{"id" => id}) when is_binary(id) and byte_size(id) <= @max_id, do: id
  defp id(_value), do: nil

  # The decoder has a limit of its own, so this recursion has one too.
  defp deeper?(_value, 0), do: true

  defp deeper?(map, depth) when is_map(map),
    do: Enum.any?(map, fn {_key, value} -> deeper?(value, depth - 1) end)

  defp deeper?(list, depth) when is_list(list), do: Enum.any?(list, &deeper?(&1, depth - 1))
  defp deeper?(_value, _depth), do: false

  @doc "The answer to a request."
  @spec result(id(), map()) :: map()
  def result(id, result), do: %{"jsonrpc" => "2.0", "id" => id, "result" => result}

  @doc "An error as the answer to a request, or to bytes whose id cannot be read."
  @spec error(id() | nil, Error.t()) :: map()
  def error(nil, error), do: %{"jsonrpc" => "2.0", "error" => Error.fields(error)}
  def error(id, error), do: Map.put(error(nil, error), "id", id)

  @spec notification(String.t(), map()) :: map()
  def notification(method, params \\ %{})

  def notification(method, params) when params == %{},
    do: %{"jsonrpc" => "2.0", "method" => method}

  def notification(method, params),
    do: %{"jsonrpc" => "2.0", "method" => method, "params" => params}

  @spec request(id(), String.t(), map()) :: map()
  def request(id, method, params),
    do: %{"jsonrpc" => "2.0", "id" => id, "method" => method, "params" => params}

  @doc "A message as one line of JSON, without the line break."
  @spec encode(map()) :: String.t()
  def encode(message), do: JSON.encode(message)
end
