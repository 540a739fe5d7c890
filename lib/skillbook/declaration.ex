defmodule Skillbook.Declaration do
  @moduledoc """
  What a command takes, as the Flags and Usage sections of its page say. `Skillbook.View.flags/2` gives it.

  Only what is plainly written counts ([Writing skills](skills.html#flags)). The same declaration is behind the checks of
  strict commands, tool definitions, grammars and lint.

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the page's order
    * `:choices` - flags that exclude each other, as `(--body <text> | --file <path>)` in Usage: a list of maps with their
      `:names` and whether one of them is `:required`
    * `:words` - whether Usage shows words that stand without a flag
  """

  alias Skillbook.{Flag, FlagError, Flags, RoutedCommand, View}

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean()
        }

  defstruct flags: [], choices: [], words: false

  @doc false
  # What stands between finding a command and running it, if its page says `strict: true`.
  @spec enforce(View.t(), RoutedCommand.t()) :: :ok | {:error, FlagError.t()}
  def enforce(view, %RoutedCommand{entry: %{strict: true}} = routed) do
    case View.flags(view, routed.name) do
      {:ok, %__MODULE__{} = declaration} ->
        Flags.check(routed.command.flags, declaration, routed.command.args)

      _ ->
        :ok
    end
  end

  def enforce(_view, _routed), do: :ok
end
