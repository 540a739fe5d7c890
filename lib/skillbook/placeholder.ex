defmodule Skillbook.Placeholder do
  @moduledoc false
  # What stands in a command for the result of another one. It is filled in after the command was read, so whatever the text
  # is, it stays one value.

  alias Skillbook.{Command, PlaceholderError}

  # As much as a reply may have.
  @most 16 * 1024 * 1024

  @type stands_for :: non_neg_integer() | :last
  @type value :: (stands_for() -> {:ok, String.t()} | {:error, Exception.t()})

  @doc "The command with the values for which its placeholders stand."
  @spec fill(Command.t(), value()) :: {:ok, Command.t()} | {:error, Exception.t()}
  def fill(%Command{placeholders: []} = command, _value), do: {:ok, command}

  def fill(%Command{placeholders: placeholders} = command, value) do
    with {:ok, texts} <- texts(placeholders, value) do
      filled =
        texts
        |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
        |> Enum.reduce(command, fn {place, texts}, command ->
          put(command, place, Map.new(texts))
        end)

      {:ok, filled}
    end
  end

  @doc "What the placeholders of a filled command stand for, each once: what they look like, and the value."
  @spec values(Command.t()) :: [{String.t(), String.t()}]
  def values(%Command{placeholders: placeholders} = command) do
    for {place, index, stands_for} <- Enum.uniq_by(placeholders, &elem(&1, 2)) do
      values = if place == :args, do: command.args, else: List.wrap(command.flags[place])
      {"{#{stands_for}}", Enum.at(values, index)}
    end
  end

  defp texts(placeholders, value) do
    found =
      Enum.reduce_while(placeholders, {[], 0}, fn {place, index, reference}, {done, size} ->
        case value.(reference) do
          {:ok, text} when byte_size(text) + size > @most ->
            {:halt, {:error, %PlaceholderError{kind: :too_large, reference: reference, most: @most}}}

          {:ok, text} ->
            {:cont, {[{place, {index, text}} | done], size + byte_size(text)}}

          {:error, error} ->
            {:halt, {:error, error}}
        end
      end)

    with {done, size} when is_integer(size) <- found, do: {:ok, done}
  end

  defp put(command, :args, texts), do: %{command | args: replaced(command.args, texts)}

  defp put(command, flag, texts) do
    value =
      case command.flags[flag] do
        values when is_list(values) -> replaced(values, texts)
        _one -> texts[0]
      end

    %{command | flags: Map.put(command.flags, flag, value)}
  end

  defp replaced(values, texts) do
    for {value, index} <- Enum.with_index(values), do: Map.get(texts, index, value)
  end
end
