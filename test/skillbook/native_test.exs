defmodule Skillbook.NativeTest do
  # What is wrong with an argument is an error in the calling process; nothing takes the virtual machine down.
  use ExUnit.Case, async: true

  alias Skillbook.{Catalog, Command, Extractor, Frontmatter, Native, View}

  @functions Native.__info__(:functions) -- [load: 0]

  setup_all do
    {:ok, catalog} = Catalog.load(["test/support/fixtures/skills"])
    {:ok, catalog: catalog, view: View.all(catalog)}
  end

  test "arguments of the wrong kind are refused", %{catalog: catalog, view: view} do
    values = [
      nil,
      :atom,
      -1,
      1.5,
      1_000_000_000_000_000_000_000_000,
      "",
      "text",
      <<255, 0, 254>>,
      <<1::3>>,
      [],
      [1 | 2],
      ["a"],
      %{"a" => 1},
      {},
      {:a, 1},
      make_ref(),
      self(),
      catalog.ref,
      view.ref,
      Extractor.new().ref
    ]

    for {name, arity} <- @functions, round <- 1..100 do
      # Reproducible, and different for each function.
      arguments = for n <- 1..arity//1, do: Enum.at(values, :erlang.phash2({name, round, n}, length(values)))

      try do
        apply(Native, name, arguments)
      rescue
        error in [ArgumentError, ErlangError] -> error
      end
    end

    assert View.count(view) == Catalog.count(catalog)
  end

  test "no bytes do harm", %{view: view} do
    :rand.seed(:exsss, {1, 2, 3})

    parts = [
      "```cmd\n",
      "\n```\n",
      "---\n",
      "\"",
      "'",
      "<<E",
      "\nE\n",
      "\\",
      "--a",
      "=",
      "“",
      "a: ",
      "- ",
      "[",
      "{",
      <<0>>,
      <<0xE2>>
    ]

    for _ <- 1..2_000 do
      bytes =
        for _ <- 1..:rand.uniform(20), into: "" do
          if :rand.uniform(3) == 1, do: :rand.bytes(:rand.uniform(8)), else: Enum.random(parts)
        end

      assert elem(Extractor.extract(bytes), 0) in [:ok, :error]
      assert elem(Command.parse(bytes), 0) in [:ok, :error]
      assert elem(Frontmatter.parse("---\n" <> bytes), 0) in [:ok, :error]
      assert elem(Skillbook.Router.route(view, bytes), 0) in [:ok, :help, :error]
      assert elem(View.fetch(view, bytes), 0) == :error
      assert elem(Skillbook.get(view, bytes), 0) in [:ok, :error]
      {_events, state} = Extractor.feed(Extractor.new(), bytes)
      assert {_events, _state} = Extractor.finish(state)
      assert to_string(Skillbook.run(view, bytes)) |> String.valid?()
    end
  end

  test "deep nesting is refused and does not overflow a stack", %{view: view} do
    for {open, close} <- [{"[", "]"}, {"{a: ", "}"}, {"- ", ""}] do
      deep = String.duplicate(open, 5_000) <> "1" <> String.duplicate(close, 5_000)
      assert {:error, _} = Frontmatter.parse("---\na:\n  #{deep}\n---\n")
    end

    deep = String.duplicate("[", 5_000) <> String.duplicate("]", 5_000)
    assert {:error, %{kind: :invalid_json}} = Command.parse(~s(haiku {"a": #{deep}}))
    assert {:error, %{kind: :invalid_json}} = Skillbook.Router.route(view, ~s(haiku {"a": #{deep}}))
  end
end
