defmodule Skillbook.Connections.ListingTest do
  # Models see commands that need a connection only for profiles that have it.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{ConnectionError, Connections, Tools, View}

  @moduletag :tmp_dir

  defmodule Peek do
    @behaviour Skillbook.Handler

    @impl true
    def execute(_flags, context) do
      with {:ok, account} <- Connections.account(context, :mail),
           do: {:ok, "The account #{account.name}."}
    end
  end

  @pages %{
    "post/SKILL.md" => "---\ndomain: post\ndescription: Mails\n---\n",
    "post/peek.md" => nil,
    "post/plain.md" => nil,
    "files/find.md" => nil
  }

  setup %{tmp_dir: folder} do
    pages = %{
      @pages
      | "post/peek.md" =>
          page("post.peek", connection: "mail", handler: inspect(Peek), effects: "read"),
        "post/plain.md" => page("post.plain"),
        "files/find.md" => page("files.find", connection: "drive")
    }

    account = [
      vendor: :imap,
      host: "mail.example.com",
      username: "ann@example.com",
      password: fn -> "secret" end,
      profiles: ["ann"]
    ]

    profiles = [[id: "ann"], [id: "bob"], [id: "default"]]
    source = [path: write(folder, pages), trust: :high]
    options = [sources: [source], builtins: false, profiles: profiles]
    %{book: book(options ++ [connections: [post: account]])}
  end

  test "prompts, tools, lists and searches have them only with the connection", %{book: book} do
    for {profile, expected} <- [{"ann", true}, {"bob", false}] do
      view = Skillbook.view(book, profile)
      assert view.profile.services == if(expected, do: ["mail"], else: [])

      seen = %{
        prompt: Skillbook.prompt(view, sections: [:commands]) =~ "post.peek",
        tools: Enum.any?(Tools.list(view, []), &(&1.entry == "post.peek")),
        listed: "post.peek" in Enum.map(View.listed(view), & &1.name),
        help: elem(Skillbook.get(view, "post"), 1) =~ "post.peek",
        search: "post.peek" in Enum.map(Skillbook.search(view, "peek"), & &1.name)
      }

      assert {profile, seen} == {profile, Map.new(seen, fn {where, _} -> {where, expected} end)}

      # Neither has a connection to a drive.
      refute Skillbook.prompt(view) =~ "files"
      assert Skillbook.prompt(view) =~ "post  Mails"
    end
  end

  test "a call without the connection says what is missing", %{book: book} do
    assert [%{status: :ok, content: "The account post."}] = run(book, "ann")
    assert [%{status: :error, error: %ConnectionError{} = error}] = run(book, "bob")

    assert Exception.message(error) ==
             "the profile bob has no connection for mail: no account in the book's " <>
               ":connections offers it to this profile; see `bin/skillbook connect --help`"

    explanation = to_string(Skillbook.explain(book, "post.peek", profile: "bob"))

    assert explanation =~ "nowhere: the profile has no connection to a service for mail"
  end

  defp run(book, profile),
    do: Skillbook.run(Skillbook.view(book, profile), "```cmd\npost.peek\n```").results
end
