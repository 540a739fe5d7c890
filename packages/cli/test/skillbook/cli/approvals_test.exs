defmodule Skillbook.CLI.ApprovalsTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Support.JSON
  alias Skillbook.Test.ChatServer

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    skills = Path.join(folder, "skills")
    pages = %{"x/pay.md" => page("x.pay", handler("Text") ++ [approval: "required"])}
    write(skills, pages)
    %{cli: ["--dir", skills, "--db", Path.join(folder, "book.db"), "--no-builtins"]}
  end

  defp wait(cli, line \\ "x.pay --to a") do
    {output, 0, _errors} = run_cli(cli ++ ["run", "-c", line])
    [ref] = Regex.run(~r/A-[a-z2-9]{12}/, output)
    assert output =~ "pending"
    ref
  end

  test "lists, shows and approves", %{cli: cli} do
    assert {"No command waits for an approval.\n", 0, ""} = run_cli(cli ++ ["approvals"])
    ref = wait(cli)

    for list <- [["approvals"], ["approvals", "list"]] do
      assert {output, 0, ""} = run_cli(cli ++ list)

      assert output =~
               ~r/\Ax.pay --to a\n  #{ref}, waits until \S+ \S+ UTC, of the profile default\n\z/
    end

    assert {^ref, "pending"} =
             with(
               {json, 0, ""} <- run_cli(cli ++ ["approvals", "show", ref, "--json"]),
               do:
                 (
                   {:ok, map} = JSON.decode(json)
                   {map["ref"], map["status"]}
                 )
             )

    approve = ["approvals", "approve", ref, "--by", "Bob", "--reason", "Fine."]
    assert {output, 0, ""} = run_cli(cli ++ approve)
    assert output =~ ~r/\Ax.pay --to a\n  #{ref}, done, decided by Bob on /
    assert output =~ "\n  reason: Fine.\n"
    assert output =~ "  flags: %{\"to\" => \"a\"}"

    assert {"", 1, "skillbook: " <> message} = run_cli(cli ++ approve)
    assert message =~ "#{ref} was approved by Bob on "
    {json, 0, ""} = run_cli(cli ++ ~w(approvals --status done --status denied --json))
    assert {:ok, [%{"ref" => ^ref, "result" => %{"status" => "ok"}}]} = JSON.decode(json)
  end

  test "denies, and names the user of the system", %{cli: cli} do
    ref = wait(cli)
    assert {output, 0, ""} = run_cli(cli ++ ["approvals", "deny", ref, "--reason", "No."])
    user = System.get_env("USER") || System.get_env("USERNAME") || "the command line"
    assert output =~ "#{ref}, denied, decided by #{user} on "
  end

  test "lists pages", %{cli: cli} do
    refs = for _call <- 1..3, do: wait(cli)

    list = fn flags ->
      {output, 0, ""} = run_cli(cli ++ ["approvals" | flags])
      Regex.scan(~r/A-[a-z2-9]{12}/, output) |> List.flatten()
    end

    all = list.([])
    assert Enum.sort(all) == Enum.sort(refs)
    assert list.(["--limit", "2"]) == Enum.take(all, 2)
    assert list.(["--limit", "2", "--after", Enum.at(all, 1)]) == Enum.drop(all, 2)
  end

  test "a command of another profile needs its --profile", %{cli: cli} do
    ref = wait(["--profile", "ann" | cli])
    assert {"No command waits" <> _, 0, ""} = run_cli(["--profile", "bob" | cli] ++ ["approvals"])
    assert {"x.pay" <> _, 0, ""} = run_cli(["--profile", "ann" | cli] ++ ["approvals"])
    assert {"", 1, message} = run_cli(cli ++ ["approvals", "approve", ref])
    assert message =~ "the profile \"ann\" of #{ref} does not exist any more"
    assert {_, 0, ""} = run_cli(["--profile", "ann" | cli] ++ ["approvals", "approve", ref])
  end

  test "a chat shows what waits, and its conversation goes on", %{cli: cli} do
    {_server, url} = ChatServer.start([ChatServer.answer("```cmd\nx.pay --to b\n```")])
    model = ["--url", url, "--model", "m"]
    test = self()

    errors =
      capture_io(:stderr, fn ->
        capture_io("Pay b.\nlater\n", fn ->
          send(test, {:status, CLI.run(cli ++ ["chat" | model])})
        end)
      end)

    assert_receive {:status, 0}, 60_000, errors
    [_, ref] = Regex.run(~r/skillbook approvals approve (A-[a-z2-9]{12})/, errors)

    assert errors =~
             "skillbook: `x.pay --to b` waits for an approval: skillbook approvals approve"

    {_server, url} = ChatServer.start([ChatServer.answer("It is paid.")])
    args = ["approvals", "approve", ref, "--resume", "--url", url, "--model", "m"]
    assert {output, 0, ""} = run_cli(cli ++ args)
    assert output =~ "flags: %{\"to\" => \"b\"}\n\nIt is paid.\n"
    assert_receive {:chat, %{body: %{"messages" => messages}}}
    refute Enum.any?(messages, &(&1["content"] =~ "The result of the call that waited"))
    assert_receive {:chat, %{body: %{"messages" => messages}}}
    assert List.last(messages)["content"] =~ "The result of the call that waited for #{ref}:"
  end

  test "wrong usage is told", %{cli: cli} do
    for {args, message} <- [
          {["approve"], "`approve` needs a REF"},
          {["show", "A-1", "A-2"], "`show` takes no more arguments, got: A-2"},
          {["list", "A-1"], "`list` takes no more arguments, got: A-1"},
          {["aprove", "A-1"],
           "expected list, show, approve or deny, got: aprove; did you mean `approve`?"},
          {["--status", "gone"],
           "--status expects one of pending, running, done, failed, denied, expired, " <>
             "interrupted, got: gone"},
          {["--book", "No.Such.Book"],
           "--book expects the name of a running book, got: No.Such.Book"},
          {["approve", "A-1", "--resume"],
           "`approvals` needs --url URL, the model's server, for example " <>
             "http://localhost:8080, " <>
             "or --api NAME for that of a vendor"}
        ] do
      assert run_cli(cli ++ ["approvals" | args]) ==
               {"", 2, "skillbook: #{message}\nSee: skillbook approvals --help\n"}
    end

    assert {"", 1, "skillbook: expected the reference of an approval, got: \"A-1\"\n"} =
             run_cli((cli ++ ["approvals", "deny", "A-1"]) |> tap(fn _ -> wait(cli) end))
  end

  test "decides in a book that runs", %{cli: cli, tmp_dir: folder} do
    name = Module.concat([__MODULE__, "Book#{System.unique_integer([:positive])}"])
    options = [sources: [Path.join(folder, "skills")], store: ":memory:", profiles: [[id: "ann"]]]
    start_supervised!({Skillbook, [name: name] ++ options})
    reply = "```cmd\nx.pay --to c\n```"
    %{results: [%{data: approval}]} = Skillbook.run(Skillbook.view(name, "ann"), reply)
    book = ["--book", inspect(name)]
    assert {output, 0, ""} = run_cli(cli ++ ["approvals" | book])
    assert output =~ approval.ref
    assert {output, 0, ""} = run_cli(cli ++ ["approvals", "approve", approval.ref | book])
    assert output =~ "flags: %{\"to\" => \"c\"}"
  end
end
