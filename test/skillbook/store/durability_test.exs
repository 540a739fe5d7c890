defmodule Skillbook.Store.DurabilityTest do
  # Writers in another operating system process, which is killed at random moments, repeatedly on
  # the same database.
  use ExUnit.Case, async: true

  alias Skillbook.SQL

  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  @rounds 100
  @notes 4

  # Each acknowledged write becomes a line of `log`, without a process or buffer of the virtual
  # machine in between.
  @script ~S"""
  [database, log, round, notes] = System.argv()
  {:ok, _} = Application.ensure_all_started(:skillbook)
  {:ok, _} = Skillbook.start_link(name: :killed, store: database, watch: false, builtins: false)
  view = Skillbook.view(:killed)

  writer = fn number ->
    {:ok, log} = File.open(log, [:append, :raw])
    name = "note-#{round}-#{number}"

    for line <- Stream.iterate(1, &(&1 + 1)) do
      text = "#{round} #{number} #{line}\n"

      written =
        case Skillbook.Store.fetch(view, name) do
          {:ok, _} -> Skillbook.Store.update(view, name, %{edit: {:append, text}})
          {:error, _} ->
            fields = %{name: name, kind: :note, title: name, content: text}
            Skillbook.Store.create(view, fields)
        end

      {:ok, stored} = written
      stored = Map.get(stored, :entry, stored)
      :ok = :file.write(log, "#{name} #{stored.version} #{text}")
    end
  end

  for number <- 1..String.to_integer(notes), do: spawn_link(fn -> writer.(number) end)
  # The process ends with its standard input.
  IO.read(:stdio, :line)
  System.halt(1)
  """

  test "a killed process loses no acknowledged write and repeats no version number",
       context do
    folder = context.tmp_dir
    database = Path.join(folder, "store.db")
    log = Path.join(folder, "acknowledged")

    for round <- 1..@rounds do
      File.rm(log)
      kill_while_writing(database, log, round)
      verify(database, log)
    end
  end

  defp kill_while_writing(database, log, round) do
    ebin = Application.app_dir(:skillbook, "ebin")
    arguments = ["-pa", ebin, "-e", @script, database, log, to_string(round), to_string(@notes)]

    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: arguments
      ])

    {:os_pid, os_pid} = Port.info(port, :os_pid)
    await_writes(port, log)
    Process.sleep(:rand.uniform(60))
    {_, 0} = System.cmd("kill", ["-KILL", to_string(os_pid)])
    assert_receive {^port, {:exit_status, 137}}
  end

  defp await_writes(port, log) do
    receive do
      {^port, {:data, output}} ->
        flunk("the writers failed: #{output}")

      {^port, {:exit_status, status}} ->
        flunk("the writers ended by themselves with status #{status}")
    after
      5 ->
        if match?({:ok, %{size: size}} when size > 0, File.stat(log)),
          do: :ok,
          else: await_writes(port, log)
    end
  end

  defp verify(database, log) do
    name = :"durability_#{System.unique_integer([:positive])}"
    # A lock of the killed process would be an error.
    {:ok, server} = SQL.SQLite.start_link(path: database, name: name, busy_timeout: 0)
    sql = SQL.SQLite.handle(name)
    assert SQL.query!(sql, "pragma integrity_check").rows == [["ok"]]

    versions =
      SQL.query!(sql, """
      select e.name, v.version, v.content
      from skillbook_entry_versions v join skillbook_entries e on e.id = v.entry_id
      order by v.version
      """).rows

    by_name =
      Enum.group_by(versions, &hd/1, fn [_name, version, content] -> {version, content} end)

    for {_name, versions} <- by_name do
      assert Enum.map(versions, &elem(&1, 0)) == Enum.to_list(1..length(versions))
    end

    for line <- log |> File.read!() |> String.split("\n", trim: true) do
      [name, version, text] = String.split(line, " ", parts: 3)
      {_version, content} = Enum.at(by_name[name], String.to_integer(version) - 1)
      assert String.ends_with?(content, text <> "\n")
    end

    current = SQL.query!(sql, "select name, version, content from skillbook_entries").rows

    for [name, version, content] <- current,
        do: assert(List.last(by_name[name]) == {version, content})

    GenServer.stop(server)
  end
end
