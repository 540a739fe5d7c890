defmodule Skillbook.Test.Vendors do
  @moduledoc false
  # The interfaces of OpenAI, Anthropic and Google, played by a server that checks each request by
  # their own types. The scripts are those of test/support/vendors/server.py.

  alias Skillbook.{HTTP, Model}
  alias Skillbook.Support.JSON

  @modules %{
    "openai" => {Model.OpenAI, "/v1"},
    "responses" => {Model.Responses, "/v1"},
    "anthropic" => {Model.Anthropic, "/v1"},
    "gemini" => {Model.Gemini, "/v1beta"}
  }

  @doc "The module of a vendor."
  def module(vendor), do: @modules |> Map.fetch!(vendor) |> elem(0)

  def all, do: ["openai", "responses", "anthropic", "gemini"]

  @doc "The URL of the server."
  def server do
    System.get_env("SKILLBOOK_VENDORS") ||
      raise "SKILLBOOK_VENDORS is not set. To start a server and set it: " <>
              "bin/vendors-for-tests run mix test"
  end

  @doc "A script of a vendor, with answers and the fields `:key` and `:keeps`."
  def start(vendor, answers, fields \\ []) do
    script = Map.merge(Map.new(fields), %{vendor: vendor, answers: answers})
    {_module, path} = @modules[vendor]
    path = path_on(fields[:platform], path, vendor)
    number = post("/scripts", script)
    %{vendor: vendor, number: number, url: "#{server()}/s/#{number}#{path}"}
  end

  defp path_on(nil, path, _vendor), do: path
  defp path_on(:bedrock, _path, _vendor), do: ""

  defp path_on(:vertex, _path, vendor) do
    publisher = if vendor == "gemini", do: "google", else: vendor
    "/v1/projects/p/locations/l/publishers/" <> publisher
  end

  @doc "A model of a script's vendor."
  def model(%{vendor: vendor, url: url}, options \\ []) do
    {module, _path} = @modules[vendor]
    module.new!(Keyword.merge([url: url, model: "m", key: nil, backoff: 1], options))
  end

  @doc "The bodies of the requests, the reasons of those that were refused, and the bytes sent."
  def record(%{number: number}) do
    {:ok, %{status: 200, body: body}} = HTTP.request("#{server()}/scripts/#{number}")
    {:ok, record} = JSON.decode(body)

    Map.update!(record, "requests", &Enum.map(&1, fn text -> elem(JSON.decode(text), 1) end))
    |> Map.put("bodies", record["requests"])
  end

  @doc "The reasons for which the vendor refuses these definitions of tools."
  def refused_tools(vendor, tools) do
    reasons = post("/tools", %{vendor: vendor, tools: tools})
    for {tool, reason} <- Enum.zip(tools, reasons), reason, do: {tool, reason}
  end

  @doc "An answer with these parts: texts, maps, or `{name, pieces of arguments}` for calls."
  def answer(parts, fields \\ []) do
    parts =
      parts
      |> List.wrap()
      |> Enum.map(fn
        text when is_binary(text) -> %{text: [text]}
        {name, pieces} -> %{call: %{id: id(), name: name, pieces: List.wrap(pieces)}}
        %{} = part -> part
      end)

    calls? = Enum.any?(parts, &Map.has_key?(&1, :call))
    finish = if calls?, do: "tool_calls", else: "stop"
    Map.merge(%{parts: parts, finish: finish}, Map.new(fields))
  end

  defp id, do: "call_#{System.unique_integer([:positive])}"

  defp post(path, value) do
    request = [
      method: :post,
      url: server() <> path,
      headers: [{"content-type", "application/json"}],
      body: JSON.encode(value)
    ]

    {:ok, %{status: 200, body: body}} = HTTP.request(request)
    {:ok, value} = JSON.decode(body)
    value
  end
end
