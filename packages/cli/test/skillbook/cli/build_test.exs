defmodule Skillbook.CLI.BuildTest do
  # When bin/skillbook builds, and how bin/build builds the libraries that it leaves out: the
  # scripts run in a folder of their own, with programs in place of Mix, cargo and Elixir that
  # only say how they were called.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    for path <- ~w(skillbook build lib.sh), do: copy("bin/#{path}", folder)

    packages = for name <- ~w(http embedder accounts), do: "packages/#{name}"

    for name <- ~w(lib native docs programs packages/cli/lib packages/web/priv) ++ packages,
        do: File.mkdir_p!(Path.join(folder, name))

    for name <- ~w(mix.exs Cargo.toml Cargo.lock docs/diagnostics.md packages/cli/mix.exs),
        do: File.write!(Path.join(folder, name), "")

    program(folder, "mix", """
    wishes=
    for name in NIF SQL PG HTTP EMBED CONNECT; do
      eval "value=\\${SKILLBOOK_$name:-}"
      [ -z "$value" ] || wishes="$wishes $name=$value"
    done
    echo "${PWD#"#{folder}"}: mix $*$wishes" >>"#{folder}/calls"
    mkdir -p "$MIX_BUILD_PATH/lib/skillbook" "#{folder}/priv/native"
    [ "${SKILLBOOK_NIF:-}" = 0 ] ||
      touch "#{folder}/priv/native/libskillbook_nif.so" \\
        "#{folder}/priv/native/libskillbook_sql.so"
    """)

    program(folder, "cargo", """
    echo "${PWD#"#{folder}"}: cargo $*" >>"#{folder}/calls"
    [ ! -e "#{folder}/broken" ]
    """)

    for name <- ~w(elixir erl cc), do: program(folder, name, "")
    :ok
  end

  defp copy(path, folder) do
    target = Path.join(folder, path)
    File.mkdir_p!(Path.dirname(target))
    File.cp!(Skillbook.Test.Checkout.path(path), target)
  end

  defp program(folder, name, text) do
    path = Path.join([folder, "programs", name])
    File.write!(path, "#!/bin/sh\n" <> text)
    File.chmod!(path, 0o755)
  end

  # The calls in their order, standard error, and the exit status.
  defp call(folder, script, args) do
    calls = Path.join(folder, "calls")
    File.rm(calls)

    env =
      [{"PATH", Path.join(folder, "programs") <> ":" <> System.get_env("PATH")}] ++
        [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", nil}] ++
        for name <- ~w(NIF SQL PG HTTP EMBED CONNECT), do: {"SKILLBOOK_#{name}", nil}

    {errors, status} =
      System.cmd(Path.join(folder, "bin/#{script}"), args, env: env, stderr_to_stdout: true)

    lines = if File.exists?(calls), do: calls |> File.read!() |> String.split("\n", trim: true)
    {lines || [], errors, status}
  end

  @cargo ": cargo build --release --locked -p skillbook_nif -p skillbook_sql"
  @elixir "/packages/cli: mix compile NIF=0 SQL=0 PG=0 HTTP=0"
  @copy ": mix compile PG=0 HTTP=0"

  test "the first build compiles Rust and Elixir at once, the libraries of all commands",
       %{tmp_dir: folder} do
    assert {calls, errors, 0} = call(folder, "skillbook", ["--version"])
    assert Enum.sort(calls) == Enum.sort([@cargo, @elixir, @copy])
    assert List.last(calls) == @copy
    assert errors =~ "The first build compiles about "
    assert call(folder, "skillbook", ["connect", "--help"]) == {[], "", 0}

    File.touch!(Path.join(folder, "mix.exs"), System.os_time(:second) + 60)
    again = "/packages/cli: mix compile PG=0 HTTP=0"
    assert {[^again], _errors, 0} = call(folder, "skillbook", ["list"])
  end

  test "if cargo fails, so does the build", %{tmp_dir: folder} do
    File.write!(Path.join(folder, "broken"), "")
    assert {calls, errors, 3} = call(folder, "skillbook", ["list"])
    refute @copy in calls
    assert errors =~ "Building Skillbook ... FAILED"
    File.rm!(Path.join(folder, "broken"))
    assert {[_, _, _], _, 0} = call(folder, "skillbook", ["list"])
  end

  test "bin/build builds the other libraries, each alone", %{tmp_dir: folder} do
    for {library, package, wishes, name} <- [
          {"http", "/packages/http", "PG=0 HTTP=1", "HTTP"},
          {"postgres", "", "PG=1 HTTP=0", "PostgreSQL"},
          {"embed", "/packages/embedder", "PG=0 HTTP=0 EMBED=1", "the local embedder"},
          {"connect", "/packages/accounts", "PG=0 HTTP=0 CONNECT=1", "connections"}
        ] do
      assert {[call], errors, 0} = call(folder, "build", ["skillbook_#{library}"])
      assert call == "#{package}: mix compile #{wishes}"

      assert errors =~
               ~r/\AThe library of #{name} is built once: about \d+ seconds on two free cores.\n/
    end

    assert {[], "Usage: bin/build LIBRARY\n" <> _, 0} = call(folder, "build", ["--help"])
    assert {[], "Usage: bin/build LIBRARY\n" <> _, 2} = call(folder, "build", ["skillbook_nif"])
  end
end
