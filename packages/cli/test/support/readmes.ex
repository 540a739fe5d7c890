defmodule Skillbook.Test.Readmes do
  @moduledoc false
  # Makes the examples of the packages' own pages visible to doctests.

  @wildcard Path.expand("../../../*/README.md", __DIR__)
  @paths Path.wildcard(@wildcard)

  for path <- @paths do
    defmodule Module.concat(__MODULE__, Macro.camelize(Path.basename(Path.dirname(path)))) do
      @external_resource path
      @moduledoc File.read!(path)
    end
  end

  @doc "The modules with the pages."
  def modules do
    for path <- @paths,
        do: Module.concat(__MODULE__, Macro.camelize(Path.basename(Path.dirname(path))))
  end

  @doc false
  # The next compilation sees a new page.
  def __mix_recompile__?, do: Path.wildcard(@wildcard) != @paths
end
