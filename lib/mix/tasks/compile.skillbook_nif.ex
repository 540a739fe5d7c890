defmodule Mix.Tasks.Compile.SkillbookNif do
  use Mix.Task.Compiler

  @shortdoc "Builds Skillbook's native library with cargo"

  @moduledoc """
  Builds the native library with `cargo build --release` and puts it into `priv/native`.

  It runs as part of `mix compile`, in this project and in applications that depend on Skillbook.
  It does nothing while the library is newer than all Rust sources.

  ## Environment

    * `SKILLBOOK_NIF` - the path of a prebuilt library; it is copied and cargo is not needed.
    * `CARGO_TARGET_DIR` - where cargo keeps its build, as for any cargo project.
  """

  @library "skillbook_nif"

  @impl true
  def run(_args) do
    root = root()
    target = Path.join([root, "priv", "native", "lib#{@library}.so"])

    case System.get_env("SKILLBOOK_NIF") do
      path when path in [nil, ""] -> build(root, target)
      path -> copy(path, target, "SKILLBOOK_NIF")
    end
  end

  @impl true
  def clean do
    File.rm_rf!(Path.join([root(), "priv", "native"]))
    :ok
  end

  # Mix runs a dependency's compilers inside that dependency's folder, wherever it was fetched to.
  defp root, do: File.cwd!()

  defp build(root, target) do
    if stale?(root, target), do: cargo(root, target), else: {:noop, []}
  end

  defp stale?(root, target) do
    case File.stat(target, time: :posix) do
      {:ok, %{mtime: built}} -> Enum.any?(sources(root), &newer?(&1, built))
      {:error, _} -> true
    end
  end

  defp sources(root) do
    [Path.join(root, "Cargo.toml"), Path.join(root, "Cargo.lock")] ++
      Path.wildcard(Path.join(root, "native/*/{Cargo.toml,build.rs}")) ++
      Path.wildcard(Path.join(root, "native/*/src/**/*"))
  end

  defp newer?(path, built) do
    match?({:ok, %{mtime: changed}} when changed > built, File.stat(path, time: :posix))
  end

  defp cargo(root, target) do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise("""
        Skillbook's native library must be built, and `cargo` is not on the PATH.
        Install Rust 1.91 or later (https://rustup.rs), or set SKILLBOOK_NIF to a prebuilt \
        library.
        """)

    Mix.shell().info(
      "Building Skillbook's native library. " <>
        "The first time it compiles about 200 Rust crates: about 150 seconds on two free cores."
    )

    args = [
      "build",
      "--release",
      "--locked",
      "-p",
      @library,
      "--message-format",
      "json-render-diagnostics"
    ]

    # cargo's own messages go straight to standard error, as progress of the long build.
    case System.cmd(cargo, args, cd: root) do
      {messages, 0} ->
        copy(built_library(messages), target, "cargo")

      {_, status} ->
        Mix.raise("cargo build failed with status #{status}; see its messages above")
    end
  end

  # cargo reports the path of the library, which depends on CARGO_TARGET_DIR, .cargo/config and
  # the platform's suffix.
  defp built_library(messages) do
    with [line | _] <-
           messages
           |> String.split("\n", trim: true)
           |> Enum.filter(&String.contains?(&1, ~s("name":"#{@library}")))
           |> Enum.filter(&String.contains?(&1, ~s("reason":"compiler-artifact")))
           |> Enum.reverse(),
         [_, path] <- Regex.run(~r/"filenames":\["([^"]+\.(?:so|dylib|dll))"/, line) do
      path
    else
      _ -> Mix.raise("cargo build succeeded but reported no library of #{@library}")
    end
  end

  # A running virtual machine may have mapped the old file. Writing into that file would crash it;
  # replacing the file does not.
  defp copy(from, target, origin) do
    File.mkdir_p!(Path.dirname(target))
    temporary = target <> ".#{System.pid()}"

    with :ok <- File.cp(from, temporary),
         :ok <- File.touch(temporary),
         :ok <- File.rename(temporary, target) do
      # Mix linked or copied `priv` into the build before this compiler ran, perhaps before `priv`
      # existed.
      Mix.Project.build_structure()
      {:ok, []}
    else
      {:error, reason} ->
        Mix.raise(
          "cannot copy the library that #{origin} names, #{from}: #{:file.format_error(reason)}"
        )
    end
  end
end
