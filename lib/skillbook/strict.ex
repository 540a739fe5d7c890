defmodule Skillbook.Strict do
  @moduledoc false
  # What stands between finding a command and running it, if its page says `strict: true`.

  alias Skillbook.{FlagError, Flags, RoutedCommand, UnknownSkillError, View}

  @spec check(View.t(), RoutedCommand.t()) :: :ok | {:error, FlagError.t() | UnknownSkillError.t()}
  def check(view, %RoutedCommand{entry: %{strict: true}, name: name, command: command}) do
    case View.flags(view, name) do
      {:ok, nil} -> :ok
      {:ok, declaration} -> Flags.check(command.flags, declaration, command.args)
      {:error, error} -> {:error, error}
    end
  end

  def check(_view, _routed), do: :ok
end
