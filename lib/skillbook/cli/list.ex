defmodule Skillbook.CLI.List do
  @moduledoc false
  # `skillbook list`: lists entries, or the diagnostics of loading.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.JSON

  @impl true
  def switches, do: [json: :boolean, diagnostics: :boolean]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`list` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "list the skills, or the problems found in them"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] list [--json] [--diagnostics]

    Lists the entries that the profile can see: name, kind (command, skill or note) and
    description.

    Options:
      --json            print a JSON array with all fields
      --diagnostics     list the problems found while the skills were loaded instead

    Exit status: with --diagnostics, 1 if a problem is an error.

    Examples:
      skillbook list
      skillbook --dir skills --no-builtins list --json
      skillbook list --diagnostics
    """
  end

  @impl true
  def run(options) do
    Session.with_book(options, :read, fn book ->
      terminal = Terminal.new(options.color)

      case {options.flags[:diagnostics], options.flags[:json]} do
        {true, json} ->
          diagnostics = Skillbook.diagnostics(book)

          if json,
            do: diagnostics |> Enum.map(&JSON.diagnostic/1) |> Terminal.put_json(),
            else: put_diagnostics(diagnostics)

          if Enum.any?(diagnostics, &(&1.severity == :error)), do: 1, else: 0

        {_, true} ->
          book |> entries(options) |> Enum.map(&fields/1) |> Terminal.put_json()

        {_, _} ->
          book |> entries(options) |> put_table(terminal)
      end
    end)
  end

  defp entries(book, options), do: book |> Session.view(options) |> Skillbook.View.entries([])

  defp fields(entry) do
    Map.take(entry, [
      :name,
      :kind,
      :domain,
      :title,
      :description,
      :tags,
      :labels,
      :aliases,
      :usage,
      :path,
      :source
    ])
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
    name_width = entries |> Enum.map(&String.length(&1.name)) |> Enum.max()
    # A kind has at most 7 letters; columns are separated by two spaces.
    room = terminal.width && max(terminal.width - name_width - 11, 10)

    entries
    |> Enum.map_intersperse("\n", fn entry ->
      [
        Terminal.style(
          terminal,
          :bright,
          String.pad_trailing(Terminal.line(entry.name), name_width)
        ),
        "  ",
        Terminal.style(terminal, :faint, String.pad_trailing(to_string(entry.kind), 7)),
        "  ",
        Terminal.safe(one_line(entry.description, room))
      ]
    end)
    |> Terminal.put()
  end

  defp one_line(text, room) do
    line = text |> String.split() |> Enum.join(" ")

    if room && String.length(line) > room, do: String.slice(line, 0, room - 1) <> "…", else: line
  end
end
