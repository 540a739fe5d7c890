defmodule Skillbook.Load do
  @moduledoc false
  # Runs many concurrent conversations on one book, with handlers that crash, hang or flood: for a
  # test and for a script.

  alias Skillbook.{HandlerError, OutOfServiceError, Result}

  @pages ~w(echo fail crash kill hang flood)
  @book __MODULE__.Book

  @doc "The pages, by path."
  def pages do
    for name <- @pages, into: %{} do
      limits = if name == "hang", do: "timeout: 50ms\nmax_running: 20\n", else: ""
      handler = "handler: #{inspect(__MODULE__)}.Handler\n"

      {"x/#{name}.md",
       "---\nname: x.#{name}\ndescription: Does #{name}\n#{handler}#{limits}---\n# x.#{name}\n"}
    end
  end

  @doc "Runs the conversations and checks each; gives figures. Raises if anything is mixed up " <>
         "or left behind."
  def run(folder, conversations) do
    before = left()

    {:ok, supervisor} =
      Supervisor.start_link([{Skillbook, options(folder)}], strategy: :one_for_one)

    view = Skillbook.view(@book)

    {microseconds, statuses} =
      :timer.tc(fn ->
        1..conversations
        |> Enum.map(&Task.async(fn -> conversation(view, &1) end))
        |> Task.await_many(:infinity)
        |> List.flatten()
        |> Enum.frequencies()
      end)

    # All handlers have ended, and stored results are within their limit.
    wait(fn -> Task.Supervisor.children(Module.concat(@book, Tasks)) == [] end)
    limit = :sys.get_state(Module.concat(@book, ConcurrencyLimit))
    %{running: 0, calls: calls, queues: queues, skills: skills} = limit
    true = {calls, queues, skills} == {%{}, %{}, %{}}

    for name <- [ConcurrencyLimit, CircuitBreaker, StoredResults] do
      {:monitors, []} =
        @book |> Module.concat(name) |> GenServer.whereis() |> Process.info(:monitors)
    end

    stored = :sys.get_state(Module.concat(@book, StoredResults)).bytes
    true = stored <= 32 * 1024 * 1024
    broken = @book |> Skillbook.diagnostics() |> length()
    Supervisor.stop(supervisor)
    wait(fn -> nothing_new?(left(), before) end)

    %{
      conversations: conversations,
      commands: statuses |> Map.values() |> Enum.sum(),
      results: statuses,
      milliseconds: div(microseconds, 1000),
      out_of_service: broken,
      kept_bytes: stored,
      left_memory: left().memory - before.memory
    }
  end

  defp options(folder) do
    [
      name: @book,
      sources: [folder],
      builtins: true,
      watch: false,
      max_running: 100,
      max_wait: 600_000,
      max_result: 200,
      breaker: [failures: 5, cooldown: 600_000]
    ]
  end

  # Each conversation has its own profile and writes its number in each command.
  defp conversation(view, number) do
    {:ok, profile} = Skillbook.Profile.new(id: "#{number}")
    view = %{view | profile: profile}
    other = Enum.at(~w(fail crash kill hang flood), rem(number, 5))
    lines = for name <- ["echo", other, "echo"], do: "x.#{name} --who #{number}"
    reply = "Hello #{number}\n\n```cmd\n#{Enum.join(lines, "\n")}\n```"
    report = Skillbook.run(view, reply)
    ^lines = Enum.map(report.results, & &1.command)
    true = report.text == "Hello #{number}"
    [first, second, third] = report.results
    own = "echo for #{number}"
    {%Result{status: :ok, content: ^own}, %Result{status: :ok, content: ^own}} = {first, third}
    more = other(view, other, number, second)
    {:message_queue_len, 0} = Process.info(self(), :message_queue_len)
    Enum.map(report.results, &outcome/1) ++ more
  end

  defp other(_view, "fail", number, result) do
    true = result.content == "no room for #{number}"
    []
  end

  defp other(view, "flood", number, %Result{metadata: %{cut: cut}} = result) do
    true = String.starts_with?(result.content, "flood for #{number}\n")

    [read] =
      Skillbook.Reply.Pipeline.commands(view, [
        "results.read --id #{cut.id} --from " <>
          "#{cut.to + 1}"
      ])

    # Newer floods may have evicted it, but it is never the result of another conversation.
    true =
      match?(%Result{status: :ok}, read) ==
        String.contains?(read.content, "flood for #{number}\n")

    [outcome(read)]
  end

  defp other(_view, name, _number, %Result{error: %OutOfServiceError{name: "x." <> name}}), do: []
  defp other(_view, "hang", _number, %Result{error: %HandlerError{kind: :timeout}}), do: []
  defp other(_view, _, _number, %Result{error: %HandlerError{kind: :crash}}), do: []

  defp outcome(%Result{status: :error, error: %HandlerError{kind: kind}}), do: kind
  defp outcome(%Result{status: :error, error: %OutOfServiceError{}}), do: :out_of_service
  defp outcome(%Result{status: status}), do: status

  # The resources of the virtual machine; the memory after a garbage collection of all processes.
  defp left do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)

    %{
      processes: MapSet.new(Process.list()),
      tables: MapSet.new(:ets.all()),
      memory: :erlang.memory(:total)
    }
  end

  # Processes and tables of other tests may have ended meanwhile.
  defp nothing_new?(now, before) do
    MapSet.subset?(now.processes, before.processes) and MapSet.subset?(now.tables, before.tables)
  end

  # Processes end soon after their callers; after a minute it is a leak.
  defp wait(done, tries \\ 6_000) do
    cond do
      done.() -> :ok
      tries == 0 -> raise "expected nothing to be left behind"
      true -> receive(after: (10 -> wait(done, tries - 1)))
    end
  end

  defmodule Handler do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"who" => who}, context) do
      # Its profile is its conversation's, as its flags are.
      ^who = context.profile.id

      case context.entry.name do
        "x.echo" -> {:ok, "echo for #{who}"}
        "x.fail" -> {:error, "no room for #{who}"}
        "x.crash" -> raise "crash for #{who}"
        "x.kill" -> Process.exit(self(), :kill)
        "x.hang" -> Process.sleep(:infinity)
        "x.flood" -> {:ok, String.duplicate("flood for #{who}\n", 20_000)}
      end
    end
  end
end
