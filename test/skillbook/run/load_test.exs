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
    assert %{commands: 960, results: results, out_of_service: 0} = figures
    # No conversation fails five times, and failures of one count for no other.
    assert results == %{ok: 720, error: 60, crash: 120, timeout: 60}
    # Allows for binaries and code that were loaded during the test.
    assert figures.left_memory < 32 * 1024 * 1024
  end
end
