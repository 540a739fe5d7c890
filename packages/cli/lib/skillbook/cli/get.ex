defmodule Skillbook.CLI.Get do
  @moduledoc false
  # `skillbook get`: prints the result of `Skillbook.get/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.UnknownSkillError

  @impl true
  def switches, do: []

  @impl true
  def args([]), do: {:ok, [""]}
  def args([path]), do: {:ok, [path]}
  def args([_, arg | _]), do: {:error, "`get` takes one path, got also: #{arg}"}

  @impl true
  def run(%{args: [path]} = options) do
    Session.with_book(options, :read, fn book ->
      case Skillbook.get(Session.view(book, options), path) do
        {:ok, text} -> Terminal.put(Terminal.safe(text))
        {:error, error} -> {:error, message(error)}
      end
    end)
  end

  # The error's own message is for models, which write `get_skill`.
  defp message(%UnknownSkillError{} = error) do
    error
    |> Exception.message()
    |> String.replace("write: get_skill", "write: skillbook get")
  end
end
