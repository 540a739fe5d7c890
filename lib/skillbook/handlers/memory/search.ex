defmodule Skillbook.Handlers.Memory.Search do
  @moduledoc false
  # `memory.search`: searches the memories of the caller's profile.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Memory.{Memory, Table}
  alias Skillbook.Search.Query
  alias Skillbook.Support.Count
  alias Skillbook.{Book, Context, Embedding, FlagError, Flags, Result}

  @max_limit 100

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.cast(flags, "query", Query.expected(), ~s("some text"), &words/1),
         {:ok, flags} <- Flags.cast_keyword(flags, "category"),
         {:ok, flags} <- Flags.cast(flags, "after", "a memory's id", "M-12", &Memory.id/1),
         :ok <- check_place(flags),
         defaults = %{"query" => {nil, nil}, "category" => nil, "after" => nil},
         flags = Flags.apply_defaults(flags, defaults),
         {:ok, memories, total, match} <- search(sql, context, flags) do
      {shown, more} = Enum.split(memories, flags["limit"])
      next = if more != [], do: Memory.reference(List.last(shown))
      data = Count.with_next(%{memories: shown, total: total}, next)
      {:ok, Result.ok(text(shown, total, match, next, flags), data: data)}
    end
  end

  # A rank changes with each write, so no page could begin after one.
  defp check_place(%{"after" => _, "query" => _}),
    do: FlagError.conflict(["after", "query"], "only a list without --query has pages")

  defp check_place(_flags), do: :ok

  defp words(text) do
    with {:ok, clauses} <- Query.parse(text, :begun), do: {:ok, {text, clauses}}
  end

  # Models search with sentences, and often no memory has every word of one. Then the best matches
  # of some of the words are listed.
  defp search(sql, context, %{"query" => {nil, nil}, "limit" => limit} = flags),
    do: Table.newest(sql, context.profile, flags["category"], limit + 1, flags["after"])

  defp search(sql, context, %{"query" => query, "category" => category, "limit" => limit}),
    do: Table.search(sql, context.profile, query(query, context), category, limit)

  defp query({text, clauses}, %{book: book}),
    do: {clauses, Embedding.QueryVectors.meaning(book && Book.find(book), text)}

  defp text([], _, _, _, %{"after" => nil} = flags),
    do: "No memories found: #{describe(flags, "none holds any of")}"

  defp text([], _, _, _, flags), do: "No older memories: #{describe(flags, "")}"

  defp text(memories, total, match, next, flags) do
    words =
      case match do
        :all -> "all of"
        :any -> "none holds all of, these hold some of"
        :meaning -> "by words and by meaning,"
      end

    count = if total, do: Count.text(total, "memory", "memories"), else: "Older memories"
    head = "#{count}: #{describe(flags, words)}"
    more = Count.more(total && total - length(memories), @max_limit, next)
    Enum.join([head | Enum.map(memories, &Memory.text/1)] ++ more, "\n")
  end

  defp describe(%{"query" => {query, _}, "category" => category}, words) do
    order =
      if query, do: "#{words} #{inspect(query, printable_limit: 80)}", else: "the newest first"

    if category, do: "#{order}; category #{category}", else: order
  end
end
