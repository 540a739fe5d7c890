defmodule Skillbook.CLI.Search do
  @moduledoc false
  # `skillbook search`: searches entries, or the notes of a vault.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, Session, Terminal}
  alias Skillbook.Catalog.Search
  alias Skillbook.{Vault, View}

  @impl true
  def switches do
    EmbedderFlags.switches() ++
      [
        limit: {:number, 1, Search.max_limit()},
        kind: {:one_of, [:command, :skill, :note]},
        tag: :keep,
        json: :boolean
      ]
  end

  @impl true
  def args(words) do
    if Enum.all?(words, &(String.trim(&1) == "")),
      do: {:error, "`search` expects words to search for"},
      else: {:ok, words}
  end

  @impl true
  def summary, do: "search the skills, or the notes of a vault"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] search QUERY... [--limit N] [--kind KIND] [--tag TAG ...] [--json]

    Searches the entries that the profile can see. Prints name, kind, score and the matching part,
    best match first. An entry need not have all words, the last word may be a prefix, and small
    typing errors are corrected.

    Options:
      --limit N            maximum number of results, 1 to 1,000 (default: 10)
      --kind KIND          only entries of this kind: command, skill or note
      --tag TAG            only entries with this tag; repeatable
      --json               print a JSON array; highlights are pairs of start and length, in bytes
      #{EmbedderFlags.help()}

    With --vault DIR it searches the notes of that folder instead. Quotes search for a phrase, and
    plan* for words with that prefix. --limit is at most 100, and --kind is not allowed. The first
    search stores an index of the folder in the database.

    Exit status: 1 if nothing was found.

    Examples:
      skillbook search due tasks
      skillbook search tasks.create --limit 1
      skillbook search digest --kind skill --json
      skillbook search --vault ~/notes quarterly plan
      skillbook search --vault ~/notes '"quarterly plan" strat*' --tag work
    """
  end

  @impl true
  def run(options) do
    case EmbedderFlags.read(options) do
      {:ok, options} -> search(options)
      {:error, message} -> Terminal.usage_error(message, "search --help")
    end
  end

  defp search(%{vaults: [_ | _], flags: flags} = options) do
    max = Vault.max_limit()

    cond do
      flags[:kind] ->
        Terminal.usage_error("--kind is for skills; --vault searches notes", "search --help")

      flags[:limit] && flags[:limit] > max ->
        Terminal.usage_error("--limit expects at most #{max} with --vault", "search --help")

      true ->
        Session.with_book(options, :write, &notes(&1, options))
    end
  end

  defp search(%{args: words, flags: flags} = options) do
    Session.with_book(options, :read, fn book ->
      view = Session.view(book, options)
      query = Enum.join(words, " ")

      given = [
        limit: flags[:limit] || 10,
        kind: flags[:kind],
        tags: Keyword.get_values(flags, :tag)
      ]

      hits = Skillbook.search(view, query, given)
      put(hits, flags[:json], Terminal.new(options.color))
      if hits == [], do: no_results(view, query), else: :ok
    end)
  end

  defp notes(book, %{args: words, flags: flags} = options) do
    query = Enum.join(words, " ")
    given = [limit: flags[:limit] || 10, tags: Keyword.get_values(flags, :tag)]

    case Vault.search(Session.view(book, options), query, given) do
      {:ok, found} ->
        put(found.hits, flags[:json], Terminal.new(options.color))
        summarize(found, query)

      {:error, error} ->
        Terminal.complain(Exception.message(error))
        1
    end
  end

  defp summarize(found, query) do
    cond do
      found.total == 0 ->
        Terminal.complain("no note found for `#{query}`")
        1

      found.match == :any ->
        Terminal.complain("no note has all words of `#{query}`; these have some")

      found.total > length(found.hits) ->
        Terminal.complain(
          "showing #{length(found.hits)} of #{found.total} notes; --limit shows more"
        )

      true ->
        :ok
    end
  end

  defp no_results(view, query) do
    suggestion =
      case View.unknown(view, query).suggestions do
        [] -> ""
        names -> "; similar names: #{Enum.join(names, ", ")}"
      end

    Terminal.complain("nothing found for `#{query}`#{suggestion}")
    1
  end

  defp put(hits, true, _terminal),
    do: hits |> Enum.map(&fields/1) |> Terminal.put_json()

  defp put([], _json, _terminal), do: :ok

  defp put(hits, _json, terminal),
    do: hits |> Enum.map_intersperse("\n", &hit(&1, terminal)) |> Terminal.put()

  defp fields(hit) do
    hit
    |> Map.from_struct()
    |> Map.update!(:highlights, &for({start, length} <- &1, do: [start, length]))
  end

  defp hit(hit, terminal) do
    {name, more} = named(hit)

    [
      Terminal.style(terminal, :bright, Terminal.line(name)),
      "  ",
      Terminal.style(terminal, :faint, [
        Terminal.line(more),
        "  ",
        :erlang.float_to_binary(hit.score, decimals: 3)
      ]),
      "\n  ",
      snippet(hit.snippet, hit.highlights, 0, terminal)
    ]
  end

  defp named(%Vault.Hit{path: path, title: title}), do: {path, title}
  defp named(hit), do: {hit.name, to_string(hit.kind)}

  defp snippet(text, highlights, from, terminal) do
    part = fn start, length -> Terminal.line(binary_part(text, start, length)) end

    case highlights do
      [] ->
        part.(from, byte_size(text) - from)

      [{start, length} | rest] ->
        [
          part.(from, start - from),
          Terminal.style(terminal, :bright, part.(start, length)),
          snippet(text, rest, start + length, terminal)
        ]
    end
  end
end
