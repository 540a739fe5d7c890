defmodule Skillbook.CLI.Shell.History do
  @moduledoc false
  # The lines typed before, in a file of the XDG state folder that only its owner may read.

  @limit 1000

  @doc "The history, newest first; what cannot be read is as good as empty."
  @spec load() :: [String.t()]
  def load do
    case File.read(path()) do
      {:ok, text} ->
        text
        |> String.split("\n", trim: true)
        |> Enum.filter(&String.valid?/1)
        |> Enum.reverse()
        |> Enum.take(@limit)

      {:error, _} ->
        []
    end
  end

  @doc "The history with the line added, on disk too; blank lines and repeats of the newest are left out."
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

  @doc "Shortens the file if it has grown to more than twice what is loaded."
  def trim do
    with {:ok, text} <- File.read(path()),
         lines = String.split(text, "\n", trim: true),
         true <- length(lines) > 2 * @limit do
      kept = lines |> Enum.take(-@limit) |> Enum.map(&[&1, "\n"])
      temporary = path() <> ".#{System.pid()}"

      with :ok <- File.write(temporary, kept),
           :ok <- File.chmod(temporary, 0o600),
           do: File.rename(temporary, path())
    end

    :ok
  end

  # A history that cannot be written is no reason to disturb the conversation.
  defp write(line) do
    with :ok <- File.mkdir_p(Path.dirname(path())),
         :ok <- File.write(path(), [line, "\n"], [:append]),
         do: File.chmod(path(), 0o600)
  end

  defp path do
    state =
      case System.get_env("XDG_STATE_HOME", "") do
        "/" <> _ = path -> path
        # The XDG specification: a relative path is to be ignored.
        _ -> Path.join([System.user_home() || System.tmp_dir!(), ".local", "state"])
      end

    Path.join([state, "skillbook", "history"])
  end
end
