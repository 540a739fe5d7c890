defmodule Skillbook.CLI.Run do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.JSON

  @impl true
  def switches, do: [command: :string, json: :boolean]

  @impl true
  def args(args) when length(args) < 2, do: {:ok, args}
  def args([_, arg | _]), do: {:error, "`run` takes one file, got also: #{arg}"}

  @impl true
  def summary, do: "run the commands in a model's reply"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] run FILE|- [--json]
           skillbook [OPTIONS] run -c COMMAND [--json]

    Reads a model's reply, runs the commands of its `cmd` blocks one after the other, and prints what the user would
    read, each command with its result, and what goes back to the model.

      -c, --command COMMAND
                        runs one command instead of a reply, and prints its result
      --json            all of it as one JSON object: text, results, incomplete, notes, report

    Exit status: 1 if a command failed, or did not run because its block was cut off.

    Examples:
      skillbook run examples/monday.md
      skillbook run -c 'tasks.create --title "Call the bank"'
      some-model "What is due today?" | skillbook run -
      skillbook --db :memory: run reply.md --json
    """
  end

  @impl true
  def run(%{args: args} = options) do
    case {options.flags[:command], args} do
      {nil, []} ->
        usage("`run` expects a file with a model's reply, or - for standard input")

      {nil, [file]} ->
        case read(file) do
          {:ok, text} -> run(options, text, &put/2)
          {:error, reason} -> usage(["cannot read #{file}: ", reason(reason)])
        end

      {command, []} ->
        run(options, block(command), &put_outcomes/2)

      {_command, [file]} ->
        usage("`run` takes a file or --command, got both: #{file}")
    end
  end

  defp run(options, reply, put) do
    Session.with_book(options, :write, fn book ->
      report = Skillbook.run(Session.view(book, options), reply, by: :user)

      if options.flags[:json],
        do: put_json(report),
        else: put.(report, Terminal.new(options.color))

      status(report)
    end)
  end

  defp usage(message) do
    Terminal.complain([message, "\nSee: skillbook run --help"])
    2
  end

  @doc "A `cmd` block of a command. Its fence is longer than any in the command, so that a body may hold code."
  def block(command) do
    longest =
      ~r/`+/
      |> Regex.scan(command)
      |> Enum.map(fn [run] -> byte_size(run) end)
      |> Enum.max(fn -> 0 end)

    fence = String.duplicate("`", max(longest + 1, 3))
    "#{fence}cmd\n#{command}\n#{fence}\n"
  end

  defp read("-") do
    # The bytes as they are: whether they are UTF-8 is for the run to say.
    :io.setopts(:standard_io, encoding: :latin1)

    case IO.binread(:stdio, :eof) do
      :eof -> {:ok, ""}
      {:error, reason} -> {:error, reason}
      bytes -> {:ok, bytes}
    end
  after
    :io.setopts(:standard_io, encoding: :unicode)
  end

  defp read(file), do: File.read(file)

  defp reason(:eisdir), do: "it is a folder, and a file with a model's reply is expected"
  defp reason(reason), do: :file.format_error(reason)

  defp status(report) do
    if report.incomplete == [] and Enum.all?(report.results, &(&1.status != :error)),
      do: 0,
      else: 1
  end

  defp put(report, terminal) do
    [
      section(terminal, "To the user", Terminal.safe(terminal, report.text)),
      Enum.map(report.results, &section(terminal, "Command", result(terminal, &1))),
      Enum.map(report.incomplete, &section(terminal, "Cut off, not run", command(terminal, &1))),
      section(terminal, "To the model", Terminal.safe(terminal, to_string(report)))
    ]
    |> List.flatten()
    |> Enum.intersperse("\n")
    |> Terminal.write()
  end

  defp put_outcomes(report, terminal),
    do: for(result <- report.results, do: Terminal.put(outcome(terminal, result)))

  # A section is one binary, so that a list of them can be flattened.
  defp section(_terminal, _title, ""), do: []

  defp section(terminal, title, text) do
    IO.iodata_to_binary([
      Terminal.heading(terminal, title),
      "\n",
      String.trim_trailing(IO.iodata_to_binary(text)),
      "\n"
    ])
  end

  @doc "A command and what it gave, as the terminal shows it."
  def result(terminal, result) do
    [command(terminal, result.command || result.name || ""), "\n", outcome(terminal, result)]
  end

  @doc "What a command gave: how it went, how long it took, and its content."
  def outcome(terminal, result) do
    content = Terminal.safe(terminal, String.trim_trailing(result.content || ""))

    [
      Terminal.style(terminal, color(result.status), status_text(result.status)),
      took(result.duration),
      "\n",
      content
    ]
  end

  defp command(terminal, text),
    do:
      Terminal.style(terminal, :bright, [
        "> ",
        Terminal.safe(terminal, String.trim_trailing(text))
      ])

  # The page of a command without a handler.
  defp status_text(:template), do: "ok: instructions for the model to follow"
  defp status_text(status), do: to_string(status)

  @doc "The style of a status."
  def color(:error), do: :red
  def color(:ok), do: :green
  def color(_), do: :cyan

  @doc "How long a command took, after a comma."
  def took(nil), do: ""
  def took(microseconds) when microseconds < 1000, do: ", #{microseconds} µs"
  def took(microseconds), do: ", #{Float.round(microseconds / 1000, 1)} ms"

  defp put_json(report) do
    results =
      for result <- report.results do
        Map.take(result, [
          :name,
          :command,
          :status,
          :content,
          :data,
          :error,
          :duration,
          :effects,
          :metadata
        ])
      end

    [
      text: report.text,
      results: results,
      incomplete: report.incomplete,
      notes: report.notes,
      report: to_string(report)
    ]
    |> JSON.encode()
    |> Terminal.put()
  end
end
