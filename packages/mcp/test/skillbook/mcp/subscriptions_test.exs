defmodule Skillbook.MCP.SubscriptionsTest do
  # Changes that a stream reads later than they were made.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.MCP.{Context, Subscriptions}
  alias Skillbook.View

  @moduletag :tmp_dir

  @filter Subscriptions.all([])

  setup %{tmp_dir: folder} do
    write(folder, %{"a/SKILL.md" => skill("a", "One")})
    book = book(sources: [folder], builtins: false, watch: false)
    :ok = Skillbook.subscribe(book)
    view = View.all(book)

    {:ok,
     book: book, context: %Context{view: view, profile: view.profile, revision: "2025-11-25"}}
  end

  defp skill(name, body), do: "---\nname: #{name}\ndescription: About #{name}\n---\n#{body}\n"

  # The change of the book after other texts of its files.
  defp change(book, folder, files) do
    write(folder, files)
    :ok = Skillbook.reload(book)
    assert_receive {:skillbook, ^book, change}
    change
  end

  defp lists(messages), do: for(%{"method" => method} <- messages, do: method)

  @changed for list <- ["tools", "prompts", "resources"], do: "notifications/#{list}/list_changed"

  test "none is lost, though the book is further than the stream", context do
    %{book: book, context: start, tmp_dir: folder} = context

    for {first, number} <- [
          # Only findings differ: there is no name in the change.
          {%{"broken/SKILL.md" => "---\nname: broken\n---\n"}, 1},
          {%{"b/SKILL.md" => skill("b", "One")}, 2}
        ],
        reduce: start do
      stream ->
        earlier = change(book, folder, first)
        later = change(book, folder, %{"c#{number}/SKILL.md" => skill("c#{number}", "One")})
        {messages, stream} = Subscriptions.changed(earlier, stream, @filter, nil)
        assert lists(messages) == if(earlier.added == [], do: [], else: @changed)
        {messages, stream} = Subscriptions.changed(later, stream, @filter, nil)
        assert lists(messages) == @changed

        # The same change again is none.
        assert {[], stream} = Subscriptions.changed(later, stream, @filter, nil)
        stream
    end
  end
end
