defmodule Skillbook.Package.UpdateTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.Package

  @moduletag :tmp_dir

  test "restores only the content that was installed", %{tmp_dir: folder} do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = Path.join(folder, "to")
    {:ok, _} = Package.install(from, [to: to] ++ accept_all())
    write(from, %{"one/SKILL.md" => skill("one", "other")})
    File.rm_rf!(Path.join(to, "one"))
    assert [message] = messages(Package.restore([], to: to))

    assert message =~ ~r/^one is not the content that was installed: /
    assert message =~ ~r/; review the change and accept it with `update`$/

    refute File.exists?(Path.join(to, "one"))
  end
end
