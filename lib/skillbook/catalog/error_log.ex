defmodule Skillbook.Catalog.ErrorLog do
  @moduledoc false
  # Logs the errors of a book's documents when it starts, and new ones after a reload. Warnings
  # are only in `Skillbook.diagnostics/1`.

  alias Skillbook.{Catalog, Diagnostic}

  require Logger

  @max_lines 10

  @doc "Logs the errors that are not among those logged before, and returns all current ones."
  @spec log_new(atom(), Catalog.t(), MapSet.t(Diagnostic.t())) :: MapSet.t(Diagnostic.t())
  def log_new(book, catalog, before) do
    errors = Catalog.errors(catalog)
    log(book, Enum.reject(errors, &(&1 in before)))
    MapSet.new(errors)
  end

  defp log(book, errors) do
    {first, more} = Enum.split(errors, @max_lines)
    for error <- first, do: Logger.error(["the book #{inspect(book)}: ", line(error)])

    if more != [] do
      Logger.error(
        "the book #{inspect(book)}: #{length(more)} more errors; " <>
          "Skillbook.diagnostics(#{inspect(book)}) returns all"
      )
    end
  end

  # On one line, since a hint has a line of its own otherwise.
  defp line(error), do: error |> to_string() |> String.replace("\n  hint: ", "; ")
end
