defmodule Skillbook.Support.NativeLibraryTest do
  # A missing library is built by the program in SKILLBOOK_BUILD, once. Alone, because it changes
  # the environment.
  use ExUnit.Case, async: false

  alias Skillbook.Support.NativeLibrary

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    program = Path.join(folder, "build")

    File.write!(
      program,
      "#!/bin/sh\necho \"$1\" >>'#{folder}/calls'\n[ ! -e '#{folder}/broken' ]\n"
    )

    File.chmod!(program, 0o755)
    System.put_env("SKILLBOOK_BUILD", program)
    on_exit(fn -> System.delete_env("SKILLBOOK_BUILD") end)
  end

  defp calls(folder) do
    case File.read(Path.join(folder, "calls")) do
      {:ok, text} -> String.split(text, "\n", trim: true)
      {:error, :enoent} -> []
    end
  end

  test "is built if its file is missing", %{tmp_dir: folder} do
    path = Path.join(folder, "liba")
    assert NativeLibrary.build?("a", path)
    assert calls(folder) == ["a"]

    File.write!(Path.join(folder, "broken"), "")
    refute NativeLibrary.build?("a", path)
    assert calls(folder) == ["a", "a"]

    # A file that cannot be loaded would be the same again.
    File.write!(path <> ".so", "")
    refute NativeLibrary.build?("a", path)
    System.delete_env("SKILLBOOK_BUILD")
    refute NativeLibrary.build?("a", Path.join(folder, "libb"))
    assert calls(folder) == ["a", "a"]
  end
end
