defmodule Skillbook.Support.MediaTypeTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Support.MediaType
end
