defmodule Skillbook.Handlers.Skills.SearchTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Source, View}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "skills/harpsong/SKILL.md" =>
        "---\nname: harpsong\ndescription: |-\n  Write an\n  harpsong\n---\nWrite it.\n",
      "skills/mail/send.md" => page("mail.send", description: "Send an harpsong by mail"),
      "skills/secret.md" =>
        "---\nname: secret\ndescription: Hidden harpsongs\nvisibility_labels: [red]\n---\n",
      "skills/quiet.md" =>
        "---\nname: quiet\ndescription: Harpsongs\ndisable-model-invocation: true\n---\n",
      "notes/paid.md" => "# Paid harpsongs\n\nNone.\n",
      "notes/plain.md" => "Reminders"
    })

    notes = Path.join(folder, "notes")
    sources = [Source.builtin(), Path.join(folder, "skills"), [path: notes, kind: :notes]]
    {:ok, catalog} = Catalog.load(sources)
    {:ok, view} = View.new(catalog, id: "guest")
    {:ok, view: view}
  end

  defp result(view, line), do: hd(Skillbook.run(view, "```cmd\n#{line}\n```").results)

  @more "`get_skill: NAME` shows one in full."

  test "lists the entries that the model may use, best first", %{view: view} do
    harpsong = "- harpsong (skill): Write an harpsong"
    paid = "- paid (note): Paid harpsongs"
    send = "- mail.send (command): Send an harpsong by mail"

    rows = [
      {"skills.search --query harpsong", [harpsong, paid, send]},
      {"skills.search harpsong", [harpsong, paid, send]},
      {"search_skills harpsongs --limit 1", [harpsong]},
      {"skills.search --query harpsong --kind command", [send]},
      {"skills.search --query harpsong --kind note", [paid]},
      {"skills.search --query plain", ["- plain (note)"]}
    ]

    for {line, expected} <- rows do
      result = result(view, line)
      assert {line, result.content} == {line, Enum.join(expected ++ [@more], "\n")}
      names = for line <- expected, [_, name] = Regex.run(~r/- (\S+)/, line), do: name
      assert Enum.map(result.data.entries, & &1.name) == names
    end

    assert [%{name: "harpsong", kind: :skill, title: nil, description: "Write an\nharpsong"}] =
             result(view, "skills.search harpsong --limit 1").data.entries
  end

  test "says what to do if nothing matches, or if a flag is wrong", %{view: view} do
    rows = [
      {"skills.search --query zebra",
       "No entries found: \"zebra\". `get_skill` lists everything."},
      {"skills.search --query hidden",
       "No entries found: \"hidden\". `get_skill` lists everything."},
      {"skills.search --query a --kind page",
       "--kind must be one of command, skill, note, got \"page\". Write for example: " <>
         "--kind command"},
      {"skills.search --query a --limit 51",
       "--limit must be a whole number from 1 to 50, got \"51\". Write for example: --limit 1"},
      {"skills.search", "--query is required and missing. Add it as: --query VALUE"}
    ]

    for {line, expected} <- rows,
        do: assert({line, result(view, line).content} == {line, expected})
  end
end
