defmodule Skillbook.Store.FieldsTest do
  use ExUnit.Case, async: true

  alias Skillbook.Store.Fields
  alias Skillbook.Stored

  @whole %{title: "Milk", content: "Two bottles."}

  defp refused(fields) do
    {:error, error} = Fields.create(Map.merge(@whole, fields))
    Exception.message(error)
  end

  defp kept(field, value) do
    {:ok, fields} = Fields.create(Map.put(@whole, field, value))
    fields[field]
  end

  test "values are normalized" do
    for {field, value, kept} <- [
          {:name, "weekly-report-2", "weekly-report-2"},
          {:name, String.duplicate("a", 64), String.duplicate("a", 64)},
          {:name, "grüße-世界", "grüße-世界"},
          {:name, "gru\u0308ße", "grüße"},
          {:title, "  Milk; drop table skillbook_entries --  ",
           "Milk; drop table skillbook_entries --"},
          {:title, String.duplicate("ü", 200), String.duplicate("ü", 200)},
          {:description, "\nWhat it is for\n", "What it is for"},
          {:description, String.duplicate("世", 1_024), String.duplicate("世", 1_024)},
          {:content, "", ""},
          {:content, "  \r\n\t", "  \r\n\t"},
          {:content, String.duplicate("a", 1_048_576), String.duplicate("a", 1_048_576)},
          {:tags, [" a ", "b", "A"], ["a", "b"]},
          {:tags, [], []},
          {:labels, ["b", "a", "b"], ["a", "b"]},
          {:labels, [" a"], [" a"]},
          {:proactive_for, ["b", "a"], ["a", "b"]},
          {:attachments, ["b.png", "a.png", "b.png"], ["b.png", "a.png"]},
          {:include_in_prompt, false, false},
          {:kind, :note, :note},
          {:description, nil, nil}
        ] do
      assert {field, kept(field, value)} == {field, kept}
    end
  end

  @name "expected lowercase letters, digits and single dashes between them, at most 64 " <>
          "characters, as the name of an entry, got: "
  @title "expected one line of 1 to 200 characters as the title of an entry, got: "
  @tags "expected at most 32 texts of 1 to 64 characters on one line as the tags of an " <>
          "entry, got: "

  test "errors of fields" do
    for {fields, message} <- [
          {%{name: "Weekly Report"},
           @name <> ~s("Weekly Report". Write for example: weekly-report)},
          {%{name: "a--b"}, @name <> ~s("a--b". Write for example: a-b)},
          {%{name: "-a"}, @name <> ~s("-a". Write for example: a)},
          {%{name: "a\n"}, @name <> ~S("a\n". Write for example: a)},
          {%{name: "email.send"}, @name <> ~s("email.send". Write for example: email-send)},
          {%{name: "../../etc/passwd"},
           @name <> ~s("../../etc/passwd". Write for example: etc-passwd)},
          {%{name: ""}, @name <> ~s("". Write for example: note)},
          {%{name: :milk}, @name <> ":milk. Write for example: note"},
          {%{name: "\u3164"}, @name <> ~s("\u3164". Write for example: note)},
          {%{name: "a\u200bb"}, @name <> inspect("a\u200Bb") <> ". Write for example: a-b"},
          {%{name: String.duplicate("a", 65)},
           @name <>
             ~s("#{String.duplicate("a", 60)}...". Write for example: ) <>
             ~s(#{String.duplicate("a", 64)})},
          {%{name: <<255>>}, @name <> "<<255>>. Write for example: note"},
          {%{title: " "}, @title <> ~s(" ". Write for example: Weekly report)},
          {%{title: "a\nb"}, @title <> ~S("a\nb". Write for example: Weekly report)},
          # Versions of Elixir inspect it differently.
          {%{title: "a\u202Eb"},
           @title <> inspect("a\u202Eb") <> ". Write for example: Weekly report"},
          {%{title: "a\0"}, @title <> ~S("a\0". Write for example: Weekly report)},
          {%{title: String.duplicate("ü", 201)},
           @title <> ~s("#{String.duplicate("ü", 60)}...". Write for example: Weekly report)},
          {%{title: nil},
           "an entry needs the title: one line of 1 to 200 characters. Write for example: " <>
             "Weekly report"},
          {%{content: nil}, "an entry needs the content: the text"},
          {%{content: "a\0b"},
           ~S(expected text of at most 1048576 bytes in UTF-8 without NUL as the content of ) <>
             ~S(an entry, got: "a\0b")},
          {%{content: String.duplicate("a", 1_048_577)},
           ~s(expected text of at most 1048576 bytes in UTF-8 without NUL as the content of ) <>
             ~s(an entry, got: "#{String.duplicate("a", 60)}...")},
          {%{description: String.duplicate("a", 1_025)},
           ~s(expected text of at most 1024 characters without NUL as the description of an ) <>
             ~s(entry, got: "#{String.duplicate("a", 60)}...")},
          {%{tags: "a"}, @tags <> ~s("a")},
          {%{tags: ["a", ""]}, @tags <> ~s(["a", ""])},
          {%{tags: ["a\nb"]}, @tags <> ~S(["a\nb"])},
          {%{tags: [1]}, @tags <> "[1]"},
          {%{tags: Enum.map(1..33, &"t#{&1}")}, @tags <> ~s(["t1", "t2", "t3", "t4", "t5", ...])},
          {%{labels: [String.duplicate("a", 129)]},
           "expected at most 64 texts of 1 to 128 characters on one line as the labels of an " <>
             "entry, got: " <>
             ~s(["#{String.duplicate("a", 60)}" <> ...])},
          {%{include_in_prompt: "yes"},
           ~s(expected true or false as the include_in_prompt of an entry, got: "yes". Write ) <>
             ~s(for example: false)},
          {%{kind: :command},
           "expected :skill or :note as the kind of an entry, got: :command. Write for " <>
             "example: :note"},
          {%{titel: "a"},
           ~s(unknown field "titel" for an entry, did you mean title? The fields are name, ) <>
             ~s(kind, title, description, ) <>
             "content, tags, labels, include_in_prompt, proactive_for, excluded_for, " <>
             "attachments, schedule, timezone"}
        ] do
      assert refused(fields) == message
    end
  end

  test "an update takes an edit instead of the content, and neither name nor kind" do
    assert Fields.update(%{edit: {:append, "x"}, title: nil}) == {:ok, %{edit: {:append, "x"}}}

    for field <- [:name, :kind, :content] do
      assert {:error, %{kind: :unknown, field: ^field}} = Fields.update(%{field => "x"})
    end
  end

  test "names are derived from titles" do
    for {title, name} <- [
          {"Weekly Report", "weekly-report"},
          {"  What -- is / this?! ", "what-is-this"},
          {"Grüße aus Köln", "grüße-aus-köln"},
          {"日本語 メモ", "日本語-メモ"},
          {"İstanbul", "istanbul"},
          {"email.send", "email-send"},
          {"🎉", "note"},
          {"\u3164", "note"},
          {String.duplicate("ab ", 40),
           (String.duplicate("ab-", 20) <> "ab-a") |> String.trim_trailing("-")},
          {"'; drop table x; --", "drop-table-x"}
        ] do
      assert Fields.slug(title) == name
      assert Fields.name(Fields.slug(title)) == {:ok, name}
    end

    long = String.duplicate("a", 64)
    assert Fields.numbered("milk", 2) == "milk-2"
    assert Fields.numbered(long, 123) == String.duplicate("a", 54) <> "-123"
    assert String.starts_with?(Fields.numbered(long, 2), Fields.stem(long))
  end

  test "each derived name is valid" do
    :rand.seed(:exsss, {1, 2, 3})

    alphabet =
      Enum.concat([
        ?\s..?~,
        ?À..?ſ,
        0x0300..0x036F,
        0x0900..0x097F,
        0x1100..0x11FF,
        0x2000..0x206F,
        0x1F600..0x1F610
      ])

    for _ <- 1..500 do
      title = for _ <- 1..:rand.uniform(80), into: "", do: <<Enum.random(alphabet)::utf8>>
      name = Fields.slug(title)
      assert Fields.name(name) == {:ok, name}, inspect(title)
      assert {:ok, _} = Fields.name(Fields.numbered(name, 7))
    end
  end

  test "frontmatter makes a note a skill, and a skill needs a description" do
    frontmatter = "---\nname: milk\ndescription: About milk\n---\nTwo bottles."

    for {kind, description, content, expected} <- [
          {:note, "", "Two bottles.", :note},
          {:note, "", frontmatter, :skill},
          {:note, "", "---\nname: milk\n---\n", :note},
          {:note, "", "---\nname: milk\ndescription: ' '\n---\n", :note},
          {:note, "", "---\n[\n---\n", :note},
          {:skill, "About milk", "Two bottles.", :skill},
          {:skill, "", frontmatter, :skill},
          {:skill, "", "---\ndescription: About milk\n---\n", :skill}
        ] do
      stored = %Stored{kind: kind, description: description, content: content}
      assert Fields.resolve(stored) == {:ok, %{stored | kind: expected}}, inspect(stored)
    end

    assert {:error, error} = Fields.resolve(%Stored{kind: :skill, content: "Two bottles."})

    assert Exception.message(error) ==
             "expected text of 1 to 1024 characters for a skill as the description of an " <>
               "entry, got: \"\". Write for example: What it is for"
  end

  test "labels and exclusions of the frontmatter are added to those of the entry" do
    front =
      "---\nvisibility_labels: [b, a]\nlabels: c\n" <>
        "exclude_from_prompt_profile_ids: [guest]\n---\n"

    stored = %Stored{kind: :note, content: front, labels: ["d"], excluded_for: ["anna"]}
    assert {:ok, joined} = Fields.resolve(stored)
    assert joined.labels == ["a", "b", "c", "d"]
    assert joined.excluded_for == ["anna", "guest"]
    assert Fields.resolve(joined) == {:ok, joined}

    many = Enum.map_join(1..65, ", ", &"l#{&1}")
    stored = %Stored{kind: :note, content: "---\nlabels: [#{many}]\n---\n"}
    assert {:error, %{kind: :invalid, field: :labels}} = Fields.resolve(stored)
  end

  test "a restriction in the content that cannot be read is refused" do
    for {field, message} <- [
          {"visibility-labels: [a]",
           "expected `visibility_labels`, got `visibility-labels`; write for example " <>
             "visibility_labels: [private, family]"},
          {"labels:",
           "expected a list of texts for `labels`, got nothing; write for example " <>
             "labels: [private, family], or an empty list [] for none"},
          {"allowed_tools: Read",
           "expected `allowed-tools`, got `allowed_tools`; write for example " <>
             "allowed-tools: Read Bash(git:*)"}
        ] do
      stored = %Stored{kind: :note, content: "---\n#{field}\n---\nText"}
      assert {:error, error} = Fields.resolve(stored)

      assert {error.kind, Exception.message(error)} ==
               {:restriction, "the frontmatter of the content: line 2: " <> message}
    end
  end

  test "a field that is nearly a restriction is refused with the right name" do
    fields =
      ~w(title description content tags labels include_in_prompt proactive_for) ++
        ~w(excluded_for attachments schedule timezone)

    given = %{title: "A", content: ""}

    for {key, instead} <- [
          {:visibility_labels, ", did you mean labels?"},
          {:"visibility-labels", ", did you mean labels?"},
          {:label, ", did you mean labels?"},
          {"labels", ", did you mean labels?"},
          {:exclude_from_prompt_profile_ids, ", did you mean excluded_for?"},
          {:exclude_for, ", did you mean excluded_for?"},
          {:"include-in-prompt", ", did you mean include_in_prompt?"},
          {:allowed_tools, "; write `allowed-tools` in the frontmatter of its content."},
          {:"user-invocable", "; write `user-invocable` in the frontmatter of its content."},
          {:hidden_from_model,
           "; write `disable-model-invocation` in the frontmatter of its content."}
        ],
        # No value makes it a known field.
        value <- [["a"], nil] do
      assert {:error, error} = Fields.create(Map.put(given, key, value))

      assert Exception.message(error) ==
               "unknown field #{inspect(to_string(key))} for an entry#{instead} " <>
                 "The fields are " <> Enum.join(["name", "kind" | fields], ", ")
    end
  end
end
