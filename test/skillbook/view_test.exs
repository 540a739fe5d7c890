defmodule Skillbook.ViewTest do
  use ExUnit.Case, async: true

  doctest Skillbook.View
  doctest Skillbook.Profile
  doctest Skillbook.UnknownSkillError
  doctest Skillbook.Domain

  alias Skillbook.{Catalog, Domain, UnknownSkillError, View}

  @fixtures "test/support/fixtures"

  setup_all do
    {:ok, catalog} =
      Catalog.load([@fixtures <> "/skills", [path: @fixtures <> "/notes", kind: :notes]])

    %{catalog: catalog}
  end

  defp view(catalog, profile) do
    {:ok, view} = View.new(catalog, profile)
    view
  end

  defp names(entries), do: Enum.map(entries, & &1.name)

  test "an entry is a flat map, with at most 32 keys" do
    assert map_size(struct(Skillbook.Entry)) <= 32
  end

  test "shows entries with granted labels", %{catalog: catalog} do
    open = [
      "email.draft",
      "email.search",
      "haiku",
      "pdf-processing",
      "shopping",
      "taxes",
      "tasks.create",
      "tasks.search"
    ]

    rows = [
      {[id: "guest"], open},
      {[id: "guest", grants: ["private"]], ["diary" | open]},
      {[id: "guest", grants: ["family", "outbound"]], ["email.send", "family/dinner" | open]},
      {[id: "guest", skills: ["tasks.*", "h*"]], ["haiku", "tasks.create", "tasks.search"]},
      {[id: "guest", skills: []], []},
      {[id: "guest", grants: :all], ["diary", "email.send", "family/dinner" | open]}
    ]

    for {profile, expected} <- rows do
      view = view(catalog, profile)
      assert names(View.entries(view)) == Enum.sort(expected), inspect(profile)
      assert View.count(view) == length(expected)
    end
  end

  test "filters entries by domain and kind", %{catalog: catalog} do
    view = View.all(catalog)

    rows = [
      {[domain: "tasks"], ["tasks.create", "tasks.search"]},
      {[domain: "none"], []},
      {[kind: :note], ["family/dinner", "shopping", "taxes"]},
      {[kind: :skill], ["diary", "haiku", "pdf-processing"]},
      {[kind: :command, domain: "email"], ["email.draft", "email.search", "email.send"]},
      {[kind: :note, domain: "email"], []},
      {[kind: nil, domain: nil, kind: :note], View.entries(view) |> names()},
      {[limit: 2, kind: :note], ["family/dinner", "shopping"]},
      {[limit: 2, kind: :note, after: "family/dinner"], ["shopping", "taxes"]},
      {[after: "shopping", kind: :note], ["taxes"]},
      {[after: "taxes-2025", kind: :note], []},
      {[limit: nil, after: nil, domain: "none"], []}
    ]

    for {options, expected} <- rows, do: assert(names(View.entries(view, options)) == expected)

    assert_raise Skillbook.OptionError,
                 "unknown option :domian for the entries of a view, did you mean :domain? The " <>
                   "options are :domain, :kind, :limit, :after",
                 fn -> View.entries(view, domian: "email") end
  end

  test "reads any part of the entries as a stream" do
    folder = Path.join(System.tmp_dir!(), "stream-#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)
    File.mkdir_p!(folder)

    for n <- 100..299 do
      label = if rem(n, 3) == 0, do: "visibility_labels: [boss]\n"
      model = if rem(n, 5) == 0, do: "disable-model-invocation: true\n"

      File.write!(
        Path.join(folder, "n#{n}.md"),
        "---\nname: n#{n}\ndescription: Number #{n}\n#{label}#{model}---\nText.\n"
      )
    end

    {:ok, catalog} = Catalog.load([folder])

    for profile <- [[id: "ann"], [id: "boss", grants: :all], [id: "few", skills: ["n2*"]]],
        view = view(catalog, profile),
        all = View.entries(view),
        listed = View.listed(view),
        # Names of entries that are shown, hidden and missing, and texts before and after all.
        from <- ["", "n100", "n102", "n1505", "n163", "n298", "n299", "z", "é"] do
      streamed = fn options -> names(Enum.to_list(View.stream(view, options))) end
      later = fn entries -> for %{name: name} <- entries, name > from, do: name end
      at_or_later = fn entries -> for %{name: name} <- entries, name >= from, do: name end

      assert {from, streamed.(after: from)} == {from, later.(all)}
      assert {from, streamed.(from: from)} == {from, at_or_later.(all)}
      assert {from, streamed.(after: from, listed: true)} == {from, later.(listed)}
      assert streamed.(listed: true) == names(listed)

      assert view |> View.stream(from: from) |> Enum.take(3) |> names() ==
               Enum.take(at_or_later.(all), 3)

      for kind <- [nil, :skill, :note, :command] do
        assert View.names(view, kind: kind) == names(View.entries(view, kind: kind))
        assert View.names(view, kind: kind, listed: true) == names(View.listed(view, kind: kind))
      end
    end
  end

  test "finds entries by name and alias", %{catalog: catalog} do
    view = View.all(catalog)

    assert {:ok, %{name: "email.search", kind: :command, domain: "email", effects: :read}} =
             View.fetch(view, "mail.find")

    assert View.fetch!(view, "email.search") == View.fetch!(view, "mail.find")
    assert View.fetch!(view, "shopping").title == "Shopping list"
    assert View.fetch!(view, "pdf-processing").allowed_tools == ["Bash(pdftk:*)", "Read"]
  end

  test "treats hidden entries like missing ones", %{catalog: catalog} do
    guest = view(catalog, id: "guest")

    for {hidden, missing} <- [{"diary", "diarx"}, {"email.send", "email.sent"}] do
      assert {:error, %UnknownSkillError{name: ^hidden, suggestions: offered}} =
               View.fetch(guest, hidden)

      assert {:error, %UnknownSkillError{suggestions: others}} = View.fetch(guest, missing)
      assert hidden not in offered and hidden not in others
      assert {:error, %UnknownSkillError{}} = Skillbook.Help.get(guest, hidden)
    end
  end

  test "accepts any binary as a name", %{catalog: catalog} do
    view = View.all(catalog)

    for name <- ["", <<0xFF>>, String.duplicate("x", 100_000), "a\0b"] do
      assert {:error, %UnknownSkillError{name: ^name, suggestions: []}} = View.fetch(view, name)
    end

    {:error, error} = View.fetch(view, String.duplicate("x", 200))
    assert Exception.message(error) =~ ~r/^unknown skill "x{100}"\./

    assert_raise UnknownSkillError, ~r/^unknown skill "haikuu"; did you mean haiku\?/, fn ->
      View.fetch!(view, "haikuu")
    end
  end

  test "lists domains", %{catalog: catalog} do
    assert [%Domain{name: "email"} = email, %Domain{name: "tasks"} = tasks] =
             View.domains(view(catalog, id: "guest"))

    assert email.description == "Send, find and draft mail"
    assert email.path == Path.expand(@fixtures <> "/skills/email/SKILL.md")
    refute email.body =~ "email.send"
    assert hd(View.domains(View.all(catalog))).body =~ "email.send"
    assert {tasks.description, tasks.path} == {"tasks.create, tasks.search", nil}
  end

  test "shows diagnostics of visible entries", %{catalog: catalog} do
    assert [%{code: :not_a_skill}] = View.diagnostics(View.all(catalog))
    assert View.diagnostics(view(catalog, id: "guest", grants: ["private"])) == []
  end

  test "returns the tools that an entry may use", %{catalog: catalog} do
    rows = [
      {:all, "pdf-processing", ["Bash(pdftk:*)", "Read"], {true, true}},
      {["Bash"], "pdf-processing", ["Bash(pdftk:*)"], {true, false}},
      {[], "pdf-processing", [], {false, false}},
      {:all, "haiku", :all, {true, true}},
      {["Read"], "haiku", ["Read"], {false, true}}
    ]

    for {tools, name, expected, allowed} <- rows do
      view = view(catalog, id: "guest", tools: tools)
      assert View.tools(view, name) == {:ok, expected}

      assert {View.allows_tool?(view, name, "Bash", "pdftk x"),
              View.allows_tool?(view, name, "Read")} ==
               allowed
    end

    guest = view(catalog, id: "guest")
    assert {:error, %UnknownSkillError{name: "diary"}} = View.tools(guest, "diary")
    refute View.allows_tool?(guest, "diary", "Read")
  end

  test "rejects invalid profiles", %{catalog: catalog} do
    rows = [
      {[grants: []], "a profile needs the option :id"},
      {[id: "a", grant: []],
       "unknown option :grant for a profile, did you mean :grants? The options are :id, " <>
         ":tenant, :others, :grants, :skills, :within, :tools, :writes, :approved, :labels, " <>
         ":preflight, :hooks, :description, :assigns, :role"},
      {[id: "a", skills: ["["]],
       "expected globs (unclosed character class; missing ']') as the option :skills of a " <>
         "profile, got: \"[\""}
    ]

    for {profile, message} <- rows do
      assert {:error, error} = View.new(catalog, profile)
      assert Exception.message(error) == message
    end
  end

  test "suggests up to three names in the error" do
    message = &Exception.message(%UnknownSkillError{name: "x", suggestions: &1})

    assert message.(["a"]) ==
             ~s(unknown skill "x"; did you mean a? To list all skills, write: get_skill)

    assert message.(["a", "b", "c"]) ==
             ~s(unknown skill "x"; did you mean a, b or c? To list all skills, write: get_skill)
  end
end
