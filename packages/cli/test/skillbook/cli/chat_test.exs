defmodule Skillbook.CLI.ChatTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Test.{ChatServer, Vendors}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "skills/notes/SKILL.md" => "---\ndomain: notes\ndescription: Notes\n---\n# Notes\n",
      "skills/notes/echo.md" => page("notes.echo", handler: "Skillbook.Test.EchoHandler")
    })

    :ok
  end

  # Exit status, standard output and standard error of a conversation from a pipe
  defp chat(folder, args, input) do
    argv = [
      "--dir",
      Path.join(folder, "skills"),
      "--no-builtins",
      "--db",
      ":memory:",
      "chat" | args
    ]

    test = self()

    errors =
      capture_io(:stderr, fn ->
        send(test, {:output, capture_io(input, fn -> send(test, {:status, CLI.run(argv)}) end)})
      end)

    assert_receive {:status, status}
    assert_receive {:output, output}
    {status, output, errors}
  end

  defp lines(text), do: String.split(text, "\n", trim: true)

  test "--api talks to the servers of vendors", %{tmp_dir: folder} do
    System.put_env("SKILLBOOK_TEST_API_KEY", "sk-test")
    echo = {"run_command", ["{\"command\": ", "\"notes.echo --text one\"}"]}

    for vendor <- Vendors.all() do
      answers = [Vendors.answer(["I try.", echo]), Vendors.answer("Good.")]
      script = Vendors.start(vendor, answers, key: "sk-test")
      server = ["--api", vendor, "--url", script.url, "--key-env", "SKILLBOOK_TEST_API_KEY"]
      args = server ++ ["--model", "m", "--protocol", "tools"]
      assert {vendor, {0, "I try.\nGood.\n", errors}} = {vendor, chat(folder, args, "Go.\n")}
      assert errors =~ "notes.echo --text one", vendor
      assert %{"refused" => [], "requests" => [_, _]} = Vendors.record(script)
    end
  after
    System.delete_env("SKILLBOOK_TEST_API_KEY")
  end

  test "--protocol tools asks about calls, and says which failed", %{tmp_dir: folder} do
    for {answer, ran?} <- [{"y", true}, {"n", false}] do
      calls = [{"notes__echo", "{\"text\": \"one\"}"}, {"notes__eco", "{}"}]
      script = Vendors.start("openai", [Vendors.answer(calls), Vendors.answer("So.")])
      args = ["--url", script.url, "--model", "m", "--protocol", "tools", "--ask"]
      assert {0, "So.\n", errors} = chat(folder, args, "Go.\n#{answer}\n")
      assert errors =~ ~s(  notes.echo {"text":"one"}\n  Run it? y/n/always/later/why> #{answer})
      assert errors =~ "echo: one" == ran?
      assert errors =~ "[2] error, "
      record = Vendors.record(script)
      assert %{"refused" => [], "requests" => [first, second]} = record
      names = for tool <- first["tools"], do: tool["function"]["name"]
      assert names == ["get_skill", "run_command", "notes__echo"]
      refute hd(first["messages"])["content"] =~ "```cmd"
      assert [one, other] = for(%{"role" => "tool"} = m <- second["messages"], do: m["content"])
      assert one =~ if(ran?, do: "echo: one", else: "the user declined")
      assert other =~ ~s(unknown tool "notes__eco")
    end
  end

  test "--protocol is one of three", %{tmp_dir: folder} do
    args = ["--url", "http://localhost:1", "--model", "m", "--protocol", "json"]
    assert {2, "", errors} = chat(folder, args, "Go.\n")

    assert errors ==
             "skillbook: --protocol expects one of auto, tools, blocks, got: json\n" <>
               "See: skillbook chat --help\n"
  end

  test "--preflight loads the skills of a message, and says which", %{tmp_dir: folder} do
    write(folder, %{
      "skills/tea/SKILL.md" =>
        "---\nname: tea\ndescription: Tea\ntrigger_keywords: [tea]\n---\nBoil water.\n"
    })

    for {args, text} <- [{["--preflight"], "  loaded: tea\n"}, {[], ""}] do
      {_server, url} = ChatServer.start([ChatServer.answer("Here.")])
      args = ["--url", url, "--model", "m" | args]
      assert {0, output, errors} = chat(folder, args, "Make tea\n")
      assert output =~ "Here."
      assert errors == text
      assert_receive {:chat, %{body: %{"messages" => [_, %{"content" => content}]}}}
      assert content =~ "Boil water." == (text != "")
    end
  end

  test "prints replies to standard output, the rest to standard error", %{tmp_dir: folder} do
    reply = "Let me see.\n\n```cmd\nnotes.echo --text one\nnotes.eco\n```\n\nSo."

    script = [
      ChatServer.refusal(503, "busy", [{"retry-after", "0"}]),
      ChatServer.answer(String.codepoints(reply)),
      ChatServer.answer("One it is."),
      ChatServer.answer("Bye.", usage: {5, 2})
    ]

    {_server, url} = ChatServer.start(script)
    path = Path.join(folder, "it.json")
    input = "Say\\\none.\n:save #{path}\n\nAnd now?\n:tokens\n:quit\n"

    assert {0, output, errors} =
             chat(folder, ["--url", url, "--model", "m", "--system", "Be Ann."], input)

    assert ["Let me see.", "So.", "One it is.", "saved in " <> _, "Bye.", last] = lines(output)
    assert "used: about " <> used = last

    assert used =~ ~r/\A\d+ in prompts, about \d+ in replies; the conversation has about \d+\z/

    assert [
             "  the model's server failed (503): busy; again in 0.0 s",
             "  [1] notes.echo --text one",
             "  [2] notes.eco",
             "  [1] ok, " <> one,
             "  [2] error, " <> two
           ] = lines(errors)

    assert one =~ "s: echo: one"
    assert two =~ "unknown skill"

    assert_receive {:chat,
                    %{
                      body: %{
                        "messages" => [
                          %{"content" => "Be Ann.\n\n" <> _},
                          %{"content" => "Say\none."}
                        ]
                      }
                    }}

    assert Bitwise.band(File.stat!(path).mode, 0o777) == 0o600

    # The saved conversation continues.
    {_server, url} = ChatServer.start([ChatServer.answer("Again."), ChatServer.answer("New.")])
    args = ["--url", url, "--model", "m", "--system", "Be Ann."]
    input = ":resume #{path}\nGo on.\n:profile ann\nStart.\n:resume #{path}\n"
    assert {1, output, errors} = chat(folder, args, input)

    assert [
             "the conversation has 5 messages",
             "Again.",
             "new conversation as ann",
             "New."
           ] = lines(output)

    assert errors == "skillbook: #{path} is a conversation of the profile default, not of ann\n"

    assert_receive {:chat,
                    %{
                      body: %{
                        "messages" => [
                          _,
                          %{"content" => "Say\none."},
                          _,
                          _,
                          _,
                          %{"content" => "Go on."}
                        ]
                      }
                    }}

    assert_receive {:chat, %{body: %{"messages" => [_, %{"content" => "Start."}]}}}
  end

  test "--log appends all messages to a file", %{tmp_dir: folder} do
    path = Path.join(folder, "log.jsonl")

    for text <- ["One", "Two"] do
      {_server, url} = ChatServer.start([ChatServer.answer("Here.")])

      assert {0, _, ""} =
               chat(folder, ["--url", url, "--model", "m", "--log", path], text <> "\n")
    end

    assert {:ok, [one, two]} = Skillbook.Transcript.Log.read(path)
    assert one.id =~ ~r/\Achat-[0-9a-f]{16}\z/ and two.id != one.id

    for {conversation, text} <- [{one, "One"}, {two, "Two"}] do
      assert [%{kind: :prompt}, %{content: ^text}, %{content: "Here."}] =
               conversation.transcript.messages

      assert conversation.transcript.profile == "default"
    end
  end

  test "prints an agent's commands below the command that dispatched it", %{tmp_dir: folder} do
    dispatch = "agent.dispatch --mission Do. --skills notes.echo --id helper"
    handler = "Skillbook.Handlers.Agent.Dispatch"
    write(folder, %{"skills/agent/dispatch.md" => page("agent.dispatch", handler: handler)})

    script = [
      ChatServer.answer("```cmd\n#{dispatch}\n```"),
      ChatServer.answer("I go.\n\n```cmd\nnotes.echo --text one\nnotes.eco\n```"),
      ChatServer.answer("It is done."),
      ChatServer.answer("Good.")
    ]

    {_server, url} = ChatServer.start(script)
    assert {0, "Good.\n", errors} = chat(folder, ["--url", url, "--model", "m"], "Go.\n")

    assert [first, one, two, last] = lines(errors)
    assert first == "  [1] #{dispatch}"
    assert one =~ ~r/\A    helper: notes\.echo --text one: ok, .*s\z/
    assert two =~ ~r/\A    helper: notes\.eco: error, .*s\z/
    assert last =~ ~r/\A  \[1\] ok, .*s: helper is done, after 2 turns\. …\z/
  end

  test "prints the reason of an incomplete reply", %{tmp_dir: folder} do
    cut = ["```cmd\nnotes.echo --text a"]

    script = [
      ChatServer.answer(cut, finish_reason: "length"),
      ChatServer.answer("```cmd\nnotes.echo --text b\n```"),
      ChatServer.answer("I am", finish_reason: "length")
    ]

    {_server, url} = ChatServer.start(script)

    assert {1, output, errors} =
             chat(folder, ["--url", url, "--model", "m", "--max-turns", "2"], "Go.\nGo.\n")

    assert output == "I am\n"
    assert errors =~ "  not run, its block was cut off: notes.echo --text a\n"
    assert errors =~ "skillbook: stopped after 2 turns; --max-turns allows more\n"

    assert errors =~
             "\n  the reply is incomplete: it reached --max-tokens or the model's limit\n"
  end

  test "limits replies, and restricts them to the commands of the view", %{tmp_dir: folder} do
    write(folder, %{
      "skills/notes/hidden.md" => page("notes.hidden", visibility_labels: "[internal]")
    })

    for {args, max_tokens, grammar?, hidden?} <- [
          {[], 4000, false, false},
          {["--max-tokens", "60"], 60, false, false},
          {["--max-tokens", "0", "--grammar"], nil, true, false},
          {["--grammar", "--grant", "internal"], 4000, true, true}
        ] do
      {_server, url} = ChatServer.start([ChatServer.answer("Hm.")])
      assert {0, "Hm.\n", ""} = chat(folder, ["--url", url, "--model", "m"] ++ args, "Go.\n")
      assert_receive {:chat, %{body: body}}
      assert body["max_tokens"] == max_tokens
      grammar = Map.get(body, "grammar", "")
      assert grammar =~ "notes.echo" == grammar?
      assert grammar =~ "notes.hidden" == hidden?
    end
  end

  test "asks before a command with side effects", %{tmp_dir: folder} do
    write(folder, %{"skills/notes/look.md" => page("notes.look", effects: :read)})
    block = "```cmd\nnotes.look\nnotes.echo --text one\nnotes.echo --text two\n```"

    for {answers, ran, told} <- [
          {["y", "yes"], ["one", "two"], nil},
          {["n", "y"], ["two"], "the user declined. Do not try again"},
          {["always"], ["one", "two"], nil},
          {["no not on a Monday", "what?"], [], "the user declined: not on a Monday"},
          {["why", "n", "y"], ["two"], nil},
          {[], [], "the user declined. Do not try again"}
        ] do
      {_server, url} = ChatServer.start([ChatServer.answer(block), ChatServer.answer("So.")])
      input = Enum.map_join(["Go." | answers], &(&1 <> "\n"))
      assert {0, "So.\n", errors} = chat(folder, ["--url", url, "--model", "m", "--ask"], input)

      assert errors =~
               "  notes.echo --text one\n" <>
                 "  Run it? y/n/always/later/why> #{List.first(answers, "")}"

      assert errors =~ "  [1] ok: Text" or errors =~ "  [1] template"
      assert errors =~ "Its page is " == "why" in answers
      for text <- ["one", "two"], do: assert(errors =~ "echo: #{text}" == text in ran)

      assert_receive {:chat, _first}
      assert_receive {:chat, %{body: %{"messages" => messages}}}
      if told, do: assert(List.last(messages)["content"] =~ told)
    end
  end

  test "reports missing and wrong options", %{tmp_dir: folder} do
    {:ok, socket} = :gen_tcp.listen(0, [])
    {:ok, port} = :inet.port(socket)
    :gen_tcp.close(socket)
    nobody = "http://localhost:#{port}"
    {_server, refusing} = ChatServer.start([ChatServer.refusal(401, "No key.")])
    gone = Path.join(folder, "gone/x")
    bad = Path.join(folder, "bad.json")
    File.write!(bad, "{}")
    server = ["--url", "http://a", "--model", "m"]

    for {args, input, status, message} <- [
          {[], "", 2,
           "`chat` needs --url URL, the model's server, for example http://localhost:8080, " <>
             "or --api NAME for that of a vendor"},
          {["--url", "http://a"], "", 2, "`chat` needs --model NAME, the name of the model"},
          {["--api", "bard", "--model", "m"], "", 2,
           "--api expects one of openai, responses, anthropic, gemini, got: bard"},
          {["--api", "gemini", "--model", "m", "--key-env", "NO_SUCH_KEY"], "", 2,
           "--key-env expects an environment variable with a key; " <>
             "NO_SUCH_KEY is not set or empty"},
          {["--url", "a", "--model", "m"], "", 2,
           ~s(--url expects a URL such as "https://api.openai.com/v1", got: a)},
          {server ++ ["--key-env", "NO_SUCH_KEY"], "", 2,
           "--key-env expects an environment variable with a key; " <>
             "NO_SUCH_KEY is not set or empty"},
          {server ++ ["--max-turns", "0"], "", 2,
           "--max-turns expects a whole number from 1, got: 0"},
          {server ++ ["--max-context", "-5"], "", 2,
           "--max-context expects a whole number from 1, got: -5"},
          {server ++ ["--max-tokens", "-1"], "", 2,
           "--max-tokens expects a whole number from 0, got: -1"},
          {server ++ ["--temperature", "-1"], "", 2,
           "--temperature expects a number from 0, got: -1.0"},
          {server ++ ["--resume", gone], "", 2, "cannot read #{gone}: no such file or directory"},
          {server ++ ["--resume", bad], "", 2,
           "#{bad}: the transcript: expected an object with the field `version`, got: none"},
          {server ++ ["hi"], "", 2, "`chat` takes no argument, got: hi"},
          {server, ":sav x\n", 1,
           "unknown colon command `:sav`; expected one of :help, :quit, :prompt, :profile, " <>
             ":save,"},
          {server, ":save\n", 1, ":save expects a file"},
          {server, ":save x\n", 1, "there is no conversation yet"},
          {server, ":tokens x\n", 1, ":tokens takes no argument, got: x"},
          {server, "  :tokens   x \n", 1, ":tokens takes no argument, got: x"},
          {server, "Hi \\\n", 1, "the input ended inside a message, which was not sent:\nHi"},
          {["--url", nobody, "--model", "m"], "Hi.\n", 1, "Is the server running at #{nobody}?"},
          {["--url", refusing, "--model", "m"], "Hi.\n", 1,
           "If the server needs a key, name its environment variable with --key-env."}
        ] do
      assert {^status, _output, errors} = chat(folder, args, input)
      assert errors =~ message
    end
  end

  test "runs colon commands", %{tmp_dir: folder} do
    server = ["--url", "http://a", "--model", "m"]

    assert {0, output, ""} =
             chat(folder, server, ":help\n:prompt\n:profile\n:profile default\n:tokens\n")

    assert output =~ "A line is a message to the model"
    assert output =~ "get_skill"
    assert output =~ "\ndefault\n"
    assert output =~ "used: 0 in prompts, 0 in replies; the conversation has about 0\n"
  end

  test "exit and quit end the conversation, other words are messages", %{tmp_dir: folder} do
    for word <- ["exit", " Quit "] do
      {_server, url} = ChatServer.start([ChatServer.answer("One.")])

      assert {0, output, _errors} =
               chat(folder, ["--url", url, "--model", "m"], "quit it\n#{word}\nmore\n")

      assert lines(output) == ["One."]
      assert_receive {:chat, %{body: %{"messages" => messages}}}
      assert List.last(messages)["content"] =~ "quit it"
      refute_received {:chat, _}
    end
  end

  test "a spinner shows the wait for the model, and leaves no trace" do
    alias Skillbook.CLI.Chat.{Screen, Spinner}
    terminal = %Skillbook.CLI.Terminal{color: false, width: 80}

    output =
      capture_io(fn ->
        screen = Screen.new(terminal, true)
        Screen.show(screen, {:turn, 1})
        Process.sleep(700)
        Screen.show(screen, {:text, "Hello."})
        Process.sleep(300)
        Screen.stop(screen)
        refute Process.alive?(screen.spinner)
      end)

    assert [_before | frames] = String.split(output, "\r\e[K")
    {[text], frames} = {Enum.take(frames, -1), Enum.drop(frames, -1)}
    assert length(frames) >= 2 and Enum.all?(frames, &(&1 =~ ~r/\A[⠀-⣿] 0 s\z/u))
    assert text =~ ~r/\A *Hello\.\n\z/

    # A quick answer shows none.
    quick =
      capture_io(fn ->
        screen = Screen.new(terminal, true)
        Screen.show(screen, {:turn, 1})
        Screen.show(screen, {:text, "Hello."})
        Screen.stop(screen)
      end)

    refute quick =~ "\e[K"
    assert Spinner.clear(nil) == :ok
    assert Screen.new(terminal, false).spinner == nil
  end
end
