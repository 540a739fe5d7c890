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

  # A release does not start if one of its modules cannot be loaded.
  test "a release starts without a library that it leaves out", %{tmp_dir: folder} do
    ebin = Path.join(folder, "skillbook/ebin")
    File.mkdir_p!(ebin)

    File.cp!(
      :code.which(Skillbook.SQL.Native),
      Path.join(ebin, "Elixir.Skillbook.SQL.Native.beam")
    )

    loaded = fn mode ->
      text = """
      Loaded = code:load_file('Elixir.Skillbook.SQL.Native'),
      Called = (catch 'Elixir.Skillbook.SQL.Native':postgres_writers()),
      io:format("~p ~P", [Loaded, Called, 5]), halt().
      """

      args = ~w(-mode #{mode} -noinput -pa #{ebin} -eval) ++ [text]
      env = [{"SKILLBOOK_BUILD", nil}]
      {output, 0} = System.cmd("erl", args, env: env, stderr_to_stdout: true)
      output
    end

    assert loaded.("embedded") =~
             ~r/^{module,'Elixir.Skillbook.SQL.Native'} {'EXIT',\s*{nif_not_loaded/m

    assert loaded.("interactive") =~ "{error,on_load_failure} {'EXIT',"

    # A file that cannot be loaded is an error.
    native = Path.join(folder, "skillbook/priv/native")
    File.mkdir_p!(native)
    File.write!(Path.join(native, "libskillbook_sql.so"), "")
    assert loaded.("embedded") =~ "{error,on_load_failure}"
  end
end
