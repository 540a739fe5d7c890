defmodule Skillbook.Web.Page.FlagFieldsTest do
  # The flags of a command in a file as a form beside its text: with the preview, the checks, the
  # conflicts and the rights of the text. `Skillbook.Flags.LinesTest` tests the changed lines.
  use Skillbook.PageCase, async: true

  alias Skillbook.Test.{HtmlChecker, Requests}

  @moduletag :capture_log
  @moduletag :tmp_dir
  @operator [profile: "ann", operator: true]
  @target "/skills/mail.send/source"

  @page """
  ---
  name: mail.send
  description: Sends a mail  # to people
  effects: write
  flags:
    # Whom
    to: {type: email, required: true, description: "Whom, <b>not</b> \\"all\\""}
    ticket: {pattern: 'A-\\d+'}

    limit:
      type: integer
      min: 1
      default: 3
    late: date # by then
  timeout: 10s
  ---
  Send it.
  """

  setup %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => @page,
      "mail/read.md" => "---\nname: mail.read\ndescription: Reads a mail\n---\nRead it.\n",
      "mail/find.md" =>
        "---\nname: mail.find\ndescription: Finds a mail\n---\n## Flags\n\n--of  Whose\n",
      "tea.md" => "---\nname: tea\ndescription: Brews tea\nflags:\n  to: text\n---\nBoil.\n"
    })

    {:ok, context} =
      served(
        write_to: folder,
        profiles: [
          [id: "ann", writes: :run],
          [id: "boss", grants: :all, writes: :run],
          [id: "guest", writes: :deny]
        ]
      )

    {:ok, context ++ [path: Path.join(folder, "mail/send.md")]}
  end

  defp post(web, target, form, as \\ @operator),
    do: Requests.call(web, "POST", target, as: as, form: form)

  # The answer to the page's form with other values.
  defp step(web, step, changes, html \\ nil) do
    html = html || get(web, @target, @operator)
    checked(post(web, @target, sent(html, step, changes)))
  end

  defp saved(web, changes) do
    shown = step(web, "preview", changes)
    assert shown.status == 200
    response = post(web, @target, sent(shown.body, "save", %{}))

    assert {response.status, Requests.header(response, "location")} ==
             {303, "/skills/mail.send?done=saved"}
  end

  defp flags(html) do
    fields = sent(html, "preview", %{})
    for at <- 1..9, name = fields["flag#{at}_name"], do: {name, fields["flag#{at}_type"]}
  end

  defp texts(html, element, attributes) do
    for {^element, found, _} = one <- HtmlChecker.elements(html),
        Map.take(found, Map.keys(attributes)) == attributes,
        do: one |> HtmlChecker.text() |> String.replace(~r/\s+/, " ")
  end

  test "a changed flag is one changed line", %{web: web, path: path} do
    html = get(web, @target, @operator)
    assert flags(html) == [{"to", "email"}, {"limit", "integer"}]

    assert %{"flag1_required" => "1", "flag1_description" => "Whom, <b>not</b> \"all\""} =
             sent(html, "", %{})

    # The others say why.
    assert for("--" <> _ = text <- texts(html, "p", %{"class" => "help"}), do: text) == [
             "--ticket: it has pattern, for which the form has no field. Edit the text below",
             "--late: it has a comment. Edit the text below"
           ]

    shown = step(web, "preview", %{"flag2_name" => "count", "flag2_max" => "9"})
    assert shown.body =~ "<ins>+  count: {type: integer, min: 1, max: 9, default: 3}</ins>"
    assert flags(shown.body) == [{"to", "email"}, {"count", "integer"}]
    assert File.read!(path) == @page

    saved(web, %{"flag2_name" => "count", "flag2_max" => "9"})
    old = "  limit:\n    type: integer\n    min: 1\n    default: 3\n"
    new = "  count: {type: integer, min: 1, max: 9, default: 3}\n"
    assert File.read!(path) == String.replace(@page, old, new)
    assert get(web, "/skills/mail.send", @operator) =~ "count"
  end

  test "flags are added and removed, and the text changes with them", %{web: web, path: path} do
    one = step(web, "add", %{"flag1_default" => "me"})
    assert one.status == 200
    # The typed values are kept, and nothing is checked yet.
    assert %{"flag1_default" => "me", "flag3_name" => ""} = sent(one.body, "", %{})
    assert [%{"id" => "field-flag3_name"}] = autofocus(one.body)

    new = %{"flag3_name" => "cc", "flag3_type" => "email", "flag3_repeatable" => "1"}
    changes = %{"flag1_default" => "", "flag2_remove" => "1", "content" => @page <> "Now.\n"}
    shown = step(web, "preview", Map.merge(new, changes), one.body)
    assert shown.body =~ "<ins>+Now.</ins>"
    response = post(web, @target, sent(shown.body, "save", %{}))
    assert response.status == 303

    limit = "  limit:\n    type: integer\n    min: 1\n    default: 3\n"
    late = "  late: date # by then\n"

    assert File.read!(path) ==
             (@page <> "Now.\n")
             |> String.replace(limit, "")
             |> String.replace(late, late <> "  cc: {type: email, repeatable: true}\n")

    # A new flag that is removed again is none.
    added = step(web, "add", %{})
    again = step(web, "preview", %{"flag3_remove" => "1"}, added.body)
    assert again.body =~ "Text: no changes."
  end

  defp assert_error(html, nil, message), do: assert(message in texts(html, "li", %{}))

  defp assert_error(html, field, message) do
    id = "field-" <> field
    assert texts(html, "p", %{"id" => id <> "-error"}) == [message]
    assert texts(html, "a", %{"href" => "#" <> id}) == [message]
  end

  defp autofocus(html) do
    for {_name, %{"autofocus" => _} = attributes, _} <- HtmlChecker.elements(html),
        do: attributes
  end

  test "a page whose form is sent as it is stays the same", %{web: web, path: path} do
    # As a browser sends it, with other line ends.
    saved(web, %{})
    assert File.read!(path) == @page

    crlf = String.replace(@page, "\n", "\r\n")
    File.write!(path, crlf)
    saved(web, %{"flag1_type" => "url"})
    assert File.read!(path) == String.replace(crlf, "type: email", "type: url")
  end

  for {changes, field, message} <- [
        {%{"flag1_name" => "To <i>"}, "flag1_name",
         "Expected a flag of lowercase letters, digits and hyphens, such as due-before, " <>
           "got: To <i>."},
        {%{"flag1_name" => "limit"}, "flag1_name", "Expected another name, got --limit again."},
        {%{"flag1_name" => "late"}, "flag1_name", "Expected another name, got --late again."},
        {%{"flag1_type" => "one_of"}, "flag1_values",
         "Expected the values of --to, such as: open, closed."},
        {%{"flag1_default" => "x"}, "flag1_default",
         "Expected no default for --to, which every call needs."},
        {%{"flag2_min" => "one"}, "flag2_min",
         "Expected a whole number as the min of --limit, got: one."},
        {%{"flag1_was" => "ticket: {type: text}", "flag1_name" => "x"}, "flag1_name",
         "Expected --ticket to be in the text as it was, got another text."},
        # The text has none any more.
        {%{"flag1_type" => "url", "content" => "---\nname: [\n---\n"}, nil,
         "Expected flags that a form can change, but its frontmatter cannot be read."},
        # Changed in the text and in the fields.
        {%{
           "flag1_type" => "url",
           "content" => String.replace(@page, "type: email", "type: text")
         }, "flag1_name", "Expected --to to be in the text as it was, got another text."}
      ] do
    test "an error stands at its field: #{message} #{inspect(changes["flag1_was"])}", %{
      web: web,
      path: path
    } do
      changes = unquote(Macro.escape(changes))
      response = step(web, "preview", changes)
      assert response.status == 422
      assert_error(response.body, unquote(field), unquote(message))

      # The typed values are still there, and visible.
      kept = Map.take(sent(response.body, "", %{}), Map.keys(changes))

      assert Map.new(kept, fn {key, text} -> {key, String.replace(text, "\r\n", "\n")} end) ==
               changes

      assert [_ | _] =
               for({"details", %{"open" => _}, _} <- HtmlChecker.elements(response.body), do: 1)

      assert File.read!(path) == @page
    end
  end

  test "a mistake that only loading finds is one of the page", %{web: web, path: path} do
    changes = %{"flag2_type" => "date", "flag2_default" => "tea"}
    response = step(web, "preview", changes)
    assert response.status == 422
    assert response.body =~ "expected one of its values as the `default` of --limit"
    assert File.read!(path) == @page
  end

  test "a text that is changed alone keeps the flags of the text", %{web: web, path: path} do
    text = String.replace(@page, "type: email", "type: url")
    saved(web, %{"content" => text})
    assert File.read!(path) == text
  end

  test "a file that has changed since is not overwritten", %{web: web, path: path} do
    html = get(web, @target, @operator)
    File.write!(path, @page <> "Theirs.\n")
    response = step(web, "preview", %{"flag1_type" => "url"}, html)
    assert response.status == 409
    assert response.body =~ "Somebody has changed this file meanwhile"
    assert response.body =~ "<del>-Theirs.</del>"
    assert flags(response.body) == [{"to", "url"}, {"limit", "integer"}]
    assert File.read!(path) == @page <> "Theirs.\n"

    # Only the change that was shown is saved.
    shown = step(web, "preview", %{}, response.body)
    other = step(web, "save", %{"flag1_type" => "date"}, shown.body)
    assert other.status == 200 and other.body =~ "type: date"
    assert File.read!(path) == @page <> "Theirs.\n"
  end

  test "other pages say where their flags are, or have none", %{web: web, path: path} do
    html = get(web, "/skills/mail.find/source", @operator)
    assert html =~ "No form: its flags are declared elsewhere in the page, not in the field"

    # A field begins with the first flag.
    html = get(web, "/skills/mail.read/source", @operator)
    assert flags(html) == []
    added = post(web, "/skills/mail.read/source", sent(html, "add", %{}))
    fields = sent(added.body, "preview", %{"flag1_name" => "id", "flag1_required" => "1"})
    shown = post(web, "/skills/mail.read/source", fields)
    assert shown.body =~ "<ins>+flags:</ins>\n<ins>+  id: {type: text, required: true}</ins>"

    # Flags of other pages have no meaning.
    html = get(web, "/skills/tea/source", @operator)
    refute html =~ "Add a flag"
    fields = sent(html, "preview", %{"flag1_name" => "x", "flag1_type" => "url"})
    assert post(web, "/skills/tea/source", fields).body =~ "Text: no changes."
    refute get(web, "/new/file?kind=skill", @operator) =~ "Add a flag"
    assert File.read!(path) == @page
  end

  test "there is a limit", %{web: web, path: path} do
    flags = &("flags:\n" <> Enum.map_join(1..&1, fn n -> "  f#{n}: text\n" end))
    page = &"---\nname: mail.send\ndescription: Sends a mail\n#{flags.(&1)}---\nSend it.\n"
    File.write!(path, page.(50))
    html = get(web, @target, @operator)
    assert html =~ "flag50_name" and not (html =~ "Add a flag")
    # The form has no place for one more.
    response = post(web, @target, sent(html, "add", %{}))
    assert response.body =~ "flag50_name" and not (response.body =~ "flag51_name")
    File.write!(path, page.(51))
    assert get(web, @target, @operator) =~ "No form: it has more than 50 flags."
  end

  test "hostile flags are texts", %{web: web, path: path} do
    hostile = ~S|</textarea><script>alert(1)</script>" onfocus="x' {{7*7}}|

    saved(web, %{"flag1_description" => hostile, "flag2_default" => "", "flag2_type" => "text"})
    html = get(web, @target, @operator)
    refute html =~ "<script>alert"
    assert sent(html, "", %{})["flag1_description"] == hostile
    {:ok, parsed} = Skillbook.Frontmatter.parse(File.read!(path))
    assert parsed.data["flags"]["to"]["description"] == hostile
    assert Map.delete(parsed.data, "flags")["timeout"] == "10s"

    # Neither a forged line nor a name brings other fields into the page.
    for {key, value} <- [
          {"name", "x: text\nhandler"},
          {"name", "x}\n---"},
          {"type", "text}\nhandler: X"},
          {"was", "to: {type: email}\nname: evil"},
          {"was", <<0>>},
          {"default", "a\nhandler: b"},
          {"values", "a]\nhandler: b"}
        ] do
      before = File.read!(path)
      fields = %{"flag1_#{key}" => value, "flag1_required" => ""}
      response = step(web, "preview", fields, html)
      assert {key, response.status in [200, 422]} == {key, true}
      {:ok, new} = Skillbook.Frontmatter.parse(sent(response.body, "", %{})["content"])
      refute Map.has_key?(new.data, "handler")
      assert new.data["name"] == "mail.send"
      assert File.read!(path) == before
    end
  end

  test "only those who may change the file have the form", %{web: web, path: path} do
    form = sent(get(web, @target, @operator), "preview", %{"flag1_type" => "url"})
    guest = [profile: "guest", operator: true]

    for {as, status} <- [{"ann", 404}, {"guest", 404}, {guest, 403}, {nil, 401}] do
      response = Requests.call(web, "GET", @target, as: as)
      assert {as, response.status} == {as, status}
      refute response.body =~ "flag1_name"
      response = post(web, @target, form, as)
      assert {as, response.status} == {as, status}
      refute response.body =~ "flag1_name"
    end

    # As another profile.
    assert post(web, @target <> "?as=boss", form, profile: "boss", operator: true).status == 403
    assert File.read!(path) == @page
  end
end
