defmodule Skillbook.Run.Policy do
  @moduledoc false
  # Decides whether a command with side effects may run, from the profile's `:writes`. Only
  # the executor calls `check/3`, so no command bypasses it. `rule/1` tells the model beforehand.

  require Logger

  alias Skillbook.Run.Worker
  alias Skillbook.{Context, Entry, PolicyError, Profile, Request, RoutedCommand, Telemetry, View}

  @dispatch "agent.dispatch"

  # In the process dictionary, for the duration of a result (`Skillbook.Reply.Pipeline`).
  @waited {__MODULE__, :waited}

  @spec check(RoutedCommand.t(), Context.t(), Request.ask() | nil) ::
          :ok | {:error, PolicyError.t()}
  def check(%RoutedCommand{entry: entry} = routed, %Context{profile: profile} = context, ask) do
    case Entry.effect(entry) do
      :read -> :ok
      :write -> reported(routed, context, fn -> decide(profile.writes, routed, context, ask) end)
    end
  end

  @doc """
  Returns the line of the prompt's rules about commands with side effects, `""` if none is needed.
  """
  @spec rule(View.t()) :: String.t()
  def rule(%View{profile: %Profile{writes: :delegate}} = view) do
    if dispatch?(view) do
      "- Only agents may run commands that change something. Write: " <>
        "`agent.dispatch --mission \"WHAT TO DO\" --skills NAME`.\n"
    else
      "- Commands that change something do not run here. Tell the user what needs to be done.\n"
    end
  end

  def rule(%View{}), do: ""

  # The duration includes the time that a person took to answer.
  defp reported(routed, context, decide) do
    began = System.monotonic_time()
    decision = decide.()
    duration = System.monotonic_time() - began
    if waited = Process.get(@waited), do: Process.put(@waited, waited + duration)

    Telemetry.event(
      [:skillbook, :policy, :decision],
      %{duration: duration},
      %{
        book: context.book,
        profile: context.profile.id,
        skill: routed.name,
        writes: context.profile.writes,
        decision: with({:error, error} <- decision, do: error.kind)
      }
    )

    decision
  end

  @spec decide(Profile.writes(), RoutedCommand.t(), Context.t(), Request.ask() | nil) ::
          :ok | {:error, PolicyError.t()}
  defp decide(:run, _routed, _context, _ask), do: :ok
  defp decide(:deny, routed, _context, _ask), do: refused(:deny, routed)

  # The agent that it starts has a profile of its own, which is checked again.
  defp decide(:delegate, %{name: @dispatch}, _context, _ask), do: :ok

  defp decide(:delegate, routed, context, _ask) do
    refused(:delegate, routed, dispatch: dispatch?(context.view))
  end

  defp decide(:ask, routed, _context, nil) do
    Logger.warning(
      "skill #{routed.name}: expected the option :ask of the book or of the run, got none"
    )

    refused(:unanswered, routed)
  end

  defp decide(:ask, routed, context, ask) do
    case time_left(context) do
      # Nobody waits for the answer any more.
      0 -> refused(:unanswered, routed)
      limit -> ask(routed, context, ask, limit)
    end
  end

  defp ask(routed, context, ask, limit) do
    request = %Request{
      command: routed.command,
      entry: routed.entry,
      profile: context.profile,
      context: context
    }

    worker =
      Worker.start(context.book, Context.logger_metadata(context), fn -> call(ask, request) end)

    case Worker.run(worker, limit) do
      {:ok, :allow} ->
        :ok

      {:ok, :deny} ->
        refused(:denied, routed)

      {:ok, {:deny, text} = answer} ->
        if text?(text), do: refused(:denied, routed, text: text), else: bad_answer(routed, answer)

      {:ok, answer} ->
        bad_answer(routed, answer)

      {:crash, reason} ->
        unanswered(routed, "the :ask callback crashed: #{Exception.format_exit(reason)}")

      :timeout ->
        unanswered(
          routed,
          "expected an answer of the :ask callback within #{limit} ms, the time left of the " <>
            "run, got none"
        )
    end
  end

  defp dispatch?(view), do: match?({:ok, %Entry{name: @dispatch}}, View.fetch(view, @dispatch))

  # A person may take any time to answer, but a run ends at its own limit.
  defp time_left(%Context{agent: agent} = context),
    do: min(Context.time_left(context), if(agent, do: agent.time_left, else: :infinity))

  defp call({module, function}, request), do: apply(module, function, [request])
  defp call(fun, request), do: fun.(request)

  defp text?(text), do: is_binary(text) and String.valid?(text)

  defp bad_answer(routed, answer) do
    got = inspect(answer, limit: 20, printable_limit: 500)

    unanswered(
      routed,
      "expected :allow, :deny or {:deny, text} of the :ask callback, got: #{got}"
    )
  end

  defp unanswered(routed, log) do
    Logger.error("skill #{routed.name}: #{log}")
    refused(:unanswered, routed)
  end

  defp refused(kind, routed, fields \\ []) do
    {:error, struct!(PolicyError, [kind: kind, name: routed.name] ++ fields)}
  end
end
