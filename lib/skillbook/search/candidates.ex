defmodule Skillbook.Search.Candidates do
  @moduledoc false
  # Finds the entries of a view that may help with a request, for the router and the prompt. It
  # searches as `Skillbook.search/3` does, and also returns the parts of each score.

  alias Skillbook.Catalog.Search
  alias Skillbook.{Native, View}

  @typedoc """
  An entry that may help.

    * `:score` - the relevance, by which candidates are sorted; only comparable within one search
    * `:words` - the score of the words alone
    * `:similarity` - the cosine of the request and the entry, from -1.0 to 1.0; `nil` if the
      book has no embedder, if it failed, or if the entry has no vector yet
  """
  @type t :: %{name: String.t(), score: float(), words: float(), similarity: float() | nil}

  @roles [:system, :user, :assistant, :tool]

  # How many of the user's last messages say what a conversation is about, and the characters of
  # each that count.
  @max_inputs 4
  @max_input 2_000

  @doc "Whether a value is a list of messages of a model."
  @spec messages?(term()) :: boolean()
  def messages?(messages) do
    is_list(messages) and
      Enum.all?(
        messages,
        &match?(
          %{role: role, content: content}
          when role in @roles and (is_binary(content) or is_list(content)),
          &1
        )
      )
  end

  @doc "The words of the user in messages, without images, files and audio."
  @spec inputs([map()]) :: [String.t()]
  def inputs(messages) do
    for %{role: :user, content: content} <- messages,
        do: content |> List.wrap() |> Enum.filter(&is_binary/1) |> Enum.join("\n")
  end

  @doc """
  Returns the names of at most `limit` entries nearest to the last messages of the user, best
  first.
  """
  @spec of_messages(View.t(), [map()], non_neg_integer()) :: [String.t()]
  def of_messages(view, messages, limit) do
    case last_inputs(messages) do
      text when text != "" and limit > 0 -> Enum.map(find(view, text, limit), & &1.name)
      _ -> []
    end
  end

  # The newest comes first, since a search may ignore the end of a long text.
  defp last_inputs(messages) do
    messages
    |> inputs()
    |> Enum.take(-@max_inputs)
    |> Enum.reverse()
    |> Enum.map_join("\n", &String.slice(&1, 0, @max_input))
    |> String.trim()
  end

  @doc "Returns at most `limit` candidates for a request, best first."
  @spec find(View.t(), String.t(), pos_integer()) :: [t()]
  def find(%View{} = view, text, limit)
      when is_binary(text) and is_integer(limit) and limit > 0 do
    if String.valid?(text), do: find(view, text, limit, Search.meaning(view, text)), else: []
  end

  @doc "The same with the vectors of `Skillbook.Catalog.Search.meaning/2`, or `nil`."
  @spec find(View.t(), String.t(), pos_integer(), {reference(), binary()} | nil) :: [t()]
  def find(%View{ref: ref}, text, limit, meaning) do
    for {name, score, words, similarity} <- Native.view_candidates(ref, text, limit, meaning),
        do: %{name: name, score: score, words: words, similarity: similarity}
  end
end
