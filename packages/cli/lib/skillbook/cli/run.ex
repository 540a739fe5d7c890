defmodule Skillbook.CLI.Run do
  @moduledoc false
  # `skillbook run`: runs a model's reply or one command with `Skillbook.run/3`, and prints the
  # report.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.ReadFile

  @max_size 16 * 1024 * 1024

  @impl true
  def switches, do: [command: :string, json: :boolean]

  @impl true
  def args(args) when length(args) < 2, do: {:ok, args}
  def args([_, arg | _]), do: {:error, "`run` takes one file, got also: #{arg}"}

  @impl true
  def run(%{args: args} = options) do
    case {options.flags[:command], args} do
      {nil, []} ->
        usage("`run` expects a file with a model's reply, or - for standard input")

      {nil, [file]} ->
        case read(file) do
          # A model has written it.
          {:ok, text} -> run(options, text, :agent, &put/2)
          {:error, reason} -> usage(["cannot read #{file}: ", reason(reason)])
        end

      {command, []} ->
        run(options, block(command), :user, &put_outcomes/2)

      {_command, [file]} ->
        usage("`run` takes a file or --command, got both: #{file}")
    end
  end

  defp run(options, reply, by, put) do
    Session.with_book(options, :write, fn book ->
      report = Skillbook.run(Session.view(book, options), reply, by: by)

      if options.flags[:json],
        do: put_json(report),
        else: put.(report, Terminal.new(options.color))

      status(report)
    end)
  end

  defp usage(message), do: Terminal.usage_error(message, "run --help")

  @doc "A `cmd` block of a command, with a fence longer than any run of backticks in it."
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
    # Read as bytes: `Skillbook.run/3` checks that they are UTF-8.
    :io.setopts(:standard_io, encoding: :latin1)

    ReadFile.read_device(&IO.binread(:stdio, &1), @max_size)
  after
    :io.setopts(:standard_io, encoding: :unicode)
  end

  defp read(file), do: ReadFile.read(file, @max_size)

  defp reason(:eisdir), do: "expected a file with a model's reply, got a folder"
  defp reason(:efbig), do: "expected a reply of up to #{@max_size} bytes, got more"
  defp reason(reason), do: :file.format_error(reason)

  defp status(report) do
    if report.incomplete == [] and Enum.all?(report.results, &(&1.status != :error)),
      do: 0,
      else: 1
  end

  defp put(report, terminal) do
    [
      section(terminal, "To the user", Terminal.foreign(report.text)),
      Enum.map(report.results, &section(terminal, "Command", result(terminal, &1))),
      Enum.map(report.incomplete, &section(terminal, "Cut off, not run", command(terminal, &1))),
      section(terminal, "To the model", Terminal.foreign(to_string(report)))
    ]
    |> List.flatten()
    |> Enum.intersperse("\n")
    |> Terminal.write()
  end

  defp put_outcomes(report, terminal),
    do: for(result <- report.results, do: Terminal.put(outcome(terminal, result)))

  # A section is one binary, so that `put/2` can flatten the list.
  defp section(_terminal, _title, ""), do: []

  defp section(terminal, title, text) do
    IO.iodata_to_binary([
      Terminal.heading(terminal, title),
      "\n",
      String.trim_trailing(IO.iodata_to_binary(text)),
      "\n"
    ])
  end

  @doc "A command and its result, for the terminal."
  def result(terminal, result) do
    [command(terminal, result.command || result.name || ""), "\n", outcome(terminal, result)]
  end

  @doc "The result of a command: status, duration and content."
  def outcome(terminal, result) do
    content = Terminal.foreign(String.trim_trailing(result.content || ""))

    [
      Terminal.style(terminal, color(result.status), status_text(result.status)),
      duration(result.duration),
      "\n",
      content
    ]
  end

  defp command(terminal, text),
    do:
      Terminal.style(terminal, :bright, [
        "> ",
        text |> String.trim_trailing() |> Terminal.foreign() |> String.trim_leading(" ")
      ])

  # The page of a command without a handler.
  defp status_text(:template), do: "ok: a text for the model to read"
  defp status_text(status), do: to_string(status)

  @doc "The colour of a status."
  def color(:error), do: :red
  def color(:ok), do: :green
  def color(_), do: :cyan

  @doc "A comma and the duration; nothing for `nil`."
  def duration(nil), do: ""
  def duration(microseconds) when microseconds < 1000, do: ", #{microseconds} µs"
  def duration(microseconds), do: ", #{Float.round(microseconds / 1000, 1)} ms"

  @fields [:name, :command, :status, :content, :data, :error, :duration, :effects, :metadata]

  defp fields(result), do: result |> Map.take(@fields) |> Map.update!(:data, &data/1)

  # The steps of a workflow, each with the result of its command, which may be a workflow too.
  defp data(%{steps: [{%{number: _}, _result} | _] = steps} = data) do
    steps =
      for {step, result} <- steps,
          do: result |> fields() |> Map.merge(%{number: step.number, step: step.name})

    %{data | steps: steps}
  end

  defp data(data), do: data

  defp put_json(report) do
    [
      text: report.text,
      results: Enum.map(report.results, &fields/1),
      incomplete: report.incomplete,
      notes: report.notes,
      report: to_string(report)
    ]
    |> Terminal.put_json()
  end
end
