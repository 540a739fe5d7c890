defmodule Skillbook.CLI.Search do
  @moduledoc false
  # `skillbook search`: searches entries, the notes of a vault, or the skills of websites.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, Session, Terminal}
  alias Skillbook.Catalog.Search
  alias Skillbook.{Package, Vault, View}

  @impl true
  def switches do
    EmbedderFlags.switches() ++
      [
        limit: {:number, 1, Search.max_limit()},
        kind: {:one_of, [:command, :skill, :note]},
        tag: :keep,
        remote: :keep,
        remotes: :boolean,
        to: :string,
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
  def summary, do: "search the skills, the notes of a vault, or the skills of websites"

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
      --remote URL         search the skills of a website instead; repeatable
      --remotes            search the websites whose skills are installed in --to FOLDER
                           (default: .agents/skills)
      --json               print a JSON array; highlights are pairs of start and length, in bytes
      #{EmbedderFlags.help()}

    With --vault DIR it searches the notes of that folder instead. Quotes search for a phrase, and
    plan* for words with that prefix. --limit is at most 100, and --kind is not allowed. The first
    search stores an index of the folder in the database.

    --remote takes every SOURCE of `install`. Of a website only the index is read. It searches
    names and descriptions, and prints sources that `install` takes.

    Exit status: 1 if nothing was found or a website cannot be read.

    Examples:
      skillbook search due tasks
      skillbook search tasks.create --limit 1
      skillbook search digest --kind skill --json
      skillbook search --vault ~/notes quarterly plan
      skillbook search --vault ~/notes '"quarterly plan" strat*' --tag work
      skillbook search --remote https://example.com --remotes pull requests
    """
  end

  @impl true
  def run(options) do
    case EmbedderFlags.read(options) do
      {:ok, options} -> search(options)
      {:error, message} -> Terminal.usage_error(message, "search --help")
    end
  end

  defp search(%{flags: flags} = options) do
    remotes = Keyword.get_values(flags, :remote)

    cond do
      remotes == [] and not (flags[:remotes] == true) ->
        local(options)

      options.vaults != [] or flags[:kind] != nil or flags[:tag] != nil ->
        Terminal.usage_error("--remote takes no --vault, --kind and --tag", "search --help")

      true ->
        with {:ok, known} <- known(flags), do: remote(remotes ++ known, options)
    end
  end

  defp known(flags) do
    if flags[:remotes],
      do: Package.Search.sites(Path.expand(flags[:to] || Package.default_folder())),
      else: {:ok, []}
  end

  defp remote([], _options),
    do: {:error, "no skill of a website is installed; name a website with --remote URL"}

  defp remote(sources, %{args: words, flags: flags} = options) do
    query = Enum.join(words, " ")
    {found, errors} = Package.search(sources, query, limit: flags[:limit] || 10)

    found =
      for {source, skill} <- found,
          do: %{source: address(source, skill), name: skill.name, description: skill.description}

    if flags[:json],
      do: Terminal.put_json(found),
      else: Enum.each(found, &put_remote(&1, Terminal.new(options.color)))

    for error <- errors, do: Terminal.complain(Exception.message(error))
    if found == [] and errors == [], do: Terminal.complain("nothing found for `#{query}`")
    if found == [] or errors != [], do: 1, else: 0
  end

  # As `install` takes it: a skill of a website, or the source and the skill's name.
  defp address(source, skill) do
    if Package.Site.address?(source),
      do: (source |> String.split("#") |> hd()) <> "#" <> skill.name,
      else: source <> " " <> skill.name
  end

  defp put_remote(found, terminal) do
    Terminal.put([
      Terminal.style(terminal, :bright, Terminal.line(found.name)),
      "  ",
      Terminal.style(terminal, :faint, Terminal.line(found.source)),
      "\n  ",
      found.description |> String.split() |> Enum.join(" ") |> Terminal.line()
    ])
  end

  defp local(%{vaults: [_ | _], flags: flags} = options) do
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

  defp local(%{args: words, flags: flags} = options) do
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

    with {:ok, found} <- Vault.search(Session.view(book, options), query, given) do
      put(found.hits, flags[:json], Terminal.new(options.color))
      summarize(found, query)
    end
  end

  defp summarize(found, query) do
    cond do
      found.total == 0 ->
        {:error, "no note found for `#{query}`"}

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

    {:error, "nothing found for `#{query}`#{suggestion}"}
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
