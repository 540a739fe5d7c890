defmodule Skillbook.Web.API do
  @moduledoc false
  # The read-only API: the skills of the caller's view as JSON, for code that a model runs
  # elsewhere. It runs nothing, and lists the skills that a model of the profile is offered.
  #
  # | request | answer |
  # |---|---|
  # | `GET /api/skills?q=&kind=&tag=&limit=&cursor=` | `{"skills": […], "next": cursor or null}` |
  # | `GET /api/skills/NAME` | the skill with its content, or 404 |

  alias Skillbook.Support.Number
  alias Skillbook.{Entry, View}
  alias Skillbook.Web.{Caller, Request, Response}

  # Skills of a page.
  @limit 100
  @max_limit 1_000
  # Characters of a query, and tags of a request.
  @max_query 1_000
  @max_tags 20

  @doc false
  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(%Request{path: ["api", "skills" | rest], method: "GET"} = request, _web)
      when length(rest) <= 1 do
    case rest do
      [] -> list(request)
      [name] -> read(name, Caller.view(request))
    end
  end

  def handle(%Request{path: ["api", "skills" | rest]}, _web) when length(rest) <= 1,
    do: 405 |> error("The API is read-only: GET.") |> Response.put_header("allow", "GET, HEAD")

  def handle(_request, _web), do: error(404, "Not found. The API has /api/skills.")

  defp error(status, text), do: Response.json(status, %{error: text})

  defp read(name, view) do
    case View.fetch(view, name) do
      {:ok, %Entry{hidden_from_model: false} = entry} ->
        Response.json(200, Map.put(item(entry), :content, entry.body))

      # Without the suggestions that a model gets: every name has the same answer. Entries with
      # `disable-model-invocation` are for people, and this is asked by the code of models.
      _unknown ->
        error(404, "There is no skill of this name.")
    end
  end

  defp list(request) do
    case options(Request.query(request)) do
      {:ok, options} ->
        view = Caller.view(request)
        {page, rest} = view |> entries(options) |> Enum.split(options.limit)
        next = if rest != [], do: cursor(options, page)
        Response.json(200, %{skills: Enum.map(page, &item/1), next: next})

      {:error, text} ->
        error(400, text)
    end
  end

  defp item(%Entry{} = entry),
    do: Map.take(entry, [:name, :kind, :title, :description, :tags])

  # Without a query, by name after the cursor; with one, the best matches, of which there are at
  # most 1,000, after the number in the cursor.
  defp entries(view, %{query: nil} = options) do
    view
    |> View.stream(listed: true, after: options.cursor)
    |> Stream.filter(&(options.kind in [nil, &1.kind] and options.tags -- &1.tags == []))
    |> Enum.take(options.limit + 1)
  end

  defp entries(view, options) do
    filters = [limit: @max_limit, kind: options.kind, tags: options.tags]
    hits = Skillbook.search(view, options.query, filters)

    for hit <- Enum.slice(hits, options.cursor || 0, options.limit + 1),
        {:ok, entry} <- [View.fetch(view, hit.name)],
        do: entry
  end

  defp cursor(%{query: nil}, page), do: encode("n" <> List.last(page).name)
  defp cursor(options, page), do: encode("s#{(options.cursor || 0) + length(page)}")

  defp encode(text), do: Base.url_encode64(text, padding: false)

  # An unknown field is refused: a filter with a mistake in its name would list everything.
  defp options(fields) do
    with [] <- Map.keys(fields) -- ~w(q kind tag limit cursor format),
         {:ok, query} <- query(fields["q"]),
         {:ok, kind} <- kind(fields["kind"]),
         {:ok, tags} <- tags(fields["tag"]),
         {:ok, limit} <- limit(fields["limit"]),
         {:ok, cursor} <- decode(fields["cursor"], query) do
      {:ok, %{query: query, kind: kind, tags: tags, limit: limit, cursor: cursor}}
    else
      [_unknown | _] ->
        {:error, "Expected the fields q, kind, tag, limit and cursor in the query."}

      {:error, text} ->
        {:error, text}
    end
  end

  defp query(nothing) when nothing in [nil, ""], do: {:ok, nil}

  defp query(text) when is_binary(text) do
    if String.length(text) <= @max_query,
      do: {:ok, text},
      else: {:error, "Expected at most #{@max_query} characters as q."}
  end

  defp query(_list), do: {:error, "Expected one q."}

  @kinds %{"command" => :command, "skill" => :skill, "note" => :note}

  defp kind(nil), do: {:ok, nil}
  defp kind(kind) when is_map_key(@kinds, kind), do: {:ok, @kinds[kind]}
  defp kind(_other), do: {:error, "Expected command, skill or note as kind."}

  defp tags(nil), do: {:ok, []}

  defp tags(tags) do
    tags = List.wrap(tags)

    if length(tags) <= @max_tags and "" not in tags,
      do: {:ok, tags},
      else: {:error, "Expected at most #{@max_tags} tags, as tag or tag[]."}
  end

  defp limit(nil), do: {:ok, @limit}

  defp limit(text) do
    case is_binary(text) && Number.integer(text) do
      {limit, ""} when limit in 1..@max_limit -> {:ok, limit}
      _other -> {:error, "Expected a number from 1 to #{@max_limit} as limit."}
    end
  end

  defp decode(nil, _query), do: {:ok, nil}

  defp decode(text, query) do
    with true <- is_binary(text),
         {:ok, decoded} <- Base.url_decode64(text, padding: false),
         true <- String.valid?(decoded),
         {:ok, cursor} <- position(decoded, query) do
      {:ok, cursor}
    else
      _other -> {:error, "Expected the next of an answer to the same query as cursor."}
    end
  end

  defp position("n" <> name, nil), do: {:ok, name}

  defp position("s" <> number, query) when query != nil do
    case Number.integer(number) do
      {number, ""} when number in 0..@max_limit -> {:ok, number}
      _other -> :error
    end
  end

  defp position(_other, _query), do: :error
end
