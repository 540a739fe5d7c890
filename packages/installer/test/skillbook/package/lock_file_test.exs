defmodule Skillbook.Package.LockFileTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Package

  @moduletag :tmp_dir

  test "refuses a lock file that is not valid", %{tmp_dir: to} do
    for {text, reason} <- [
          {"{", "line 1"},
          {"[]", "expected an object with `version` and `skills`"},
          {~s({"version": 2, "skills": {}}), "expected version 1, got: 2"},
          {~s({"version": 1, "skills": {"../a": {}}}), ~s(the entry "../a" is not valid)}
        ] do
      write(to, %{"skills.lock.json" => text})
      assert {:error, %{kind: :lock} = error} = Package.outdated([], to: to)
      assert Exception.message(error) =~ reason
    end
  end
end
