defmodule Skillbook.CLI.Search do
  @moduledoc false
  # `skillbook search`: searches entries, the notes of a vault, or the skills of websites.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{EmbedderFlags, Session, Terminal}
  alias Skillbook.Catalog.Search
  alias Skillbook.{Native, Package, Vault, View}

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
    do: hits |> Enum.map(&row/1) |> Native.report_hits(terminal) |> Terminal.put()

  defp fields(hit) do
    hit
    |> Map.from_struct()
    |> Map.update!(:highlights, &for({start, length} <- &1, do: [start, length]))
  end

  defp row(hit) do
    {name, more} = named(hit)
    {name, more, hit.score, hit.snippet, hit.highlights}
  end

  defp named(%Vault.Hit{path: path, title: title}), do: {path, title}
  defp named(hit), do: {hit.name, to_string(hit.kind)}
end
