defmodule Skillbook.CLI.BuildTest do
  # When bin/skillbook builds, and which libraries: the script runs in a folder of its own, with
  # programs in place of Mix and Elixir that only say how they were called.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    for path <- ~w(skillbook lib.sh), do: copy("bin/#{path}", folder)

    for name <- ~w(lib native docs programs packages/cli/lib packages/web/priv),
        do: File.mkdir_p!(Path.join(folder, name))

    for name <- ~w(mix.exs Cargo.toml Cargo.lock docs/diagnostics.md packages/cli/mix.exs),
        do: File.write!(Path.join(folder, name), "")

    # As the compiler does: the other libraries are built if they are wanted.
    program(folder, "mix", """
    echo "mix $*, EMBED=${SKILLBOOK_EMBED:-}, CONNECT=${SKILLBOOK_CONNECT:-}" >>"#{folder}/calls"
    cd "#{folder}" && mkdir -p "$MIX_BUILD_PATH/lib/skillbook"
    built() { mkdir -p "$1priv/native" && touch "$1priv/native/libskillbook_$2.so"; }
    built "" nif && built "" sql && built packages/http/ http
    [ -z "${SKILLBOOK_EMBED:-}" ] || built packages/embedder/ embed
    [ -z "${SKILLBOOK_CONNECT:-}" ] || built packages/accounts/ connect
    """)

    for name <- ~w(elixir erl cargo cc), do: program(folder, name, "")
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

  # The calls of Mix, and standard error.
  defp skillbook(folder, args) do
    calls = Path.join(folder, "calls")
    File.rm(calls)

    env = [
      {"PATH", Path.join(folder, "programs") <> ":" <> System.get_env("PATH")},
      {"MIX_ENV", "prod"},
      {"SKILLBOOK_EMBED", nil},
      {"SKILLBOOK_CONNECT", nil}
    ]

    {errors, 0} =
      System.cmd(Path.join(folder, "bin/skillbook"), args, env: env, stderr_to_stdout: true)

    {if(File.exists?(calls), do: File.read!(calls), else: ""), errors}
  end

  test "the local embedder's library is built when a folder is first named", %{tmp_dir: folder} do
    plain = "mix compile, EMBED=, CONNECT=\n"
    both = "mix compile, EMBED=1, CONNECT=\n"
    announced = "The library of the local embedder is built once: about 110 seconds"

    assert {^plain, errors} = skillbook(folder, ["--version"])
    refute errors =~ announced

    for args <- [
          ["search", "a"],
          ["--embedder", "http://localhost:1", "search", "a"],
          ["--embedder=https://h", "search", "a"],
          ["search", "a", "--embedder-model", "m"],
          ["run", "-c", "a --embedder b"],
          ["route", "--", "--embedder", "folder"]
        ] do
      assert skillbook(folder, args) == {"", ""}, inspect(args)
    end

    for args <- [
          ["--embedder", "folder", "search", "a"],
          ["search", "a", "--embedder", "/srv/a b"],
          ["search", "a", "--embedder=folder"]
        ] do
      File.rm(Path.join(folder, "packages/embedder/priv/native/libskillbook_embed.so"))
      assert {^both, errors} = skillbook(folder, args)
      assert errors =~ announced
      assert skillbook(folder, args) == {"", ""}
    end
  end

  test "the library of connections is built by the first connect", %{tmp_dir: folder} do
    plain = "mix compile, EMBED=, CONNECT=\n"
    both = "mix compile, EMBED=, CONNECT=1\n"
    announced = "The library of connections is built once: about 150 seconds"

    assert {^plain, errors} = skillbook(folder, ["--version"])
    refute errors =~ announced

    for args <- [
          ["search", "connect"],
          ["--profile", "connect", "search", "a"],
          ["connections"],
          ["run", "-c", "connect"]
        ] do
      assert skillbook(folder, args) == {"", ""}, inspect(args)
    end

    for args <- [["connect", "google"], ["--profile", "ann", "connect"]] do
      File.rm(Path.join(folder, "packages/accounts/priv/native/libskillbook_connect.so"))
      assert {^both, errors} = skillbook(folder, args)
      assert errors =~ announced
      assert skillbook(folder, args) == {"", ""}
    end
  end
end
