defmodule Skillbook.CLI.ModelFlags do
  @moduledoc false
  # The flags by which a command is told of a model.

  alias Skillbook.{Model, OptionError}

  @spec switches() :: keyword()
  def switches, do: [url: :string, model: :string, key_env: :string, cacert: :string]

  @doc "Their lines in a command's help, the first without its blanks."
  @spec help() :: String.t()
  def help do
    """
      --url URL            the server, such as http://localhost:8080 or https://api.openai.com/v1
      --model NAME         the model's name there
      --key-env VARIABLE   the environment variable that holds the key; without it none is sent
      --cacert FILE        certificates to trust, instead of the system's\
    """
    |> String.trim_leading()
  end

  @doc "The model that a command's flags name."
  @spec model(String.t(), keyword()) :: {:ok, Model.OpenAI.t()} | {:error, String.t()}
  def model(command, flags) do
    with {:ok, url} <-
           needed(
             command,
             flags,
             :url,
             "--url URL, the model's server, such as http://localhost:8080"
           ),
         {:ok, name} <-
           needed(command, flags, :model, "--model NAME, the model's name on the server"),
         {:ok, key} <- key(flags[:key_env]),
         :ok <- Model.validate(Keyword.take(flags, [:temperature])) |> message("--temperature") do
      Model.OpenAI.new(url: url, model: name, key: key, cacertfile: flags[:cacert])
      |> message("--url")
    end
  end

  defp needed(command, flags, flag, what) do
    case flags[flag] do
      nil -> {:error, "`#{command}` needs #{what}"}
      value -> {:ok, value}
    end
  end

  defp key(nil), do: {:ok, nil}

  # Said before there is a conversation, rather than at its first message.
  defp key(name) do
    if String.trim(System.get_env(name, "")) == "",
      do:
        {:error, "the environment variable #{name}, which --key-env names, is not set or empty"},
      else: {:ok, {:env, name}}
  end

  defp message({:error, %OptionError{problem: {:invalid, expected, value}}}, flag),
    do: {:error, "#{flag} expects #{expected}, got: #{value}"}

  defp message(ok, _flag), do: ok
end
