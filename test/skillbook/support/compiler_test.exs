defmodule Skillbook.Support.CompilerTest do
  # The compiler of native libraries, in a project two folders below its cargo workspace, with a
  # program in place of cargo. Alone, because it changes the folder and the environment.
  use ExUnit.Case, async: false

  alias Mix.Tasks.Compile.SkillbookNif
  alias Skillbook.Support.Prebuilt

  @moduletag :tmp_dir

  @mix """
  defmodule Skillbook.Support.CompilerTest.Project do
    use Mix.Project

    def project do
      [
        app: :probe,
        version: "1.0.0",
        native: [
          %{crate: "skillbook_a", variable: "PROBE_A", first_build: {7, 8}},
          %{crate: "skillbook_b", variable: "PROBE_B", first_build: {1, 2}},
          %{
            crate: "skillbook_c",
            variable: "PROBE_C",
            setting: {:probe_c, true},
            programs: ["tool"],
            first_build: {20, 30}
          },
          %{crate: "skillbook_d", variable: "PROBE_D", alone: true, first_build: {5, 6}}
        ]
      ]
    end
  end
  """

  # Reports a library of each crate, and the program.
  @cargo ~S"""
  #!/bin/sh
  echo "$PWD: $*" >>calls
  artifact='{"reason":"compiler-artifact","target":{"name":'
  for name in skillbook_a skillbook_b skillbook_c skillbook_d; do
    echo built >"lib$name.so"
    echo "$artifact\"$name\"},\"filenames\":[\"$PWD/lib$name.so\"]}"
  done
  echo built >tool
  echo "$artifact\"tool\"},\"executable\":\"$PWD/tool\"}"
  """

  setup %{tmp_dir: root} do
    project = Path.join(root, "packages/probe")

    files = [
      {"Cargo.toml", "[workspace]\n"},
      {"Cargo.lock", ""},
      {"native/skillbook_a/Cargo.toml",
       "[dependencies]\nskillbook_b.workspace = true\nserde = \"1\"\n"},
      {"native/skillbook_b/Cargo.toml", "[package]\nname = \"skillbook_b\"\n"},
      {"native/skillbook_b/src/lib.rs", ""},
      {"native/skillbook_c/Cargo.toml", "[package]\nname = \"skillbook_c\"\n"},
      {"native/skillbook_d/Cargo.toml", "[package]\nname = \"skillbook_d\"\n"},
      {"packages/probe/mix.exs", @mix},
      {"programs/cargo", @cargo}
    ]

    for {path, text} <- files do
      path = Path.join(root, path)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text)
    end

    File.chmod!(Path.join(root, "programs/cargo"), 0o755)

    put_env(%{
      "PATH" => Path.join(root, "programs") <> ":" <> System.get_env("PATH"),
      "MIX_BUILD_PATH" => Path.join(project, "_build"),
      "PROBE_A" => nil,
      "PROBE_B" => nil,
      "PROBE_C" => nil,
      # Only where a test wants it.
      "PROBE_D" => "0",
      "SKILLBOOK_PREBUILT" => nil,
      "SKILLBOOK_CARGO_PROFILE" => nil,
      "XDG_CACHE_HOME" => Path.join(root, "cache")
    })

    shell = Mix.shell()
    Mix.shell(Mix.Shell.Process)
    on_exit(fn -> Mix.shell(shell) end)
    {:ok, project: project}
  end

  defp put_env(changes) do
    before = System.get_env()
    System.put_env(changes)
    on_exit(fn -> System.put_env(Map.new(changes, fn {name, _} -> {name, before[name]} end)) end)
  end

  defp run(project), do: in_project(project, fn -> SkillbookNif.run([]) end)

  defp in_project(project, fun),
    do: Mix.Project.in_project(:probe, project, fn _module -> fun.() end)

  # The calls of cargo since the last time.
  defp calls(root) do
    path = Path.join(root, "calls")
    calls = if File.exists?(path), do: path |> File.read!() |> String.split("\n", trim: true)
    File.rm(path)
    calls || []
  end

  defp native(project), do: project |> Path.join("priv/native/*") |> Path.wildcard() |> names()
  defp names(paths), do: Enum.map(paths, &Path.basename/1)

  # A file that is a minute newer than all others.
  defp touch(root, path), do: File.touch!(Path.join(root, path), System.os_time(:second) + 60)

  test "builds what is missing or older than its sources", %{tmp_dir: root, project: project} do
    assert run(project) == {:ok, []}
    assert_received {:mix_shell, :info, ["Building " <> announced]}

    assert announced =~
             "native libraries: skillbook_a, skillbook_b. The first time it compiles about 8"

    assert [call] = calls(root)
    assert String.starts_with?(call, root <> ": build --profile release --locked ")
    assert String.ends_with?(call, " -p skillbook_a -p skillbook_b")
    assert native(project) == ["libskillbook_a.so", "libskillbook_b.so"]

    assert run(project) == {:noop, []}
    # Not one of its sources.
    touch(root, "native/skillbook_c/Cargo.toml")
    assert run(project) == {:noop, []}
    assert calls(root) == []

    # A crate that it is made of.
    touch(root, "native/skillbook_b/src/lib.rs")
    assert run(project) == {:ok, []}
    assert [_] = calls(root)
    refute_received {:mix_shell, :error, _}

    in_project(project, &SkillbookNif.clean/0)
    assert native(project) == []
  end

  test "what was built with less optimisation is built again with more",
       %{tmp_dir: root, project: project} do
    System.put_env("SKILLBOOK_CARGO_PROFILE", "quick")
    assert run(project) == {:ok, []}
    assert [call] = calls(root)
    assert call =~ ": build --profile quick --locked "
    assert "libskillbook_a.so.quick" in native(project)
    assert run(project) == {:noop, []}

    System.put_env("SKILLBOOK_CARGO_PROFILE", "checks")
    assert run(project) == {:ok, []}
    assert [call] = calls(root)
    assert call =~ ": build --profile checks --locked "
    assert run(project) == {:noop, []}
    System.put_env("SKILLBOOK_CARGO_PROFILE", "quick")
    assert run(project) == {:noop, []}

    System.put_env("SKILLBOOK_CARGO_PROFILE", "")
    assert run(project) == {:ok, []}
    assert [call] = calls(root)
    assert call =~ ": build --profile release --locked "
    assert native(project) == ["libskillbook_a.so", "libskillbook_b.so"]

    for profile <- ["", "checks", "quick"] do
      System.put_env("SKILLBOOK_CARGO_PROFILE", profile)
      assert run(project) == {:noop, []}
    end

    System.put_env("SKILLBOOK_CARGO_PROFILE", "fast")
    touch(root, "native/skillbook_b/src/lib.rs")

    assert_raise Mix.Error,
                 "expected SKILLBOOK_CARGO_PROFILE to be release, checks or quick, got: fast",
                 fn -> run(project) end
  end

  test "an optional library is built by its variable or setting, then kept up to date",
       %{tmp_dir: root, project: project} do
    System.put_env("PROBE_C", "0")
    run(project)
    assert native(project) == ["libskillbook_a.so", "libskillbook_b.so"]

    System.put_env("PROBE_C", "1")
    assert run(project) == {:ok, []}

    assert native(project) == [
             "libskillbook_a.so",
             "libskillbook_b.so",
             "libskillbook_c.so",
             "tool"
           ]

    assert String.ends_with?(List.last(calls(root)), " -p skillbook_c")

    System.put_env("PROBE_C", "")
    assert run(project) == {:noop, []}
    touch(root, "native/skillbook_c/Cargo.toml")
    assert run(project) == {:ok, []}

    on_exit(fn -> Application.delete_env(:skillbook, :probe_c) end)
    Application.put_env(:skillbook, :probe_c, :yes)

    assert_raise Mix.Error,
                 "expected `config :skillbook, probe_c: true`, or no such setting, got: :yes",
                 fn -> run(project) end

    in_project(project, &SkillbookNif.clean/0)
    Application.put_env(:skillbook, :probe_c, true)
    run(project)

    assert native(project) == [
             "libskillbook_a.so",
             "libskillbook_b.so",
             "libskillbook_c.so",
             "tool"
           ]
  end

  test "a library is built alone, and not with 0 unless it is there",
       %{tmp_dir: root, project: project} do
    run(project)
    assert native(project) == ["libskillbook_a.so", "libskillbook_b.so"]
    assert [_] = calls(root)

    System.put_env("PROBE_D", "")
    assert run(project) == {:ok, []}
    assert [call] = calls(root)
    assert String.ends_with?(call, "json-render-diagnostics -p skillbook_d")

    System.put_env("PROBE_D", "0")
    assert run(project) == {:noop, []}
    touch(root, "native/skillbook_d/Cargo.toml")
    assert run(project) == {:ok, []}
    assert [_] = calls(root)
  end

  test "a prebuilt library is copied, with its programs", %{tmp_dir: root, project: project} do
    for name <- ~w(a.so b.so c.so tool),
        do: File.write!(Path.join(root, name), "prebuilt #{name}")

    System.put_env("PROBE_A", Path.join(root, "a.so"))
    System.put_env("PROBE_B", Path.join(root, "b.so"))
    System.put_env("PROBE_C", Path.join(root, "c.so"))
    # No source is looked at.
    File.rm!(Path.join(root, "Cargo.toml"))
    assert run(project) == {:ok, []}
    assert calls(root) == []

    assert native(project) == [
             "libskillbook_a.so",
             "libskillbook_b.so",
             "libskillbook_c.so",
             "tool"
           ]

    assert File.read!(Path.join(project, "priv/native/libskillbook_c.so")) == "prebuilt c.so"
    System.put_env("PROBE_A", Path.join(root, "none.so"))

    missing = ~r/cannot copy the file that PROBE_A names, .*none\.so: no such/
    assert_raise Mix.Error, missing, fn -> run(project) end
  end

  describe "prebuilt libraries" do
    # The names of the files of `skillbook_a` and `skillbook_b`.
    setup %{tmp_dir: root, project: project} do
      libraries = in_project(project, fn -> SkillbookNif.prebuilt(Prebuilt.target()) end)
      [a, b] = for {_crate, [{_file, name}]} <- Enum.take(libraries, 2), do: name
      files = Path.join(root, "served")
      File.mkdir_p!(files)
      for name <- [a, b], do: File.write!(Path.join(files, name), "prebuilt #{name}")

      {:ok, _} = Application.ensure_all_started(:inets)

      {:ok, server} =
        :inets.start(:httpd,
          port: 0,
          bind_address: {127, 0, 0, 1},
          server_name: ~c"prebuilt",
          server_root: String.to_charlist(root),
          document_root: String.to_charlist(files)
        )

      on_exit(fn -> :inets.stop(:httpd, server) end)
      [port: port] = :httpd.info(server, [:port])
      url = "http://127.0.0.1:#{port}"
      System.put_env("SKILLBOOK_PREBUILT", url <> "/")
      {:ok, url: url, files: files, a: a, b: b}
    end

    defp publish(root, files, names) do
      lines =
        for name <- names do
          digest = :crypto.hash(:sha256, File.read!(Path.join(files, name)))
          [Base.encode16(digest, case: :lower), "  ", name, "\n"]
        end

      File.write!(Path.join(root, "native/prebuilt.sha256"), lines)
    end

    test "are downloaded once, then taken from the cache", context do
      %{tmp_dir: root, project: project, files: files, a: a, b: b, url: url} = context
      publish(root, files, [a, b])
      assert run(project) == {:ok, []}
      assert calls(root) == []
      took_a = "Took the prebuilt library skillbook_a from #{url}."
      assert_received {:mix_shell, :info, [^took_a]}
      path = Path.join(project, "priv/native/libskillbook_a.so")
      assert File.read!(path) == "prebuilt " <> a
      assert run(project) == {:noop, []}

      File.rm_rf!(files)
      in_project(project, &SkillbookNif.clean/0)
      assert run(project) == {:ok, []}
      assert File.read!(path) == "prebuilt " <> a

      # A damaged file of the cache is not used, and there is no other.
      in_project(project, &SkillbookNif.clean/0)
      File.write!(Path.join(root, "cache/skillbook/#{a}"), "damaged")
      assert run(project) == {:ok, []}
      assert [call] = calls(root)
      assert String.ends_with?(call, " -p skillbook_a")
      missing = "#{url}/#{a} answers with status 404, so cargo builds skillbook_a."
      assert_received {:mix_shell, :info, [^missing]}
    end

    test "are only those of these sources", context do
      %{tmp_dir: root, project: project, files: files, a: a, b: b} = context
      publish(root, files, [a, b])
      # `skillbook_a` is made of it too.
      File.write!(Path.join(root, "native/skillbook_b/src/lib.rs"), "// changed")
      assert run(project) == {:ok, []}
      assert [call] = calls(root)
      assert String.ends_with?(call, " -p skillbook_a -p skillbook_b")

      unknown =
        "There is no prebuilt library skillbook_a of these sources for #{Prebuilt.target()}, " <>
          "so cargo builds it."

      assert_received {:mix_shell, :info, [^unknown]}
    end

    test "with another digest are refused", context do
      %{tmp_dir: root, project: project, files: files, a: a, b: b, url: url} = context
      publish(root, files, [a, b])
      File.write!(Path.join(files, a), "other")

      digest = fn text -> :sha256 |> :crypto.hash(text) |> Base.encode16(case: :lower) end

      message = """
      expected #{url}/#{a} to have the SHA-256 #{digest.("prebuilt " <> a)},
      got #{digest.("other")}. It is not the file that was published, and nothing of it is used.
      Tell whoever serves it. To build with cargo instead, unset SKILLBOOK_PREBUILT and the
      setting `config :skillbook, prebuilt: …`.
      """

      assert_raise Mix.Error, message, fn -> run(project) end
      assert native(project) == []
      assert calls(root) == []
    end

    test "that cannot be downloaded are built by cargo", context do
      %{tmp_dir: root, project: project, files: files, a: a, b: b} = context
      publish(root, files, [a, b])
      # Nothing listens there.
      {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
      {:ok, port} = :inet.port(socket)
      :gen_tcp.close(socket)
      url = "http://127.0.0.1:#{port}"
      System.delete_env("SKILLBOOK_PREBUILT")
      Application.put_env(:skillbook, :prebuilt, url)
      on_exit(fn -> Application.delete_env(:skillbook, :prebuilt) end)
      assert run(project) == {:ok, []}
      refused = "#{url}/#{a} cannot be reached: connection refused, so cargo builds skillbook_a."
      assert_received {:mix_shell, :info, [^refused]}
      assert [_] = calls(root)
    end
  end
end
