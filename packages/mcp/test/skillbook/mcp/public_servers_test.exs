defmodule Skillbook.MCP.PublicServersTest do
  # Each tool of public servers that others have made, called in each way that a model has.
  # `bin/mcp-for-tests run mix test FILE` installs them.
  use ExUnit.Case, async: false

  import Skillbook.Test.HostileServer, only: [book: 2]

  alias Skillbook.Support.JSON
  alias Skillbook.{Tools, View}

  @moduletag :capture_log
  @moduletag :tmp_dir

  # A tool with arguments, and a part of its answer. `FOLDER` is the test's folder, and `NUMBER`
  # that of the way in which it is called, since some things can be done once. The flags are those
  # of a line.
  @memory [
    {"create_entities",
     %{"entities" => [%{"name" => "Ann", "entityType" => "person", "observations" => ["tea"]}]},
     ~S(--entities '[{"name": "Ann", "entityType": "person", "observations": ["tea"]}]'), "["},
    {"create_relations",
     %{"relations" => [%{"from" => "Ann", "to" => "Ann", "relationType" => "is"}]},
     ~S(--relations '{"from": "Ann", "to": "Ann", "relationType": "is"}'), "["},
    {"add_observations", %{"observations" => [%{"entityName" => "Ann", "contents" => ["milk"]}]},
     ~S(--observations '[{"entityName": "Ann", "contents": ["milk"]}]'), "Ann"},
    {"read_graph", %{}, "", "Ann"},
    {"search_nodes", %{"query" => "tea"}, "tea", "Ann"},
    {"open_nodes", %{"names" => ["Ann", "Bob"]}, "--names Ann Bob", "Ann"},
    {"delete_observations",
     %{"deletions" => [%{"entityName" => "Ann", "observations" => ["coffee"]}]},
     ~S(--deletions '[{"entityName": "Ann", "observations": ["coffee"]}]'), "deleted"},
    {"delete_relations",
     %{"relations" => [%{"from" => "Ann", "to" => "Bob", "relationType" => "is"}]},
     ~S(--relations '[{"from": "Ann", "to": "Bob", "relationType": "is"}]'), "deleted"},
    {"delete_entities", %{"entityNames" => ["Bob"]}, "Bob", "deleted"}
  ]

  @filesystem [
    {"read_text_file", %{"path" => "FOLDER/a.txt", "head" => 1}, "FOLDER/a.txt --head 1",
     "one line"},
    {"read_file", %{"path" => "FOLDER/a.txt"}, "FOLDER/a.txt", "one line"},
    {"read_multiple_files", %{"paths" => ["FOLDER/a.txt", "FOLDER/a.txt"]},
     "--paths FOLDER/a.txt FOLDER/a.txt", "one line"},
    {"write_file", %{"path" => "FOLDER/b.txt", "content" => "7"},
     "--path FOLDER/b.txt --content 7", "b.txt"},
    {"edit_file",
     %{
       "path" => "FOLDER/a.txt",
       "edits" => [%{"oldText" => "one", "newText" => "two"}],
       "dryRun" => true
     }, ~S(FOLDER/a.txt --edits '[{"oldText": "one", "newText": "two"}]' --dryRun), "+two line"},
    {"create_directory", %{"path" => "FOLDER/c"}, "FOLDER/c", "c"},
    {"list_directory", %{"path" => "FOLDER"}, "FOLDER", "a.txt"},
    {"list_directory_with_sizes", %{"path" => "FOLDER", "sortBy" => "size"},
     "FOLDER --sortBy size", "a.txt"},
    {"directory_tree", %{"path" => "FOLDER", "excludePatterns" => ["*.md"]},
     "FOLDER --excludePatterns *.md", "a.txt"},
    {"search_files", %{"path" => "FOLDER", "pattern" => "*.txt"}, "FOLDER --pattern *.txt",
     "a.txt"},
    {"get_file_info", %{"path" => "FOLDER/a.txt"}, "FOLDER/a.txt", "size"},
    {"list_allowed_directories", %{}, "", "Allowed"},
    {"read_media_file", %{"path" => "FOLDER/1.txt"}, "FOLDER/1.txt", ""},
    {"move_file", %{"source" => "FOLDER/NUMBER.txt", "destination" => "FOLDER/c/NUMBER.txt"},
     "FOLDER/NUMBER.txt FOLDER/c/NUMBER.txt", "moved"}
  ]

  @everything [
    {"echo", %{"message" => "5"}, "5", "Echo: 5"},
    {"get-sum", %{"a" => 2, "b" => 2.5}, "2 2.5", "4.5"},
    {"get-structured-content", %{"location" => "New York"}, ~S(--location "New York"), "33"},
    {"get-annotated-message", %{"messageType" => "error", "includeImage" => false},
     "error --includeImage off", "Error"},
    {"get-resource-reference", %{"resourceType" => "Text", "resourceId" => 2},
     "--resourceType Text --resourceId 2", "resource"},
    {"get-resource-links", %{"count" => 2}, "--count 2", "resource"},
    {"get-tiny-image", %{}, "", "image"},
    {"get-env", %{}, "", "PATH"},
    {"gzip-file-as-resource", %{"name" => "a.gz", "data" => "data:text/plain,hello"},
     "--name a.gz --data data:text/plain,hello", "a.gz"},
    {"toggle-simulated-logging", %{}, "", "simulated"},
    {"toggle-subscriber-updates", %{}, "", "simulated"},
    {"trigger-long-running-operation", %{"duration" => 0.1, "steps" => 1},
     "--duration 0.1 --steps 1", "completed"},
    {"simulate-research-query", %{"topic" => "tea", "ambiguous" => false}, "--topic tea",
     "requires task"}
  ]

  @git [
    {"git_add", %{"repo_path" => "FOLDER", "files" => ["a.txt"]}, "FOLDER --files a.txt",
     "staged"},
    {"git_status", %{"repo_path" => "FOLDER"}, "FOLDER", "a.txt"},
    {"git_diff_staged", %{"repo_path" => "FOLDER", "context_lines" => 1},
     "FOLDER --context_lines 1", ""},
    {"git_log", %{"repo_path" => "FOLDER", "max_count" => 2, "start_timestamp" => nil},
     "FOLDER --max_count 2 --start_timestamp null", "first"},
    {"git_branch", %{"repo_path" => "FOLDER", "branch_type" => "local", "contains" => nil},
     "FOLDER local", "main"},
    {"git_diff_unstaged", %{"repo_path" => "FOLDER"}, "FOLDER", "nstaged"},
    {"git_diff", %{"repo_path" => "FOLDER", "target" => "main"}, "FOLDER main", "one line"},
    {"git_reset", %{"repo_path" => "FOLDER"}, "FOLDER", "reset"},
    {"git_show", %{"repo_path" => "FOLDER", "revision" => "HEAD"}, "FOLDER HEAD", "first"},
    {"git_create_branch", %{"repo_path" => "FOLDER", "branch_name" => "bNUMBER"},
     "FOLDER bNUMBER", "bNUMBER"},
    {"git_checkout", %{"repo_path" => "FOLDER", "branch_name" => "bNUMBER"}, "FOLDER bNUMBER",
     "bNUMBER"},
    {"git_commit", %{"repo_path" => "FOLDER", "message" => "NUMBER"},
     "--repo_path FOLDER --message NUMBER", "committed"}
  ]

  @time [
    {"get_current_time", %{"timezone" => "Europe/Berlin"}, "Europe/Berlin", "Europe/Berlin"},
    {"convert_time",
     %{"source_timezone" => "UTC", "time" => "12:30", "target_timezone" => "Asia/Tokyo"},
     "UTC 12:30 Asia/Tokyo", "21:30"}
  ]

  @fetch [
    {"fetch", %{"url" => "http://127.0.0.1:1/", "max_length" => 10, "raw" => true},
     "http://127.0.0.1:1/ --max_length 10 --raw", "127.0.0.1"}
  ]

  # The server answers these with an error.
  @refused ["fetch", "simulate-research-query"]

  @constructs Path.expand("../../support/mcp/constructs.py", __DIR__)

  @ways [:line, :object, :openai, :responses, :anthropic, :mcp, :run_command]

  setup_all do
    folder =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test FILE"

    %{programs: folder}
  end

  for {server, rows} <- [
        memory: @memory,
        filesystem: @filesystem,
        everything: @everything,
        git: @git,
        time: @time,
        fetch: @fetch
      ] do
    @rows rows

    test "each tool of #{server}, in each way", %{programs: programs, tmp_dir: folder} do
      File.write!(Path.join(folder, "a.txt"), "one line\n")
      for {_, number} <- numbered(), do: File.write!(Path.join(folder, "#{number}.txt"), "x")
      if unquote(server) == :git, do: repository(folder)
      {command, env} = program(unquote(server), programs, folder)
      book = book(command, approve: :all, env: env, timeout: 60_000)
      assert Skillbook.diagnostics(book) == []
      view = View.all(book)

      # None is left out, but prompts.
      listed = for "docs." <> tool <- Enum.map(Tools.list(view), & &1.entry), do: tool
      listed = Enum.reject(listed, &(&1 =~ "prompt"))
      assert Enum.sort(listed) == Enum.sort(for {tool, _, _, _} <- @rows, do: tool)

      for {tool, arguments, flags, expected} <- @rows, {how, number} <- numbered() do
        [arguments, flags, expected] =
          for value <- [arguments, flags, expected], do: filled(value, folder, "#{number}")

        if tool == "git_commit", do: stage(folder, number)
        text = call(how, view, "docs.#{tool}", flags, arguments)
        ok? = tool in @refused or not (text =~ "has failed")
        assert {tool, how, ok? and text =~ expected, text} == {tool, how, true, text}
      end
    end
  end

  # A server of our own, by the official SDK, with each construct of JSON Schema 2020-12. It
  # returns the arguments that arrive, and is judged by the package jsonschema.
  test "each construct of a schema, in each way", %{programs: programs} do
    [python, script] = [Path.join(programs, "bin/python"), @constructs]
    {table, 0} = System.cmd(python, [script, "table"])
    {:ok, table} = JSON.decode(table)
    assert length(table) == 42
    book = book([python, script], approve: :all, timeout: 60_000)
    assert Skillbook.diagnostics(book) == []
    view = View.all(book)

    wrong =
      for %{"tool" => tool, "arguments" => arguments, "flags" => flags} <- table,
          way <- @ways,
          text = call(way, view, "docs.#{tool}", flags, arguments),
          arrived(text) != arguments,
          do: {tool, way, text}

    assert wrong == []

    # Wrong values never reach the server, and the errors name their place.
    wrong =
      for %{"tool" => tool, "wrong" => %{} = arguments, "error" => error} <- table,
          way <- @ways -- [:line, :run_command],
          text = call(way, view, "docs.#{tool}", nil, arguments),
          not (text =~ "#{error}"),
          do: {tool, way, text}

    assert wrong == [], inspect(wrong, limit: :infinity, pretty: true)
  end

  # The lines of an answer are marked as those of others.
  defp arrived(text) do
    lines = for "| " <> line <- String.split(text, "\n"), do: line

    case lines |> Enum.join("\n") |> JSON.decode() do
      {:ok, arguments} -> arguments
      _ -> nil
    end
  end

  defp numbered, do: Enum.with_index(@ways, 1)

  # The text that the model reads after a call.
  defp call(how, view, name, flags, arguments) when how in [:line, :object] do
    rest = if how == :line, do: flags, else: json(arguments)
    hd(Skillbook.run(view, "```cmd\n#{name} #{rest}\n```").results).content
  end

  defp call(how, view, name, flags, arguments) do
    entry = Enum.find(Tools.list(view), &(&1.entry == name))

    call =
      case how do
        :openai ->
          %{"id" => "1", "function" => %{"name" => entry.name, "arguments" => json(arguments)}}

        :responses ->
          call = %{"type" => "function_call", "call_id" => "1", "name" => entry.name}
          Map.put(call, "arguments", json(arguments))

        :anthropic ->
          %{"type" => "tool_use", "id" => "1", "name" => entry.name, "input" => arguments}

        :mcp ->
          %{"name" => entry.name, "arguments" => arguments}

        :run_command ->
          %{"name" => "run_command", "arguments" => %{"command" => "#{name} #{flags}"}}
      end

    elem(Tools.call(view, call), 0).content
  end

  defp json(value), do: value |> JSON.encode() |> IO.iodata_to_binary()

  defp program(server, programs, folder) when server in [:memory, :filesystem, :everything] do
    script = "node_modules/@modelcontextprotocol/server-#{server}/dist/index.js"
    command = [Path.join(programs, "node_modules/.bin/node"), Path.join(programs, script)]

    case server do
      :memory -> {command, %{"MEMORY_FILE_PATH" => Path.join(folder, "memory.json")}}
      :filesystem -> {command ++ [folder], %{}}
      :everything -> {command, %{}}
    end
  end

  defp program(server, programs, _folder),
    do: {[Path.join(programs, "bin/mcp-server-#{server}")], %{}}

  defp repository(folder) do
    git(folder, ["init", "-q", "-b", "main"])
    git(folder, ["commit", "-q", "--allow-empty", "-m", "first"])
  end

  defp stage(folder, number), do: git(folder, ["add", "#{number}.txt"])

  defp git(folder, arguments) do
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
    {_, 0} = System.cmd("git", ["-C", folder] ++ identity ++ arguments, stderr_to_stdout: true)
  end

  defp filled(text, folder, number) when is_binary(text),
    do: text |> String.replace("FOLDER", folder) |> String.replace("NUMBER", number)

  defp filled(list, folder, number) when is_list(list),
    do: Enum.map(list, &filled(&1, folder, number))

  defp filled(%{} = map, folder, number),
    do: Map.new(map, fn {key, value} -> {key, filled(value, folder, number)} end)

  defp filled(other, _folder, _number), do: other
end
