defmodule Skillbook.CLI.LintFilesTest do
  # `lint` reads files as the loader does: it waits for no pipe, reads no device, follows no link
  # out of the folder, and reads no file above the limit.
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Skillbook.CLI

  @moduletag :tmp_dir
  # Each call ends at once; a pipe would never.
  @moduletag timeout: 20_000

  # The file, how it is made, and the code of its diagnostic.
  @files [
    {"pipe.md", {"mkfifo", []}, "[unreadable]"},
    {"zero.md", {"ln", ["-s", "/dev/zero"]}, "[escaping_link]"},
    {"out.md", {"ln", ["-s", "/etc/passwd"]}, "[escaping_link]"},
    {"loop.md", {"ln", ["-s", "loop.md"]}, "[broken_link]"},
    {"big.md", {"truncate", ["-s", "1G"]}, "[file_too_large]"}
  ]

  defp make(folder, {name, {program, arguments}, _code}) do
    {_, 0} = System.cmd(program, arguments ++ [Path.join(folder, name)])
  end

  defp lint(arguments) do
    {{status, errors}, text} =
      with_io(fn -> with_io(:stderr, fn -> CLI.run(["lint" | arguments]) end) end)

    {status, text <> errors}
  end

  for {name, _make, code} = row <- @files do
    test "#{name}, in its folder, alone and with --fix", %{tmp_dir: folder} do
      make(folder, unquote(Macro.escape(row)))
      path = Path.join(folder, unquote(name))

      # A link to nothing is no argument.
      alone = if File.exists?(path), do: [[path]], else: []

      for arguments <- [[folder], ["--fix", folder], ["--format", "sarif", folder]] ++ alone do
        {_status, text} = lint(arguments)
        assert text =~ unquote(String.trim(code, "[") |> String.trim("]")), text
      end
    end
  end

  test "a folder whose SKILL.md is a pipe", %{tmp_dir: folder} do
    make(folder, {"SKILL.md", {"mkfifo", []}, nil})
    for arguments <- [[folder], ["--strict", folder]], do: assert({_, _} = lint(arguments))
  end
end
