defmodule Skillbook.CLI.LibrariesTest do
  # The libraries that a command line loads before anything else, and so builds if they are
  # missing. Alone, because it changes the environment.
  use ExUnit.Case, async: false

  alias Skillbook.CLI.{Arguments, Libraries}
  alias Skillbook.{Connections, Embedder, HTTP, SQL}

  @moduletag :tmp_dir

  defp wanted(line) do
    {:ok, options} = line |> OptionParser.split() |> Arguments.parse()
    Libraries.wanted(options)
  end

  test "follow from the options", %{tmp_dir: folder} do
    System.put_env("SKILLBOOK_CONNECTIONS", Path.join(folder, "none.json"))
    on_exit(fn -> System.delete_env("SKILLBOOK_CONNECTIONS") end)

    for {line, libraries} <- [
          {"run reply.md", []},
          {"--db skills.db run reply.md", []},
          {"list", []},
          {"search tasks", []},
          {"lint", []},
          {"connections", []},
          {"--mcp 'files=npx server' list", []},
          {"--db postgres://u:p@host/d run reply.md", [SQL.Postgres.Library]},
          {"--mcp docs=https://docs.example/mcp list", [HTTP.Library]},
          {"serve", [HTTP.Library]},
          {"chat --url http://localhost:1 --model m", [HTTP.Library]},
          {"route words --api openai --model m", [HTTP.Library]},
          {"search --embedder http://localhost:1 --embedder-model m words", [HTTP.Library]},
          {"search --embedder #{folder} words", [Embedder.Library]},
          {"connect google", [HTTP.Library, Connections.Library]},
          {"disconnect google", [HTTP.Library]}
        ] do
      assert wanted(line) == libraries, line
    end
  end

  test "follow from the accounts, if commands run", %{tmp_dir: folder} do
    path = Path.join(folder, "connections.json")
    System.put_env("SKILLBOOK_CONNECTIONS", path)
    on_exit(fn -> System.delete_env("SKILLBOOK_CONNECTIONS") end)

    post =
      ~s({"post": {"vendor": "imap", "host": "h", "username": "a", ) <>
        ~s("password": {"env": "P"}}})

    hubspot = ~s({"hubspot": {"token": {"env": "T"}}})

    for {accounts, libraries} <- [
          {post, [HTTP.Library, Connections.Library]},
          {hubspot, [HTTP.Library]},
          {"{", []}
        ] do
      File.write!(path, accounts)
      assert wanted("run reply.md") == libraries, accounts
      assert wanted("list") == []
    end
  end

  test "those of an installed Skillbook are loaded at once", %{tmp_dir: folder} do
    System.put_env("SKILLBOOK_CONNECTIONS", Path.join(folder, "none.json"))
    on_exit(fn -> System.delete_env("SKILLBOOK_CONNECTIONS") end)
    {:ok, options} = Arguments.parse(["serve"])
    assert Libraries.load(options) == :ok
  end
end
