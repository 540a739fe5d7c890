defmodule Skillbook.Prompt.QuickReferenceTest do
  # The order of the quick reference: the use of a profile, the indexes, reading before deleting.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{SQL, Usage}
  alias Skillbook.Usage.Writer

  @moduletag :tmp_dir

  @actions ~w(archive delete get list send)

  setup %{tmp_dir: folder} do
    pages = for name <- @actions, into: %{}, do: {"x/#{name}.md", page_of("x.#{name}")}
    secret = page_of("x.secret", visibility_labels: "[private]")
    {:ok, folder: write(folder, Map.put(pages, "x/secret.md", secret))}
  end

  defp page_of(name, fields \\ []),
    do: page(name, handler("Text") ++ fields, "# #{name}\n\n## Usage\n\n#{name}\n")

  @profiles [
    [id: "ann"],
    [id: "bob"],
    [id: "all", grants: ["private"]],
    [id: "ann of b", tenant: "b"],
    [id: "narrow", skills: ["x.send", "x.list"]]
  ]

  # A book whose clock the test sets.
  defp start(folder, now, options \\ []) do
    clock = :atomics.new(1, [])
    set(clock, now)
    test = %{stubs: %{}, observe: fn _, _, _ -> :ok end, clock: fn -> read(clock) end}

    defaults = [
      sources: [folder],
      builtins: false,
      watch: false,
      store: ":memory:",
      profiles: @profiles
    ]

    name = book(Keyword.merge(defaults, options))
    running = Skillbook.Book.fetch!(name)
    :persistent_term.put({Skillbook.Book, name}, %{running | test: test})
    {name, clock}
  end

  defp set(clock, time), do: :atomics.put(clock, 1, DateTime.to_unix(time))
  defp read(clock), do: clock |> :atomics.get(1) |> DateTime.from_unix!()

  # Counts of an hour: {time, tenant, name, profile, count}.
  defp count(book, rows) do
    rows =
      for {time, tenant, name, profile, event, count} <- rows,
          do: {{div(DateTime.to_unix(time), 3600), tenant, name, profile, event}, count, 1}

    :ok = Writer.store(Skillbook.Book.sql(Skillbook.Book.fetch!(book)), rows)
  end

  defp quick(book, profile, options \\ []) do
    text = Skillbook.prompt(book, [profile: profile] ++ options)
    [_, section] = String.split(text, "## Quick reference\n\n")
    section |> String.split("\n\n") |> hd() |> String.split() |> Enum.map(&action/1)
  end

  defp action("x." <> action), do: action

  @now ~U[2026-03-02 10:00:00Z]
  @yesterday ~U[2026-03-01 23:00:00Z]
  @unused ~w(list get send archive delete)

  test "begins with the commands that the profile ran most", %{folder: folder} do
    for {rows, profile, expected} <- [
          {[], "ann", @unused},
          {[{@yesterday, "", "x.delete", "ann", "run", 1}], "ann",
           ~w(delete list get send archive)},
          {[
             {@yesterday, "", "x.send", "ann", "run", 3},
             {~U[2026-02-01 00:00:00Z], "", "x.archive", "ann", "run", 4}
           ], "ann", ~w(archive send list get delete)},
          # Equal counts are in the order of their names.
          {[
             {@yesterday, "", "x.send", "ann", "run", 2},
             {@yesterday, "", "x.delete", "ann", "run", 2}
           ], "ann", ~w(delete send list get archive)},
          # Longer ago, today, of others, reads, failures, and what is gone or hidden.
          {[{~U[2026-01-30 23:00:00Z], "", "x.delete", "ann", "run", 9}], "ann", @unused},
          {[{@now, "", "x.delete", "ann", "run", 9}], "ann", @unused},
          {[{@yesterday, "", "x.delete", "bob", "run", 9}], "ann", @unused},
          {[{@yesterday, "b", "x.delete", "ann", "run", 9}], "ann", @unused},
          {[{@yesterday, "", "x.delete", "ann of b", "run", 9}], "ann of b", @unused},
          {[{@yesterday, "b", "x.delete", "ann of b", "run", 9}], "ann of b",
           ~w(delete list get send archive)},
          {[{@yesterday, "", "x.delete", "ann", "read", 9}], "ann", @unused},
          {[{@yesterday, "", "x.delete", "ann", "failed", 9}], "ann", @unused},
          {[
             {@yesterday, "", "x.secret", "ann", "run", 9},
             {@yesterday, "", "x.gone", "ann", "run", 8},
             {@yesterday, "", "x.send", "ann", "run", 1}
           ], "ann", ~w(send list get archive delete)},
          {[{@yesterday, "", "x.secret", "all", "run", 9}], "all",
           ~w(secret list get send archive delete)},
          {[{@yesterday, "", "x.delete", "narrow", "run", 9}], "narrow", ~w(list send)}
        ] do
      {book, _clock} = start(folder, @now)
      count(book, rows)
      assert {rows, quick(book, profile)} == {rows, expected}
    end
  end

  test "a prompt is the same bytes all day", %{folder: folder} do
    {book, clock} = start(folder, @now)
    first = Skillbook.prompt(book, profile: "ann")

    for hour <- 0..23 do
      set(clock, DateTime.new!(~D[2026-03-02], Time.new!(hour, 59, 59)))
      count(book, [{read(clock), "", "x.delete", "ann", "run", 5}])
      assert Skillbook.prompt(book, profile: "ann") == first
    end

    # Also on another day, up to midnight.
    set(clock, ~U[2026-03-03 00:00:00Z])
    second = Skillbook.prompt(book, profile: "ann")
    assert second != first
    assert quick(book, "ann") == ~w(delete list get send archive)
    count(book, [{read(clock), "", "x.send", "ann", "run", 500}])
    assert Skillbook.prompt(book, profile: "ann") == second

    # A clock that was put back.
    set(clock, @now)
    assert Skillbook.prompt(book, profile: "ann") == first
  end

  test "is the same after a restart, and on another node", %{folder: folder, tmp_dir: tmp} do
    store = Path.join(tmp, "usage.db")
    rows = [{@yesterday, "", "x.archive", "ann", "run", 2}]
    {one, _clock} = start(folder, @now, store: store)
    count(one, rows)
    prompt = Skillbook.prompt(one, profile: "ann")
    assert quick(one, "ann") == ~w(archive list get send delete)
    {other, _clock} = start(folder, @now, store: store)
    assert Skillbook.prompt(other, profile: "ann") == prompt
  end

  test "every kind of prompt has it, and the explanation knows it", %{folder: folder} do
    {book, _clock} = start(folder, @now)
    count(book, [{@yesterday, "", "x.delete", "ann", "run", 1}])
    used = ~w(delete list get send archive)
    assert quick(book, "ann") == used
    assert quick(book, "ann", sections: [:rules, :quick_reference]) == used
    assert quick(book, "ann", max_chars: 10_000) == used

    explanation = Skillbook.explain(book, "x.archive", "ann")
    assert to_string(explanation) =~ "in the section `quick_reference`"
  end

  test "a book that counts nothing, and a database that fails, have no use", context do
    for options <- [[store: nil], [usage: false]] do
      {book, _clock} = start(context.folder, @now, options)
      assert quick(book, "ann") == @unused
    end

    {book, clock} = start(context.folder, @now)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    {:ok, _} = SQL.query(sql, "alter table skillbook_usage rename to skillbook_usage_gone", [])
    assert quick(book, "ann") == @unused
    {:ok, _} = SQL.query(sql, "alter table skillbook_usage_gone rename to skillbook_usage", [])
    count(book, [{@yesterday, "", "x.delete", "ann", "run", 1}])
    assert quick(book, "ann") == @unused
    # It is asked again after a minute.
    set(clock, DateTime.add(@now, 60))
    assert hd(quick(book, "ann")) == "delete"
  end

  test "the number of remembered profiles is bounded", %{folder: folder} do
    {book, _clock} = start(folder, @now, profiles: [fn id -> {:ok, [id: id]} end])
    table = Module.concat(book, MostRun)
    rows = for number <- 1..10_000, do: {{"", "p#{number}"}, 0, 1, []}
    :ets.insert(table, rows)
    assert quick(book, "ann") == @unused
    assert :ets.info(table, :size) == 1
    assert Usage.MostRun.names(Skillbook.view(book, "ann")) == []
  end

  test "with all connections, it has the commands that people want" do
    book =
      book(
        builtins: ["*", :google, :hubspot],
        store: ":memory:",
        connections: [
          google: [vendor: Skillbook.Test.GoogleVendor, token: fn -> "token" end],
          hubspot: [token: {:env, "HUBSPOT_TOKEN"}]
        ]
      )

    [_, section] = String.split(Skillbook.prompt(book), "## Quick reference\n\n")
    lines = section |> String.split("\n\n") |> hd() |> String.split("\n", trim: true)
    names = for line <- lines, do: line |> String.split() |> hd()

    assert names == ~w(
             agent.dispatch calendar.list drive.search email.send hubspot.contacts memory.search
             notes.get skills.create tasks.search workflow.run
             calendar.create drive.read email.search hubspot.deals memory.save notes.add
             tasks.create
             calendar.free email.read tasks.update
             and
           )
  end
end
