defmodule Skillbook.CLI.Targets do
  @moduledoc false
  # The folders and files that `lint` and `test` are about, and the sources that they belong to.

  alias Skillbook.Source

  @doc "Checks the paths of a command line."
  @spec check(String.t(), [Path.t()]) :: {:ok, [Path.t()]} | {:error, String.t()}
  def check(command, paths) do
    case Enum.reject(paths, &File.exists?/1) do
      [] ->
        {:ok, paths}

      [path | _] ->
        {:error, "`#{command}` expects folders or files, got: #{path}, which does not exist"}
    end
  end

  @doc """
  The targets and their sources, as full paths. Without paths the targets are the folders of
  `--dir`; without these also those that a command line reads, except for installed skills, whose
  authors are others.

  A page's meaning depends on the folders above it, so it is read as part of its --dir, if any.
  """
  @spec of(Skillbook.CLI.Arguments.t()) :: {[Path.t()], [Path.t()]}
  def of(options) do
    dirs = Enum.map(options.dirs, &Path.expand/1)

    targets =
      cond do
        options.args != [] -> options.args |> Enum.map(&Path.expand/1) |> Enum.uniq()
        options.named -> dirs
        true -> Enum.reject(dirs, &installed?/1)
      end

    {targets, targets |> Enum.map(&root(&1, dirs)) |> Enum.uniq()}
  end

  defp root(path, dirs) do
    Enum.find(dirs, &below?(path, [&1])) ||
      if File.dir?(path), do: path, else: Path.dirname(path)
  end

  @doc "Whether a path is one of these or below one."
  @spec below?(Path.t() | nil, [Path.t()]) :: boolean()
  def below?(path, targets) do
    Enum.any?(targets, &(path == &1 or String.starts_with?(path || "", &1 <> "/")))
  end

  @doc "The built-in sources of which none of these folders is a part."
  @spec others([Source.t()], [Path.t()]) :: [Source.t()]
  def others(builtins, targets) do
    # Compares inodes, because the build links to them.
    folders = for target <- targets, folder <- upwards(target), id = identity(folder), do: id
    Enum.reject(builtins, &(identity(&1.path) in folders))
  end

  defp upwards(folder) do
    case Path.dirname(folder) do
      ^folder -> [folder]
      parent -> [folder | upwards(parent)]
    end
  end

  @doc "Whether `install` wrote a folder."
  @spec installed?(Path.t()) :: boolean()
  def installed?(folder), do: File.exists?(Path.join(folder, "skills.lock.json"))

  @doc "A value that is the same for two paths to one folder; `nil` without a folder."
  @spec identity(Path.t()) :: {integer(), integer()} | nil
  def identity(folder) do
    with {:ok, stat} <- File.stat(folder),
         do: {stat.major_device, stat.inode},
         else: (_ -> nil)
  end
end
