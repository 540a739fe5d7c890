defmodule Skillbook.CLI.Tools do
  @moduledoc false
  # `skillbook tools`: prints the result of `Skillbook.Tools.definitions/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.{OptionError, Tools}
  alias Skillbook.Tools.Shape

  @impl true
  def switches,
    do: [shape: {:one_of, Shape.all()}, names: :keep, limit: {:number, 1, nil}]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`tools` takes no argument, got: #{arg}"}

  @impl true
  def run(options) do
    with_names(options, "tools", fn view, names ->
      flags = Keyword.take(options.flags, [:shape, :limit])
      view |> Tools.definitions([{:names, names} | flags]) |> Terminal.json()
    end)
  end

  @doc "Prints the function's result for the view and the globs of `--names` (`nil` without)."
  def with_names(options, command, fun) do
    names = with [] <- Keyword.get_values(options.flags, :names), do: nil

    Session.with_book(options, :read, fn book ->
      Terminal.put(fun.(Session.view(book, options), names))
    end)
  rescue
    error in OptionError ->
      {:invalid, expected, glob} = error.problem

      Terminal.usage_error("--names expects #{expected}, got: #{glob}", "#{command} --help")
  end
end
