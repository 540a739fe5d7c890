defmodule Skillbook.Agent.CostsTest do
  # What runs cost, by the prices of the application, and the limits of that.
  use Skillbook.SkillsCase, async: true

  doctest Skillbook.BudgetError
  doctest Skillbook.Usage, only: [costs: 2]

  alias Skillbook.Agent.Prices
  alias Skillbook.Usage.Writer
  alias Skillbook.{Agent, BudgetError, Model, OptionError, Usage, View}

  @moduletag :tmp_dir
  # A thousand tokens in and a hundred out cost 0.0045.
  @prices %{"gpt-5" => [input: 3, output: 15, cached: 0.3], "small" => [input: 1, output: 1]}

  defp usage(prompt, completion, cached \\ 0, written \\ 0) do
    %{
      prompt_tokens: prompt,
      completion_tokens: completion,
      cached_tokens: cached,
      cache_write_tokens: written
    }
  end

  # A model whose server names it, and counts these tokens in each answer.
  defp model(replies, name \\ "gpt-5-2026-01-31", usage \\ nil) do
    {:ok, left} = Elixir.Agent.start_link(fn -> replies end)

    Model.Function.new(fn _messages, _options ->
      text = Elixir.Agent.get_and_update(left, fn [text | more] -> {text, more} end)
      %{text: text, usage: usage || usage(1_000, 100), model: name}
    end)
  end

  defp cmd(line), do: "```cmd\n#{line}\n```"

  defp start(options) do
    profiles = [[id: "ann", tenant: "a"], [id: "bob", tenant: "a"], [id: "eve"]]
    defaults = [store: ":memory:", watch: false, profiles: profiles, prices: @prices]
    book(Keyword.merge(defaults, options))
  end

  defp run(book, model, options \\ []) do
    options = Keyword.merge([model: model, profile: "ann"], options)
    {:ok, result} = Agent.run(book, "Go.", options)
    result
  end

  test "the price is that of the model that answered, or of its name without the version" do
    gpt = %Model.OpenAI{model: "gpt-5", url: nil}
    other = %Model.OpenAI{model: "other", url: nil}
    default = Map.put(@prices, "default", input: 10, output: 10)
    longer = Map.put(@prices, "gpt-5-mini", input: 2, output: 2)

    for {prices, model, answered_by, usage, cost} <- [
          {@prices, gpt, "gpt-5", usage(1_000_000, 0), 3.0},
          {@prices, gpt, "gpt-5-2026-01-31", usage(0, 1_000_000), 15.0},
          {@prices, gpt, nil, usage(1_000_000, 0, 400_000), 1.8 + 0.12},
          {@prices, gpt, nil, usage(1_000_000, 0, 0, 400_000), 3.0},
          {@prices, other, "small@2", usage(1_000, 1_000), 0.002},
          {@prices, gpt, "something", usage(1_000_000, 0), 3.0},
          {longer, gpt, "gpt-5-mini-2026", usage(1_000_000, 0), 2.0},
          {@prices, other, "gpt-50", usage(1, 1), nil},
          {@prices, other, nil, usage(1, 1), nil},
          {default, other, nil, usage(100_000, 0), 1.0},
          {%{}, gpt, "gpt-5", usage(1, 1), nil}
        ] do
      got = Prices.cost(prices, model, answered_by, usage)
      assert {answered_by, usage, got} == {answered_by, usage, Prices.units(cost)}
    end
  end

  test "of a run, with those of its agents, are in its result" do
    book = start([])
    assert run(book, model(["Hi."])).cost == 0.0045
    dispatch = cmd("agent.dispatch --mission Look --skills memory.search")
    assert run(book, model([dispatch, "Looked.", "Done."])).cost == 0.0135
    assert run(book, model(["Hi."], "unknown")).cost == nil
    assert run(start(prices: %{}), model(["Hi."])).cost == nil
  end

  test "are in the events of a call and of a run, which one handler gets" do
    book = start([])
    test = self()
    id = {__MODULE__, test}

    handler = fn event, _measurements, metadata, nil ->
      if metadata[:book] == book, do: send(test, {event, metadata})
    end

    :ok = :telemetry.attach_many(id, Skillbook.Telemetry.events(), handler, nil)
    on_exit(fn -> :telemetry.detach(id) end)
    run(book, model(["Hi."]))
    assert_received {[:skillbook, :model, :stop], %{cost: cost, profile: "ann"}}
    assert_received {[:skillbook, :agent, :stop], %{cost: ^cost} = metadata}
    assert %{profile: "ann", tenant: "a", skill: nil} = metadata
    assert cost == 0.0045
  end

  test "of a run may be limited" do
    book = start([])
    search = cmd("memory.search --query tea")

    rows = [{0.009, :max_cost, 2}, {0.0091, :done, 3}, {0.001, :max_cost, 1}]

    for {max, status, turns} <- rows do
      # Results of the same command differ, so that it is no circle.
      replies = [search, cmd("memory.search --query milk"), "Done."]
      prices = [prices: Map.put(@prices, "default", input: 1, output: 1)]
      result = run(start(prices), model(replies), max_cost: max)
      assert {max, result.status, result.turns} == {max, status, turns}
    end

    message =
      "expected a price of the model \"Skillbook.Model.Function\", since costs are limited, " <>
        "as the option :prices of a book, got: [\"gpt-5\", \"small\"]"

    assert_raise OptionError, message, fn -> run(book, model([]), max_cost: 1) end
  end

  describe "the budget of a day" do
    defp limited(budget, options \\ []),
      do:
        start(
          [budget: budget, prices: Map.put(@prices, "default", input: 1, output: 1)] ++ options
        )

    test "is that of a profile, a tenant or the book" do
      for {limit, others} <- [
            {:profile_day, %{"bob" => :done, "eve" => :done}},
            {:tenant_day, %{"bob" => :over_budget, "eve" => :done}},
            {:day, %{"bob" => :over_budget, "eve" => :over_budget}}
          ] do
        book = limited([{limit, 0.005}])
        assert run(book, model(["Hi."])).status == :done
        assert %{status: :done, turns: 1} = run(book, model(["Hi."]))
        over = run(book, model([]))
        assert %{status: :over_budget, turns: 0, error: %BudgetError{limit: ^limit}} = over
        assert over.error.spent == 0.009

        for {profile, status} <- others,
            do:
              assert(
                {limit, run(book, model(["Hi."]), profile: profile).status} == {limit, status}
              )
      end
    end

    test "is that of a skill" do
      ran = fn book, options -> run(book, model(["Hi."]), options).status end

      for {max, other, none} <- [
            {0.004, :done, :done},
            {%{"a.b" => 0.004}, :done, :done},
            {%{"default" => 0.004, "a.c" => 9}, :done, :done}
          ] do
        book = limited(skill_day: max)
        assert ran.(book, skill: "a.b") == :done
        assert ran.(book, skill: "a.c") == other
        assert ran.(book, []) == none
        # Of all profiles, stored or not.
        for _stored <- 1..2 do
          assert %{status: :over_budget, error: %{limit: :skill_day, whose: "a.b", max: 0.004}} =
                   run(book, model([]), skill: "a.b", profile: "eve")

          :ok = Writer.flush(book)
        end

        assert ran.(book, skill: "a.c") == if(is_map(max), do: :done, else: :over_budget)
      end
    end

    test "may differ by name" do
      for {limit, names} <- [profile_day: %{"ann" => 0.004}, tenant_day: %{"a" => 0.004}] do
        book = limited([{limit, names}])

        for status <- [:done, :over_budget],
            do: assert(run(book, model(["Hi."])).status == status)

        for _again <- 1..2,
            do: assert(run(book, model(["Hi."]), profile: "eve").status == :done)
      end
    end

    test "says which one it is" do
      for {error, whose} <- [
            {[limit: :day], "the book"},
            {[limit: :tenant_day, whose: "a"], ~s(the tenant "a")},
            {[limit: :tenant_day], "runs without a tenant"},
            {[limit: :profile_day, whose: "ann"], ~s(the profile "ann")},
            {[limit: :skill_day, whose: "a.b"], ~s(the skill "a.b")},
            {[limit: :skill_day], "runs without a skill"}
          ] do
        error = struct!(%BudgetError{limit: :day, max: 2, spent: 2.03}, error)

        assert Exception.message(error) ==
                 "the budget of #{whose} for today is used up: 2.03 of 2. It is renewed at " <>
                   "midnight, UTC"
      end
    end

    test "counts what other nodes have stored", %{tmp_dir: folder} do
      store = Path.join(folder, "skills.db")
      one = limited([day: 0.004], store: store)
      other = limited([day: 0.004], store: store)
      assert run(one, model(["Hi."])).status == :done
      :ok = Writer.flush(one)
      assert run(other, model([])).status == :over_budget
      assert run(one, model([])).status == :over_budget
    end

    test "ends a run between two turns" do
      book = limited(day: 0.004)
      result = run(book, model([cmd("memory.search --query tea")]))
      assert {result.status, result.turns} == {:over_budget, 1}
    end
  end

  test "of a call are those of its run, also of a model that counts no tokens" do
    book = start([])
    test = self()
    id = "costs #{inspect(book)}"

    handler = fn _event, _measurements, metadata, _config ->
      if metadata.book == book, do: send(test, {:cost, metadata.usage, metadata.cost})
    end

    :ok = :telemetry.attach_many(id, [[:skillbook, :model, :stop]], handler, nil)
    gpt = Model.Function.new(fn _messages, _options -> %{text: "Hi.", model: "gpt-5"} end)

    for {model, usage?} <- [{model(["Hi."]), true}, {gpt, false}] do
      %{cost: cost} = run(book, model)
      assert cost > 0
      assert_receive {:cost, usage, ^cost}
      assert is_map(usage) == usage?
    end

    :telemetry.detach(id)
  end

  test "are reported by skill, profile and time", %{tmp_dir: folder} do
    prose = "---\nname: workflows.review\ndescription: Review\n---\n\nReview the week.\n"
    write(folder, %{"workflows/review.md" => prose})
    agent = [model: model(["Reviewed."])]
    book = start(sources: [folder], agent: agent)
    run(book, model(["Hi.", "Hi."], "gpt-5", usage(1_000, 100, 500)))
    run(book, model(["Hi."]), profile: "eve")
    assert %{status: :ok} = Skillbook.carry_out(book, "workflows.review", profile: "bob")

    all = View.all(book)
    {:ok, costs} = Usage.costs(all)

    assert costs.rows == [
             %{
               key: "",
               prompt_tokens: 2_000,
               completion_tokens: 200,
               cached_tokens: 500,
               cost: 0.00765
             },
             %{
               key: "workflows.review",
               prompt_tokens: 1_000,
               completion_tokens: 100,
               cached_tokens: 0,
               cost: 0.0045
             }
           ]

    assert %{key: nil, prompt_tokens: 3_000, cost: 0.01215} = costs.total
    assert Usage.costs(book) |> elem(1) |> Map.get(:rows) == costs.rows
    {:ok, costs} = Usage.costs(book, by: :profile)
    assert for(row <- costs.rows, do: row.key) == ["bob", "eve", "ann"]
    {:ok, costs} = Usage.costs(all, by: :tenant)
    assert for(row <- costs.rows, do: {row.key, row.prompt_tokens}) == [{"a", 2_000}, {"", 1_000}]
    {:ok, costs} = Usage.costs(all, by: [:tenant, :profile])
    assert ["a", "ann"] in for(row <- costs.rows, do: row.key)
    # With everybody's counts a profile sees those of its tenant and the common ones.
    {:ok, costs} = Usage.costs(book, profile: "eve", profiles: :all, by: :tenant)
    assert for(row <- costs.rows, do: row.key) == [""]
    {:ok, costs} = Usage.costs(all, by: [:time, :profile])
    assert [[_hour, "ann"], [_, "bob"], [_, "eve"]] = for(row <- costs.rows, do: row.key)

    # Of others a profile sees nothing, and of hidden skills no name.
    {:ok, costs} = Usage.costs(book, profile: "ann")
    assert {length(costs.rows), costs.total.prompt_tokens} == {1, 1_000}
    narrow = Skillbook.Profile.narrow(Skillbook.view(book, "bob").profile, ["memory.*"])
    {:ok, costs} = Usage.costs(Skillbook.view(book, narrow))
    assert [%{key: "", prompt_tokens: 1_000}] = costs.rows

    # Counts of commands are others.
    {:ok, report} = Usage.report(all)
    assert {report.unnamed, report.total.count} == {0, 1}
  end

  test "options are checked" do
    for {options, message} <- [
          {[prices: %{"a" => [input: 1]}],
           ~r/\Aexpected a map of names of models to .* the option :prices of a book/},
          {[prices: %{a: [input: 1, output: 1]}], ~r/\Aexpected a map of names of models/},
          {[prices: %{"a" => [input: 1, output: -1]}], ~r/\Aexpected a map of names of models/},
          {[budget: [daily: 1]],
           ~r/\Aunknown option :daily for a book's :budget.* The options are :day, :tenant_day/},
          {[budget: [day: 0]],
           ~r/\Aexpected a number above 0 as the option :day of a book's :budget, got: 0/},
          {[budget: [skill_day: %{"a" => 0}]],
           ~r/\Aexpected a number above 0 or a map of names to such numbers as the option :skil/},
          {[budget: [day: %{"a" => 1}]], ~r/\Aexpected a number above 0 as the option :day/},
          {[budget: [day: 1], store: nil],
           ~r/\Aexpected none without a :store that counts :usage, as the option :budget/},
          {[budget: [day: 1], usage: false], ~r/\Aexpected none without a :store/}
        ] do
      options = Keyword.merge([name: :costs_options, store: ":memory:"], options)
      assert {:error, %OptionError{} = error} = Skillbook.start_link(options)
      assert Exception.message(error) =~ message
    end
  end
end
