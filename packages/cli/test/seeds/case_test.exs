defmodule Skillbook.Seeds.CaseTest do
  # The check that each name of a document is in a row finds one that is not.
  use ExUnit.Case, async: true

  import Skillbook.SeedsCase, only: [missing: 2]

  @rows [{["2.4"], "email.send --tone\n--to-all"}, {["2.5", "2.6"], "tasks.search --to"}]

  test "a name has to be in a row of its section, and not in a longer name" do
    for {section, names, found} <- [
          {"2.4", ["email.send", "--tone"], []},
          {"2.4", ["--to", "email", "send"], ["--to", "email", "send"]},
          {"2.5", ["--to", "tasks.search"], []},
          {"2.6", ["--to", {"--whom", "--to"}], []},
          {"2.6", [{"--to", "--whom"}], [{"--to", "--whom"}]},
          {"9", ["tasks.search"], ["tasks.search"]}
        ],
        do: assert(missing(%{section => names}, @rows) == for(name <- found, do: {section, name}))
  end
end
