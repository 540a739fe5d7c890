defmodule Skillbook.Catalog.Listing do
  @moduledoc false
  # The skills that a model of a profile is offered, for the API: those without
  # `disable-model-invocation`, page by page.

  alias Skillbook.Support.{Number, Operation}
  alias Skillbook.{Entry, UnknownSkillError, View}

  # Skills of a page, and hits of a query.
  @limit 100
  @max 1_000

  @skill [text: ~w(name kind description)a, text?: [:title], texts: [:tags]]

  def operations do
    cursor = {:parsed, "the next of an answer to the same query", &cursor/2}

    [
      %Operation{
        name: :skills,
        doc: "Lists skills: by name, or with a query the best matches.",
        input: [
          q: {{:text, 1_000}, "the query"},
          kind: {{:one_of, [:command, :skill, :note]}, "only entries of this kind"},
          tag: {{:texts, 20}, "only entries with all of these tags"},
          limit: {{:number, 1, @max}, "skills of a page, #{@limit} by default"},
          cursor: {cursor, "the `next` of the page before"}
        ],
        output: [objects: [skills: [@skill]], text?: [:next]],
        run: &list/2
      },
      %Operation{
        name: :skill,
        doc: "Reads a skill with its content.",
        subject: :name,
        output: [text: [:content]] ++ @skill,
        run: &read/3
      }
    ]
  end

  @spec list(View.t(), keyword()) ::
          {:ok, %{skills: [Entry.t()], next: String.t() | nil}}
  def list(view, input) do
    {limit, at} = {input[:limit] || @limit, input[:cursor]}
    {page, rest} = view |> entries(input[:q], at, limit, input) |> Enum.split(limit)

    next =
      cond do
        rest == [] -> nil
        input[:q] == nil -> encode("n" <> List.last(page).name)
        true -> encode("s#{(at || 0) + length(page)}")
      end

    {:ok, %{skills: page, next: next}}
  end

  # Without a query, by name after the cursor; with one, after the number in the cursor.
  defp entries(view, nil, after_name, limit, input) do
    {kind, tags} = {input[:kind], input[:tag] || []}

    view
    |> View.stream(listed: true, after: after_name)
    |> Stream.filter(&(kind in [nil, &1.kind] and tags -- &1.tags == []))
    |> Enum.take(limit + 1)
  end

  defp entries(view, query, after_number, limit, input) do
    filters = [limit: @max, kind: input[:kind], tags: input[:tag] || []]
    hits = Skillbook.search(view, query, filters)

    for hit <- Enum.slice(hits, after_number || 0, limit + 1),
        {:ok, entry} <- [View.fetch(view, hit.name)],
        do: entry
  end

  @spec read(View.t(), String.t(), keyword()) :: {:ok, map()} | {:error, UnknownSkillError.t()}
  def read(view, name, _input) do
    # Entries with `disable-model-invocation` are for people, and this is asked by the code of
    # models.
    case View.fetch(view, name) do
      {:ok, %{hidden_from_model: true}} -> {:error, View.unknown(view, name)}
      {:ok, entry} -> {:ok, entry |> Map.from_struct() |> Map.put(:content, entry.body)}
      {:error, error} -> {:error, error}
    end
  end

  defp encode(text), do: Base.url_encode64(text, padding: false)

  defp cursor(text, input) do
    with {:ok, decoded} <- Base.url_decode64(text, padding: false),
         true <- String.valid?(decoded),
         do: position(decoded, input[:q])
  end

  defp position("n" <> name, nil), do: {:ok, name}

  defp position("s" <> number, query) when query != nil do
    case Number.integer(number) do
      {number, ""} when number in 0..@max -> {:ok, number}
      _other -> :error
    end
  end

  defp position(_other, _query), do: :error
end
