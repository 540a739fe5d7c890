defmodule Skillbook.Test.EmbeddingServer do
  @moduledoc false
  # A server of the published embeddings interface (POST /v1/embeddings) that plays a script, as
  # `Skillbook.Test.HTTPServer` says. A request that is not as published gets a 400 that says why,
  # and no part of the script. The test process gets `{:embed, %{headers: map, body: map}}` for
  # each request that is.

  alias Skillbook.Support.JSON
  alias Skillbook.Test.{ChatServer, HTTPServer}

  # As OpenAI documents it; `user` is left out, because nothing sends it.
  @max_texts 2048

  @doc "Starts a server under the test's supervisor: `{pid, url}`."
  def start(script), do: HTTPServer.start(script, check: &checked/1)

  @doc "The steps of an answer with these vectors."
  def answer(vectors) do
    data =
      for {vector, index} <- Enum.with_index(vectors),
          do: %{object: "embedding", index: index, embedding: vector}

    data(data)
  end

  @doc "The steps of an answer with these items."
  def data(data) do
    json(%{
      object: "list",
      data: data,
      model: "m",
      usage: %{prompt_tokens: 1, total_tokens: 1}
    })
  end

  @doc "The steps of an answer with this value or JSON text."
  def json(text) when is_binary(text),
    do: HTTPServer.answer(text, [{"content-type", "application/json"}])

  def json(value), do: value |> JSON.encode() |> json()

  defp checked(request) do
    case check(request) do
      {:ok, seen} -> {:ok, {:embed, seen}}
      {:error, reason} -> {:instead, ChatServer.refusal(400, reason)}
    end
  end

  defp check(request) do
    with {:ok, fields} <- HTTPServer.fields(request, "/v1/embeddings") do
      whole? = match?(%{"model" => _, "input" => _}, fields) and Enum.all?(fields, &valid?/1)

      if whole?,
        do: {:ok, %{headers: request.headers, body: fields}},
        else: {:error, "body: #{inspect(fields)}"}
    end
  end

  defp valid?({"model", value}), do: is_binary(value) and value != ""

  # "cannot be an empty string, and any array must be 2048 dimensions or less"
  defp valid?({"input", value}) do
    is_list(value) and length(value) in 1..@max_texts and
      Enum.all?(value, &(is_binary(&1) and &1 != ""))
  end

  defp valid?({"encoding_format", value}), do: value in ["float", "base64"]
  defp valid?({"dimensions", value}), do: is_integer(value) and value > 0
  defp valid?(_other), do: false
end
