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
  def summary, do: "print the result of get_skill"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] get [PATH]

    Prints the text that a model gets for `get_skill: PATH`. Without PATH, it lists the domains
    and the skills outside domains.

    Examples:
      skillbook get                                 all domains and skills
      skillbook get tasks                           the index of a domain
      skillbook get tasks.create                    a command
      skillbook get tasks.all                       every command of a domain
      skillbook get pdf-processing                  a skill and the list of its files
      skillbook get pdf-processing/references/a.md  one of these files
    """
  end

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
