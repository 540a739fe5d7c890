defmodule Skillbook.CLI.EmbedderFlags do
  @moduledoc false
  # The flags of commands that search by meaning too: `--embedder`, `--embedder-model` and
  # `--embedder-key-env`.

  alias Skillbook.CLI.{Arguments, ModelFlags}
  alias Skillbook.Embedder.{Local, OpenAI}

  @spec switches() :: keyword()
  def switches, do: [embedder: :string, embedder_model: :string, embedder_key_env: :string]

  @doc "The options with their embedder, or the message of a usage error."
  @spec read(Arguments.t()) :: {:ok, Arguments.t()} | {:error, String.t()}
  def read(%{flags: flags} = options) do
    with {:ok, embedder} <- embedder(flags[:embedder], flags),
         do: {:ok, %{options | embedder: embedder}}
  end

  defp embedder(nil, flags) do
    case Enum.find([:embedder_model, :embedder_key_env], &flags[&1]) do
      nil -> {:ok, nil}
      flag -> {:error, "#{ModelFlags.name(flag)} needs --embedder URL, a server of embeddings"}
    end
  end

  defp embedder("http" <> _ = url, flags) do
    with {:ok, model} <- model(flags[:embedder_model]),
         {:ok, key} <- ModelFlags.key(:embedder_key_env, flags[:embedder_key_env]) do
      [url: url, model: model, key: key] |> OpenAI.new() |> ModelFlags.message("--embedder")
    end
  end

  defp embedder(folder, flags) do
    cond do
      flag = Enum.find([:embedder_model, :embedder_key_env], &flags[&1]) ->
        {:error, "#{ModelFlags.name(flag)} is for a server; --embedder has a folder: #{folder}"}

      not File.dir?(folder) ->
        {:error,
         "--embedder expects the folder of an embedding model, or the URL of a server such as " <>
           "http://localhost:8080, got: #{folder}"}

      true ->
        folder |> Path.expand() |> Local.new([]) |> ModelFlags.message("--embedder")
    end
  end

  defp model(nil),
    do: {:error, "--embedder URL needs --embedder-model NAME, the name of the model"}

  defp model(name), do: {:ok, name}
end
