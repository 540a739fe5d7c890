defmodule Skillbook.Web.Page.FlagFieldsBrowserTest do
  # The flags of a command as a form, in a real Chromium: on all screens, and with the keyboard
  # alone, with and without script. With SKILLBOOK_SHOTS it writes pictures.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.Browser
  alias Skillbook.Web.Server

  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 300_000

  @target "/skills/mail.send/source"
  @page """
  ---
  name: mail.send
  description: Sends a mail to somebody
  effects: write
  flags:
    to: {type: email, required: true, description: Whom to send it to}
    ticket: {pattern: 'A-\\d+', description: The ticket that it is about}
    copies:
      type: integer
      min: 1
      max: 9
    tone: {type: one_of, values: [plain, warm], default: plain}
  ---
  Send a mail to {to}, in a {tone} tone.
  """

  setup %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    book = :"flag_fields_#{System.unique_integer([:positive])}"
    profiles = [[id: "default", writes: :run]]
    options = [sources: [], builtins: false, watch: false, store: ":memory:", write_to: folder]
    start_supervised!({Skillbook, [name: book, profiles: profiles] ++ options})
    options = [book: book, port: 0, authenticate: :none, profile: "default"]
    server = start_supervised!({Server, options})
    {:ok, url: Server.info(server).url, path: Path.join(folder, "mail/send.md")}
  end

  test "it fits on all screens, with its errors and its preview", %{url: url, path: path} do
    page = Browser.open(url) |> Browser.goto(@target)
    Browser.assert_fits(page, "flags")
    Browser.click(page, "summary >> nth=1")
    Browser.fill(page, "#field-flag2_min", "one")
    Browser.assert_fits(page, "flags-open")
    Browser.click(page, role: "button", name: "Add a flag")
    Browser.wait(page, "#field-flag4_name")
    # It has the focus, and what was typed is kept.
    assert ["input", "field-flag4_name", _value] = Browser.focused(page)
    assert Browser.value(page, "#field-flag2_min") == "one"
    Browser.type(page, "#field-flag4_name", "cc")
    Browser.select(page, "#field-flag4_type", "email")
    Browser.check(page, "#field-flag4_repeatable")
    Browser.assert_fits(page, "flags-added")
    Browser.click(page, "button.primary")
    Browser.wait(page, ".error")
    # Its status.
    assert [_status_422] = Browser.problems(page)
    Browser.assert_fits(page, "flags-wrong")
    Browser.fill(page, "#field-flag2_min", "2")
    Browser.click(page, "summary >> nth=2")
    Browser.check(page, "#field-flag3_remove")
    Browser.click(page, "button.primary")
    Browser.wait(page, "figure.diff")
    Browser.assert_fits(page, "flags-preview")
    assert Browser.text(page, "ins >> nth=0") == "+  copies: {type: integer, min: 2, max: 9}"
    Browser.click(page, role: "button", name: "Save")
    Browser.wait_url(page, "**/skills/mail.send?done=saved")

    assert File.read!(path) ==
             @page
             |> String.replace(~r/  copies:.*?  tone[^\n]*\n/s, """
               copies: {type: integer, min: 2, max: 9}
               cc: {type: email, repeatable: true}
             """)
  end

  test "the keyboard alone changes a flag, with and without script", %{url: url, path: path} do
    for script <- [true, false] do
      File.write!(path, @page)
      page = Browser.open(url, script: script) |> Browser.goto(@target)
      tab(page, "--to")
      Browser.press(page, "Enter")
      tab(page, "field-flag1_name")
      for _ <- 1..6, do: Browser.press(page, "Tab")
      assert ["input", "field-flag1_description", _text] = Browser.focused(page)
      Browser.press(page, "Control+A")
      for key <- ~w(W h o), do: Browser.press(page, key)
      # Enter previews; it adds no flag.
      Browser.press(page, "Enter")
      Browser.wait(page, "figure.diff")
      assert Browser.count(page, "ins") == 1
      tab(page, "Save")
      Browser.press(page, "Enter")
      Browser.wait_url(page, "**/skills/mail.send?done=saved")
      assert File.read!(path) == String.replace(@page, "Whom to send it to", "\"Who\"")
    end
  end

  # Presses Tab until an element with this id or text has the focus.
  defp tab(page, place, left \\ 60) do
    Browser.press(page, "Tab")
    [_name, id, text] = Browser.focused(page)

    unless id == place or String.starts_with?(text, place) do
      assert left > 0, "the keyboard does not reach #{place}"
      tab(page, place, left - 1)
    end
  end
end
