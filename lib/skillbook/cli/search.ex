defmodule Skillbook.CLI.Search do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Terminal}
  alias Skillbook.{JSON, Search, View}

  @kinds [:command, :skill, :note]

  @impl true
  def switches, do: [limit: :integer, kind: :string, tag: :keep, json: :boolean]

  @impl true
  def args([]), do: {:error, "`search` expects words to look for"}
  def args(words), do: {:ok, words}

  @impl true
  def summary, do: "find skills by the words in them"

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

    Examples:
      skillbook search due tasks
      skillbook search tasks.create --limit 1
      skillbook search digest --kind skill --json
    """
  end

  @impl true
  def run(%{args: words, flags: flags} = options) do
    with {:ok, kind} <- kind(flags[:kind]), {:ok, limit} <- limit(flags[:limit] || 10) do
      Book.with_book(options, :read, fn book ->
        view = Book.view(book, options)
        query = Enum.join(words, " ")
        hits = Skillbook.search(view, query, limit: limit, kind: kind, tags: Keyword.get_values(flags, :tag))
        put(hits, flags[:json], Terminal.new(options.color))
        if hits == [], do: nothing(view, query), else: :ok
      end)
    else
      {:error, message} ->
        Terminal.complain(message)
        2
    end
  end

  defp kind(nil), do: {:ok, nil}

  defp kind(text) do
    case Enum.find(@kinds, &(to_string(&1) == text)) do
      nil -> {:error, "--kind expects one of #{Enum.join(@kinds, ", ")}, got: #{text}"}
      kind -> {:ok, kind}
    end
  end

  defp limit(limit) do
    if limit in 1..Search.most(),
      do: {:ok, limit},
      else: {:error, "--limit expects a number from 1 to #{Search.most()}, got: #{limit}"}
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

  defp put(hits, true, _terminal), do: hits |> Enum.map(&fields/1) |> JSON.encode() |> Terminal.put()
  defp put([], _json, _terminal), do: :ok

  defp put(hits, _json, terminal),
    do: hits |> Enum.map_intersperse("\n", &hit(&1, terminal)) |> Terminal.put()

  defp fields(hit) do
    hit |> Map.from_struct() |> Map.update!(:highlights, &for({start, length} <- &1, do: [start, length]))
  end

  defp hit(hit, terminal) do
    [
      Terminal.style(terminal, :bright, Terminal.safe(terminal, hit.name)),
      "  ",
      Terminal.style(terminal, :faint, [
        to_string(hit.kind),
        "  ",
        :erlang.float_to_binary(hit.score, decimals: 3)
      ]),
      "\n  ",
      snippet(hit.snippet, hit.highlights, 0, terminal)
    ]
  end

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
