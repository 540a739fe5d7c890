defmodule Skillbook.Support.OperationTest do
  # The operations of all packages: their declarations, the input that they read, and results that
  # are as declared.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Part, SQL, UnknownSkillError, View}
  alias Skillbook.Support.Operation

  @types ~w(text number boolean map time object)a
  @many %{texts: :text, times: :time, objects: :object}

  test "each has a name of its own, texts for people, known types, and a function" do
    operations = Part.operations()
    names = Enum.map(operations, & &1.name)
    assert names == Enum.uniq(names)

    for operation <- operations do
      assert operation.caller in [:reader, :operator, :trusted]
      assert operation.doc =~ ~r/\A[A-Z].*\.\z/s

      for {_name, {type, doc}} <- operation.input do
        assert doc =~ ~r/[^.]\z/
        assert %{type: _} = Operation.input_schema(type)
      end

      types(operation.output)
    end
  end

  defp types({name, shape}) when is_atom(name), do: types(shape)

  defp types([shape]) when is_list(shape) do
    assert %{type: :array} = Operation.output_schema([shape])
    types(shape)
  end

  defp types(shape) do
    assert %{type: :object} = Operation.output_schema(shape)

    for {type, fields} <- shape do
      assert required(type) in (@types ++ Map.keys(@many))
      for {_name, shape} <- fields, do: types(shape)
    end
  end

  defp required(type), do: type |> to_string() |> String.trim("?") |> String.to_existing_atom()

  describe "read/2" do
    @operation %Operation{
      name: :x,
      doc: "",
      run: nil,
      input: [
        text: {{:text, 3}, ""},
        list: {{:texts, 2}, ""},
        kind: {{:one_of, [:a, :b, :c]}, ""},
        count: {{:number, 1, 9}, ""},
        yes: {:boolean, ""},
        own: {{:parsed, "an own text", &__MODULE__.own/2}, ""}
      ]
    }

    def own("1", read), do: {:ok, read[:text]}
    def own(_text, _read), do: :error

    for {fields, expected} <- [
          {%{}, []},
          {%{"other" => "x"}, []},
          {%{"text" => "abc", "own" => "1"}, [text: "abc", own: "abc"]},
          {%{"text" => ""}, []},
          {%{"text" => "äöü"}, [text: "äöü"]},
          {%{"list" => "x"}, [list: ["x"]]},
          {%{"list" => ["x", "y"]}, [list: ["x", "y"]]},
          {%{"kind" => "c"}, [kind: :c]},
          {%{"count" => "9"}, [count: 9]},
          {%{"yes" => "1"}, [yes: true]},
          {%{"yes" => "true"}, [yes: false]},
          {%{"text" => "abcd"}, "Expected at most 3 characters as text."},
          {%{"text" => ["a"]}, "Expected one text."},
          {%{"text" => %{}}, "Expected one text."},
          {%{"list" => ["x", "y", "z"]}, "Expected at most 2 lists, as list or list[]."},
          {%{"list" => ["x", %{}]}, "Expected at most 2 lists, as list or list[]."},
          {%{"kind" => "d"}, "Expected a, b or c as kind."},
          {%{"kind" => ["a"]}, "Expected a, b or c as kind."},
          {%{"count" => "0"}, "Expected a number from 1 to 9 as count."},
          {%{"count" => "1.0"}, "Expected a number from 1 to 9 as count."},
          {%{"own" => "2"}, "Expected an own text as own."},
          {%{"own" => ["1"]}, "Expected an own text as own."}
        ] do
      test inspect(fields) do
        with {:ok, input} <- Operation.read(@operation, unquote(Macro.escape(fields))) do
          assert Enum.sort(input) == Enum.sort(unquote(expected))
        else
          {:error, text} -> assert text == unquote(expected)
        end
      end
    end
  end

  for {type, schema} <- [
        {{:text, 3}, %{type: :string, maxLength: 3}},
        {{:texts, 2}, %{type: :array, maxItems: 2, items: %{type: :string, minLength: 1}}},
        {{:one_of, [:a, :b]}, %{type: :string, enum: [:a, :b]}},
        {{:number, 1, 9}, %{type: :integer, minimum: 1, maximum: 9}},
        {:boolean, %{type: :string, enum: ["0", "1"]}}
      ] do
    test "input_schema/1 of #{inspect(type)}" do
      assert Operation.input_schema(unquote(Macro.escape(type))) == unquote(Macro.escape(schema))
    end
  end

  test "output_schema/1" do
    text = %{type: :string}
    time = %{type: :string, format: "date-time"}
    one = %{type: :object, properties: %{a: text}, required: [:a]}

    for {shape, schema} <- [
          {[text: [:x]], text},
          {[text?: [:x]], %{type: [:string, :null]}},
          {[texts: [:x]], %{type: :array, items: text}},
          {[number: [:x]], %{type: :number}},
          {[number?: [:x]], %{type: [:number, :null]}},
          {[boolean: [:x]], %{type: :boolean}},
          {[map: [:x]], %{type: :object}},
          {[map?: [:x]], %{type: [:object, :null]}},
          {[time: [:x]], time},
          {[time?: [:x]], %{time | type: [:string, :null]}},
          {[times: [:x]], %{type: :array, items: time}},
          {[object: [x: [text: [:a]]]], one},
          {[object?: [x: [text: [:a]]]], %{one | type: [:object, :null]}},
          {[objects: [x: [[text: [:a]]]]], %{type: :array, items: one}},
          {[objects: [:x]], %{type: :array, items: %{type: :object}}}
        ] do
      whole = %{type: :object, properties: %{x: schema}, required: [:x]}
      assert {shape, Operation.output_schema(shape)} == {shape, whole}
      assert Operation.output_schema([shape]) == %{type: :array, items: whole}
    end

    assert Operation.output_schema([]) == %{type: :object, properties: %{}, required: []}
    both = %{type: :object, properties: %{x: text, y: text, n: time}, required: [:x, :y, :n]}
    assert Operation.output_schema(text: [:x, :y], time: [:n]) == both
  end

  test "status/2" do
    for {error, status} <- [
          {%UnknownSkillError{name: "x"}, 404},
          {SQL.Error.closed(), 503},
          {%ArgumentError{}, 422}
        ],
        do: assert(Operation.status(@operation, error) == status)

    assert Operation.status(%{@operation | refused: 409}, %ArgumentError{}) == 409
  end

  describe "results are as declared:" do
    @describetag :tmp_dir
    @describetag :capture_log

    setup %{tmp_dir: folder} do
      write(folder, %{
        "x/save.md" => page("x.save", handler("Text") ++ [approval: "required"]),
        "x/fail.md" => page("x.fail", handler("Raise")),
        "x/flow.md" => page("x.flow", schedule: "0 8 * * *", run_as: "ann", tags: "[a]")
      })

      book = book(sources: [folder], builtins: false, store: ":memory:", profiles: [[id: "ann"]])
      {:ok, book: book, view: Skillbook.view(book, "ann")}
    end

    test "skills", %{view: view} do
      assert %{skills: [%{name: "x.fail"}, %{name: "x.flow"}], next: next} =
               result(:skills, [view, [limit: 2]])

      {:ok, input} = Operation.read(Part.operation(:skills), %{"cursor" => next})
      assert %{skills: [%{name: "x.save"}], next: nil} = result(:skills, [view, input])
      assert %{content: _, tags: ["a"]} = result(:skill, [view, "x.flow", []])
    end

    test "approvals", %{book: book, view: view} do
      for _ <- 1..2, do: Skillbook.run(view, "```cmd\nx.save\n```")
      assert [%{ref: first, by: nil}, %{ref: second}] = result(:approvals, [view, []])
      approved = result(:approve, [book, first, [by: "Bob"]])
      assert %{status: :done, result: %{status: :ok}, decided_at: _} = approved

      assert %{status: :denied, reason: "No"} =
               result(:deny, [book, second, [by: "B", reason: "No"]])

      assert [_, _] = result(:approvals, [book, [status: [:done, :denied]]])
    end

    test "schedules", %{book: book, view: view} do
      by = [by: "Bob", reason: "It rains"]
      assert %{next: [%{paused: nil}]} = result(:schedule, [view, []])
      assert %{pause: %{by: "Bob"}} = result(:pause_schedule, [view, "x.flow", by])
      all = View.all(book)

      assert %{next: [%{paused: %{reason: "It rains"}, at: [_, _]}]} =
               result(:schedule, [all, [times: 2]])

      assert %{pause: %{by: "Bob"}} = result(:resume_schedule, [view, "x.flow", by])
      assert %{pause: nil} = result(:resume_schedule, [view, "x.flow", by])
      assert %{name: "x.flow", at: _} = result(:run_schedule, [view, "x.flow", by])
      eventually(fn -> match?(%{last: [%{status: :template}]}, result(:schedule, [all, []])) end)
    end

    test "breakers and usage", %{book: book, view: view} do
      for _ <- 1..5, do: Skillbook.run(view, "```cmd\nx.fail\n```")
      eventually(fn -> match?(%{rows: [%{failed: 5}]}, result(:usage, [View.all(book), []])) end)

      assert %{name: "x.fail", breaker: [%{state: :open}]} =
               result(:reset_breaker, [view, "x.fail", [by: "Bob"]])
    end
  end

  # The result as maps, after a check of its types.
  defp result(name, arguments) do
    operation = Part.operation(name)
    {:ok, result} = apply(operation.run, arguments)

    if operation.caller == :operator do
      json = Operation.outcome(operation, Enum.at(arguments, 1), result)

      with {field, shape} <- operation.output,
           do: typed(shape, json[field]),
           else: (shape -> typed(shape, json))

      json
    else
      json = Operation.json(operation.output, result)
      typed(operation.output, json)
      json
    end
  end

  defp typed(_shape, nil), do: :ok
  defp typed([shape], values) when is_list(shape), do: Enum.each(values, &typed(shape, &1))

  defp typed(shape, json) do
    for {type, fields} <- shape, field <- fields do
      {name, nested} = if is_atom(field), do: {field, nil}, else: field
      value = Map.fetch!(json, name)
      optional? = type |> to_string() |> String.ends_with?("?")

      assert {name, value, (optional? and value == nil) or is?(required(type), value)} ==
               {name, value, true}

      if nested, do: typed(nested, value)
    end
  end

  defp is?(type, values) when is_map_key(@many, type),
    do: is_list(values) and Enum.all?(values, &is?(@many[type], &1))

  defp is?(:text, value),
    do: is_binary(value) or (is_atom(value) and value not in [nil, true, false])

  defp is?(:number, value), do: is_number(value)
  defp is?(:boolean, value), do: is_boolean(value)

  defp is?(:time, value),
    do: match?({:ok, %{microsecond: {0, 0}}, 0}, DateTime.from_iso8601(value))

  defp is?(_map, value), do: is_map(value) and not is_struct(value)
end
