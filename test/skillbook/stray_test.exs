defmodule Skillbook.StrayTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Stray, View}

  @moduletag :tmp_dir

  test "finds commands that the view shows, and nothing else", %{tmp_dir: folder} do
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
          {"```json\n[{\"name\": \"mail__send\", \"input\": {\"to\": 1}}, {\"name\": \"mail.gone\"}]\n```",
           ~s(mail.send {"to":1})},
          {"<tool_call>{\"function\": {\"name\": \"mail.send\", \"arguments\": \"{}\"}}</tool_call>",
           "mail.send --FLAG VALUE"},
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
      notes = Stray.notes(view, text)

      if commands,
        do: assert([note] = notes) && assert(note =~ "```cmd\n#{commands}\n```\n"),
        else: assert(notes == [])
    end

    [note] = Stray.notes(View.all(catalog), "```bash\nmail.secret\n```")
    assert note =~ "mail.secret"
  end
end
