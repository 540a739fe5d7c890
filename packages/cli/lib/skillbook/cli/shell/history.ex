defmodule Skillbook.CLI.Shell.History do
  @moduledoc false
  # The history of typed lines, in a file in the XDG state folder that only its owner can read.

  alias Skillbook.Support.{PrivateFile, ReadFile}

  @max_lines 1000
  @max_size 16 * 1024 * 1024

  @doc "The history, newest first; empty if the file cannot be read."
  @spec load() :: [String.t()]
  def load do
    case ReadFile.read(path(), @max_size) do
      {:ok, text} ->
        text
        |> String.split("\n", trim: true)
        |> Enum.filter(&String.valid?/1)
        |> Enum.reverse()
        |> Enum.take(@max_lines)

      {:error, _} ->
        []
    end
  end

  @doc "Adds a line to the history and the file, unless it is blank or repeats the newest line."
  @spec add([String.t()], String.t()) :: [String.t()]
  def add([line | _] = history, line), do: history

  def add(history, line) do
    if String.trim(line) == "" do
      history
    else
      write(line)
      [line | history]
    end
  end

  @doc "Shortens the file if it has more than twice the lines that are loaded."
  def trim do
    with {:ok, text} <- ReadFile.read(path(), @max_size),
         lines = String.split(text, "\n", trim: true),
         true <- length(lines) > 2 * @max_lines do
      newest = lines |> Enum.take(-@max_lines) |> Enum.map(&[&1, "\n"])
      PrivateFile.replace(path(), newest)
    end

    :ok
  end

  # Errors are ignored: the shell works without a history.
  defp write(line) do
    with :ok <- PrivateFile.mkdir_p(Path.dirname(path())),
         :ok <- PrivateFile.touch(path()),
         do: File.write(path(), [line, "\n"], [:append])
  end

  defp path do
    state =
      case System.get_env("XDG_STATE_HOME", "") do
        "/" <> _ = path -> path
        # The XDG specification ignores relative paths.
        _ -> Path.join([System.user_home() || System.tmp_dir!(), ".local", "state"])
      end

    Path.join([state, "skillbook", "history"])
  end
end
