defmodule Skillbook.Reply.StrayCommandsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.StrayCommands
  alias Skillbook.{Catalog, Extractor, View}

  @moduletag :tmp_dir

  defp notes(view, reply) do
    {:ok, found} = Extractor.extract(reply)
    StrayCommands.notes(view, reply, found)
  end

  test "finds only commands that the view shows", %{tmp_dir: folder} do
    write(folder, %{
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\n# Mail\n",
      "mail/send.md" => page("mail.send"),
      "mail/secret.md" => page("mail.secret", visibility_labels: "[inner]"),
      "git.md" => "---\nname: git\ndescription: Git\n---\nUse it."
    })

    {:ok, catalog} = Catalog.load([folder])
    {:ok, view} = View.new(catalog, id: "a")

    for {text, commands} <- [
          {"```bash\nmail.send --to a\n```", "mail.send --to a"},
          {"~~~\n> mail.send\n~~~", "mail.send"},
          {"```sh\n$ get_skill mail\n", "get_skill mail"},
          {"```\nmail.send --to \"a\nb\"\n```", "mail.send --FLAG VALUE"},
          {"```\nmail.send(to=1)\n```", "mail.send --FLAG VALUE"},
          {"```json\n[{\"name\": \"mail__send\", \"input\": {\"to\": 1}}, {\"name\": " <>
             "\"mail.gone\"}]\n```", ~s(mail.send {"to":1})},
          {"<tool_call>{\"function\": {\"name\": \"mail.send\", \"arguments\": " <>
             "\"{}\"}}</tool_call>", "mail.send --FLAG VALUE"},
          {"<cmd>\nmail.send\n</cmd>", "mail.send"},
          {"<|python_tag|>mail.send", "mail.send"},
          {"```text\n\n```cmd\nmail.send\n```", "mail.send"},
          {String.duplicate("```\nmail.send\n```\n", 9), "mail.send\nmail.send\nmail.send"},
          # Others
          {"mail.send --to a", nil},
          {"`mail.send --to a`", nil},
          {"```python\nmail.send --to a\n```", nil},
          {"````markdown\n```bash\nmail.send --to a\n```\n````", nil},
          {"```bash\ncd x\nmail.send\n```", nil},
          {"```bash\nmail.sender\n```", nil},
          {"```bash\ngit status\n```", nil},
          {"```bash\nmail.secret\n```", nil},
          {"> ```cmd\n> mail.send\n> ```", nil},
          {"<think>\n```bash\nmail.send\n```\n</think>\nHi.", nil},
          {"```json\n{\"name\": 1}\n```", nil},
          {"```json\n{\"name\": \n```", nil},
          {"<cmd></cmd>", nil}
        ] do
      notes = notes(view, text)

      if commands do
        assert [note] = notes
        assert note =~ "```cmd:\n\n  #{String.replace(commands, "\n", "\n  ")}\n\n"
      else
        assert notes == []
      end
    end

    [note] = notes(View.all(catalog), "```bash\nmail.secret\n```")
    assert note =~ "mail.secret"
  end

  test "finds commands inside a code block that was not closed", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => page("mail.send"),
      "mail/secret.md" => page("mail.secret", visibility_labels: "[inner]")
    })

    {:ok, catalog} = Catalog.load([folder])
    {:ok, view} = View.new(catalog, id: "a")

    assert notes(
             view,
             "Look.\n```elixir\nx\n\n```cmd\nmail.send --to a\nget_skill\n```\n" <>
               "Done."
           ) ==
             [
               "The code block that opens at line 2 of your reply was not closed before the " <>
                 "next " <>
                 "cmd block, so that one is part of it, and 2 of its lines that look like " <>
                 "commands did not run. If you meant to run this, close the code block first, " <>
                 "and write it again in a block that opens with ```cmd:\n\n" <>
                 "  mail.send --to a\n  get_skill\n\n" <>
                 "If it was only meant to be read, go on."
             ]

    many = String.duplicate("mail.send\n", 5)

    for {reply, count, commands} <- [
          {"~~~sh\n```cmd\nmail.send\n```", 1, "mail.send"},
          {"```cmd\nmail.send\n```\n~~~\n```cmd\nmail.send --to b\n```", 1, "mail.send --to b"},
          {"~~~\n```cmd\n#{many}```", 5, "mail.send\nmail.send\nmail.send"},
          {"~~~\n```cmd\nmail.send\n```\n\n```cmd\nmail.secret\nls\nmail.send -x", 2,
           "mail.send\nmail.send -x"},
          {"~~~text\n```cmd\nmail.send\n```", 1, "mail.send"},
          # Others
          {"~~~\n```cmd\nmail.secret\n```", 0, nil},
          {"~~~\n```cmd\nmail.send\n```\n~~~", 0, nil},
          {"````md\n```cmd\nmail.send\n```\n````", 0, nil}
        ] do
      with [note] <- notes(view, reply) do
        assert note =~ "and #{count} of its lines"
        assert note =~ "```cmd:\n\n  #{String.replace(commands, "\n", "\n  ")}\n\n"
      else
        [] -> assert {reply, count} == {reply, 0}
      end
    end

    report = Skillbook.run(view, "```cmd\nget_skill\n```\n~~~\n```cmd\nmail.send\n```")
    assert [%{status: :help}] = report.results

    assert to_string(report) =~
             ~r/\A\[1\] get_skill\n.*\n\nThe code block that opens at line 4 of your reply was/s
  end
end
