defmodule Skillbook.SQL.OutageTest do
  # Each function that reads or writes the database, while the server or the network fails. A
  # write that was acknowledged is there; of another nothing is there, or all of it and the error
  # says that this is not known. Nothing exceeds its limit, the catalog stays readable, and all
  # works again when the server is back.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, DatabaseProxy, PostgresCase, SQL, Store, Vault, View}
  alias Skillbook.{Connections, Firing, Transcript, Usage, Web, Workflow}
  alias Skillbook.Scheduler.{Firings, Runner}

  @moduletag :tmp_dir
  @moduletag :capture_log
  @moduletag timeout: 300_000

  # Milliseconds of each limit of the pool.
  @limit 500
  @now ~U[2026-03-01 09:30:00Z]

  setup %{tmp_dir: folder} do
    url = PostgresCase.database()
    proxy = start_supervised!({DatabaseProxy, url})

    pages = %{
      "x/ask.md" => page("x.ask", handler: "Skillbook.Test.EchoHandler", approval: "required"),
      "x/daily.md" => page("x.daily", schedule: "0 9 * * *")
    }

    skills = Path.join(folder, "skills")
    write(skills, pages)
    limits = [timeout: @limit, queue_timeout: @limit, connect_timeout: @limit]

    book =
      book(
        sources: [skills],
        store: {SQL.Postgres, [url: DatabaseProxy.url(proxy), pool_size: 3] ++ limits},
        store_poll: 100,
        vaults: [[name: "box"]],
        conversations: [],
        schedules: [run_as: "default"],
        usage: [flush: 3_600_000],
        profiles: [[id: "default", writes: :run]],
        watch: false
      )

    direct = PostgresCase.start(url: url, pool_size: 2)
    %{book: book, view: View.all(book), proxy: proxy, direct: direct}
  end

  test "a connection that is lost before a message, or after it and before its answer", context do
    broken =
      for {_name, _prepare, _run} = operation <- operations(context),
          broken <- lose(context, operation),
          do: broken

    assert broken == []
  end

  # The broken promises of an operation.
  defp lose(context, {name, prepare, run}) do
    # The first call may make rows that the others use.
    {:ok, _change} = observe(context, run, prepare.("#{name} first"))
    prepared = prepare.("#{name} whole")
    DatabaseProxy.fault(context.proxy, :pass)
    {:ok, whole} = observe(context, run, prepared)
    messages = DatabaseProxy.count(context.proxy)
    assert {name, messages > 0} == {name, true}

    # The ends are where transactions begin and commit; all in between are alike.
    for at <- Enum.uniq([1, 2, messages - 1, messages]),
        at in 1..messages,
        fault <- [:before, :after],
        broken = lose(context, {name, prepare, run}, {fault, at}, whole),
        do: broken
  end

  defp lose(context, {name, prepare, run}, fault, whole) do
    prepared = prepare.("#{name} #{inspect(fault)}")
    DatabaseProxy.fault(context.proxy, fault)
    {time, {done, change}} = :timer.tc(fn -> observe(context, run, prepared) end)
    DatabaseProxy.fault(context.proxy, :pass)
    recover(context)
    # Reads may note their use.
    promise = if name in reading(), do: :kept, else: promise(done, change, whole)

    if promise != :kept or time > 8 * @limit * 1000,
      do: {promise, name, fault, time, done, change}
  end

  defp promise(:ok, whole, whole), do: :kept
  defp promise(:ok, _part, _whole), do: :acknowledged_and_not_there
  defp promise(_error, nothing, _whole) when nothing == %{}, do: :kept
  defp promise(error, whole, whole), do: if(unknown?(error), do: :kept, else: :denied_and_there)
  defp promise(_error, _part, _whole), do: :there_in_part

  defp observe(context, run, prepared) do
    before = state(context.direct)
    done = run.(prepared)
    {if(ok?(done), do: :ok, else: done), change(before, state(context.direct))}
  end

  defp ok?(done) when done in [:ok, nil], do: true
  defp ok?(tuple) when is_tuple(tuple), do: elem(tuple, 0) == :ok
  defp ok?(%{status: status}), do: status in [:ok, :pending]

  defp unknown?({:error, %SQL.Error{kind: :lost}}), do: true

  defp unknown?(%{content: content}),
    do: content =~ "It may have done part of its work: check before you try again"

  defp unknown?(_other), do: false

  # The answer to the commit is lost, and what was committed is found by the next attempt.
  test "a firing runs once, and its result is stored, whichever answer is lost", context do
    %{book: book, proxy: proxy} = context
    [at] = [~U[2026-03-01 09:00:00Z]]
    messages = count(proxy, fn -> run_firing(book, at) end)
    assert messages > 4

    for number <- 1..messages, fault <- [:before, :after] do
      at = DateTime.add(at, 86_400 * (2 * number + if(fault == :before, do: 0, else: 1)))
      DatabaseProxy.fault(proxy, {fault, number})
      assert {fault, number, run_firing(book, at)} == {fault, number, {:ok, :template, 1}}
    end
  end

  defp run_firing(book, at) do
    by = %{holder: "me", node: "here", lease: 60_000, attempts: 1}
    {:ok, claims} = Agent.start_link(fn -> 0 end)
    claimed = fn -> Agent.update(claims, &(&1 + 1)) end
    firing = Firing.new(book, "x.daily", at, nil)

    with {:ok, %{status: status}} <- Runner.run(firing, :new, by, claimed),
         do: {:ok, status, Agent.get(claims, & &1)}
  end

  defp count(proxy, fun) do
    DatabaseProxy.fault(proxy, :pass)
    fun.()
    DatabaseProxy.count(proxy)
  end

  test "an approved call runs once or waits again, whichever answer is lost", context do
    %{book: book, view: view, proxy: proxy} = context

    ask = fn ->
      ask = fn _request -> :pending end
      %{status: :pending, data: _} = carry(view, "x.ask --text hello", ask: ask)
      {:ok, [%{ref: ref} | _]} = Skillbook.approvals(book)
      ref
    end

    approve = fn ref -> Skillbook.approve(book, ref, by: "Bob") end
    ref = ask.()
    messages = count(proxy, fn -> {:ok, %{status: :done}} = approve.(ref) end)

    for number <- 1..messages, fault <- [:before, :after] do
      ref = ask.()
      DatabaseProxy.fault(proxy, {fault, number})
      first = approve.(ref)
      DatabaseProxy.fault(proxy, :pass)
      recover(context)

      case first do
        {:ok, %{status: :done, result: %{status: :ok}}} -> :ok
        # Nothing has run.
        {:error, %SQL.Error{}} -> :ok
      end

      {:ok, all} = Skillbook.approvals(book, status: [:pending, :running, :done, :interrupted])
      %{status: status} = Enum.find(all, &(&1.ref == ref))

      assert {fault, number, elem(first, 0), status} in [
               {fault, number, :ok, :done},
               {fault, number, :error, :pending},
               {fault, number, :error, :done}
             ]

      if status == :pending, do: assert({:ok, %{status: :done}} = approve.(ref))
    end
  end

  test "a network that has gone silent", context do
    operations = prepared(context)
    tasks = length(Task.Supervisor.children(Skillbook.Run.Worker.supervisor(context.book)))
    DatabaseProxy.fault(context.proxy, :hang)

    late =
      operations
      |> Task.async_stream(&timed/1, timeout: :infinity, max_concurrency: 100)
      |> Enum.filter(fn {:ok, {_name, time, _done}} -> time > 12 * @limit end)

    assert late == []
    assert {:ok, _entry} = View.fetch(context.view, "x.ask")
    DatabaseProxy.fault(context.proxy, :pass)
    recover(context)

    assert length(Task.Supervisor.children(Skillbook.Run.Worker.supervisor(context.book))) ==
             tasks
  end

  test "a server that is gone, and back", context do
    operations = prepared(context)
    before = state(context.direct)
    DatabaseProxy.fault(context.proxy, :refuse)

    ended =
      operations |> Task.async_stream(&timed/1, timeout: :infinity) |> Enum.map(&elem(&1, 1))

    assert Enum.filter(ended, fn {_name, time, done} -> ok?(done) or time > 8 * @limit end) == []
    assert {:ok, _entry} = View.fetch(context.view, "x.ask")
    assert change(before, state(context.direct)) == %{}
    DatabaseProxy.fault(context.proxy, :pass)
    recover(context)
    again = for operation <- operations, {_name, _time, done} = timed(operation), do: done
    assert Enum.reject(again, &ok?/1) == []
  end

  test "a full disk", context do
    operations = prepared(context)
    before = state(context.direct)

    SQL.query!(context.direct, """
    create function no_space() returns trigger language plpgsql as $$
    begin
      raise exception 'could not extend file: No space left on device' using errcode = '53100';
    end $$
    """)

    for table <- tables(context.direct) do
      SQL.query!(context.direct, """
      create trigger no_space before insert or update or delete on #{table}
      for each row execute function no_space()
      """)
    end

    ended = Enum.map(operations, &timed/1)
    assert change(before, state(context.direct)) == %{}
    reads = for {name, _time, done} <- ended, ok?(done), do: name

    for table <- tables(context.direct),
        do: SQL.query!(context.direct, "drop trigger no_space on #{table}")

    again = for operation <- operations, {_name, _time, done} = timed(operation), do: done
    assert Enum.reject(again, &ok?/1) == []
    # Those that need to write fail, all others work.
    assert reads -- reading() == []
    assert reading() -- reads == []
  end

  defp prepared(context) do
    for {name, prepare, run} <- operations(context),
        value = prepare.(name),
        do: {name, fn -> run.(value) end}
  end

  defp timed({name, run}) do
    {time, done} = :timer.tc(run)
    {name, div(time, 1000), done}
  end

  # Reads work all the time, and writes again after a moment.
  defp recover(%{book: book, view: view}) do
    assert {:ok, _entry} = View.fetch(view, "x.ask")
    write = fn sql -> SQL.query(sql, "update skillbook_settings set value = value") end
    await(fn -> match?({:ok, _}, SQL.transaction(Book.sql(Book.fetch!(book)), write)) end)
  end

  defp await(fun, times \\ 500) do
    cond do
      fun.() -> :ok
      times == 0 -> flunk("not back")
      true -> Process.sleep(10) && await(fun, times - 1)
    end
  end

  # The number of rows and a digest of each table, when no write is under way. Rows of the index
  # are merged at times.
  defp state(sql) do
    {:ok, state} =
      SQL.transaction(sql, fn sql ->
        {:ok, for(table <- tables(sql), into: %{}, do: {table, digest(sql, table)})}
      end)

    Map.drop(state, ["skillbook_settings", "skillbook_search_segments"])
  end

  defp tables(sql) do
    query = "select tablename from pg_tables where tablename like 'skillbook_%' order by 1"
    sql |> SQL.query!(query) |> Map.fetch!(:rows) |> Enum.concat()
  end

  defp digest(sql, table) do
    texts = "coalesce(md5(string_agg(t::text, '|' order by t::text)), '')"
    [row] = SQL.query!(sql, "select count(*), #{texts} from #{table} t").rows
    row
  end

  defp change(before, later) do
    for {table, [count, digest]} <- later,
        [old_count, old_digest] = before[table],
        digest != old_digest,
        into: %{},
        do: {table, if(table =~ "_search_", do: :changed, else: count - old_count)}
  end

  # `{name, prepare, run}`: `prepare` gets a unique text, and what it returns goes to `run`.
  defp operations(%{book: book, view: view}) do
    struct = Book.fetch!(book)
    sql = fn -> Book.sql(struct) end
    slug = &String.replace(&1, ~r/[^a-z0-9]+/, "-")
    id = & &1

    note = fn text ->
      {:ok, %{entry: entry}} = Store.put_note(view, slug.(text), "Text of #{text}")
      {:ok, _} = Store.update(view, entry.name, %{edit: {:append, "more"}})
      entry.name
    end

    deleted = fn text ->
      name = note.(text)
      {:ok, _} = Store.delete(view, name)
      name
    end

    task = fn text ->
      %{status: :ok, content: content} = carry(view, "tasks.create --title #{inspect(text)}")
      [id] = Regex.run(~r/task-?\d+|#\d+|\b\d+\b/, content) |> Enum.take(1)
      id
    end

    asked = fn text ->
      %{status: :pending} =
        carry(view, "x.ask --text #{inspect(text)}", ask: fn _ -> :pending end)

      {:ok, [%{ref: ref} | _]} = Skillbook.approvals(book)
      ref
    end

    by = fn ->
      %{
        holder: Base.encode16(:crypto.strong_rand_bytes(6)),
        node: "here",
        lease: 60_000,
        attempts: 1
      }
    end

    firing = fn _text ->
      # An entry runs once at a time.
      {Firing.new(book, "x.daily", @now, System.unique_integer([:positive])), by.()}
    end

    finished = fn {firing, by} ->
      Firings.finish(sql.(), firing, by, @now, %{status: :ok, text: "", duration: 1})
    end

    claimed = fn text ->
      {firing, by} = firing.(text)
      :ok = Firings.claim(sql.(), firing, :new, by, @now)
      {firing, by}
    end

    token = fn text ->
      {:ok, token} = Web.Tokens.create(book, label: text)
      token
    end

    session = %{profile: "default", operator?: false, token: nil, scopes: :all}

    [
      {"store.create", id, &Store.create(view, %{title: &1, kind: :note, content: "x"})},
      {"store.put_note", id, &Store.put_note(view, &1, "x")},
      {"store.update", note, &Store.update(view, &1, %{edit: {:append, "again"}})},
      {"store.delete", note, &Store.delete(view, &1)},
      {"store.disable", note, &Store.disable(view, &1)},
      {"store.restore", deleted, &Store.restore(view, &1, 1)},
      {"store.fetch", note, &Store.fetch(view, &1)},
      {"store.list", id, fn _ -> Store.list(view) end},
      {"store.history", note, &Store.history(view, &1)},
      {"tasks.create", id, &carry(view, "tasks.create --title #{inspect(&1)}")},
      {"tasks.update", task, &carry(view, "tasks.update #{&1} --status done")},
      {"tasks.delete", task, &carry(view, "tasks.delete #{&1}")},
      {"tasks.search", id, fn _ -> carry(view, "tasks.search --query whole") end},
      {"memory.save", id, &carry(view, "memory.save --content #{inspect(&1)}")},
      {"memory.search", id, fn _ -> carry(view, "memory.search --query whole") end},
      {"vault.put", id, &Vault.put(book, "box", %{id: slug.(&1), content: &1})},
      {"vault.search", id, fn _ -> Vault.search(view, "whole") end},
      {"approvals ask", id,
       &carry(view, "x.ask --text #{inspect(&1)}", ask: fn _ -> :pending end)},
      {"approvals list", id, fn _ -> Skillbook.approvals(book) end},
      {"approvals deny", asked, &Skillbook.deny(book, &1, by: "Bob")},
      {"firings claim", firing,
       fn {firing, by} ->
         Firings.claim(sql.(), firing, :new, by, @now)
       end},
      {"firings finish", claimed, finished},
      {"firings last", id, fn _ -> Firings.last(sql.()) end},
      {"schedule", id, fn _ -> Skillbook.schedule(book) end},
      {"operations list", id,
       fn _ -> Skillbook.Run.Operations.list(sql.(), view.profile, 10) end},
      {"tokens create", id, &Web.Tokens.create(book, label: &1)},
      {"tokens list", id, fn _ -> Web.Tokens.list(book) end},
      {"tokens verify", token, &Web.Tokens.verify(struct, &1.secret.())},
      {"tokens revoke", token, &Web.Tokens.revoke(book, &1.id)},
      {"sessions start", id, fn _ -> Web.Sessions.start(struct, session, 60) end},
      {"sessions fetch", fn _ -> elem(Web.Sessions.start(struct, session, 60), 1).() end,
       &Web.Sessions.fetch(struct, &1, 600)},
      {"link redeem", fn _ -> elem(Web.Sessions.link(struct, "default", false), 1).() end,
       &Web.Sessions.redeem(struct, &1)},
      {"conversations", id, fn _ -> Transcript.Conversations.list(struct, view.profile, 10) end},
      {"usage flush",
       fn text ->
         Usage.Counter.take(book)
         Usage.Counter.put_back(book, [{{1, "", text, "default", "run"}, 1, 1}])
         text
       end, fn _ -> Usage.Writer.flush(book) end},
      {"usage", id, fn _ -> Skillbook.usage(book) end},
      {"connections put", id,
       fn text ->
         row = %{
           status: :connected,
           tenant: nil,
           identity: text,
           scopes: [],
           key_id: "k",
           secret: "s",
           expires_at: 1
         }

         Connections.Table.put(sql.(), {"default", text}, @now, fn _ -> {:ok, row} end)
       end},
      {"connections get", id, &Connections.Table.get(sql.(), {"default", &1})},
      {"connections list", id, fn _ -> Connections.Table.list(sql.(), nil) end},
      {"runs", id, fn _ -> Workflow.Runs.recent(sql.(), view.profile, 10, 0, @now) end}
    ]
  end

  defp reading do
    ~w(store.fetch store.list store.history tasks.search memory.search vault.search) ++
      ["approvals list", "firings last", "schedule", "operations list", "tokens list"] ++
      ["tokens verify", "sessions fetch", "conversations", "connections get"] ++
      ["connections list", "runs"]
  end

  defp carry(view, line, options \\ []), do: Skillbook.carry_out(view, line, options)
end
