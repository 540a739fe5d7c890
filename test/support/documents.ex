defmodule Skillbook.Test.Documents do
  @moduledoc false
  # Makes the examples of docs/ visible to doctests.

  for name <- ["agent", "routing"] do
    root = Path.expand("../..", __DIR__)
    path = Path.join([root, "docs", name <> ".md"])

    defmodule Module.concat(__MODULE__, Macro.camelize(name)) do
      @external_resource path
      # Tests of packages run in their own folders.
      @moduledoc path
                 |> File.read!()
                 |> String.replace(~s("test/support), ~s("#{root}/test/support))
    end
  end
end
