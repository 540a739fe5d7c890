defmodule Skillbook.Support.PrivateFileTest do
  # Files that the library makes for itself are for their owner alone, with every umask.
  use Skillbook.SkillsCase, async: true

  import Bitwise
  import ExUnit.CaptureLog

  alias Skillbook.Support.PrivateFile

  doctest PrivateFile

  @moduletag :tmp_dir

  # A program of its own, since a umask belongs to the whole process.
  defp with_umask(umask, code) do
    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    elixir = System.find_executable("elixir")
    script = ~s(umask #{umask} && exec "$@")
    arguments = ["-c", script, "sh", elixir] ++ paths ++ ["-e", code]
    assert {output, 0} = System.cmd("sh", arguments, stderr_to_stdout: true)
    output
  end

  defp modes(folder) do
    for path <- Path.wildcard(folder <> "/**", match_dot: true),
        into: %{},
        do: {Path.relative_to(path, folder), File.stat!(path).mode &&& 0o777}
  end

  @code """
  {:ok, _} = Application.ensure_all_started(:skillbook)
  alias Skillbook.Support.PrivateFile
  store = "FOLDER/.skillbook/a.db"
  {:ok, _} = Skillbook.start_link(name: :made, builtins: ["memory"], store: store)
  view = Skillbook.view(:made)
  %{results: [%{status: :ok}]} = Skillbook.run(view, "```cmd\\nmemory.save --content tea\\n```")
  :ok = PrivateFile.mkdir_p("FOLDER/keys/of/all")
  :ok = PrivateFile.touch("FOLDER/keys/token")
  :ok = PrivateFile.replace("FOLDER/keys/history", "secret")
  for path <- Path.wildcard("FOLDER/**", match_dot: true) do
    IO.puts([path, " ", Integer.to_string(rem(File.stat!(path).mode, 512), 8)])
  end
  """

  for umask <- ["000", "022", "077"] do
    test "with umask #{umask}", %{tmp_dir: folder} do
      output = with_umask(unquote(umask), String.replace(@code, "FOLDER", folder))

      # The files beside the database are there while it is open.
      for name <- ["a.db", "a.db-wal", "a.db-shm"],
          do: assert(output =~ ".skillbook/#{name} 600\n", output)

      for {path, mode} <- modes(folder) do
        assert (mode &&& 0o077) == 0, "#{path} #{Integer.to_string(mode, 8)}"
      end
    end
  end

  test "a database that others may read is named at start", %{tmp_dir: folder} do
    path = Path.join(folder, "wide.db")
    File.write!(path, "")
    File.chmod!(path, 0o644)
    log = capture_log(fn -> book(store: path, builtins: false) end)

    assert log =~ "the database: other users of this machine may read #{path} (mode 644)"
    assert log =~ "; run: chmod go= #{path}"
    assert PrivateFile.exposed(path) |> hd() == {path, 0o644}
  end

  test "a file that is there keeps its content and its mode", %{tmp_dir: folder} do
    path = Path.join(folder, "kept")
    File.write!(path, "text")
    File.chmod!(path, 0o640)
    assert PrivateFile.touch(path) == :ok
    assert {File.read!(path), File.stat!(path).mode &&& 0o777} == {"text", 0o640}
    assert PrivateFile.mkdir_p(Path.join(path, "below")) == {:error, :enotdir}
  end
end
