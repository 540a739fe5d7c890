defmodule Skillbook.CLI.Schedule do
  @moduledoc false
  # `skillbook schedule`: prints the result of `Skillbook.schedule/2`, or runs scheduled skills.
  # `schedule pause`, `resume` and `run` write to the database, where the processes that run
  # schedules see it.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Arguments, ModelFlags, Session, Terminal}
  alias Skillbook.{Native, Part}

  @operations %{"pause" => :pause_schedule, "resume" => :resume_schedule, "run" => :run_schedule}

  # Limits of a table's columns; the last column gets the remaining width.
  @min_last_column 12
  @max_name 32

  # With --run, in milliseconds
  @poll_interval 500
  @polled_results 200

  @impl true
  def switches,
    do:
      [json: :boolean, run: :boolean, enable: :keep, by: :string] ++
        Arguments.inputs([:schedule, :pause_schedule]) ++ ModelFlags.switches()

  @impl true
  def args([action, _name] = args) when is_map_key(@operations, action), do: {:ok, args}

  def args([action]) when is_map_key(@operations, action),
    do: {:error, "`schedule #{action}` needs a NAME"}

  def args([action | more]) when is_map_key(@operations, action),
    do: {:error, "`schedule #{action}` takes one NAME, got: #{List.last(more)}"}

  def args(globs), do: {:ok, globs}

  @impl true
  def run(%{args: [action, name]} = options) when is_map_key(@operations, action) do
    case check_flags(options.flags, action, [:by, :reason]) do
      :ok -> Session.with_book(options, :read, &act(&1, action, name, options))
      {:error, message} -> Terminal.usage_error(message, "schedule --help")
    end
  end

  def run(options) do
    case with(
           :ok <- check_listing(options.flags),
           do: agent("schedule", options.flags, :run)
         ) do
      {:ok, agent} ->
        mode = if options.flags[:run], do: {:serve, agent}, else: :read

        Session.with_book(
          options,
          mode,
          if(mode == :read, do: &show(&1, options), else: &serve(&1, options)),
          if(mode == :read, do: [:offers], else: [:problems, :offers])
        )

      {:error, message} ->
        Terminal.usage_error(message, "schedule --help")
    end
  end

  defp check_flags(flags, action, known) do
    case Enum.find(Keyword.keys(flags), &(&1 not in known)) do
      nil -> :ok
      flag -> {:error, "--#{flag} does not go with `schedule #{action}`"}
    end
  end

  defp check_listing(flags) do
    if flags[:by] || flags[:reason],
      do: {:error, "--by and --reason need `schedule pause`, `resume` or `run`"},
      else: :ok
  end

  @doc "Who runs a command that stores it."
  @spec by(keyword()) :: keyword()
  def by(flags), do: Keyword.merge([by: Session.user()], Keyword.take(flags, [:by, :reason]))

  defp act(book, action, name, options) do
    arguments = [Session.given_view(book, options), name, by(options.flags)]

    with {:ok, outcome} <- apply(Skillbook, @operations[action], arguments),
         do: Terminal.put(Terminal.line(done(action, name, outcome)))
  end

  defp done("pause", name, pause),
    do: "#{name} is paused since #{minute(pause.at)} UTC, by #{pause.by}"

  defp done("resume", name, nil), do: "#{name} was not paused"

  defp done("resume", name, pause),
    do: "#{name} was paused since #{minute(pause.at)} UTC, and runs again"

  defp done("run", _name, firing),
    do:
      "#{firing.name} runs in the next process that runs schedules, for #{minute(firing.at)} UTC"

  @doc """
  The options of the agent that follows prose, or `nil` without a model. `switch` is the one with
  which schedules run.
  """
  @spec agent(String.t(), keyword(), atom(), boolean()) ::
          {:ok, keyword() | nil} | {:error, String.t()}
  def agent(command, flags, switch, always? \\ false) do
    given = Enum.filter(Keyword.keys(ModelFlags.switches()), &flags[&1])

    with :ok <- check_enable(flags, switch) do
      cond do
        given == [] ->
          {:ok, nil}

        flags[switch] || always? ->
          with {:ok, model} <- ModelFlags.model(command, flags), do: {:ok, [model: model]}

        true ->
          {:error, "--api, --url, --model, --key-env and --cacert need --#{switch}"}
      end
    end
  end

  defp check_enable(flags, switch) do
    globs = Keyword.get_values(flags, :enable)

    case {globs, flags[switch], Native.globs_check(globs)} do
      {[_ | _], nil, _} ->
        {:error, "--enable needs --#{switch}"}

      {_, _, {:error, {glob, reason}}} ->
        {:error, "--enable expects a glob (#{reason}), got: #{glob}"}

      _ ->
        :ok
    end
  end

  # Schedules that are off never run, so only a name shows them.
  defp show(book, options) do
    with {:ok, agenda} <-
           agenda(book, options, Keyword.take(options.flags, [:times, :limit, :last, :after])) do
      next = if options.args == [], do: Enum.reject(agenda.next, & &1.off), else: agenda.next
      put(%{agenda | next: next}, options)
    end
  end

  defp agenda(book, options, given) do
    names = if options.args == [], do: [], else: [names: options.args]
    Skillbook.schedule(Session.given_view(book, options), names ++ given)
  end

  defp serve(book, options) do
    with {:ok, before} <- agenda(book, options, last: @polled_results),
         :ok <- show(book, options) do
      Terminal.complain("running the scheduled skills; Ctrl-C stops")
      follow(book, options, MapSet.new(finished(before), &key/1))
    end
  end

  defp follow(book, options, printed) do
    receive do
      {:EXIT, _pid, reason} ->
        Terminal.complain(["stopped: ", Exception.format_exit(reason)])
        1
    after
      @poll_interval ->
        # A database error is logged, and the next poll tries again.
        rows =
          case Skillbook.schedule(Skillbook.View.all(book), last: @polled_results) do
            {:ok, agenda} ->
              agenda |> finished() |> Enum.reject(&(key(&1) in printed)) |> Enum.reverse()

            {:error, _error} ->
              []
          end

        Enum.each(rows, &put_result(&1, options))
        follow(book, options, Enum.into(rows, printed, &key/1))
    end
  end

  defp finished(agenda), do: Enum.reject(agenda.last, &(&1.status in [:running, :queued]))
  defp key(row), do: {row.name, row.at, row.profile, row.started_at}

  defp put_result(row, %{flags: flags} = options) do
    if flags[:json] do
      %{last: [json]} = Part.json(:schedule, %{now: row.at, next: [], last: [row]})
      Terminal.put_json(json)
    else
      terminal = Terminal.new(options.color)

      head = [
        minute(row.at),
        "  ",
        row.name,
        "  ",
        to_string(row.status),
        "  ",
        duration(row.duration)
      ]

      text = row.text |> String.trim_trailing() |> String.replace(~r/\n(?=[^\n])/, "\n  ")

      Terminal.put([
        Terminal.style(terminal, :bright, Terminal.line(head)),
        "\n  ",
        Terminal.safe(text)
      ])
    end
  end

  defp put(agenda, options) do
    if options.flags[:json],
      do: :schedule |> Part.json(agenda) |> Terminal.put_json(),
      else: agenda |> lines(Terminal.new(options.color)) |> Terminal.put()
  end

  @doc "The agenda as tables that fit the terminal."
  @spec lines(Skillbook.Agenda.t(), Terminal.t()) :: iodata()
  def lines(%{next: [], last: []}, _terminal) do
    [
      "No skill has a schedule.\n",
      "Add `schedule: \"0 9 * * MON-FRI\"` and `run_as: default` to its frontmatter, or use ",
      "workflow.build --schedule or skills.create --schedule."
    ]
  end

  def lines(agenda, terminal) do
    [next(agenda.next, terminal), "\n\n", last(agenda.last, terminal)]
  end

  defp next([], _terminal), do: "No skill has a schedule now."

  defp next(rows, terminal) do
    rows =
      for row <- rows, {name, local} <- row |> named() |> paused(row[:paused]) do
        [
          name,
          local,
          if(name == "", do: "", else: row.run_as || "-"),
          if(name == "", do: "", else: row.means)
        ]
      end

    table([["name", "next", "as", "schedule"] | rows], terminal)
  end

  defp named(%{name: name, off: true}), do: [{name, "off"}]
  defp named(%{name: name, local: []}), do: [{name, "never"}]

  defp named(%{name: name, local: [first | more]}),
    do: [{name, first} | Enum.map(more, &{"", &1})]

  # The times at which it would run are those of JSON.
  defp paused([{name, _local} | _], %{}), do: [{name, "paused"}]
  defp paused(rows, nil), do: rows

  defp last([], _terminal), do: "No scheduled skill has run yet."

  defp last(rows, terminal) do
    rows =
      for row <- rows,
          do: [
            row.name,
            minute(row.at),
            to_string(row.status),
            duration(row.duration),
            first_line(row.text)
          ]

    table([["name", "time (UTC)", "status", "took", "result"] | rows], terminal)
  end

  defp minute(time), do: time |> DateTime.to_naive() |> NaiveDateTime.to_string()

  defp duration(nil), do: "-"
  defp duration(milliseconds) when milliseconds < 1, do: "< 1 ms"
  defp duration(milliseconds) when milliseconds < 10_000, do: "#{round(milliseconds)} ms"
  defp duration(milliseconds), do: "#{round(milliseconds / 1000)} s"

  defp first_line(text), do: text |> String.split("\n", parts: 2) |> hd() |> String.trim()

  defp table(rows, terminal) do
    rows =
      for [name | cells] <- rows,
          do: [truncate(Terminal.line(name), @max_name) | Enum.map(cells, &Terminal.line/1)]

    widths =
      Enum.zip_with(rows, fn cells -> cells |> Enum.map(&String.length/1) |> Enum.max() end)

    {_last, others} = List.pop_at(widths, -1)
    room = max((terminal.width || 80) - Enum.sum(others) - 2 * length(others), @min_last_column)
    [heading | rows] = Enum.map(rows, &line(&1, others, room))
    Enum.intersperse([Terminal.style(terminal, :faint, heading) | rows], "\n")
  end

  defp line(cells, widths, room) do
    {last, cells} = List.pop_at(cells, -1)
    padded = Enum.zip_with(cells, widths, &[String.pad_trailing(&1, &2), "  "])
    [padded, truncate(last, room)] |> IO.iodata_to_binary() |> String.trim_trailing()
  end

  defp truncate(text, room),
    do: if(String.length(text) > room, do: String.slice(text, 0, room - 1) <> "…", else: text)
end
