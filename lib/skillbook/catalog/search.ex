defmodule Skillbook.Catalog.Search do
  @moduledoc false

  alias Skillbook.Support.Options
  alias Skillbook.{Hit, Native, View}

  @limit 10
  @most 1_000

  @doc "The largest `:limit`."
  def most, do: @most

  @spec search(View.t(), String.t(), keyword()) :: [Hit.t()]
  def search(%View{ref: ref}, query, options \\ []) when is_binary(query) do
    with {:error, error} <- Options.validate(options, "a search", schema()), do: raise(error)

    # What is not text has no words.
    if String.valid?(query) do
      limit = Keyword.get(options, :limit, @limit)

      Native.view_search(
        ref,
        query,
        limit,
        options[:kind],
        options[:domain],
        Keyword.get(options, :tags, [])
      )
    else
      []
    end
  end

  defp schema do
    [
      limit: {"an integer from 1 to #{@most}", &(is_integer(&1) and &1 in 1..@most)},
      kind: {":command, :skill, :note or nil", &(&1 in [:command, :skill, :note, nil])},
      domain: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      tags: {"a list of texts", &Options.texts?/1}
    ]
  end
end
