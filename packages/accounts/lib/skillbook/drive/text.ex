defmodule Skillbook.Drive.Text do
  @moduledoc false
  # Takes the text out of a file.
  #
  # PDF and office files are read by a program of its own, `native/skillbook_connect/src/bin`:
  # parsers of such files are large, and a hostile file can make one use all memory or never end.
  # The program limits its memory and CPU time, and is killed at the time limit here.

  alias Skillbook.DriveError
  alias Skillbook.Support.Hidden

  # Bytes of text that a file may have.
  @max_text 4 * 1024 * 1024
  # Milliseconds for a document, if the account's deadline leaves as much.
  @timeout 30_000

  @office "application/vnd.openxmlformats-officedocument."
  @open "application/vnd.oasis.opendocument."

  # The program's word for a media type, and the extension of names with a type that says nothing.
  @kinds %{
    "application/pdf" => "pdf",
    (@office <> "wordprocessingml.document") => "docx",
    (@office <> "spreadsheetml.sheet") => "xlsx",
    (@office <> "presentationml.presentation") => "pptx",
    (@open <> "text") => "odt",
    (@open <> "spreadsheet") => "ods",
    (@open <> "presentation") => "odp"
  }
  @extensions Map.values(@kinds)

  # Types that are text, besides text/….
  @texts ~w(application/json application/xml application/yaml application/x-yaml
    application/javascript application/x-javascript application/x-sh application/toml
    application/sql application/x-ndjson application/rtf)
  @unknown ~w(application/octet-stream binary/octet-stream application/x-unknown)

  @doc "The largest file that is read, in bytes."
  @spec max_bytes() :: pos_integer()
  def max_bytes, do: 25 * 1024 * 1024

  @doc """
  Returns the text of a file before a deadline, in milliseconds of monotonic time.
  """
  @spec read(Skillbook.Drive.content(), integer()) ::
          {:ok, String.t()} | {:error, Exception.t()}
  def read(%{name: name, type: type, data: data}, deadline) do
    with {:ok, text} <- text(name, base(type), data, deadline) do
      if byte_size(text) <= @max_text,
        do: {:ok, text},
        else: {:error, unreadable(name, "it has more than #{@max_text} bytes")}
    end
  end

  defp text(name, type, data, deadline) do
    extension = name |> Path.extname() |> String.downcase() |> String.trim_leading(".")

    cond do
      kind = @kinds[type] -> convert(name, kind, data, deadline)
      text?(type) -> plain(name, type, data)
      type not in @unknown -> {:error, %DriveError{kind: :no_text, name: name, reason: type}}
      extension in @extensions -> convert(name, extension, data, deadline)
      true -> plain(name, type, data)
    end
  end

  @doc "Whether files of a media type are text, without a program that reads them."
  @spec text?(String.t()) :: boolean()
  def text?(type) do
    type = base(type)

    String.starts_with?(type, "text/") or type in @texts or
      String.ends_with?(type, ["+json", "+xml", "+yaml"])
  end

  # Without its parameters.
  defp base(type), do: type |> String.split(";") |> hd() |> String.trim() |> String.downcase()

  # UTF-8, or UTF-16 and UTF-32 that begin with their mark.
  defp plain(name, type, data) do
    {encoding, mark} = :unicode.bom_to_encoding(data)
    encoding = if encoding == :latin1, do: :utf8, else: encoding
    rest = binary_part(data, mark, byte_size(data) - mark)

    case :unicode.characters_to_binary(rest, encoding) do
      text when is_binary(text) ->
        if String.contains?(text, <<0>>), do: not_text(name, type), else: {:ok, text}

      _invalid ->
        not_text(name, type)
    end
  end

  defp not_text(name, type) do
    if type in @unknown,
      do: {:error, %DriveError{kind: :no_text, name: name, reason: type}},
      else: {:error, unreadable(name, "it is not text in UTF-8 or UTF-16")}
  end

  # The program

  defp convert(name, kind, data, deadline) do
    time = min(deadline - System.monotonic_time(:millisecond), @timeout)
    program = program()

    cond do
      not File.regular?(program) -> {:error, %DriveError{kind: :not_built, name: name}}
      time <= 0 -> {:error, unreadable(name, "the time limit has passed")}
      true -> named(run(program, kind, data, time), name)
    end
  end

  defp named({:ok, text}, _name), do: {:ok, text}
  defp named({:error, reason}, name), do: {:error, unreadable(name, reason)}

  defp unreadable(name, reason), do: %DriveError{kind: :unreadable, name: name, reason: reason}

  defp program, do: Application.app_dir(:skillbook_accounts, "priv/native/skillbook_text")

  @doc false
  # Runs the program with the file's bytes. A process of its own holds the port, so the caller
  # gets no messages of it, and can end it while it still writes into the program.
  @spec run(Path.t(), String.t(), binary(), pos_integer()) ::
          {:ok, String.t()} | {:error, String.t()}
  def run(program, kind, data, time) do
    caller = self()
    answer = make_ref()

    {owner, monitor} =
      spawn_monitor(fn -> send(caller, {answer, own(caller, program, kind, data, time)}) end)

    receive do
      {^answer, result} ->
        Process.demonitor(monitor, [:flush])
        result

      {:DOWN, ^monitor, :process, ^owner, _reason} ->
        {:error, "the program that reads documents could not be started"}
    end
  end

  defp own(caller, program, kind, data, time) do
    watched = Process.monitor(caller)
    Process.flag(:trap_exit, true)
    options = [:binary, :exit_status, :stderr_to_stdout, :hide, args: [kind], env: no_env()]
    port = Port.open({:spawn_executable, program}, options)
    pid = with {:os_pid, pid} <- Port.info(port, :os_pid), do: pid
    # Writing waits for the program, and must not keep the time limit from being seen.
    writer = spawn_link(fn -> feed(port, data) end)
    timer = Process.send_after(self(), :time_over, time)
    result = collect(port, watched, [], 0)
    Process.cancel_timer(timer)
    Process.exit(writer, :kill)
    stop(port, pid, result)
    result
  end

  # The environment may hold secrets, which are no business of a parser of strangers' files.
  defp no_env, do: for({name, _value} <- System.get_env(), do: {String.to_charlist(name), false})

  defp feed(port, data) do
    Port.command(port, [<<byte_size(data)::32>>, data])
  rescue
    # The program ended before it had read everything.
    ArgumentError -> :ok
  end

  defp collect(port, watched, parts, size) do
    receive do
      {^port, {:data, part}} when size + byte_size(part) <= @max_text + 1024 ->
        collect(port, watched, [parts, part], size + byte_size(part))

      {^port, {:data, _part}} ->
        {:error, "it has more than #{@max_text} bytes of text"}

      {^port, {:exit_status, status}} ->
        ended(status, IO.iodata_to_binary(parts))

      :time_over ->
        {:error, "it takes too long"}

      {:DOWN, ^watched, :process, _pid, _reason} ->
        {:error, "its reader has ended"}

      # The program closed its input. The status of one that ended comes before this message.
      {:EXIT, ^port, _reason} ->
        ended(:closed, "")

      {:EXIT, _writer, _reason} ->
        collect(port, watched, parts, size)
    end
  end

  defp ended(0, output) do
    if String.valid?(output), do: {:ok, output}, else: {:error, "its text is not UTF-8"}
  end

  defp ended(1, output) do
    reason = output |> String.split("\n", trim: true) |> List.last("") |> String.slice(0, 300)

    # A parser may repeat something of the file.
    if reason != "" and String.valid?(reason),
      do: {:error, Hidden.line(reason)},
      else: {:error, "the program that reads documents failed"}
  end

  defp ended(_status, _output),
    do: {:error, "the program that reads documents ended; the file may be damaged or too large"}

  # A program that loops does not see that its input was closed.
  defp stop(_port, _pid, {:ok, _text}), do: :ok

  defp stop(port, pid, _error) do
    if is_integer(pid) and Port.info(port) != nil,
      do: System.cmd("kill", ["-KILL", "#{pid}"], stderr_to_stdout: true)

    :ok
  end
end
