defmodule Skillbook.Run.LoadTest do
  # Alone, because it looks at all processes and tables there are.
  use Skillbook.SkillsCase, async: false

  alias Skillbook.Load

  @moduletag :tmp_dir
  @moduletag :capture_log

  test "keeps conversations apart and leaves nothing behind, whatever handlers do", %{
    tmp_dir: folder
  } do
    write(folder, Load.pages())
    figures = Load.run(folder, 300)
    assert %{commands: 960, results: %{ok: ok, error: 60} = results, out_of_service: 3} = figures
    # Two echoes of each conversation, and of every fifth the flood and its next page.
    assert ok in 660..720
    # Those that ran before five had failed.
    for kind <- [:crash, :timeout], do: assert(results[kind] >= 5)
    # Allows for binaries and code that were loaded during the test.
    assert figures.left_memory < 32 * 1024 * 1024
  end
end
