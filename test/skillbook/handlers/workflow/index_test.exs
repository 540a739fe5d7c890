defmodule Skillbook.Handlers.Workflow.IndexTest do
  use ExUnit.Case, async: true

  alias Skillbook.Handlers.Workflow.Index

  @rows [{"w.b", "Bee"}, {"w.a", "Ay"}]
  @table "| Skill | Description |\n|-------|-------------|\n| w.a | Ay |\n| w.b | Bee |\n"

  test "only the table changes" do
    rows = [
      {"a table",
       "# W\n\nIntro.\n\n## Available Skills\n\n| Skill | Description |\n|---|---|\n| w.old | Old |\n\n## Notes\n\n- mine\n",
       "# W\n\nIntro.\n\n## Available Skills\n\n#{@table}\n## Notes\n\n- mine\n"},
      {"text around it", "## Available Skills\n\nThese:\n\n| a | b | c |\n|---|---|---|\nAnd more.\n",
       "## Available Skills\n\nThese:\n\n#{@table}And more.\n"},
      {"only the first table of the section", "## Available Skills\n| x |\n\n| y |\n| z |\n",
       "## Available Skills\n#{@table}\n| y |\n| z |\n"},
      {"a table at the end without a line end", "## Available Skills\n\n| x |",
       "## Available Skills\n\n#{@table}"},
      {"tables elsewhere", "| x |\n\n## Available Skills\n\n| y |\n\n## More\n\n| z |\n",
       "| x |\n\n## Available Skills\n\n#{@table}\n## More\n\n| z |\n"},
      {"an indented table", "## Available Skills\n\n  | x |\n  | y |\n", "## Available Skills\n\n#{@table}"},
      {"a heading in other writing", "##  available skills ##\n| x |\n",
       "##  available skills ##\n#{@table}"},
      {"a subsection belongs to the section", "## Available Skills\n\n### Mine\n\n| x |\n",
       "## Available Skills\n\n### Mine\n\n#{@table}"},
      {"frontmatter", "---\ndomain: w\n# mine\n---\n## Available Skills\n| x |\n",
       "---\ndomain: w\n# mine\n---\n## Available Skills\n#{@table}"},
      {"a heading without a table", "## Available Skills\n\nNone yet.\n\n## Notes\n",
       "## Available Skills\n\n#{@table}\nNone yet.\n\n## Notes\n"},
      {"a heading right above text", "## Available Skills\nNone yet.\n",
       "## Available Skills\n\n#{@table}\nNone yet.\n"},
      {"a heading that ends the file", "# W\n\n## Available Skills",
       "# W\n\n## Available Skills\n\n#{@table}"},
      {"no heading", "# W\n\nIntro.\n\n\n", "# W\n\nIntro.\n\n## Available Skills\n\n#{@table}"},
      {"nothing", "", "## Available Skills\n\n#{@table}"},
      {"a heading of another depth", "### Available Skills\n| x |\n",
       "### Available Skills\n| x |\n\n## Available Skills\n\n#{@table}"},
      {"code", "```markdown\n## Available Skills\n| x |\n```\n",
       "```markdown\n## Available Skills\n| x |\n```\n\n## Available Skills\n\n#{@table}"},
      {"code in the section", "## Available Skills\n\n~~~~\n| x |\n~~~\n## No\n~~~~\n\n| y |\n",
       "## Available Skills\n\n~~~~\n| x |\n~~~\n## No\n~~~~\n\n#{@table}"},
      {"CRLF", "# W\r\n\r\n## Available Skills\r\n\r\n| x |\r\n\r\nEnd\r\n",
       "# W\r\n\r\n## Available Skills\r\n\r\n#{String.replace(@table, "\n", "\r\n")}\r\nEnd\r\n"}
    ]

    for {name, text, expected} <- rows do
      assert {name, Index.refresh(text, @rows)} == {name, expected}

      assert {name, Index.refresh(expected, @rows)} == {name, expected},
             "#{name}: a second time changes it again"
    end
  end

  test "cells cannot break out of the table" do
    rows = [
      {"a|b", "a\\|b"},
      {"a\\|b", "a\\\\\\|b"},
      {"C:\\x", "C:\\\\x"},
      {"two\nlines\r\n  more", "two lines more"},
      {" x ", "x"},
      {"line\u2028separator", "line separator"}
    ]

    for {description, cell} <- rows do
      assert Index.refresh("", [{"w.a", description}]) ==
               "## Available Skills\n\n| Skill | Description |\n|-------|-------------|\n| w.a | #{cell} |\n"
    end
  end
end
