defmodule Skillbook.CLI.Prompt do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Terminal}

  @impl true
  def switches, do: []

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`prompt` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print what goes into the model's system prompt"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] prompt

    Prints the sections of the system prompt that tell a model which skills there are and how to use them, as the
    profile may see them.

    Examples:
      skillbook prompt
      skillbook --dir skills --grant internal prompt
    """
  end

  @impl true
  def run(options) do
    Book.with_book(options, :read, fn book ->
      terminal = Terminal.new(options.color)
      Terminal.put(Terminal.safe(terminal, Skillbook.prompt(Book.view(book, options), [])))
    end)
  end
end
