defmodule Skillbook.CLI.Runs do
  @moduledoc false
  # `skillbook runs`: lists the durable runs of agents, continues and stops them.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.Agent.Runs
  alias Skillbook.CLI.{Arguments, ModelFlags, Session, Terminal}
  alias Skillbook.{Part, RunError}

  @impl true
  def switches,
    do: [json: :boolean] ++ Arguments.inputs([:durable_runs]) ++ ModelFlags.switches()

  @impl true
  def args(args), do: Arguments.action(args, ~w(continue stop))

  @impl true
  def run(%{args: [action | ref]} = options) do
    case model(action, options.flags) do
      {:ok, model} ->
        mode = if action == "continue", do: {:continue, [model: model]}, else: :runs
        Session.with_book(options, mode, &act(action, &1, ref, options))

      {:error, message} ->
        Terminal.usage_error(message, "runs --help")
    end
  end

  defp model("continue", flags), do: ModelFlags.model("runs", flags)
  defp model(_action, _flags), do: {:ok, nil}

  # Without a database there is none.
  defp act("list", book, [], options) do
    input = Keyword.take(options.flags, [:limit, :after])

    case Runs.list(whose(book, options), input) do
      {:ok, runs} -> put_list(runs, options)
      {:error, %RunError{kind: :off}} -> put_list([], options)
      error -> error
    end
  end

  defp act("stop", book, [ref], _options) do
    with :ok <- found(Runs.stop(book, ref), ref), do: Terminal.put("The run #{ref} is stopped.")
  end

  defp act("continue", book, [ref], _options) do
    with {:ok, result} <- found(Runs.continue(book, ref), ref) do
      Terminal.put(Terminal.safe(result.text))
      if result.status in [:done, :pending], do: :ok, else: 1
    end
  end

  defp found({:error, %RunError{kind: :off}}, ref),
    do: {:error, %RunError{kind: :unknown, ref: ref}}

  defp found(result, _ref), do: result

  defp whose(book, options),
    do: if(options.profile_given, do: Session.view(book, options), else: book)

  # Output

  defp put_list(runs, %{flags: flags} = options) do
    cond do
      flags[:json] -> :durable_runs |> Part.json(runs) |> Terminal.put_json()
      runs == [] -> Terminal.put("No durable runs.")
      true -> runs |> Enum.map_intersperse("\n", &line(&1, options)) |> Terminal.put()
    end
  end

  defp line(run, options) do
    terminal = Terminal.new(options.color)
    reason = if run.reason, do: ["\n  ", Terminal.line(run.reason)], else: []

    [
      Terminal.style(terminal, :bright, Terminal.line(run.title)),
      "\n  ",
      Terminal.line("#{run.ref}, #{state(run)}, of the profile #{run.profile}"),
      reason
    ]
  end

  defp state(%{status: status, ended_at: nil, started_at: began}) when status != :interrupted,
    do: "#{status}, since #{Terminal.time(began)}"

  defp state(%{status: :interrupted, started_at: began}),
    do: "interrupted, began on #{Terminal.time(began)}"

  defp state(%{status: status, ended_at: ended}), do: "#{status} on #{Terminal.time(ended)}"
end
