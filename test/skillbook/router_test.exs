defmodule Skillbook.RouterTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{CommandError, Profile, Router, UnknownSkillError, View}

  doctest Skillbook.Router

  setup do
    {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
    {:ok, view: View.all(catalog), catalog: catalog}
  end

  test "matches a command's name to its skill", %{view: view} do
    assert {:ok, routed} = Router.route(view, ~S(email.send --to "Bob Smith" --urgent -- rest))
    assert routed.entry.description == View.fetch!(view, "email.send").description
    assert routed.command.flags == %{"to" => "Bob Smith", "urgent" => true}
    assert routed.command.args == ["rest"]
  end

  test "returns an error for unknown names and invalid lines", %{view: view} do
    assert {:error, %UnknownSkillError{name: "nothing.like"}} =
             Router.route(view, "nothing.like --it")

    assert {:error, %CommandError{kind: :unclosed_quote}} = Router.route(view, "email.send \"x")
    assert {:error, %CommandError{kind: :empty_command}} = Router.route(view, "")

    assert {:error, %CommandError{kind: :invalid_utf8}} =
             Router.route(view, <<"email.send ", 255>>)
  end

  test "get_skill answers on all levels", %{view: view} do
    for {line, path} <- [
          {"get_skill", ""},
          {"get_skill: email", "email"},
          {"get_skill email", "email"},
          {"get_skill:email.send", "email.send"},
          {"get_skill: email.all", "email.all"},
          {"get_skill: pdf-processing", "pdf-processing"},
          {"get_skill --name email", "email"},
          {~S(get_skill {"name": "email"}), "email"},
          {"get_skill --help", ""},
          {"get_skill -h", ""},
          {"get_skill email --help", "email"}
        ] do
      {:ok, expected} = Skillbook.get(view, path)
      assert Router.route(view, line) == {:help, expected}, line
    end

    assert {:help, both} = Router.route(view, "get_skill email.send haiku")
    {:ok, send} = Skillbook.get(view, "email.send")
    {:ok, haiku} = Skillbook.get(view, "haiku")
    assert both == send <> "\n\n---\n\n" <> haiku

    for line <- [
          "get_skill: email.send, haiku",
          "get_skill email.send,haiku",
          "get_skill : email.send haiku"
        ],
        do: assert(Router.route(view, line) == {:help, both})

    assert {:error, %UnknownSkillError{name: "emails"}} = Router.route(view, "get_skill: emails")
    assert {:error, %UnknownSkillError{name: "x"}} = Router.route(view, "get_skill haiku x")
    assert {:error, %UnknownSkillError{name: "x"}} = Router.route(view, "get_skill haiku,x")
  end

  test "suggests a name that is not the first word", %{view: view} do
    for line <- ["Command: email.send --to x", "run the email.send", "email send --to x"] do
      assert {:error, %UnknownSkillError{suggestions: ["email.send" | _]}} =
               Router.route(view, line)
    end

    assert {:error, %UnknownSkillError{suggestions: []}} =
             Router.route(view, "qqq www eee rrr email.send")
  end

  test "--help and -h answer and run nothing, whatever else is on the line", %{view: view} do
    {:ok, page} = Skillbook.get(view, "email.send")

    for line <- [
          "email.send --help",
          "email.send -h",
          "email.send --to bob --help x",
          "email.send --help --to"
        ] do
      assert Router.route(view, line) == {:help, page}, line
    end

    assert {:ok, _} = Router.route(view, ~S(email.send --body "--help"))
    assert {:ok, _} = Router.route(view, "email.send -- --help")
    {:ok, domain} = Skillbook.get(view, "email")
    assert Router.route(view, "email --help") == {:help, domain}
    assert {:error, %UnknownSkillError{}} = Router.route(view, "nothing.like --help")
  end

  test "a hidden name is unknown in every way", %{catalog: catalog} do
    {:ok, view} = View.new(catalog, %Profile{id: "guest", skills: ["haiku"]})

    for line <- [
          "email.send",
          "email.send --help",
          "run email.send",
          "email send",
          "get_skill: haiku,email.send",
          "get_skill: email.send",
          "get_skill: email",
          "get_skill: email.all"
        ] do
      {:error, error} = Router.route(view, line)
      {:error, missing} = Router.route(view, String.replace(line, "email", "emajl"))
      assert error.suggestions == missing.suggestions

      assert String.replace(Exception.message(error), "email", "emajl") ==
               Exception.message(missing)
    end
  end

  test "large commands have the same result", %{view: view} do
    text = String.duplicate("x", 200_000)
    assert {:ok, routed} = Router.route(view, "email.send --body #{text}")
    assert routed.command.flags["body"] == text
  end
end
