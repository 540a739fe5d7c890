defmodule Skillbook.Test.Documents do
  @moduledoc false
  # Makes the examples of docs/ visible to doctests.

  for name <- ["agent", "routing"] do
    path = Path.join("docs", name <> ".md")

    defmodule Module.concat(__MODULE__, Macro.camelize(name)) do
      @external_resource path
      @moduledoc File.read!(path)
    end
  end
end
