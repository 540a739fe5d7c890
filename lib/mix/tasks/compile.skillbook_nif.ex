defmodule Mix.Tasks.Compile.SkillbookNif do
  use Mix.Task.Compiler

  @shortdoc "Builds Skillbook's native libraries with cargo"

  @moduledoc """
  Builds the native libraries with `cargo build --release` and puts them into `priv/native`.

  It runs as part of `mix compile`, in this project and in applications that depend on Skillbook.
  It does nothing while the libraries are newer than their Rust sources.

  `libskillbook_nif`, `libskillbook_sql` and `libskillbook_postgres` are always built, and
  `libskillbook_http` where the package `skillbook_http` is. The others are built if the
  application wants them:

      config :skillbook,
        # libskillbook_embed, for `Skillbook.Embedder.Local` of the package skillbook_embedder
        embedder: :local,
        # libskillbook_connect of the package skillbook_accounts, for mail, calendars and files,
        # and the program skillbook_text
        connections: true

  Once a library is there, it is kept up to date, until `mix clean` removes it.

  ## Environment

    * `SKILLBOOK_NIF`, `SKILLBOOK_SQL`, `SKILLBOOK_PG`, `SKILLBOOK_HTTP` - the path of a prebuilt
      library; it is copied. With all four, cargo is not needed. `0` builds none, for an
      application without it: `SKILLBOOK_PG=0` saves most of a minute.
    * `SKILLBOOK_EMBED`, `SKILLBOOK_CONNECT` - `1` to build the library for local embedders or for
      connections, or the path of a prebuilt one, with the program in the same folder.
    * `SKILLBOOK_PREBUILT` - the URL of a folder with prebuilt libraries, as `bin/prebuild` makes
      them; or `config :skillbook, prebuilt: url`. A library is downloaded if its digest is in
      `native/prebuilt.sha256`, for these sources and this system, and kept in the user's cache.
      cargo builds the others.
    * `SKILLBOOK_CARGO_PROFILE` - `quick` builds without optimisation, in a third of the time, as
      `bin/skillbook` does at first. Such libraries are slower, and need larger stacks of the
      virtual machine's schedulers: `+sss 1024 +sssdcpu 1024 +sssdio 1024`. `checks` optimises a
      little, as `bin/test` does. Without the variable both are built again.
    * `CARGO_TARGET_DIR` - where cargo keeps its build, as for any cargo project.

  ## Libraries of a project

  A project lists its libraries in `:native` of `project/0` in `mix.exs`:

    * `:crate` - the crate, in the folder `native` of the cargo workspace. The workspace is the
      folder of the project, one above it, or that of the dependency `skillbook`.
    * `:variable` - the variable of the environment, as above
    * `:setting` - the name and the value of the application's setting that asks for the library.
      Without it the library is always built.
    * `:alone` - whether cargo builds it without those beside it, as it does with a `:setting`
    * `:programs` - the crate's programs, which are put beside the library
    * `:first_build` - how many crates the first build compiles and about how many seconds it
      takes on two free cores; of libraries that are always built, besides those before it
  """

  alias Skillbook.Support.Prebuilt

  @impl true
  def run(_args) do
    folder = Path.join(File.cwd!(), "priv/native")
    wishes = for library <- libraries(), do: {library, wish(library, folder)}

    for {library, {:copy, path}} <- wishes, do: copy_all(library, path, folder)
    copied? = Enum.any?(wishes, &match?({_, {:copy, _}}, &1))
    built = for {library, :build} <- wishes, do: library

    # With others beside it, a crate may be compiled with other features. So those that everybody
    # needs are built together, also those of them that are up to date, and the others alone:
    # a library that is wanted later compiles nothing again.
    {together, alone} = Enum.split_with(built, &(&1.setting == nil and not &1.alone))
    built? = Enum.map([together | Enum.map(alone, &[&1])], &build(&1, folder))

    if copied? or Enum.any?(built?) do
      # Mix linked or copied `priv` into the build before this compiler ran, perhaps before `priv`
      # existed.
      Mix.Project.build_structure()
      {:ok, []}
    else
      {:noop, []}
    end
  end

  @impl true
  def clean do
    File.rm_rf!(Path.join(File.cwd!(), "priv/native"))
    :ok
  end

  # Mix runs a dependency's compilers inside that dependency's folder, as its project.
  defp libraries do
    defaults = %{setting: nil, alone: false, programs: []}
    for library <- Mix.Project.config()[:native], do: Map.merge(defaults, library)
  end

  defp wish(library, folder) do
    case System.get_env(library.variable) do
      unset when unset in [nil, ""] -> if wanted?(library, folder), do: :build, else: :none
      "0" -> if there?(library, folder), do: :build, else: :none
      "1" -> :build
      path -> {:copy, path}
    end
  end

  defp wanted?(%{setting: nil}, _folder), do: true

  defp wanted?(%{setting: {name, wanted}} = library, folder) do
    case Application.get_env(:skillbook, name) do
      ^wanted ->
        true

      nil ->
        there?(library, folder)

      other ->
        Mix.raise(
          "expected `config :skillbook, #{name}: #{inspect(wanted)}`, or no such setting, " <>
            "got: #{inspect(other)}"
        )
    end
  end

  defp there?(library, folder), do: File.exists?(Path.join(folder, file(library)))
  defp file(library), do: "lib#{library.crate}.so"

  defp build([], _folder), do: false

  defp build(libraries, folder) do
    root = workspace(File.cwd!()) || workspace(to_string(Mix.Project.deps_paths()[:skillbook]))
    root || Mix.raise("expected a Cargo.toml with a [workspace] in #{File.cwd!()} or above it")

    case Enum.filter(libraries, &stale?(root, &1, folder)) do
      [] ->
        false

      stale ->
        prebuilt = Enum.filter(stale, &prebuilt?(root, &1, folder))
        if stale != prebuilt, do: cargo(root, libraries -- prebuilt, stale -- prebuilt, folder)
        true
    end
  end

  defp prebuilt?(root, library, folder) do
    case Prebuilt.url() do
      nil -> false
      url -> prebuilt?(url, root, library, folder)
    end
  end

  defp prebuilt?(url, root, library, folder) do
    {files, names} = root |> names(library, Prebuilt.target()) |> Enum.unzip()

    case Prebuilt.fetch(url, root, names) do
      {:ok, paths} ->
        copy(Enum.zip(paths, files), folder, "SKILLBOOK_PREBUILT")
        Mix.shell().info("Took the prebuilt library #{library.crate} from #{url}.")
        true

      :unknown ->
        Mix.shell().info(
          "There is no prebuilt library #{library.crate} of these sources for " <>
            "#{Prebuilt.target()}, so cargo builds it."
        )

        false

      {:error, reason} ->
        Mix.shell().info("#{reason}, so cargo builds #{library.crate}.")
        false
    end
  end

  # The files of a library, with the names that they have where they are downloaded from.
  defp names(root, library, target) do
    sources = Prebuilt.sources(root, sources(root, library.crate))

    for file <- [file(library) | library.programs],
        do: {file, Prebuilt.name(file, sources, target)}
  end

  @doc false
  # For `bin/prebuild`: each library of the project, with its files.
  @spec prebuilt(String.t()) :: [{crate :: String.t(), [{file :: String.t(), String.t()}]}]
  def prebuilt(target) do
    root = workspace(File.cwd!())
    for library <- libraries(), do: {library.crate, names(root, library, target)}
  end

  defp workspace(folder) do
    manifest = Path.join(folder, "Cargo.toml")

    cond do
      File.exists?(manifest) and File.read!(manifest) =~ ~r/^\[workspace\]/m ->
        folder

      Path.dirname(folder) == folder ->
        nil

      true ->
        workspace(Path.dirname(folder))
    end
  end

  defp stale?(root, library, folder) do
    sources = sources(root, library.crate)
    built = with {:error, _} <- File.read(quick_mark(folder, file(library))), do: {:ok, "release"}

    (profile() != "quick" and built not in [{:ok, "release"}, {:ok, profile()}]) or
      Enum.any?([file(library) | library.programs], fn file ->
        case File.stat(Path.join(folder, file), time: :posix) do
          {:ok, %{mtime: built}} -> Enum.any?(sources, &newer?(&1, built))
          {:error, _} -> true
        end
      end)
  end

  defp sources(root, crate) do
    crates = Enum.join(crates(root, [crate], []), ",")

    # The core has the table of diagnostics in it.
    Enum.map(["Cargo.toml", "Cargo.lock", "docs/diagnostics.md"], &Path.join(root, &1)) ++
      Path.wildcard(Path.join(root, "native/{#{crates}}/{Cargo.toml,build.rs}")) ++
      Path.wildcard(Path.join(root, "native/{#{crates}}/src/**/*"))
  end

  # The crates of the workspace that these are made of, which their manifests name.
  defp crates(_root, [], found), do: found

  defp crates(root, [crate | rest], found) do
    if crate in found do
      crates(root, rest, found)
    else
      manifest = File.read!(Path.join(root, "native/#{crate}/Cargo.toml"))
      used = for [name] <- Regex.scan(~r/^skillbook_\w+/m, manifest), do: name
      crates(root, used ++ rest, [crate | found])
    end
  end

  defp newer?(path, built) do
    match?({:ok, %{mtime: changed}} when changed > built, File.stat(path, time: :posix))
  end

  defp cargo(root, libraries, stale, folder) do
    cargo =
      System.find_executable("cargo") ||
        Mix.raise("""
        Skillbook's native libraries must be built, and `cargo` is not on the PATH.
        Install Rust 1.91 or later (https://rustup.rs), or set the path of a prebuilt library in
        #{Enum.map_join(stale, ", ", & &1.variable)}, or the place of all of them in
        SKILLBOOK_PREBUILT.
        """)

    crates = stale |> Enum.map(&elem(&1.first_build, 0)) |> Enum.sum()
    seconds = stale |> Enum.map(&elem(&1.first_build, 1)) |> Enum.sum()

    Mix.shell().info(
      "Building Skillbook's native libraries: #{Enum.map_join(stale, ", ", & &1.crate)}. The " <>
        "first time it compiles about #{crates} Rust crates: about #{seconds} seconds on two " <>
        "free cores."
    )

    args =
      ~w(build --profile #{profile()} --locked --message-format json-render-diagnostics) ++
        Enum.flat_map(libraries, &["-p", &1.crate])

    # cargo's own messages go straight to standard error, as progress of the long build.
    case System.cmd(cargo, args, cd: root) do
      {messages, 0} -> for library <- libraries, do: copy_built(library, messages, folder)
      {_, status} -> Mix.raise("cargo build failed with status #{status}; see its messages above")
    end
  end

  defp profile do
    case System.get_env("SKILLBOOK_CARGO_PROFILE") do
      unset when unset in [nil, ""] ->
        "release"

      profile when profile in ["release", "checks", "quick"] ->
        profile

      other ->
        Mix.raise(
          "expected SKILLBOOK_CARGO_PROFILE to be release, checks or quick, got: #{other}"
        )
    end
  end

  defp copy_built(library, messages, folder) do
    programs = Enum.map(library.programs, &{built(messages, &1, ~r/"executable":"([^"]+)"/), &1})
    suffix = ~r/"filenames":\["([^"]+\.(?:so|dylib|dll))"/
    copy([{built(messages, library.crate, suffix), file(library)} | programs], folder, "cargo")
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
    for {from, name} <- files do
      copy_file(from, Path.join(folder, name), origin)
      mark = quick_mark(folder, name)

      if origin == "cargo" and profile() != "release",
        do: File.write!(mark, profile()),
        else: File.rm(mark)
    end
  end

  defp quick_mark(folder, file), do: Path.join(folder, file <> ".quick")

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
