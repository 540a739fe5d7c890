defmodule Skillbook.Reply.PlaceholderErrorTest do
  use ExUnit.Case, async: true
  doctest Skillbook.PlaceholderError
end

defmodule Skillbook.Reply.PlaceholderTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Command, Hostile, PlaceholderError, PolicyError, Profile, View}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/get.md" => page("x.get", handler("Call")),
      "x/send.md" => page("x.send", handler("Call") ++ [aliases: "[post]"]),
      "x/fail.md" => page("x.fail", handler("ErrorText")),
      "x/page.md" => page("x.page", [], "Do it.\n")
    })

    %{view: view(folder)}
  end

  # Commands without flags return `text`; the others send their flags.
  defp run(view, lines, text, options \\ []) do
    test = self()

    call = fn flags, context ->
      if flags == %{} and context.command.args == [] do
        {:ok, text}
      else
        send(test, {:got, flags, context.command.args})
        {:ok, "sent"}
      end
    end

    Skillbook.run(
      view,
      "```cmd\n#{Enum.join(lines, "\n")}\n```",
      [assigns: %{call: call}] ++ options
    )
  end

  test "refer to results of the same reply", %{view: view} do
    for {line, flags, args} <- [
          {"x.send {1}", %{}, ["A b"]},
          {"x.send {last}", %{}, ["A b"]},
          {"x.send --body {1}", %{"body" => "A b"}, []},
          {"x.send --body={1} {last} x {1}", %{"body" => ["A b", "A b", "x", "A b"]}, []},
          {"x.send --body = {1} -- {1}", %{"body" => "A b"}, ["A b"]},
          {"x.send y {1} --a {1} --b {last}", %{"a" => "A b", "b" => "A b"}, ["y", "A b"]},
          {"post {1}", %{}, ["A b"]},
          {~S(x.send "{1}" x{1} {1}, '{last}' {{1}} \{1}), %{},
           ["{1}", "x{1}", "{1},", "{last}", "{{1}}", "{1}"]},
          {~S(x.send {"body": "{1}"}), %{"body" => "{1}"}, []},
          {"x.send <<E\n{1}\nE", %{}, ["{1}"]}
        ] do
      assert [%{status: :ok}, %{status: :ok, command: ^line}] =
               run(view, ["x.get", line], "A b").results

      assert_receive {:got, ^flags, ^args}
    end
  end

  test "refer to pages and answers too, but never to the name of a command", %{view: view} do
    run(view, ["x.page", "get_skill x.page", "x.send {1} {2} {last}"], "")
    assert_receive {:got, %{}, ["Do it.", "Do it.", "Do it."]}

    report = run(view, ["x.get", "{1}", "{last} --a b", "get_skill {1}"], "x.page")

    assert [
             _,
             %{
               status: :error,
               content:
                 "unknown skill " <>
                   "\"{1}\"" <> _
             },
             %{status: :error},
             help
           ] = report.results

    assert %{status: :help, content: "Do it."} = help
  end

  test "have the full text of a truncated result", %{view: view} do
    long = String.duplicate("word ", 2000)
    report = run(view, ["x.get", "x.send {1}"], long, max_result: 100)
    assert [%{metadata: %{cut: %{to: shown}}}, %{status: :ok}] = report.results
    assert shown <= 100
    assert_receive {:got, %{}, [^long]}
  end

  test "report references without a result", %{view: view} do
    correct = "Correct that command, and write this one after it"
    quoted = "to write it as plain text, put it in quotes"

    rows = [
      {["x.fail", "x.send {1}"], "`{1}` has no value: command 1 failed. #{correct}"},
      {["x.get", "x.fail", "x.send {last}"],
       "`{last}` has no value: command 2 failed. #{correct}"},
      {["x.nothing", "x.send {1}"], "`{1}` has no value: command 1 failed. #{correct}"},
      {["x.send {last}"],
       "`{last}` has no value: this is the first command of the reply, and placeholders refer " <>
         "to results of the same reply. Write the value itself; #{quoted}: \"{last}\""},
      {["x.get", "x.send {2}"],
       "`{2}` has no value: this is command 2 of the reply, " <>
         "and only those before it have a result. " <>
         "Name one of them, or write the value itself; #{quoted}: \"{2}\""},
      {["x.get", "x.send {0}"],
       "`{0}` has no value: this is command 2 of the reply, " <>
         "and only those before it have a result, counted from 1. " <>
         "Name one of them, or write the value itself; #{quoted}: \"{0}\""},
      {["x.send {1}", "x.send {1}"], "`{1}` has no value: command 1 failed. #{correct}"},
      {["get_skill {3}"],
       "`{3}` has no value: this is the first command of the reply, and placeholders refer " <>
         "to results of the same reply. Write the value itself; #{quoted}: \"{3}\""}
    ]

    for {lines, text} <- rows do
      result = List.last(run(view, lines, "A").results)
      assert %{status: :error, error: %PlaceholderError{}, content: ^text} = result
    end

    refute_received {:got, _, _}
  end

  test "have a size limit for all values together", %{view: view} do
    long = String.duplicate("x", 6 * 1024 * 1024)

    assert [_, %{status: :ok}] =
             run(view, ["x.get", "x.send {1} {1}"], long, max_result: 10).results

    assert [_, %{error: error}] =
             run(view, ["x.get", "x.send {1} {1} {1}"], long, max_result: 10).results

    assert Exception.message(error) ==
             "`{1}` is too long: the values of a command's placeholders may have 16777216 " <>
               "bytes " <>
               "in total. Ask for less in the command that it refers to"
  end

  test "the :ask callback gets the value", %{tmp_dir: folder} do
    test = self()

    ask = fn request ->
      send(
        test,
        {:asked, request.command.flags, Skillbook.Reply.Placeholder.values(request.written)}
      )

      if request.command.flags == %{}, do: :allow, else: {:deny, "no"}
    end

    book =
      book(
        sources: [folder],
        profiles: [%Profile{id: "p", writes: :ask}],
        ask: ask
      )

    view = Skillbook.view(book, "p")
    report = run(view, ["x.page", "x.send --to bob --body {1} x {1} --again {last}"], "")
    assert [_, %{error: %PolicyError{}}] = report.results

    assert_receive {:asked,
                    %{"to" => "bob", "body" => ["Do it.", "x", "Do it."], "again" => "Do it."},
                    [{"{1}", "Do it."}, {"{last}", "Do it."}]}

    report = run(view, ["x.send --a b", "x.send {1}"], "")

    assert [%{error: %PolicyError{}}, %{error: %PlaceholderError{kind: :failed, number: 1}}] =
             report.results
  end

  test "a value stays a single value, whatever it contains", %{view: view} do
    :rand.seed(:exsss, {20, 26, 11})

    for _ <- 1..300 do
      value = Hostile.value()

      assert [%{status: :ok}, %{status: :ok}, %{status: :ok}] =
               run(
                 view,
                 ["x.get", "x.send {1} --body {last} --list a {1}", "x.send --sent {2}"],
                 value
               ).results

      assert_receive {:got, %{"body" => ^value, "list" => ["a", ^value]} = flags, [^value]}
      assert map_size(flags) == 2
      assert_receive {:got, %{"sent" => "sent"}, []}
    end
  end

  test "are not used in tool calls", %{view: view} do
    call = fn flags, _ -> {:ok, inspect(flags)} end
    input = %{"name" => "x.send", "arguments" => %{"body" => "{1}", "list" => ["{last}"]}}
    {result, _} = Skillbook.Tools.call(view, input, assigns: %{call: call})
    assert result.content == ~S(%{"body" => "{1}", "list" => ["{last}"]})
  end

  test "aliases run, also by a tool call", %{view: view} do
    call = fn flags, context -> {:ok, "#{context.entry.name} #{inspect(flags)}"} end
    assigns = [assigns: %{call: call}]

    assert [%{status: :ok, name: "x.send", content: ~S(x.send %{"a" => "b"})}] =
             Skillbook.run(view, "```cmd\npost --a b\n```", assigns).results

    {result, _} =
      Skillbook.Tools.call(view, %{"name" => "post", "arguments" => %{"a" => "b"}}, assigns)

    assert %{status: :ok, name: "x.send", content: ~S(x.send %{"a" => "b"})} = result
    assert View.fetch!(view, "post").name == "x.send"
    assert Command.parse!("post {1}").placeholders == [{:args, 0, 1}]
  end
end
