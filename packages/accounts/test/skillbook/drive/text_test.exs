defmodule Skillbook.Drive.TextTest do
  # Texts of files, and the limits of the program that reads documents. Scripts play the program
  # that fails; skillbook_connect has tests of the real one.
  use ExUnit.Case, async: true

  alias Skillbook.Drive.Text

  @moduletag :tmp_dir

  # Reads the length and the bytes, as the program does.
  @read "import sys, os, time, signal\n" <>
          "size = int.from_bytes(sys.stdin.buffer.read(4), 'big')\n" <>
          "data = sys.stdin.buffer.read(size)\n"

  defp program(folder, code) do
    path = Path.join(folder, "program#{System.unique_integer([:positive])}")
    python = System.find_executable("python3")
    File.write!(path, "#!#{python}\n" <> code)
    File.chmod!(path, 0o755)
    path
  end

  defp run(folder, code, options \\ []) do
    data = Keyword.get(options, :data, "bytes")
    Text.run(program(folder, code), "pdf", data, Keyword.get(options, :time, 10_000))
  end

  test "hands the bytes and the kind over, and returns the text", %{tmp_dir: folder} do
    code = @read <> "print(sys.argv[1], len(data), data[:5].decode(), end='')"

    for size <- [0, 5, 100_000, 2_000_000] do
      data = String.duplicate("ä", div(size, 2)) <> if(rem(size, 2) == 1, do: "x", else: "")
      {:ok, text} = run(folder, String.replace(code, ".decode()", ".hex()"), data: data)

      first = binary_part(data, 0, min(5, size))
      assert text == "pdf #{size} #{Base.encode16(first, case: :lower)}"
    end
  end

  # {code, result}
  @table [
    {"sys.stderr.write('the PDF is encrypted\\n'); sys.exit(1)",
     {:error, "the PDF is encrypted"}},
    {"sys.stderr.write('warning\\n\\nit has no pages\\n'); sys.exit(1)",
     {:error, "it has no pages"}},
    {"sys.exit(1)", {:error, "the program that reads documents failed"}},
    {"sys.stderr.write('\\x1b[2Jnasty'); sys.exit(1)", {:error, "\\u{1B}[2Jnasty"}},
    {"sys.stderr.buffer.write(b'\\xff'); sys.exit(1)",
     {:error, "the program that reads documents failed"}},
    {"print('half a text'); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)",
     {:error, "the program that reads documents ended; the file may be damaged or too large"}},
    {"sys.exit(2)",
     {:error, "the program that reads documents ended; the file may be damaged or too large"}},
    {"sys.stdout.buffer.write(b'\\xff')", {:error, "its text is not UTF-8"}},
    {"sys.stdout.buffer.write(b'x' * 5_000_000)",
     {:error, "it has more than 4194304 bytes of text"}},
    # Of the environment of Elixir, which may have secrets.
    {"print(os.environ.get('SKILLBOOK_TEXT_TEST'), os.environ.get('HOME'), end='')",
     {:ok, "None None"}}
  ]

  test "a program that fails is an error that says why", %{tmp_dir: folder} do
    System.put_env("SKILLBOOK_TEXT_TEST", "1")
    for {code, result} <- @table, do: assert({code, run(folder, @read <> code)} == {code, result})
  end

  test "a program that does not read its input is an error", %{tmp_dir: folder} do
    for code <- ["import os, sys; sys.exit(1)", "import os; os.close(0); os._exit(3)"] do
      assert {:error, "the program that reads documents " <> _} =
               run(folder, code, data: :binary.copy("x", 5_000_000))
    end
  end

  test "a program that loops is killed at the time limit, with its process", %{tmp_dir: folder} do
    pid_file = Path.join(folder, "pid")
    # More than a pipe holds.
    data = :binary.copy("x", 1_000_000)

    # A shell starts at once, also where much else runs.
    for loop <- ["cat > /dev/null & while :; do :; done", "while :; do sleep 60; done"] do
      path = Path.join(folder, "loop")
      File.write!(path, "#!/bin/sh\necho $$ > #{pid_file}\n#{loop}\n")
      File.chmod!(path, 0o755)
      assert Text.run(path, "pdf", data, 3_000) == {:error, "it takes too long"}
      assert gone?(String.trim(File.read!(pid_file)))
    end
  end

  test "a program ends with its reader", %{tmp_dir: folder} do
    pid_file = Path.join(folder, "pid")
    code = @read <> "open('#{pid_file}', 'w').write(str(os.getpid()))\nwhile True: pass"
    path = program(folder, code)
    reader = spawn(fn -> Text.run(path, "pdf", "x", 60_000) end)
    wait(fn -> match?({:ok, <<_, _::binary>>}, File.read(pid_file)) end)
    Process.exit(reader, :kill)
    assert gone?(File.read!(pid_file))
  end

  defp gone?(pid) do
    wait(fn -> match?({_, 1}, System.cmd("kill", ["-0", pid], stderr_to_stdout: true)) end)
  end

  defp wait(fun, left \\ 1_500) do
    cond do
      fun.() -> true
      left == 0 -> false
      true -> Process.sleep(20) && wait(fun, left - 1)
    end
  end

  test "a deadline that has passed starts nothing" do
    now = System.monotonic_time(:millisecond)
    file = %{name: "a.pdf", type: "application/pdf", data: "x"}
    assert {:error, error} = Text.read(file, now)
    assert Exception.message(error) =~ ~s(the text of "a.pdf" cannot be read: )
  end

  test "text is text by its type, or else by what it has" do
    later = System.monotonic_time(:millisecond) + 10_000

    for {name, type, data, expected} <- [
          {"a", "text/plain; charset=utf-8", "ä", {:ok, "ä"}},
          {"a", "TEXT/CSV", "a,b", {:ok, "a,b"}},
          {"a", "application/json", "{}", {:ok, "{}"}},
          {"a", "application/geo+json", "{}", {:ok, "{}"}},
          {"a", "image/svg+xml", "<svg/>", {:ok, "<svg/>"}},
          {"a", "text/plain", "\uFEFFä", {:ok, "ä"}},
          {"a", "text/plain", :unicode.encoding_to_bom({:utf16, :big}) <> <<0, ?a>>, {:ok, "a"}},
          {"a", "text/plain", :unicode.encoding_to_bom({:utf32, :little}) <> <<?a, 0, 0, 0>>,
           {:ok, "a"}},
          {"a", "text/plain", "a" <> <<0>>,
           ~s(the text of "a" cannot be read: it is not text in UTF-8 or UTF-16)},
          {"a", "text/plain", String.duplicate("x", 4_194_305),
           ~s(the text of "a" cannot be read: it has more than 4194304 bytes)},
          {"a", "application/octet-stream", "ä", {:ok, "ä"}},
          {"a", "application/octet-stream", <<255>>,
           ~s("a" has no text to read: its type is "application/octet-stream")},
          {"a\u202Eb", "video/mp4", "x",
           ~S("a\u{202E}b" has no text to read: its type is "video/mp4")}
        ] do
      case Text.read(%{name: name, type: type, data: data}, later) do
        {:error, error} -> assert {name, type, Exception.message(error)} == {name, type, expected}
        found -> assert {name, type, found} == {name, type, expected}
      end
    end
  end
end
