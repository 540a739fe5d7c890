defmodule Skillbook.Support.CountTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Support.Count
end
