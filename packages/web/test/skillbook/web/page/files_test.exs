defmodule Skillbook.Web.Page.FilesTest do
  # Pages in files, which operators change and write, with their history by git.
  use Skillbook.PageCase, async: true

  alias Skillbook.Test.Requests

  @moduletag :capture_log
  @moduletag :tmp_dir
  @operator [profile: "ann", operator: true]
  @page "---\nname: tea\ndescription: Brews tea\n---\nBoil water.\n"

  setup %{tmp_dir: folder} do
    own = Path.join(folder, "own")
    other = Path.join(folder, "other")

    write(own, %{
      "tea.md" => @page,
      "plan.md" => "---\nname: plan\ndescription: A plan\nvisibility_labels: [boss]\n---\nX.\n",
      "late.md" => page("late", [schedule: "\"0 8 * * *\"", run_as: "boss"] ++ handler("Text")),
      "typo.md" => "---\nname: typo\ndescription: Sends: a mail\n---\nX.\n"
    })

    write(other, %{"milk.md" => page("milk")})
    File.ln_s!(Path.join(other, "milk.md"), Path.join(own, "link.md"))

    {:ok, context} =
      served(
        sources: [[path: other, name: "other"]],
        write_to: own,
        schedules: [],
        profiles: [
          [id: "ann", writes: :run],
          [id: "boss", grants: :all, writes: :run],
          [id: "guest", writes: :deny]
        ]
      )

    {:ok, context ++ [own: own]}
  end

  defp post(web, target, form, as), do: Requests.call(web, "POST", target, as: as, form: form)

  # The form with another text, previewed, and then saved.
  defp form(web, target, text) do
    web |> get(target, @operator) |> sent("preview", %{"content" => text})
  end

  defp file(own, name), do: File.read!(Path.join(own, name))

  test "a file is changed after a look at the difference", %{web: web, own: own} do
    target = "/skills/tea/source"
    form = form(web, target, @page <> "Wait.\r\n")
    shown = checked(post(web, target, form, @operator))
    assert shown.status == 200
    assert shown.body =~ "<ins>+Wait.</ins>"
    assert file(own, "tea.md") == @page
    # Only the text that was shown is saved.
    save = sent(shown.body, "save", %{})
    changed = Map.put(save, "content", @page <> "Run.\n")
    assert post(web, target, changed, @operator).status == 200
    assert file(own, "tea.md") == @page
    response = post(web, target, save, @operator)

    assert {response.status, Requests.header(response, "location")} ==
             {303, "/skills/tea?done=saved"}

    assert file(own, "tea.md") == @page <> "Wait.\n"
    assert get(web, "/skills/tea", @operator) =~ "Wait."
  end

  test "a page is previewed beside its files and the other pages", %{
    web: web,
    own: own,
    book: book
  } do
    page =
      "---\nname: cups\ndescription: Which cups to use for which tea\nrequires: [tea]\n---\n" <>
        "See [sizes](sizes.md).\n"

    write(own, %{"cups/SKILL.md" => page, "cups/sizes.md" => "# Sizes\n"})
    Skillbook.reload(book)
    target = "/skills/cups/source"

    for {text, findings} <- [
          {page <> "More.\n", []},
          {String.replace(page, "tea]", "soup]"),
           ["line 4: it requires `soup`, which does not exist"]},
          {String.replace(page, "sizes.md", "none.md"),
           ["line 6: the link leads to `none.md`, but the skill has no such file"]}
        ] do
      shown = post(web, target, form(web, target, text), @operator)
      found = Regex.scan(~r{badge-warn">\w+</span> ([^<]*)}, shown.body, capture: :all_but_first)
      assert {text, List.flatten(found)} == {text, findings}
    end
  end

  test "a file that has changed since is not overwritten", %{web: web, own: own} do
    target = "/skills/tea/source"
    shown = post(web, target, form(web, target, @page <> "Mine.\n"), @operator)
    File.write!(Path.join(own, "tea.md"), @page <> "Theirs.\n")
    response = checked(post(web, target, sent(shown.body, "save", %{}), @operator))
    assert response.status == 409
    assert response.body =~ "Somebody has changed this file meanwhile"
    assert response.body =~ "<del>-Theirs.</del>" and response.body =~ "Mine."
    assert file(own, "tea.md") == @page <> "Theirs.\n"
  end

  test "says why a text is not written", %{web: web, own: own} do
    for {text, expected} <- [
          {"---\nname: [\n---\n", "line 3: expected a value"},
          {"---\nname: tea\n---\nX.\n", "expected a description"},
          {@page <> "\0", "expected text in UTF-8 without NUL"},
          {@page <> String.duplicate("x", 262_144), "expected at most 262144 bytes"},
          {String.replace(@page, "---\nBoil", "visibility_labels: [hr]\n---\nBoil"),
           "expected labels that the profile ann holds, got: hr"},
          {String.replace(@page, "---\nBoil", "run_as: boss\n---\nBoil"),
           "expected run_as: ann or none, got: boss"}
        ] do
      response = post(web, "/skills/tea/source", form(web, "/skills/tea/source", text), @operator)
      expected = Skillbook.Web.Page.Parts.sentence(expected) |> String.trim_trailing(".")
      assert {text, response.status, response.body =~ expected} == {text, 422, true}
    end

    assert file(own, "tea.md") == @page
    # A profile that runs it already stays.
    text = file(own, "late.md") <> "More.\n"

    form = form(web, "/skills/late/source", text)
    assert post(web, "/skills/late/source", form, @operator).status == 200
  end

  test "only operators that see the entry may, and only in the folder", %{web: web} do
    missing = get(web, "/skills/none/source", @operator)

    for {name, as} <- [
          {"tea", "ann"},
          {"plan", @operator},
          {"milk", @operator},
          {"link", @operator},
          {"..%2Fother%2Fmilk", @operator}
        ],
        page <- ["source", "history"] do
      response = Requests.call(web, "GET", "/skills/#{name}/#{page}", as: as)
      assert {name, response.status} == {name, 404}
      if as == @operator, do: assert(response.body == missing)
    end

    form = %{"content" => "x", "digest" => "x"}
    assert post(web, "/skills/tea/source", form, "ann").status == 404
    guest = [profile: "guest", operator: true]
    assert post(web, "/skills/tea/source", form, guest).status == 403
    assert post(web, "/new/file", %{"name" => "x.y"}, guest).status == 403
    refute get(web, "/skills/tea", "ann") =~ "/skills/tea/source"
    assert get(web, "/skills/tea", @operator) =~ "/skills/tea/source"
    # A book that writes to no folder.
    {:ok, closed} = served(profiles: [[id: "ann", writes: :run]])
    assert Requests.call(closed[:web], "GET", "/new/file", as: @operator).status == 404
    refute get(closed[:web], "/skills", @operator) =~ "/new/file"
  end

  test "a command, a workflow and a skill are written", %{web: web, own: own} do
    for {kind, name, file} <- [
          {"command", "mail.send", "mail/send.md"},
          {"workflow", "reports.weekly", "reports/weekly.md"},
          {"skill", "tea-rules", "tea-rules/SKILL.md"}
        ] do
      fields = %{"kind" => kind, "name" => name, "description" => "When a mail is due"}
      begun = post(web, "/new/file", fields, @operator)
      assert begun.body =~ "name: #{name}\ndescription: When a mail is due"
      # As `skillbook new` makes it: right at once.
      shown = checked(post(web, "/new/file", sent(begun.body, "preview", %{}), @operator))
      assert {kind, shown.status} == {kind, 200}
      response = post(web, "/new/file", sent(shown.body, "save", %{}), @operator)
      assert Requests.header(response, "location") == "/skills/#{name}?done=created"
      assert file(own, file) =~ "name: #{name}"
      # Once.
      again = post(web, "/new/file", sent(shown.body, "save", %{}), @operator)
      assert again.status == 422
    end

    for name <- ["../x", "A", "a.b.c", ""] do
      fields = %{"kind" => "skill", "name" => name, "description" => "Tea"}
      response = post(web, "/new/file", fields, @operator)
      assert {name, response.status} == {name, 422}
    end
  end

  test "a command's flags are fields, one more with each step", %{web: web, own: own} do
    send = fn fields ->
      checked(post(web, "/new/file", Map.put(fields, "kind", "command"), @operator))
    end

    first = %{"name" => "mail.send", "description" => "Sends a mail to somebody", "step" => "add"}
    assert %{status: 200, body: html} = send.(first)
    assert html =~ "Flag 1" and not (html =~ "Flag 2")

    to = %{
      "flag1_name" => "to",
      "flag1_type" => "email",
      "flag1_required" => "1",
      "flag1_description" => "Whom: \"one\", not all"
    }

    more = %{
      "flag2_name" => "mode",
      "flag2_type" => "one_of",
      "flag2_values" => "plain, yes",
      "flag2_default" => "plain",
      "flag3_name" => "copies",
      "flag3_type" => "integer",
      "flag3_default" => "2"
    }

    # The typed values are kept, with one flag more or less.
    fields = Map.merge(sent(html, "add", to), %{"name" => "mail.send"})
    assert %{status: 200, body: html} = send.(fields)
    assert %{"flag1_type" => "email", "flag1_required" => "1"} = fields = sent(html, "", more)
    assert %{body: html} = send.(%{fields | "step" => "remove-1"})
    assert %{"flag1_name" => "mode", "flag2_name" => "copies"} = sent = sent(html, "begin", %{})
    refute Map.has_key?(sent, "flag3_name")

    assert %{status: 200, body: html} = send.(%{fields | "step" => "begin"})
    shown = send.(sent(html, "preview", %{}))
    assert shown.status == 200
    assert %{status: 303} = post(web, "/new/file", sent(shown.body, "save", %{}), @operator)
    text = file(own, "mail/send.md")

    assert text =~ """
           flags:
             to: {type: email, required: true, description: "Whom: \\"one\\", not all"}
             mode: {type: one_of, values: ["plain", "yes"], default: "plain"}
             copies: {type: integer, default: 2}
           """

    assert text =~ "mail.send --to ann@example.com --mode plain --copies 2\n"
    path = Path.join(own, "mail/send.md")
    assert Enum.filter(Skillbook.Lint.run([own], []), &(&1.path == path)) == []

    for {wrong, message} <- [
          {%{"flag1_name" => "To"}, "expected a flag of lowercase letters"},
          {%{"flag1_name" => ""}, "expected a flag of lowercase letters"},
          {%{"flag1_name" => "to", "flag2_name" => "to"},
           "expected another name, got --to again"},
          {%{"flag1_name" => "to", "flag1_type" => "one_of"}, "expected the values of --to"},
          {%{"description" => " "}, "expected a description, got none"}
        ] do
      fields =
        Map.merge(%{"name" => "mail.read", "description" => "Reads", "step" => "begin"}, wrong)

      response = send.(fields)
      sentence = Skillbook.Web.Page.Parts.sentence(message) |> String.trim_trailing(".")
      assert {wrong, response.status, response.body =~ sentence} == {wrong, 422, true}
    end

    # A wrong default is an error of the page, and nothing is written.
    wrong = %{"flag1_name" => "n", "flag1_type" => "integer", "flag1_default" => "many"}
    begun = send.(Map.merge(%{"name" => "mail.read", "description" => "Reads"}, wrong))
    assert %{status: 422} = send.(sent(begun.body, "preview", %{}))

    # There is a limit.
    many = Map.new(1..30, &{"flag#{&1}_name", "f#{&1}"})
    html = send.(Map.merge(%{"name" => "mail.read", "step" => "add"}, many)).body
    assert html =~ "Flag 20" and not (html =~ "Flag 21")
    refute html =~ "Add a flag"
  end

  test "the history of a file is that of git", %{web: web, own: own} do
    assert get(web, "/skills/tea/history", @operator) =~ "Git has no commits of this file."
    git = fn arguments -> System.cmd("git", ["-C", own | arguments], stderr_to_stdout: true) end
    {_, 0} = git.(["init", "-q"])
    {_, 0} = git.(["add", "tea.md"])
    who = ["-c", "user.name=Ann <b>", "-c", "user.email=ann@example.com"]
    {_, 0} = git.(who ++ ["commit", "-q", "-m", "Brew better tea"])
    html = get(web, "/skills/tea/history", @operator)
    assert html =~ "Brew better tea" and html =~ "Ann"

    assert [%{"subject" => "Brew better tea"}] =
             json(web, "/skills/tea/history", @operator)["commits"]
  end

  test "a finding with a fix has a button on the page of its entry", %{web: web, own: own} do
    path = Path.join(own, "typo.md")
    href = "/diagnostics/fix?" <> URI.encode_query(path: path)
    assert get(web, "/skills/typo", @operator) =~ href
    refute get(web, "/skills/typo", "ann") =~ "/diagnostics/fix"
  end

  test "a skill runs as scheduled, and its page says what happened", %{web: web, book: book} do
    boss = [profile: "boss", operator: true]
    response = post(web, "/skills/late/fire", %{}, boss)
    location = Requests.header(response, "location")
    assert "/skills/late?fired=" <> _time = location
    assert get(web, location, boss) =~ "It ran"
    assert post(web, "/skills/late/fire", %{}, "boss").status == 404
    assert post(web, "/skills/tea/fire", %{}, boss).status == 409
    assert get(web, "/skills/late?fired=x", boss) =~ "Run as scheduled"
    assert {:ok, %{last: [%{status: :ok}]}} = Skillbook.schedule(Skillbook.view(book, "boss"))
  end
end
