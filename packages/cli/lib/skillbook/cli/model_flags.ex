defmodule Skillbook.CLI.ModelFlags do
  @moduledoc false
  # The flags of commands that use a model: `--api`, `--url`, `--model`, `--key-env` and
  # `--cacert`.

  alias Skillbook.{Model, OptionError}

  # The models of `--api`, which know their server and the variable of its key.
  @vendors [Model.OpenAI, Model.Responses, Model.Anthropic, Model.Gemini]

  @spec switches() :: keyword()
  def switches,
    do: [api: :string, url: :string, model: :string, key_env: :string, cacert: :string]

  @doc "The model of a command's flags, or the message of a usage error."
  @spec model(String.t(), keyword()) :: {:ok, Model.t()} | {:error, String.t()}
  def model(command, flags) do
    server =
      "--url URL, the model's server, for example http://localhost:8080, " <>
        "or --api NAME for that of a vendor"

    with :ok <- known_api(flags[:api]),
         {:ok, _url} <- required(command, [url: url(flags)], :url, server),
         {:ok, name} <- required(command, flags, :model, "--model NAME, the name of the model"),
         {:ok, key} <- key(:key_env, key_env(flags)),
         :ok <- Model.validate(Keyword.take(flags, [:temperature])) |> message("--temperature") do
      vendor(flags[:api] || "openai").new(
        url: url(flags),
        model: name,
        key: key,
        cacertfile: flags[:cacert]
      )
      |> message("--url")
    end
  end

  defp vendor(name), do: Enum.find(@vendors, &(&1.vendor() == name))

  defp known_api(nil), do: :ok

  defp known_api(name) do
    names = Enum.map_join(@vendors, ", ", & &1.vendor())
    if vendor(name), do: :ok, else: {:error, "--api expects one of #{names}, got: #{name}"}
  end

  @doc "The server of the flags, or `nil`."
  @spec url(keyword()) :: String.t() | nil
  def url(flags), do: flags[:url] || with({url, _variable} <- home(flags[:api]), do: url)

  @doc "The environment variable with the key, or `nil`."
  @spec key_env(keyword()) :: String.t() | nil
  def key_env(flags) do
    default = if flags[:url] == nil, do: with({_url, variable} <- home(flags[:api]), do: variable)
    flags[:key_env] || default
  end

  # The server and the variable of a vendor.
  defp home(name), do: with(vendor when vendor != nil <- vendor(name), do: vendor.home())

  defp required(command, flags, flag, usage) do
    case flags[flag] do
      nil -> {:error, "`#{command}` needs #{usage}"}
      value -> {:ok, value}
    end
  end

  @doc "The key in the environment variable of a flag."
  @spec key(atom(), String.t() | nil) :: {:ok, {:env, String.t()} | nil} | {:error, String.t()}
  def key(_flag, nil), do: {:ok, nil}

  # Checked here, so that the error comes before the first message.
  def key(flag, variable) do
    if String.trim(System.get_env(variable, "")) == "",
      do:
        {:error,
         "#{name(flag)} expects an environment variable with a key; #{variable} is not set or " <>
           "empty"},
      else: {:ok, {:env, variable}}
  end

  @doc "The name of a flag on the command line."
  @spec name(atom()) :: String.t()
  def name(flag), do: "--" <> (flag |> to_string() |> String.replace("_", "-"))

  @doc "The message of an error about the value of a flag."
  @spec message(result | {:error, Exception.t()}, String.t()) :: result | {:error, String.t()}
        when result: term()
  def message({:error, %OptionError{problem: {:invalid, expected, value}}}, flag),
    do: {:error, "#{flag} expects #{expected}, got: #{value}"}

  def message({:error, %{__exception__: true} = error}, flag),
    do: {:error, "#{flag}: #{Exception.message(error)}"}

  def message(ok, _flag), do: ok
end
