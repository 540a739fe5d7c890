defmodule Skillbook.Test.Drives do
  @moduledoc false
  # Accounts of a drive on the test server of Google's services (`Skillbook.Test.Services`).

  alias Skillbook.Test.{GoogleVendor, Services}

  @ann "ann@example.com"

  @doc "The options of an account for a book's `:connections`."
  def options(world),
    do: [
      vendor: GoogleVendor,
      token: fn -> world.tokens[@ann] end,
      url: world.url,
      services: [:drive]
    ]

  @doc "An account for calls of a service's module; options as of `GoogleVendor.account/3`."
  def account(world, options \\ []), do: GoogleVendor.account(world, @ann, options)

  @doc "Adds files to a world, or changes them; see gdrive.py."
  def put(world, files), do: Services.seed(world, drive: %{files: Enum.map(files, &Map.new/1)})
end
