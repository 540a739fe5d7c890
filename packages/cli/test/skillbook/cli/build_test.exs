defmodule Skillbook.CLI.BuildTest do
  # When bin/skillbook builds, and how bin/build builds the libraries that it leaves out: the
  # scripts run in a folder of their own, with programs in place of Mix, cargo and Elixir that
  # only say how they were called.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    for path <- ~w(skillbook build lib.sh), do: copy("bin/#{path}", folder)

    packages = for name <- ~w(http embedder accounts), do: "packages/#{name}"

    natives = for name <- ~w(core files cli/help/parts), do: "native/skillbook_#{name}"
    pages = for name <- ~w(agent vault accounts), do: "packages/#{name}/priv"

    for name <- ~w(lib docs programs priv/skills packages/cli/lib packages/web/priv) ++ packages,
        do: File.mkdir_p!(Path.join(folder, name))

    for name <- natives ++ pages, do: File.mkdir_p!(Path.join(folder, name))

    for name <- ~w(mix.exs Cargo.lock docs/diagnostics.md packages/cli/mix.exs),
        do: File.write!(Path.join(folder, name), "")

    File.write!(Path.join(folder, "Cargo.toml"), ~s([workspace.package]\nversion = "1.2.3"\n))

    for name <- ~w(overview run list connect parts/global parts/pointer),
        do:
          File.write!(
            Path.join(folder, "native/skillbook_cli/help/#{name}.txt"),
            "The text of #{name}\n" <> if(name == "overview", do: "\n@global\n", else: "")
          )

    program(folder, "mix", """
    wishes=
    for name in NIF SQL PG HTTP EMBED CONNECT; do
      eval "value=\\${SKILLBOOK_$name:-}"
      [ -z "$value" ] || wishes="$wishes $name=$value"
    done
    echo "${PWD#"#{folder}"}: mix $*$wishes" >>"#{folder}/calls"
    mkdir -p "$MIX_BUILD_PATH/lib/skillbook" "#{folder}/priv/native"
    nif="#{folder}/priv/native/libskillbook_nif.so"
    [ "${SKILLBOOK_NIF:-}" = 0 ] || {
      touch "$nif" "#{folder}/priv/native/libskillbook_sql.so"
      rm -f "$nif.quick"
      [ "$SKILLBOOK_CARGO_PROFILE" = release ] || touch "$nif.$SKILLBOOK_CARGO_PROFILE"
    }
    """)

    program(folder, "cargo", """
    echo "${PWD#"#{folder}"}: cargo $*" >>"#{folder}/calls"
    [ ! -e "#{folder}/broken" ] || exit 1
    case "$*" in *skillbook_cli) ;; *) exit 0 ;; esac
    profile=${*#*--profile }
    profile=${profile%% *}
    mkdir -p "#{folder}/target/$profile"
    cat >"#{folder}/target/$profile/skillbook" <<'TEXT'
    #!/bin/sh
    echo "the program: $*, and ${SKILLBOOK_ELIXIR#"#{folder}"}"
    [ "$1" = list ] || SKILLBOOK_NATIVE=0 exec "$SKILLBOOK_ELIXIR" "$@"
    TEXT
    chmod +x "#{folder}/target/$profile/skillbook"
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

  # The calls in their order, the outputs, and the exit status.
  defp call(folder, script, args, more \\ [], options \\ []) do
    calls = Path.join(folder, "calls")
    File.rm(calls)

    env =
      [{"PATH", Path.join(folder, "programs") <> ":" <> System.get_env("PATH")}] ++
        [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", nil}, {"CARGO_TARGET_DIR", nil}] ++
        [{"SKILLBOOK_NATIVE", nil}, {"SKILLBOOK_PREBUILT", nil}] ++
        for name <- ~w(NIF SQL PG HTTP EMBED CONNECT CARGO_PROFILE),
            do: {"SKILLBOOK_#{name}", nil}

    # A database in the current folder would give the line to Elixir.
    defaults = [env: env ++ more, stderr_to_stdout: true, cd: folder]
    options = Keyword.merge(defaults, options)
    {errors, status} = System.cmd(Path.join(folder, "bin/#{script}"), args, options)

    lines = if File.exists?(calls), do: calls |> File.read!() |> String.split("\n", trim: true)
    {lines || [], errors, status}
  end

  @cargo ": cargo build --profile quick --locked -p skillbook_nif -p skillbook_sql"
  @program ": cargo build --profile release --locked --package skillbook_cli"
  @quick_program ": cargo build --profile quick --locked --package skillbook_cli"
  @elixir "/packages/cli: mix compile NIF=0 SQL=0 PG=0 HTTP=0"
  @copy ": mix compile PG=0 HTTP=0"

  test "the first build compiles Rust and Elixir at once, the libraries of all commands",
       %{tmp_dir: folder} do
    assert {calls, errors, 0} = call(folder, "skillbook", ["run", "a.md"])
    assert Enum.sort(calls) == Enum.sort([@cargo, @elixir, @copy])
    assert List.last(calls) == @copy
    assert errors =~ "The first build compiles about "
    assert call(folder, "skillbook", ["run", "a.md"]) == {[], "", 0}
    # Elixir knows which command was meant.
    assert call(folder, "skillbook", ["rnu"]) == {[], "", 0}

    File.touch!(Path.join(folder, "mix.exs"), System.os_time(:second) + 60)
    again = "/packages/cli: mix compile PG=0 HTTP=0"
    assert {[^again], _errors, 0} = call(folder, "skillbook", ["run", "a.md"])
  end

  test "a first build is optimised when a command serves others", %{tmp_dir: folder} do
    assert {[_, _, _], errors, 0} = call(folder, "skillbook", ["run", "a.md"])
    assert errors =~ ~r/crates without optimisation: about \d+ seconds/
    assert File.exists?(Path.join(folder, "priv/native/libskillbook_nif.so.quick"))

    # The program, too, takes the crates as they are.
    assert {[@quick_program], _, 0} = call(folder, "skillbook", ["list"])

    assert {["/packages/cli: mix compile PG=0 HTTP=0"], errors, 0} =
             call(folder, "skillbook", ["serve"], [{"SKILLBOOK_NATIVE", "0"}])

    assert errors =~ "`serve` needs optimised libraries, which are built once: about "
    assert call(folder, "skillbook", ["mcp"], [{"SKILLBOOK_NATIVE", "0"}]) == {[], "", 0}
    assert call(folder, "skillbook", ["run", "a.md"]) == {[], "", 0}
    assert {[@program], _, 0} = call(folder, "skillbook", ["list"])

    for name <- ~w(so so.quick),
        do: File.rm(Path.join(folder, "priv/native/libskillbook_nif.#{name}"))

    assert {calls, errors, 0} = call(folder, "skillbook", ["serve"], [{"SKILLBOOK_NATIVE", "0"}])
    assert String.replace(@cargo, "quick", "release") in calls
    assert errors =~ ~r/crates with optimisation: about \d+ seconds/
  end

  test "help and the version need no build", %{tmp_dir: folder} do
    all = "The text of overview\n\nThe text of parts/global\n"
    connect = "The text of connect\n\nThe text of parts/pointer\n"

    for {args, output} <- [
          {[], all},
          {["--help"], all},
          {["-h"], all},
          {["help"], all},
          {["help", "connect"], connect},
          {["help", "help"], all},
          {["--dir", "x", "--help"], all},
          {["connect", "--help"], connect},
          {["--dir", "x", "connect", "--port", "1", "-h"], connect},
          {["--version"], "skillbook 1.2.3\n"},
          {["-V"], "skillbook 1.2.3\n"}
        ] do
      assert {args, call(folder, "skillbook", args)} == {args, {[], output, 0}}
    end

    unknown = "skillbook: unknown command `rnu`\nSee: skillbook --help\n"

    for args <- [["rnu", "--help"], ["help", "rnu"], ["--dir", "x", "rnu", "a", "-h"]],
        do: assert({args, call(folder, "skillbook", args)} == {args, {[], unknown, 2}})

    assert {[_, _, _], _, 0} = call(folder, "skillbook", ["connect", "--", "-h"])
  end

  test "commands that only read folders need the program alone", %{tmp_dir: folder} do
    list = "the program: list, and /bin/skillbook\n"
    assert {[@program], output, 0} = call(folder, "skillbook", ["list"])
    assert output =~ ~r/\AThis command needs no Elixir. .*\n.* ok \(\d+ s\)\n#{list}\z/
    assert call(folder, "skillbook", ["list"]) == {[], list, 0}

    # It gets all lines, and hands some of them back.
    assert {[_, _, _], output, 0} = call(folder, "skillbook", ["run", "a.md"])
    assert output =~ ~r/\Athe program: run a.md, and \/bin\/skillbook\n/
    version = "the program: --version, and /bin/skillbook\n"
    assert call(folder, "skillbook", ["--version"]) == {[], version, 0}

    page = Path.join(folder, "priv/skills/new.md")
    File.write!(page, "")
    File.touch!(page, System.os_time(:second) + 60)
    assert call(folder, "skillbook", ["--version"]) == {[], "skillbook 1.2.3\n", 0}
    assert {[@program], _, 0} = call(folder, "skillbook", ["list"])

    File.write!(Path.join(folder, "broken"), "")
    assert {[@program], errors, 3} = call(folder, "skillbook", ["list"])
    assert errors =~ "Building the program skillbook ... FAILED"
  end

  test "a line that the program would hand back does not build it", %{tmp_dir: folder} do
    for args <- [["--db", "x", "list"], ["list", "--pack=assistant"], ["run", "a.md"]] do
      {calls, _, 0} = call(folder, "skillbook", args)
      refute @program in calls, inspect(args)
    end

    File.mkdir_p!(Path.join(folder, "here/.skillbook"))
    File.write!(Path.join(folder, "here/.skillbook/skillbook.db"), "")
    here = [cd: Path.join(folder, "here")]
    assert {[], "", 0} = call(folder, "skillbook", ["list"], [], here)
    assert {[@quick_program], _, 0} = call(folder, "skillbook", ["lint"], [], here)
  end

  test "unknown commands need the program alone, too", %{tmp_dir: folder} do
    assert {[@program | _], "This command needs" <> _, 0} = call(folder, "skillbook", ["rnu"])
  end

  test "without cargo, and with SKILLBOOK_NATIVE=0, Elixir does all", %{tmp_dir: folder} do
    env = [{"SKILLBOOK_NATIVE", "0"}]
    assert {calls, _, 0} = call(folder, "skillbook", ["list"], env)
    assert Enum.sort(calls) == Enum.sort([@cargo, @elixir, @copy])
    assert {[], "", 0} = call(folder, "skillbook", ["list"], env)

    File.rm!(Path.join(folder, "programs/cargo"))
    env = [{"PATH", Path.join(folder, "programs") <> ":/usr/bin:/bin"}, {"HOME", folder}]
    assert {[], "", 0} = call(folder, "skillbook", ["list"], [{"SKILLBOOK_NIF", "x"} | env])
  end

  test "if cargo fails, so does the build", %{tmp_dir: folder} do
    File.write!(Path.join(folder, "broken"), "")
    assert {calls, errors, 3} = call(folder, "skillbook", ["run"])
    refute @copy in calls
    assert errors =~ "Building Skillbook ... FAILED"
    File.rm!(Path.join(folder, "broken"))
    assert {[_, _, _], _, 0} = call(folder, "skillbook", ["run"])
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
