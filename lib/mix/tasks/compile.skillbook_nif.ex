defmodule Mix.Tasks.Compile.SkillbookNif do
  use Mix.Task.Compiler

  @shortdoc "Builds Skillbook's native libraries with cargo"

  @moduledoc """
  Builds the native libraries with `cargo build --release` and puts them into `priv/native`.

  It runs as part of `mix compile`, in this project and in applications that depend on Skillbook.
  It does nothing while a library is newer than its Rust sources.

  `libskillbook_nif` is always built. The others are built if the application wants them:

      config :skillbook,
        # libskillbook_embed, for `Skillbook.Embedder.Local`
        embedder: :local,
        # libskillbook_connect, for mail, calendars and files, and the program skillbook_text
        connections: true

  Once a library is there, it is kept up to date, until `mix clean` removes it.

  ## Environment

    * `SKILLBOOK_NIF` - the path of a prebuilt library; it is copied and cargo is not needed.
    * `SKILLBOOK_EMBED`, `SKILLBOOK_CONNECT` - `1` to build the library for local embedders or for
      connections, or the path of a prebuilt one, with the program in the same folder.
    * `CARGO_TARGET_DIR` - where cargo keeps its build, as for any cargo project.
  """

  # `setting` is the application's wish for a library that is not always built. `programs` are
  # those of the same crate.
  @libraries [
    %{
      crate: "skillbook_nif",
      sources: "skillbook_{core,sql,nif}",
      variable: "SKILLBOOK_NIF",
      setting: nil,
      programs: [],
      first_build: "about 200 Rust crates: about 150 seconds on two free cores"
    },
    %{
      crate: "skillbook_embed",
      sources: "skillbook_embed",
      variable: "SKILLBOOK_EMBED",
      setting: {:embedder, :local},
      programs: [],
      first_build: "about 85 Rust crates: about 110 seconds on two free cores"
    },
    %{
      crate: "skillbook_connect",
      sources: "skillbook_connect",
      variable: "SKILLBOOK_CONNECT",
      setting: {:connections, true},
      programs: ["skillbook_text"],
      first_build: "about 180 Rust crates: about 150 seconds on two free cores"
    }
  ]

  @impl true
  def run(_args) do
    root = root()

    @libraries
    |> Enum.map(fn library ->
      folder = Path.join([root, "priv", "native"])

      case wish(library) do
        :unset -> if wanted?(library, folder), do: build(root, library, folder), else: {:noop, []}
        :build -> build(root, library, folder)
        {:copy, path} -> copy_all(library, path, folder)
      end
    end)
    |> Enum.find({:noop, []}, &(elem(&1, 0) == :ok))
  end

  defp wish(%{variable: variable, setting: setting}) do
    case {System.get_env(variable), setting} do
      {value, _} when value in [nil, ""] -> :unset
      {path, nil} -> {:copy, path}
      {"0", _} -> :unset
      {"1", _} -> :build
      {path, _} -> {:copy, path}
    end
  end

  defp wanted?(%{setting: nil}, _folder), do: true

  defp wanted?(%{setting: {name, wanted}} = library, folder) do
    case Application.get_env(:skillbook, name) do
      ^wanted ->
        true

      nil ->
        File.exists?(Path.join(folder, file(library)))

      other ->
        Mix.raise(
          "expected `config :skillbook, #{name}: #{inspect(wanted)}`, or no such setting, " <>
            "got: #{inspect(other)}"
        )
    end
  end

  @impl true
  def clean do
    File.rm_rf!(Path.join([root(), "priv", "native"]))
    :ok
  end

  # Mix runs a dependency's compilers inside that dependency's folder, wherever it was fetched to.
  defp root, do: File.cwd!()

  defp file(library), do: "lib#{library.crate}.so"

  defp build(root, library, folder) do
    if Enum.any?([file(library) | library.programs], &stale?(root, library, folder, &1)),
      do: cargo(root, library, folder),
      else: {:noop, []}
  end

  defp stale?(root, library, folder, file) do
    case File.stat(Path.join(folder, file), time: :posix) do
      {:ok, %{mtime: built}} -> Enum.any?(sources(root, library.sources), &newer?(&1, built))
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

  defp cargo(root, %{crate: crate} = library, folder) do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise("""
        Skillbook's native library must be built, and `cargo` is not on the PATH.
        Install Rust 1.91 or later (https://rustup.rs), or set #{library.variable} to a prebuilt
        library.
        """)

    Mix.shell().info(
      "Building Skillbook's native library #{crate}. The first time it compiles " <>
        "#{library.first_build}."
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
        built = Enum.map(library.programs, &{built(messages, &1, ~r/"executable":"([^"]+)"/), &1})
        suffix = ~r/"filenames":\["([^"]+\.(?:so|dylib|dll))"/
        copy([{built(messages, crate, suffix), file(library)} | built], folder, "cargo")

      {_, status} ->
        Mix.raise("cargo build failed with status #{status}; see its messages above")
    end
  end

  # cargo reports the path of a library and of a program, which depend on CARGO_TARGET_DIR,
  # .cargo/config and the platform's suffix.
  defp built(messages, name, path) do
    with [line | _] <-
           messages
           |> String.split("\n", trim: true)
           |> Enum.filter(&String.contains?(&1, ~s("name":"#{name}")))
           |> Enum.filter(&String.contains?(&1, ~s("reason":"compiler-artifact")))
           |> Enum.filter(&(&1 =~ path))
           |> Enum.reverse(),
         [_, path] <- Regex.run(path, line) do
      path
    else
      _ -> Mix.raise("cargo build succeeded but reported no file of #{name}")
    end
  end

  defp copy_all(library, path, folder) do
    programs = Enum.map(library.programs, &{Path.join(Path.dirname(path), &1), &1})
    copy([{path, file(library)} | programs], folder, library.variable)
  end

  defp copy(files, folder, origin) do
    Enum.each(files, fn {from, name} -> copy_file(from, Path.join(folder, name), origin) end)
    # Mix linked or copied `priv` into the build before this compiler ran, perhaps before `priv`
    # existed.
    Mix.Project.build_structure()
    {:ok, []}
  end

  # A running virtual machine may have mapped the old file. Writing into that file would crash it;
  # replacing the file does not.
  defp copy_file(from, target, origin) do
    File.mkdir_p!(Path.dirname(target))
    temporary = target <> ".#{System.pid()}"

    with :ok <- File.cp(from, temporary),
         :ok <- File.touch(temporary),
         :ok <- File.rename(temporary, target) do
      :ok
    else
      {:error, reason} ->
        Mix.raise(
          "cannot copy the file that #{origin} names, #{from}: #{:file.format_error(reason)}"
        )
    end
  end
end
