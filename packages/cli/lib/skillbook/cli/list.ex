defmodule Skillbook.CLI.List do
  @moduledoc false
  # `skillbook list`: lists entries, or the diagnostics of loading.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.JSON

  @fields ~w(name kind domain title description tags labels aliases usage path source)a

  @impl true
  def switches, do: [source: :keep, domain: :keep, json: :boolean, diagnostics: :boolean]

  @impl true
  def args(words), do: {:ok, words}

  @impl true
  def summary, do: "list the skills, or the problems found in them"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] list [WORD ...] [--source NAME] [--domain NAME] [--json]
           skillbook [OPTIONS] list --diagnostics [--json]

    Lists the entries that the profile can see: name, kind (command, skill or note), source and
    description. With words, only entries with all of them in the name, title, description or
    tags; case does not matter. `search` also finds words in texts.

    Options:
      --source NAME     only entries of this source; repeatable
      --domain NAME     only commands of this domain; repeatable
      --json            print a JSON array with all fields
      --diagnostics     list the problems found while the skills were loaded instead

    Exit status: 1 if no entry matches; with --diagnostics, 1 if a problem is an error.

    Examples:
      skillbook list
      skillbook list mail --source builtin
      skillbook --dir skills --no-builtins list --json
      skillbook list --diagnostics
    """
  end

  @impl true
  def run(%{flags: flags} = options) do
    if flags[:diagnostics] && filters(options) != [],
      do: Terminal.usage_error("--diagnostics takes no words or filters", "list --help"),
      else: Session.with_book(options, :read, &list(&1, options))
  end

  defp filters(options), do: options.args ++ Keyword.take(options.flags, [:source, :domain])

  defp list(book, options) do
    case {options.flags[:diagnostics], options.flags[:json]} do
      {true, json} ->
        diagnostics = Skillbook.diagnostics(book)

        if json,
          do: diagnostics |> Enum.map(&JSON.diagnostic/1) |> Terminal.put_json(),
          else: put_diagnostics(diagnostics)

        if Enum.any?(diagnostics, &(&1.severity == :error)), do: 1, else: 0

      {_, json} ->
        all = book |> Session.view(options) |> Skillbook.View.entries([])
        entries = Enum.filter(all, &matches?(&1, options))
        if json, do: entries |> Enum.map(&Map.take(&1, @fields)) |> Terminal.put_json()

        cond do
          entries == [] and filters(options) != [] -> no_match(all, options)
          json -> 0
          true -> put_table(entries, Terminal.new(options.color))
        end
    end
  end

  defp matches?(entry, options) do
    among? = fn value, values -> values == [] or value in values end

    among?.(entry.source, Keyword.get_values(options.flags, :source)) and
      among?.(entry.domain, Keyword.get_values(options.flags, :domain)) and
      Enum.all?(options.args, &String.contains?(text(entry), String.downcase(&1)))
  end

  defp text(entry) do
    [entry.name, entry.title || "", entry.description | entry.tags]
    |> Enum.join("\n")
    |> String.downcase()
  end

  # A wrong name of a source or domain is the usual reason.
  defp no_match(all, options) do
    known =
      for {flag, noun} <- [source: "sources", domain: "domains"],
          options.flags[flag],
          names = all |> Enum.map(&Map.fetch!(&1, flag)) |> Enum.uniq() |> Enum.reject(&is_nil/1),
          do: "; the #{noun} are #{Enum.join(Enum.sort(names), ", ")}"

    {:error, ["no entry matches" | known]}
  end

  defp put_diagnostics([]), do: Terminal.put("No problems found.")

  defp put_diagnostics(diagnostics) do
    diagnostics
    |> Enum.map_intersperse("\n", &to_string/1)
    |> Terminal.put()
  end

  defp put_table([], _terminal),
    do: Terminal.complain("no skills found; name their folder with --dir")

  defp put_table(entries, terminal) do
    name_width = width(entries, & &1.name)
    source_width = width(entries, & &1.source)
    # A kind has at most 7 letters; columns are separated by two spaces.
    room = terminal.width && max(terminal.width - name_width - source_width - 13, 10)

    entries
    |> Enum.map_intersperse("\n", fn entry ->
      kind = String.pad_trailing(to_string(entry.kind), 7)
      source = String.pad_trailing(Terminal.line(entry.source), source_width)

      [
        Terminal.style(
          terminal,
          :bright,
          String.pad_trailing(Terminal.line(entry.name), name_width)
        ),
        "  ",
        Terminal.style(terminal, :faint, [kind, "  ", source]),
        "  ",
        Terminal.safe(one_line(entry.description, room))
      ]
    end)
    |> Terminal.put()
  end

  defp width(entries, field), do: entries |> Enum.map(&String.length(field.(&1))) |> Enum.max()

  defp one_line(text, room) do
    line = text |> String.split() |> Enum.join(" ")

    if room && String.length(line) > room, do: String.slice(line, 0, room - 1) <> "…", else: line
  end
end
