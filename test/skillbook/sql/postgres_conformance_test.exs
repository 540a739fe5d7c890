defmodule Skillbook.SQL.PostgresConformanceTest do
  use ExUnit.Case, async: true
  use Skillbook.SQLConformance, start: &Skillbook.PostgresCase.start_for/1
end
