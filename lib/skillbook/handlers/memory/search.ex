defmodule Skillbook.Handlers.Memory.Search do
  @moduledoc false
  # `memory.search`: searches the memories of the caller's profile.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Memory.{Memory, Table}
  alias Skillbook.Search.Query
  alias Skillbook.Support.Count
  alias Skillbook.{Book, Context, Embedding, Flags, Result}

  @max_limit 100

  @impl true
  def execute(flags, context) do
    with {:ok, sql} <- Context.fetch_sql(context),
         {:ok, flags} <- Flags.cast(flags, "query", Query.expected(), ~s("some text"), &words/1),
         {:ok, flags} <- Flags.cast_keyword(flags, "category"),
         flags = Flags.apply_defaults(flags, %{"query" => {nil, nil}, "category" => nil}),
         {:ok, memories, total, match} <- search(sql, context, flags) do
      {:ok,
       Result.ok(text(memories, total, match, flags), data: %{memories: memories, total: total})}
    end
  end

  defp words(text) do
    with {:ok, clauses} <- Query.parse(text, :begun), do: {:ok, {text, clauses}}
  end

  # Models search with sentences, and often no memory has every word of one. Then the best matches
  # of some of the words are listed.
  defp search(sql, context, %{"query" => query, "category" => category, "limit" => limit}),
    do: Table.search(sql, context.profile, query(query, context), category, limit)

  defp query({nil, nil}, _context), do: nil

  defp query({text, clauses}, %{book: book}),
    do: {clauses, Embedding.QueryVectors.meaning(book && Book.find(book), text)}

  defp text([], _, _, flags), do: "No memories found: #{describe(flags, "none holds any of")}"

  defp text(memories, total, match, flags) do
    words =
      case match do
        :all -> "all of"
        :any -> "none holds all of, these hold some of"
        :meaning -> "by words and by meaning,"
      end

    head = "#{Count.text(total, "memory", "memories")}: #{describe(flags, words)}"
    more = Count.more(total - length(memories), @max_limit)
    Enum.join([head | Enum.map(memories, &Memory.text/1)] ++ more, "\n")
  end

  defp describe(%{"query" => {query, _}, "category" => category}, words) do
    order =
      if query, do: "#{words} #{inspect(query, printable_limit: 80)}", else: "the newest first"

    if category, do: "#{order}; category #{category}", else: order
  end
end
