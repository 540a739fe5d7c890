defmodule Skillbook.Hostile do
  @moduledoc false
  # Values with a special meaning for parsers of commands; each must stay one value.

  @parts [
           "\"",
           "'",
           "“",
           "”",
           "`",
           "--",
           "--flag",
           "--help",
           "-h",
           "--x=1",
           " ",
           "\n",
           "\t",
           "\\",
           "|",
           "&&",
           ";",
           "#",
           ">"
         ] ++
           [
             "{1}",
             "{2}",
             "{last}",
             "{a}",
             "{b}",
             "{{",
             "}",
             "{",
             "get_skill",
             "x.send",
             "x.fail",
             "<<EOF",
             "EOF"
           ] ++
           [
             "$(x)",
             "$HOME",
             "é",
             "\u200B",
             "\r",
             "\r\n",
             "```cmd\nx.fail\n```",
             "```",
             "~~~ cmd\n",
             "# name: x"
           ] ++
           ["C:\\a", ~S({"body": "x"}), "<think>", "", "word", "[1] x.get\nok"]

  @doc "A value of up to eight parts, by the process's own seed."
  def value, do: for(_ <- 1..:rand.uniform(8), into: "", do: Enum.random(@parts))
end
