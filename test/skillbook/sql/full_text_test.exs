defmodule Skillbook.SQL.FullTextTest do
  use ExUnit.Case, async: true

  alias Skillbook.SQL.FullText

  test "words are letters and digits, whatever stands between them" do
    for {text, words} <- [
          {"marketing report", ["marketing", "report"]},
          {~s(title:"x" AND (y* OR -z\)), ["title", "x", "AND", "y", "OR", "z"]},
          {"Ärger, naïve 日本語 Q1", ["Ärger", "naïve", "日本語", "Q1"]},
          {"e\u0301te\u0301", ["e\u0301te\u0301"]},
          {Enum.map_join(1..32, " ", &"w#{&1}"), Enum.map(1..32, &"w#{&1}")}
        ],
        do: assert(FullText.words(text) == {:ok, words})

    for text <- ["", " ?! ", "\u0301", "🎉", Enum.map_join(1..33, " ", &"w#{&1}")],
        do: assert({text, FullText.words(text)} == {text, :error})
  end

  test "patterns: the last word may be the beginning of one" do
    for {dialect, words, how, pattern} <- [
          {:sqlite, ["a"], :all, ~s("a"*)},
          {:sqlite, ["a", "OR", "c"], :all, ~s("a" AND "OR" AND "c"*)},
          {:sqlite, ["a", "b"], :any, ~s("a" OR "b"*)},
          {:postgres, ["a"], :all, "a:*"},
          {:postgres, ["a", "b"], :all, "a & b:*"},
          {:postgres, ["a", "b"], :any, "a | b:*"}
        ],
        do: assert(FullText.pattern(dialect, words, how) == pattern)
  end

  test "in PostgreSQL the weights become classes" do
    assert FullText.create(:postgres, "t", [{"low", 1}, {"high", 4}]) == [
             "alter table t add column search tsvector generated always as " <>
               "(setweight(to_tsvector('english', coalesce(high, '')), 'A') || " <>
               "setweight(to_tsvector('english', coalesce(low, '')), 'B')) stored",
             "create index t_search_index on t using gin (search)"
           ]
  end
end
