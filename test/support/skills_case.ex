defmodule Skillbook.SkillsCase do
  @moduledoc false
  # For tests that write skills into a folder and read them through a catalog or a book.

  use ExUnit.CaseTemplate

  alias Skillbook.{Catalog, View}

  using do
    quote do
      import Skillbook.Eventually, only: [monitor: 1]
      import Skillbook.SkillsCase
    end
  end

  @doc "Writes files below a folder: a map from paths to texts."
  def write(folder, files) do
    for {path, text} <- files do
      path = Path.join(folder, path)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text, [:raw])
    end

    folder
  end

  @doc "A command's file."
  def page(name, fields \\ [], body \\ nil) do
    fields =
      Enum.map_join([name: name, description: "Does #{name}"] ++ fields, "\n", fn {k, v} ->
        "#{k}: #{v}"
      end)

    "---\n#{fields}\n---\n#{body || "# #{name}\n\nThe page of #{name}.\n"}"
  end

  @doc "A view of everything in a folder."
  def view(folder) do
    {:ok, catalog} = Catalog.load([folder])
    View.all(catalog)
  end

  @doc "The frontmatter of a page with one of the handlers for tests."
  def handler(name), do: [handler: "Skillbook.TestHandlers.#{name}"]

  @doc "Reads the output of a port until it matches, and returns it."
  def until(port, output, pattern) do
    if output =~ pattern do
      output
    else
      receive do
        {^port, {:data, data}} -> until(port, output <> data, pattern)
        {^port, {:exit_status, status}} -> flunk("ended with #{status}:\n#{output}")
      after
        60_000 -> flunk("no more output:\n#{output}")
      end
    end
  end

  @doc "A running book under a name of its own, with all built-in skills if it names none."
  def book(options) do
    name = :"book_#{System.unique_integer([:positive])}"
    options = Keyword.put_new(options, :builtins, true)
    start_supervised!({Skillbook, [name: name] ++ options}, id: name)
    name
  end
end
