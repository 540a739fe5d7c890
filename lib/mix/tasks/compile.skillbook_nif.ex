defmodule Mix.Tasks.Compile.SkillbookNif do
  use Mix.Task.Compiler

  @shortdoc "Builds Skillbook's native libraries with cargo"

  @moduledoc """
  Builds the native libraries with `cargo build --release` and puts them into `priv/native`.

  It runs as part of `mix compile`, in this project and in applications that depend on Skillbook.
  It does nothing while a library is newer than its Rust sources.

  `libskillbook_nif` is always built. `libskillbook_embed`, for `Skillbook.Embedder.Local`, is
  built if the application wants it:

      config :skillbook, embedder: :local

  Once it is there, it is kept up to date, until `mix clean` removes it.

  ## Environment

    * `SKILLBOOK_NIF` - the path of a prebuilt library; it is copied and cargo is not needed.
    * `SKILLBOOK_EMBED` - `1` to build the library for local embedders, or the path of a prebuilt
      one.
    * `CARGO_TARGET_DIR` - where cargo keeps its build, as for any cargo project.
  """

  # The crate of each library, its sources, the variable of the environment, and the length of its
  # first build.
  @libraries [
    {"skillbook_nif", "skillbook_{core,sql,nif}", "SKILLBOOK_NIF",
     "about 200 Rust crates: about 150 seconds on two free cores"},
    {"skillbook_embed", "skillbook_embed", "SKILLBOOK_EMBED",
     "about 85 Rust crates: about 110 seconds on two free cores"}
  ]

  @impl true
  def run(_args) do
    root = root()

    @libraries
    |> Enum.map(fn {crate, _, variable, _} = library ->
      target = Path.join([root, "priv", "native", "lib#{crate}.so"])

      case {System.get_env(variable), crate} do
        {nothing, "skillbook_embed"} when nothing in [nil, "", "0"] ->
          if embedder() == :local or File.exists?(target),
            do: build(root, library, target),
            else: {:noop, []}

        {"1", "skillbook_embed"} ->
          build(root, library, target)

        {nothing, _} when nothing in [nil, ""] ->
          build(root, library, target)

        {path, _} ->
          copy(path, target, variable)
      end
    end)
    |> Enum.find({:noop, []}, &(elem(&1, 0) == :ok))
  end

  @impl true
  def clean do
    File.rm_rf!(Path.join([root(), "priv", "native"]))
    :ok
  end

  # Mix runs a dependency's compilers inside that dependency's folder, wherever it was fetched to.
  defp root, do: File.cwd!()

  defp embedder do
    case Application.get_env(:skillbook, :embedder) do
      embedder when embedder in [nil, :local] ->
        embedder

      other ->
        Mix.raise(
          "expected `config :skillbook, embedder: :local`, or no such setting, " <>
            "got: #{inspect(other)}"
        )
    end
  end

  defp build(root, {_, folders, _, _} = library, target) do
    if stale?(root, folders, target), do: cargo(root, library, target), else: {:noop, []}
  end

  defp stale?(root, folders, target) do
    case File.stat(target, time: :posix) do
      {:ok, %{mtime: built}} -> Enum.any?(sources(root, folders), &newer?(&1, built))
      {:error, _} -> true
    end
  end

  defp sources(root, folders) do
    [Path.join(root, "Cargo.toml"), Path.join(root, "Cargo.lock")] ++
      Path.wildcard(Path.join(root, "native/#{folders}/{Cargo.toml,build.rs}")) ++
      Path.wildcard(Path.join(root, "native/#{folders}/src/**/*"))
  end

  defp newer?(path, built) do
    match?({:ok, %{mtime: changed}} when changed > built, File.stat(path, time: :posix))
  end

  defp cargo(root, {crate, _, variable, first}, target) do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise("""
        Skillbook's native library must be built, and `cargo` is not on the PATH.
        Install Rust 1.91 or later (https://rustup.rs), or set #{variable} to a prebuilt library.
        """)

    Mix.shell().info(
      "Building Skillbook's native library #{crate}. The first time it compiles #{first}."
    )

    args = [
      "build",
      "--release",
      "--locked",
      "-p",
      crate,
      "--message-format",
      "json-render-diagnostics"
    ]

    # cargo's own messages go straight to standard error, as progress of the long build.
    case System.cmd(cargo, args, cd: root) do
      {messages, 0} ->
        copy(built_library(messages, crate), target, "cargo")

      {_, status} ->
        Mix.raise("cargo build failed with status #{status}; see its messages above")
    end
  end

  # cargo reports the path of the library, which depends on CARGO_TARGET_DIR, .cargo/config and
  # the platform's suffix.
  defp built_library(messages, crate) do
    with [line | _] <-
           messages
           |> String.split("\n", trim: true)
           |> Enum.filter(&String.contains?(&1, ~s("name":"#{crate}")))
           |> Enum.filter(&String.contains?(&1, ~s("reason":"compiler-artifact")))
           |> Enum.reverse(),
         [_, path] <- Regex.run(~r/"filenames":\["([^"]+\.(?:so|dylib|dll))"/, line) do
      path
    else
      _ -> Mix.raise("cargo build succeeded but reported no library of #{crate}")
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
