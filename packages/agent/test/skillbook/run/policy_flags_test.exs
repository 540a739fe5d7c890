defmodule Skillbook.Run.PolicyFlagsTest do
  # The `:ask` callback, a stored approval and a test see exactly the flags that the handler gets:
  # converted, with defaults, and positional values under their names, whatever way a call came.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Support.JSON
  alias Skillbook.{Model, Result, Tools}

  @moduletag :tmp_dir

  defmodule Purge do
    use Skillbook.Skill,
      name: "tickets.purge",
      description: "Deletes old tickets",
      effects: :write,
      flags: [
        days: [type: :integer, min: 1, required: true, positional: true],
        until: [type: :date, description: "A day"],
        state: [type: :one_of, values: [:closed, :any], default: :closed]
      ]

    @impl true
    def execute(flags, context) do
      send(context.assigns.test, {:ran, flags})
      {:ok, Result.ok("Purged.", data: flags)}
    end
  end

  @workflow """
  ---
  name: tickets.sweep
  description: Purges after a time
  effects: read
  ---
  ## Flags

  --days  How many (default: 1)

  ## Behavior

  ```cmd
  tickets.purge --days {days}
  ```
  """

  setup %{tmp_dir: folder} do
    write(folder, %{"tickets/sweep.md" => @workflow})
    %{book: start(folder, & &1)}
  end

  # The policy of the documentation: it may compare numbers.
  defp start(folder, answer, options \\ []) do
    test = self()

    ask = fn request ->
      send(test, {:asked, request.command.flags, request.written})
      answer.(if request.command.flags["days"] >= 30, do: :deny, else: :allow)
    end

    book(
      [
        sources: [folder, {:modules, [Purge]}],
        builtins: false,
        watch: false,
        store: ":memory:",
        assigns: %{test: test},
        ask: ask,
        profiles: [[id: "ann", writes: :ask]]
      ] ++ options
    )
  end

  defp cmd(line), do: "```cmd\n#{line}\n```"
  defp tool(days), do: %{"name" => "tickets__purge", "arguments" => %{"days" => days}}

  # A way of calling the command, and a function that calls it for a number of days.
  defp ways do
    [
      {"flag", &Skillbook.run(&1, cmd("tickets.purge --days #{&2}"))},
      {"flag with =", &Skillbook.run(&1, cmd("tickets.purge --days=#{&2}"))},
      {"positional value", &Skillbook.run(&1, cmd("tickets.purge #{&2}"))},
      {"quoted value", &Skillbook.run(&1, cmd(~s(tickets.purge "#{&2}")))},
      {"JSON number", &Skillbook.run(&1, cmd(~s(tickets.purge {"days": #{&2}})))},
      {"JSON text", &Skillbook.run(&1, cmd(~s(tickets.purge {"days": "#{&2}"})))},
      {"tool with a number", &Tools.call(&1, tool(&2))},
      {"tool with a text", &Tools.call(&1, tool("#{&2}"))},
      {"carried out", &Skillbook.carry_out(&1, "tickets.purge #{&2}")},
      {"step of a workflow", &Skillbook.run(&1, cmd("tickets.sweep --days #{&2}"))},
      {"placeholder", &Skillbook.run(&1, cmd("tickets.sweep --days #{&2}"))},
      {"agent", &agent/2}
    ]
  end

  defp agent(view, days) do
    replies = [cmd("tickets.purge #{days}"), "Done."]
    counter = :counters.new(1, [])

    model =
      Model.Function.new(fn _messages, _options ->
        :counters.add(counter, 1, 1)
        Enum.at(replies, :counters.get(counter, 1) - 1)
      end)

    Skillbook.Agent.run(view.book, "Purge.", profile: "ann", model: model, protocol: :blocks)
  end

  test "a policy sees the flags of the handler, in every way of calling", %{book: book} do
    view = Skillbook.view(book, "ann")

    for {way, call} <- ways(),
        {days, allowed?} <- [{1, true}, {29, true}, {30, false}, {200, false}] do
      call.(view, days)
      assert_received {:asked, %{"days" => ^days, "state" => "closed"} = asked, written}
      assert written.raw =~ "#{days}", way

      if allowed? do
        assert_received {:ran, ^asked}
      else
        refute_received {:ran, _flags}, way
      end

      refute_received {:asked, _, _}
    end
  end

  test "a call that cannot be converted is refused before anybody is asked", %{book: book} do
    view = Skillbook.view(book, "ann")

    for line <- [
          "tickets.purge",
          "tickets.purge x",
          "tickets.purge 0",
          ~s(tickets.purge {"days": []})
        ] do
      assert %{results: [%{status: :error}]} = Skillbook.run(view, cmd(line))
      refute_received {:asked, _, _}
      refute_received {:ran, _}
    end
  end

  test "a waiting call shows the same flags, and runs with them", %{tmp_dir: folder} do
    book = start(folder, fn _answer -> :pending end)
    view = Skillbook.view(book, "ann")
    now = ~U[2026-03-01 09:00:00Z]

    for {line, days} <- [
          {"tickets.purge 7 --until 2026-03-02", 7},
          {~s(tickets.purge {"days": "8", "until": "2026-03-02"}), 8}
        ] do
      %{results: [%{status: :pending, data: waiting}]} = Skillbook.run(view, cmd(line), now: now)
      assert_received {:asked, asked, _written}
      assert {:ok, waiting.flags} == JSON.decode(JSON.encode(asked))
      assert %{"days" => ^days, "state" => "closed", "until" => "2026-03-02"} = waiting.flags
      {:ok, %{status: :done}} = Skillbook.approve(book, waiting.ref, by: "bob")
      assert_received {:ran, ^asked}
    end
  end

  test "events of a book that reports flags have them too", %{tmp_dir: folder} do
    book = start(folder, & &1, telemetry_flags: true)
    id = {__MODULE__, self()}
    test = self()

    :telemetry.attach_many(
      id,
      [[:skillbook, :command, :stop]],
      fn _name, _measurements, metadata, _config ->
        if metadata.book == book, do: send(test, {:event, metadata[:flags]})
      end,
      nil
    )

    on_exit(fn -> :telemetry.detach(id) end)
    Skillbook.run(Skillbook.view(book, "ann"), cmd("tickets.purge 7"))
    assert_receive {:event, %{"days" => 7, "state" => "closed"}}
  end
end
