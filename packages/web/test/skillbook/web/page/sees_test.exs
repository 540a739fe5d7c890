defmodule Skillbook.Web.Page.SeesTest do
  # The pages about what a model gets: prompt, tools, a name, a request, a command.
  use Skillbook.PageCase, async: true

  alias Skillbook.{Prompt, View}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{HtmlChecker, Requests}

  @moduletag :tmp_dir
  @moduletag :capture_log
  @operator [profile: "root", operator: true]

  setup %{tmp_dir: folder} do
    flags = """
    flags:
      to: {type: email, required: true, description: Who gets it}
      copies: {type: integer, min: 1, max: 9, default: 1}
      kind: {type: one_of, values: [short, long]}
      when: {type: date, words: true}
      tags: {repeatable: true}
      note: {type: text, max_length: 200}
      site: {type: url}
      ratio: {type: number}
      urgent: {type: switch}
    """

    write(folder, %{
      "mail/send.md" =>
        "---\nname: mail.send\ndescription: Sends <b>mail</b>\n" <>
          "handler: Skillbook.TestHandlers.Text\n#{flags}---\n# Send\n",
      "mail/read.md" => page("mail.read", handler("Text")),
      "mail/ask.md" => page("mail.ask", handler("Text") ++ [approval: "required"]),
      "tea/SKILL.md" => page("tea", [trigger_keywords: "[kettle]"], "Boil water.\n"),
      "boss/SKILL.md" => page("boss-plan", visibility_labels: "[boss]")
    })

    served(
      sources: [folder],
      profiles: [
        [id: "root", grants: :all],
        [id: "ann"],
        [id: "guest", writes: :deny],
        [id: "off", preflight: false]
      ]
    )
  end

  describe "/prompt" do
    test "has the sections with their sizes, and the text that the model gets", %{
      web: web,
      book: book
    } do
      view = Skillbook.view(book, "ann")

      for {query, options} <- [
            {"", []},
            {"?format_of=tools", [protocol: :tools]},
            {"?format_of=xml", [format: :xml]},
            {"?format_of=notes", [format: :notes]},
            {"?format_of=list", [format: :list]},
            {"?max_tokens=x", []},
            {"?max_tokens=0", []},
            {"?format_of=nothing&max_tokens=320", [max_tokens: 320]}
          ] do
        data = json(web, "/prompt" <> query, "ann")
        assert data["text"] == Skillbook.prompt(view, options)
        assert data["tokens"] == Prompt.tokens(data["text"])
        assert data["sections"] != []
        get(web, "/prompt" <> query, "ann")
      end
    end

    test "names the lines that a limit leaves out, in their sections", %{web: web} do
      whole = json(web, "/prompt", "ann")
      assert Enum.all?(whole["sections"], &(&1["cut"] == []))
      cut = json(web, "/prompt?max_tokens=#{whole["tokens"] - 25}", "ann")

      left_out =
        for section <- cut["sections"], line <- section["cut"], do: {section["section"], line}

      assert left_out != []

      # Rows that are not left out are in the text, in this order.
      lines = &(&1 |> String.split("\n") |> Enum.reject(fn line -> line == "" end))
      kept = lines.(whole["text"]) -- Enum.map(left_out, &elem(&1, 1))
      assert Enum.drop(lines.(cut["text"]), -1) == kept

      assert get(web, "/prompt?max_tokens=#{whole["tokens"] - 25}", "ann") =~
               "Left out by the limit"
    end

    test "shows the difference to the prompt that it showed before", context do
      %{web: web, book: book, tmp_dir: folder} = context
      assert json(web, "/prompt", "ann")["earlier"] == nil

      write(folder, %{
        "milk/SKILL.md" => page("milk"),
        "cow/SKILL.md" => page("cow", visibility_labels: "[boss]")
      })

      Skillbook.reload(book)
      assert get(web, "/prompt", "ann") =~ ~r{<ins>\+\W+milk\W+Does milk</ins>}
      # It stays until the next change, for each profile and format.
      %{"difference" => difference} = json(web, "/prompt", "ann")["earlier"]
      assert difference =~ ~r{^\+\W+milk\W+Does milk$}m
      refute difference =~ "cow"
      assert json(web, "/prompt", "guest")["earlier"] == nil
      assert json(web, "/prompt?format_of=xml", "ann")["earlier"] == nil
    end

    test "knows a profile by its rights, not by its id", context do
      %{web: web, book: book, tmp_dir: folder} = context
      json(web, "/prompt", Skillbook.Profile.new!(id: "x", grants: ["boss"]))
      write(folder, %{"milk/SKILL.md" => page("milk")})
      Skillbook.reload(book)
      assert json(web, "/prompt", Skillbook.Profile.new!(id: "x"))["earlier"] == nil
    end
  end

  test "/tools has the tools in the format of each vendor", %{web: web, book: book} do
    view = Skillbook.view(book, "ann")

    for shape <- ~w(openai openai_strict openai_responses anthropic gemini llama mcp)a do
      data = json(web, "/tools?shape=#{shape}", "ann")

      assert Enum.map(data["tools"], & &1["definition"]) ==
               JSON.decode(
                 JSON.encode(Skillbook.Tools.definitions(view, shape: shape, run_command: true))
               )
               |> elem(1)
    end

    body = get(web, "/tools?shape=none", "ann")
    assert body =~ "&quot;type&quot;: &quot;function&quot;"
    refute body =~ "boss"
  end

  describe "/explain" do
    test "shows the stage at which a file ends", context do
      %{web: web, book: book, tmp_dir: folder} = context

      write(folder, %{
        "sub/tea.md" => page("tea"),
        "none.md" => "---\nname: none\n---\n",
        "quiet.md" => page("quiet", "disable-model-invocation": true)
      })

      Skillbook.reload(book)

      for {name, profile, states, notes} <- [
            {"tea", "ann", ~w(pass pass pass pass pass), ["in the section `skills`"]},
            {"mail.send", "ann", ~w(pass pass pass pass pass),
             ["in the section `quick_reference`"]},
            {"tea", "ann", ~w(pass pass fail open open), ["its source has it before"]},
            {"boss-plan", "ann", ~w(pass pass pass fail open),
             ["the profile does not have its label `boss`"]},
            {"boss-plan", "root", ~w(pass pass pass pass pass), ["in the section `skills`"]},
            {"quiet", "ann", ~w(pass pass pass pass fail), ["nowhere: disable-model-invocation"]},
            {"none", "ann", ~w(fail open open open open), ["see its diagnostics"]}
          ] do
        data = json(web, "/explain?name=#{name}&profile=#{profile}", @operator)
        files = for file <- data["files"], do: Enum.map(file["stages"], & &1["state"])
        assert {name, states in files} == {name, true}, inspect(data)

        for note <- notes,
            do: assert(get(web, "/explain?name=#{name}&profile=#{profile}", @operator) =~ note)
      end

      assert get(web, "/explain?name=taa", @operator) =~ ">tea</a>"
      assert json(web, "/explain?name=taa", "ann")["close"] == ["tea"]

      # Only an operator can change the options of the book.
      for {name, as, item} <- [
            {"tasks.get", @operator, "tasks"},
            {"tasks", @operator, "tasks"},
            {"tasks.git", @operator, nil},
            {"tea", @operator, nil},
            {"tasks.get", "ann", nil}
          ],
          do:
            assert(
              {name, as, json(web, "/explain?name=#{name}", as)["builtin"]} == {name, as, item}
            )

      assert get(web, "/explain?name=tasks.get", @operator) =~
               ~s(<code>builtins: [&quot;tasks&quot;]</code>)
    end

    test "takes a profile only from an operator", %{web: web} do
      assert json(web, "/explain?name=boss-plan&profile=root", "ann")
             |> Map.take(["files", "profile"]) ==
               %{"files" => [], "profile" => "ann"}
    end
  end

  test "/route shows the stages with their candidates", %{web: web} do
    data = json(web, "/route?request=Put+the+kettle+on", "ann")

    assert [%{"name" => "tea", "stage" => "keywords", "reason" => "keyword: kettle"}] =
             data["picks"]

    assert [%{"stage" => "keywords", "status" => "ok"}, %{"stage" => "retrieval"}] =
             data["stages"]

    assert get(web, "/route?request=Put+the+kettle+on", "ann") =~ "keyword: kettle"
    assert get(web, "/route?request=xyzzy", "ann") =~ "No skill is needed"
    assert get(web, "/route", "ann") =~ "Write a request"
    assert get(web, "/route?request=kettle", "off") =~ "The router is off for this profile"
  end

  describe "/try" do
    test "lists commands with the policy's answer", %{web: web} do
      policies = fn as ->
        for one <- json(web, "/try", as)["commands"], do: {one["name"], one["policy"]}
      end

      assert policies.("ann") == [
               {"mail.ask", "asks"},
               {"mail.read", "runs"},
               {"mail.send", "runs"}
             ]

      assert policies.("guest") == [
               {"mail.ask", "asks"},
               {"mail.read", "runs"},
               {"mail.send", "denied"}
             ]

      get(web, "/try", "ann")
    end

    test "finds commands by their names, a page at a time", context do
      %{web: web, book: book, tmp_dir: folder} = context
      write(folder, for(n <- 1..120, into: %{}, do: {"n/c#{n}.md", page("n.c#{n}")}))
      Skillbook.reload(book)

      names = fn query ->
        for one <- json(web, "/try" <> query, "ann")["commands"], do: one["name"]
      end

      assert {length(names.("")), length(names.("?page=2"))} == {100, 23}
      assert names.("") -- names.("?page=2") == names.("")
      assert names.("?q=MAIL.") == ~w(mail.ask mail.read mail.send)
      assert names.("?q=boss") == []
      assert get(web, "/try?q=none", "ann") =~ "No command has a name with this text."
      assert get(web, "/try?q=n.c&page=2", "ann") =~ "Page 2 of 2"
    end

    test "has an input for each type of flag", %{web: web} do
      inputs =
        for {name, attributes, _} <- HtmlChecker.elements(get(web, "/try/mail.send", "ann")),
            name in ~w(input textarea select),
            "flag-" <> flag <- [attributes["name"]],
            into: %{},
            do:
              {flag,
               {name, attributes["type"], attributes["min"], attributes["max"],
                is_map_key(attributes, "required")}}

      assert inputs == %{
               "to" => {"input", "email", nil, nil, true},
               "copies" => {"input", "number", "1", "9", false},
               "kind" => {"select", nil, nil, nil, false},
               "when" => {"input", "text", nil, nil, false},
               "tags" => {"textarea", nil, nil, nil, false},
               "note" => {"textarea", nil, nil, nil, false},
               "site" => {"input", "url", nil, nil, false},
               "ratio" => {"input", "number", nil, nil, false},
               "urgent" => {"input", "checkbox", nil, nil, false}
             }
    end

    defp submit(web, name, fields, as) do
      form = Map.new(fields, fn {key, value} -> {to_string(key), value} end)
      response = Requests.call(web, "POST", "/try/#{name}?format=json", as: as, form: form)

      html =
        Requests.call(web, "POST", "/try/#{name}", as: as, form: Map.put(form, "step", "show"))

      if html.status != 404, do: checked(html)
      {:ok, data} = JSON.decode(response.body)
      {response.status, data}
    end

    test "writes the exact command line, which parses to the same values", %{web: web} do
      hostile = ~S(a "b" 'c' $d `e` {1} --x) <> "\n```cmd\nmail.read\n```"

      for {fields, line} <- [
            {[{"flag-to", "a@b.co"}], "mail.send --to a@b.co"},
            {[
               {"flag-to", "a@b.co"},
               {"flag-urgent", "1"},
               {"flag-copies", "2"},
               {"flag-kind", ""}
             ], "mail.send --copies 2 --to a@b.co --urgent"},
            {[{"flag-to", "a@b.co"}, {"flag-tags", "x\r\ny z\r\n"}],
             ~s(mail.send --tags x "y z" --to a@b.co)},
            {[{"flag-to", "a@b.co"}, {"flag-note", hostile}], nil}
          ] do
        {200, data} = submit(web, "mail.send", [{"step", "show"} | fields], "ann")
        if line, do: assert(data["command"] == line)
        assert data["result"] == nil
        {:ok, command} = Skillbook.Command.parse(data["command"])
        assert command.name == "mail.send"

        with {_, note} <- List.keyfind(fields, "flag-note", 0),
             do: assert(command.flags["note"] == note)
      end
    end

    test "runs the command as the caller, and shows its result", %{web: web} do
      run = &submit(web, &1, [{"step", "run"}, {"flag-to", "a@b.co"}], &2)

      assert {200, %{"result" => %{"status" => "ok", "content" => content}}} =
               run.("mail.send", "ann")

      assert content =~ ~s("to" => "a@b.co")

      assert {200, %{"result" => %{"status" => "error", "content" => refused}}} =
               run.("mail.send", "guest")

      assert refused =~ "only commands that read may run here"
      # Mistakes in flags are told by the command itself.
      assert {200, %{"result" => %{"status" => "error", "content" => wrong}}} =
               submit(web, "mail.send", [{"step", "run"}, {"flag-to", "nobody"}], "ann")

      assert wrong =~ "--to"
    end

    test "links to the approval that a call waits for", %{web: web} do
      response =
        checked(Requests.call(web, "POST", "/try/mail.ask", as: "ann", form: %{"step" => "run"}))

      assert [_, ref] = Regex.run(~r{href="/approvals/(A-[a-z0-9]+)"}, response.body)
      assert get(web, "/approvals/#{ref}", "ann") =~ "An operator decides."
    end

    test "says which value is wrong", %{web: web} do
      assert {422, %{"errors" => ["--note: expected text without NUL"]}} =
               submit(web, "mail.send", [{"flag-note", "a\0b"}], "ann")

      assert {422, %{"errors" => ["--note: expected at most 100,000 bytes"]}} =
               submit(web, "mail.send", [{"flag-note", String.duplicate("x", 100_001)}], "ann")
    end

    test "is not there for other entries, and runs nothing as another profile", %{
      web: web,
      book: book
    } do
      for name <- ~w(tea boss-plan none mail),
          do: assert(Requests.call(web, "GET", "/try/#{name}", as: "ann").status == 404)

      assert %{status: 403} =
               Requests.call(web, "POST", "/try/mail.send?as=ann",
                 as: @operator,
                 form: %{"step" => "run"}
               )

      assert get(web, "/try/mail.send?as=guest", @operator) =~ "Commands run as your own profile"
      assert {:ok, %{total: %{run: 0}}} = Skillbook.usage(View.all(book))
    end
  end
end
