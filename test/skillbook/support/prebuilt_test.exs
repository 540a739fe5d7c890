defmodule Skillbook.Support.PrebuiltTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Support.Prebuilt
end
