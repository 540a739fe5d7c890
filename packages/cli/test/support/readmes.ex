defmodule Skillbook.Test.Readmes do
  @moduledoc false
  # Makes the examples of the packages' own pages visible to doctests.

  pages = Path.wildcard(Path.expand("../../../*/README.md", __DIR__))

  @pages for page <- pages,
             do:
               {Module.concat(__MODULE__, Macro.camelize(Path.basename(Path.dirname(page)))),
                page}

  for {module, page} <- @pages do
    defmodule module do
      @external_resource page
      @moduledoc File.read!(page)
    end
  end

  @doc "The modules with the pages."
  def modules, do: Enum.map(@pages, &elem(&1, 0))
end
