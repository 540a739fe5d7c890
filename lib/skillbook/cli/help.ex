defmodule Skillbook.CLI.Help do
  @moduledoc false

  alias Skillbook.CLI.Arguments

  @global """
  Options:
    --dir DIR         a folder of skills, repeatable; later ones win (default: ./skills if there is one)
    --no-builtins     without the built-in commands
    --vault DIR       a folder of notes for `search` and the commands of `markdown`, repeatable; the database keeps its index
    --db FILE         the database (default: .skillbook/skillbook.db; :memory: keeps nothing), or the URL of one on a
                      PostgreSQL server: postgres://USER:PASSWORD@HOST/DATABASE
    --profile NAME    on whose behalf things are read and run (default: default)
    --grant LABEL     a visibility label that the profile holds, repeatable
    --color WHEN      auto, always or never; NO_COLOR is respected (default: auto)
    -h, --help        this help, or that of a command
    --version         the version
  """

  @doc "The help of a command's module, or the overview for `nil`."
  def text(nil) do
    commands =
      Enum.map_join(Arguments.commands(), "\n", fn {name, module} ->
        "  #{String.pad_trailing(name, 9)}#{module.summary()}"
      end)

    """
    Usage: skillbook [OPTIONS] COMMAND [ARGUMENTS]

    Gives an assistant its skills: Markdown documents that a language model reads, and commands that it writes.

    Commands:
    #{commands}
      help     this help, or `help COMMAND`

    #{@global}
    Exit status: 0 all good, 1 a command failed or was not found, 2 wrong usage, 3 cannot start.

    Examples:
      skillbook run examples/monday.md
      skillbook shell
      skillbook --dir ~/skills list\
    """
  end

  def text(module), do: module.help() <> "\n" <> String.trim_trailing(@global)
end
