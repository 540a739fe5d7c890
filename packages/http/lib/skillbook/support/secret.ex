defmodule Skillbook.Support.Secret do
  @moduledoc false
  # Secrets in options: `{:env, name}`, or a function of no argument or of the profile's id. They
  # are read when they are needed, and passed on as functions, which crash reports do not show.

  @type t :: {:env, String.t()} | (() -> String.t()) | (String.t() -> String.t())

  # Bytes; larger than the key of a service account.
  @max 64 * 1024

  @doc "Whether a value has the form of a secret."
  @spec valid?(term()) :: boolean()
  def valid?({:env, name}), do: is_binary(name) and name != "" and String.valid?(name)
  def valid?(secret), do: is_function(secret, 0) or is_function(secret, 1)

  @doc "The form of a secret, for errors."
  @spec expected() :: String.t()
  def expected, do: "{:env, name}, or a function of no argument or of the profile's id"

  @doc "Reads a secret for a profile, or says why it cannot be read; never shows its value."
  @spec read(t(), String.t() | nil) :: {:ok, (() -> String.t())} | {:error, String.t()}
  def read({:env, name}, _profile) do
    case String.trim(System.get_env(name, "")) do
      "" -> {:error, "the environment variable #{name} is not set, or empty"}
      value -> check(value, "the environment variable #{name}")
    end
  end

  def read(function, profile) do
    case call(function, profile) do
      {:ok, value} -> check(value, "its function")
      error -> error
    end
  end

  # An exception of the application's code may have the secret in its message.
  defp call(function, profile) do
    {:ok, if(is_function(function, 1), do: function.(profile), else: function.())}
  rescue
    error -> {:error, "its function raised #{inspect(error.__struct__)}"}
  catch
    kind, _reason -> {:error, "its function ended with #{kind}"}
  end

  defp check(value, origin) do
    cond do
      not is_binary(value) -> {:error, "#{origin} did not return text"}
      value == "" -> {:error, "#{origin} returned an empty text"}
      byte_size(value) > @max -> {:error, "#{origin} returned more than #{@max} bytes"}
      not String.valid?(value) -> {:error, "#{origin} returned bytes that are not UTF-8"}
      true -> {:ok, fn -> value end}
    end
  end
end
