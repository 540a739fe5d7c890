defmodule Skillbook.CLI.Help do
  @moduledoc false
  # The overview of all commands, and the global options, which end the help of every command.

  alias Skillbook.CLI.Arguments

  @global """
  Global options:
    --dir DIR         folder of skills; repeatable, later folders win
                      (default: ./skills, if it exists)
    --no-builtins     leave out the built-in commands
    --pack NAME       add the commands of email, calendar, drive or hubspot, or those of google,
                      or the skills of `assistant`, such as meeting-notes; repeatable. With
                      --no-builtins, no other built-in skills are there
    --mcp LABEL=URL   MCP server whose approved tools and skills are used; or LABEL=COMMAND;
                      repeatable
    --vault DIR       folder of notes for `search` and the `markdown` commands; repeatable
    --db DATABASE     database file, `:memory:` to store nothing, or
                      postgres://USER:PASSWORD@HOST/DATABASE (default: .skillbook/skillbook.db)
    --profile NAME    profile that reads and runs skills (default: default)
    --grant LABEL     visibility label that the profile holds; repeatable
    --color WHEN      auto, always or never; auto respects NO_COLOR (default: auto)
    -h, --help        show this help, or the help of a command
    --version         show the version
  """

  @doc "The help of a command's module; for `nil`, the overview."
  def text(nil) do
    commands =
      Enum.map_join(Arguments.commands(), "\n", fn {name, module} ->
        "  #{String.pad_trailing(name, 12)}#{module.summary()}"
      end)

    """
    Usage: skillbook [OPTIONS] COMMAND [ARGUMENTS]

    Gives an assistant its skills: Markdown documents that a language model reads, and commands
    that it writes.

    Commands:
    #{commands}
      help        show this help, or `help COMMAND`

    #{@global}
    Exit status: 0 success, 1 a command failed or was not found, 2 wrong usage, 3 cannot start.

    Examples:
      skillbook run examples/monday.md
      skillbook shell
      skillbook --dir ~/skills list\
    """
  end

  def text(module), do: module.help() <> "\n" <> String.trim_trailing(@global)
end
