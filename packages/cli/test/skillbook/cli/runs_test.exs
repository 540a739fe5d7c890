defmodule Skillbook.CLI.RunsTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.{Agent, Model}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.ChatServer

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    skills = Path.join(folder, "skills")
    write(skills, %{"x/note.md" => page("x.note", handler("Text"))})
    db = Path.join(folder, "book.db")
    %{skills: skills, db: db, cli: ["--dir", skills, "--db", db, "--no-builtins"]}
  end

  # A run of another book with this database, whose model does not answer before the book stops.
  defp interrupted(%{db: db, skills: skills}, title) do
    test = self()

    model =
      Model.Function.new(fn _messages, _options ->
        send(test, :asked)
        Process.sleep(:infinity)
      end)

    options = [store: db, sources: [skills], durable: true, drain: 1, watch: false]
    book = book(options)
    run = spawn(fn -> Agent.run(book, title, model: model) end)
    assert_receive :asked
    stop_supervised!(book)
    Process.exit(run, :kill)
    :ok
  end

  defp refs(cli, more \\ []) do
    {json, 0, ""} = run_cli(cli ++ ["runs", "list", "--json"] ++ more)
    {:ok, runs} = JSON.decode(json)
    for run <- runs, do: {run["title"], run["status"], run["ref"]}
  end

  test "lists, continues and stops runs of another book", %{cli: cli} = context do
    assert {"No durable runs.\n", 0, ""} = run_cli(cli ++ ["runs"])
    interrupted(context, "Sum up the week.\nAll of it.")
    interrupted(context, "Tell a joke.")

    assert [{"Tell a joke.", "interrupted", joke}, {"Sum up the week.", "interrupted", sum}] =
             refs(cli)

    assert [{"Sum up the week.", _, ^sum}] = refs(cli, ["--after", joke, "--limit", "1"])

    assert {output, 0, ""} = run_cli(cli ++ ["runs"])

    state = "interrupted, began on \\S+ \\S+ UTC, of the profile default"
    assert output =~ ~r/\ATell a joke.\n  #{joke}, #{state}\n/

    {_server, url} = ChatServer.start([ChatServer.answer("It was quiet.")])
    model = ["--url", url, "--model", "m"]
    continue = ["runs", "continue", sum] ++ model
    assert {"It was quiet.\n", 0, ""} = run_cli(cli ++ continue)
    assert_receive {:chat, %{body: %{"messages" => messages}}}
    assert List.last(messages)["content"] == "Sum up the week.\nAll of it."
    assert {"", 1, "skillbook: the run " <> ended} = run_cli(cli ++ continue)
    assert ended =~ "#{sum} has ended already (done)"

    assert {"The run #{joke} is stopped.\n", 0, ""} == run_cli(cli ++ ["runs", "stop", joke])
    assert {"", 1, "skillbook: the run " <> _} = run_cli(cli ++ ["runs", "stop", joke])
    assert [{_, "stopped", ^joke}, {_, "done", ^sum}] = refs(cli)
    assert [] = refs(["--profile", "ann"] ++ cli)
  end

  test "a database that is not there is not made", %{tmp_dir: folder} do
    File.cd!(folder, fn ->
      cli = ["--no-builtins", "runs"]
      assert {"No durable runs.\n", 0, ""} = run_cli(cli)

      assert {"", 1, "skillbook: no durable run has the ref \"r\"\n"} =
               run_cli(cli ++ ["stop", "r"])

      refute File.exists?(".skillbook")
    end)
  end

  test "wrong usage is told", %{cli: cli} do
    for {args, message} <- [
          {["stop"], "`stop` needs a REF"},
          {["continue", "r", "s"], "`continue` takes no more arguments, got: s"},
          {["list", "r"], "`list` takes no more arguments, got: r"},
          {["stopp", "r"], "expected list, continue or stop, got: stopp; did you mean `stop`?"},
          {["--limit", "0"], "--limit"},
          {["continue", "r"], "`runs` needs --url URL, the model's server"}
        ] do
      assert {"", 2, "skillbook: " <> error} = run_cli(cli ++ ["runs" | args])
      assert {args, String.starts_with?(error, message)} == {args, true}, error
    end
  end
end
