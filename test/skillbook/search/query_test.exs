defmodule Skillbook.Search.QueryTest do
  use ExUnit.Case, async: true

  alias Skillbook.Search.Query

  doctest Query

  # Words are the clauses that a document must have; `|` joins alternatives, `-` leaves out, and
  # the words of a phrase have `_` between them.
  @rows [
    # Words.
    {"plans budget", "plan budget"},
    {"plan plan", "plan"},
    {"strat* re-do*", "strat* re do*"},
    {~s("quarterly plan" may), "quarter_plan may"},
    # `-` leaves out a word, a prefix, a phrase or a compound.
    {"plan -draft", "plan -draft"},
    {"-drafts plan", "-draft plan"},
    {"plan -temp*", "plan -temp*"},
    {~s(plan -"old draft"), "plan -old_draft"},
    {"plan -re-do", "plan -re_do"},
    {"plan -2024", "plan -2024"},
    {"plan -draft -draft", "plan -draft"},
    {"plan -draft.", "plan -draft"},
    {"plan -the", "plan -the"},
    {"plan -OR", "plan -or"},
    {"plan -plan", "plan -plan"},
    # Anywhere else it separates words.
    {"plan --draft", "plan draft"},
    {"plan - draft", "plan draft"},
    {"plan (-draft)", "plan draft"},
    {"re-do", "re do"},
    {~s("-draft"), "draft"},
    {~s(plan --"old draft"), "plan old_draft"},
    {~s(plan -"old), "plan old"},
    {"plan –draft −may", "plan draft may"},
    {"-?! plan", "plan"},
    {~s(plan -""), "plan"},
    # A query needs a word that it does not leave out.
    {"-draft", :error},
    {~s(-draft -"old plan" -temp*), :error},
    {"-draft ?!", :error},
    {"-draft OR", "-draft or"},
    # `OR` joins its neighbours.
    {"plan OR budget", "plan|budget"},
    {"plan OR budget may", "plan|budget may"},
    {"may plan OR budget OR notes", "may plan|budget|note"},
    {~s(plan OR "old draft" OR temp*), "plan|old_draft|temp*"},
    {"re-do OR plan", "re_do|plan"},
    {"plan OR plans", "plan"},
    {"(plan OR budget)", "plan|budget"},
    {"plan OR ?! budget", "plan|budget"},
    {"plan OR budget -draft", "plan|budget -draft"},
    # Anywhere else it is a function word.
    {"OR plan", "plan"},
    {"plan OR", "plan"},
    {"plan OR OR budget", "plan budget"},
    {"plan OR -budget may", "plan -budget may"},
    {"plan -draft OR budget", "plan -draft budget"},
    {"plan or budget", "plan budget"},
    {"plan Or budget", "plan budget"},
    {~s(plan "OR" budget), "plan or budget"},
    {"plan OR, budget", "plan budget"},
    {"planORbudget", "planorbudget"},
    {"OR", "or"},
    {"OR OR", "or"},
    # Function words count only without others.
    {"what is the plan", "plan"},
    {"The PLAN of it", "plan"},
    {"what is the", "what is the"},
    {"to OR from", "to|from"},
    {"the OR plan", "plan"},
    {"plan OR the budget", "plan|budget"},
    {~s("to be" or not), "to_be"},
    {~s("the" plan), "the plan"},
    {"the* plan", "the* plan"},
    {"to-do list", "to do list"},
    {"the -draft", "the -draft"},
    # Other forms of function words are words of their own.
    {"the wills and cans", "will can"},
    # The query is in the language of most of its function words, two of them at least.
    {"wie ist der Plan für Berlin", "plan berlin"},
    {"der Plan", "der plan"},
    {"die with the plan", "die plan"},
    {"quel est le plan pour Paris", "plan pari"},
    {"wie ist der -die Plan", "-die plan"},
    {~s("wie ist" der Plan), "wie_ist plan"},
    {"wie ist der Plan*", "plan*"},
    {"wie ist der", "wie ist der"},
    # Contractions.
    {"what's Ann's plan", "ann plan"},
    {"we don’t plan, isn't it", "plan"},
    {"what's", "what"},
    {"don't", "don t"},
    {"o'clock", "o clock"},
    {"'s plan", "s plan"},
    # No words.
    {"", :error},
    {"?! \" - * \"\"", :error},
    {<<255>>, :error}
  ]

  test "operators and function words" do
    for {query, expected} <- @rows, do: assert({query, parse(query)} == {query, expected})
  end

  test "the last word may be the beginning of a word" do
    for {query, expected} <- [
          {"plan lau", "plan lau|lau*"},
          {"what is the lau", "lau|lau*"},
          {"plan the", "plan"},
          {"the", "the|the*"},
          {"plan re-do", "plan re do|do*"},
          {"plan OR meetings", "plan|meet|meetings*"},
          {"plan -draft", "plan -draft"},
          {~s(plan "draft"), "plan draft"},
          {"plan draft*", "plan draft*"},
          {"plan draft ?", "plan draft|draft*"}
        ],
        do: assert({query, parse(query, :begun)} == {query, expected})
  end

  test "limits" do
    words = fn count, prefix -> Enum.map_join(1..count, " ", &"#{prefix}w#{&1}") end
    long = String.duplicate("x", Query.max_bytes())

    for {query, ok?} <- [
          {words.(32, ""), true},
          {words.(33, ""), false},
          {"x " <> words.(31, "-"), true},
          {"x " <> words.(32, "-"), false},
          {String.replace(words.(32, ""), " ", " OR "), true},
          {String.replace(words.(33, ""), " ", " OR "), false},
          {~s("#{words.(32, "")}"), true},
          {~s("#{words.(33, "")}"), false},
          {"the " <> words.(31, ""), true},
          {"the " <> words.(32, ""), false},
          {String.duplicate("same ", 40), true},
          {long, true},
          {long <> "x", false}
        ],
        last <- [:whole, :begun] do
      assert {query, match?({:ok, _}, Query.parse(query, last))} == {query, ok?}
    end
  end

  test "words and phrases that a query leaves out are not marked" do
    {:ok, clauses} = Query.parse(~s(the plan OR "old draft" strat* -may -"no mark" -temp*))
    assert Query.marks(clauses) == {["plan", "old", "draft"], ["strat"]}
  end

  test "the documented function words are those of the core" do
    docs = File.read!("docs/vaults.md")
    [_, documented] = Regex.run(~r/are the English ones:.*?```text\n(.*?)```/s, docs)
    core = File.read!("native/skillbook_core/src/search/function_words.rs")
    [_, listed] = Regex.run(~r/LANGUAGES.*?English\n *"(.*?)"/s, core)
    assert String.split(documented) == String.split(listed, ~r/[\s\\]+/)

    for word <- String.split(documented),
        do: assert({word, parse("zebra #{word}")} == {word, "zebra"})
  end

  defp parse(query, last \\ :whole) do
    with {:ok, clauses} <- Query.parse(query, last), do: Enum.map_join(clauses, " ", &clause/1)
  end

  defp clause({:with, units}), do: Enum.map_join(units, "|", &unit/1)
  defp clause({:without, units}), do: "-" <> Enum.map_join(units, "|", &unit/1)

  defp unit({:word, stem}), do: stem
  defp unit({:prefix, form}), do: form <> "*"
  defp unit({:phrase, stems}), do: Enum.join(stems, "_")
end
