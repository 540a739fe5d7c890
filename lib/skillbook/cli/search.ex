defmodule Skillbook.CLI.Search do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Catalog.Search
  alias Skillbook.Support.JSON
  alias Skillbook.{Vault, View}

  @impl true
  def switches do
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
      do: {:error, "`search` expects words to look for"},
      else: {:ok, words}
  end

  @impl true
  def summary, do: "find skills by the words in them, or notes of a vault"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] search QUERY... [--limit N] [--kind KIND] [--tag TAG]... [--json]

    Finds the entries that the profile may see, the best first: name, kind, score, and the part that matches. Not all
    words need to match, the last may be the beginning of a word, and small slips are forgiven.

      --limit N         at most so many, 1 to 1,000 (default: 10)
      --kind KIND       only entries of this kind: command, skill or note
      --tag TAG         only entries with this tag, repeatable
      --json            as a JSON array; highlights are pairs of start and length, in bytes

    With --vault DIR it finds notes of that folder instead, by what they say: "quotes" for words that follow each other,
    plan* for words that begin so, --limit up to 100, --tag, and no --kind. The first time, the folder is indexed in the
    database.

    Examples:
      skillbook search due tasks
      skillbook search tasks.create --limit 1
      skillbook search digest --kind skill --json
      skillbook search --vault ~/notes quarterly plan
      skillbook search --vault ~/notes '"quarterly plan" strat*' --tag work
    """
  end

  @impl true
  def run(%{vaults: [_ | _], flags: flags} = options) do
    most = Vault.most()

    cond do
      flags[:kind] ->
        usage("--kind is for skills, and --vault looks for notes")

      flags[:limit] && flags[:limit] > most ->
        usage("--limit expects at most #{most} with --vault")

      true ->
        Session.with_book(options, :write, &notes(&1, options))
    end
  end

  def run(%{args: words, flags: flags} = options) do
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
      if hits == [], do: nothing(view, query), else: :ok
    end)
  end

  defp usage(message) do
    Terminal.complain([message, "\nSee: skillbook search --help"])
    2
  end

  defp notes(book, %{args: words, flags: flags} = options) do
    query = Enum.join(words, " ")
    given = [limit: flags[:limit] || 10, tags: Keyword.get_values(flags, :tag)]

    case Vault.search(Session.view(book, options), query, given) do
      {:ok, found} ->
        put(found.hits, flags[:json], Terminal.new(options.color))
        told(found, query)

      {:error, error} ->
        Terminal.complain(Exception.message(error))
        1
    end
  end

  defp told(found, query) do
    cond do
      found.total == 0 ->
        Terminal.complain("no note found for `#{query}`")
        1

      found.match == :any ->
        Terminal.complain("no note has all of `#{query}`; these have some")

      found.total > length(found.hits) ->
        Terminal.complain(
          "#{found.total} notes found, #{length(found.hits)} shown; --limit shows more"
        )

      true ->
        :ok
    end
  end

  defp nothing(view, query) do
    suggestion =
      case View.unknown(view, query).suggestions do
        [] -> ""
        names -> "; names close to it: #{Enum.join(names, ", ")}"
      end

    Terminal.complain("nothing found for `#{query}`#{suggestion}")
    1
  end

  defp put(hits, true, _terminal),
    do: hits |> Enum.map(&fields/1) |> JSON.encode() |> Terminal.put()

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
      Terminal.style(terminal, :bright, Terminal.safe(terminal, name)),
      "  ",
      Terminal.style(terminal, :faint, [
        Terminal.safe(terminal, more),
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
    part = fn start, length -> Terminal.safe(terminal, binary_part(text, start, length)) end

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
