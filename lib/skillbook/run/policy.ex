defmodule Skillbook.Run.Policy do
  @moduledoc false
  # Decides whether a command may run: one with side effects by the profile's `:writes`, and one
  # of a page with `approval: required` by the `:ask` callback in any case. Only the executor
  # calls `check/3`, so no command bypasses it. `rule/1` tells the model beforehand.

  require Logger

  alias Skillbook.Run.Worker
  alias Skillbook.Support.Outline

  alias Skillbook.{
    Approval,
    Command,
    Context,
    Entry,
    Flag,
    Part,
    PolicyError,
    Profile,
    Request,
    RoutedCommand,
    Telemetry,
    View
  }

  @dispatch "agent.dispatch"

  # In the process dictionary, for the duration of a result (`Skillbook.Reply.Pipeline`).
  @waited {__MODULE__, :waited}

  @typedoc """
  How permission is asked for: the callback, its time limit in milliseconds, whether this call was
  approved before, and the command as it was written. That of `RoutedCommand` has the flags that
  the handler gets.
  """
  @type permission :: %{
          ask: Request.ask() | nil,
          timeout: timeout(),
          approved: boolean(),
          # For a call that waits; `nil` for a new one.
          ref: String.t() | nil,
          written: Command.t()
        }

  @doc "Decides; `{:pending, approval}` if the call waits for an approval now."
  @spec check(RoutedCommand.t(), Context.t(), permission()) ::
          :ok | {:pending, Approval.t()} | {:error, Exception.t()}
  def check(%RoutedCommand{entry: entry} = routed, %Context{profile: profile} = context, ask) do
    case {Entry.effect(entry), approval?(routed)} do
      {:read, false} -> :ok
      {:read, true} -> reported(routed, context, fn -> decide(:run, routed, context, ask) end)
      _ -> reported(routed, context, fn -> decide(profile.writes, routed, context, ask) end)
    end
  end

  @doc """
  Whether a call needs an approval by its page, whatever the profile's `:writes`. The command has
  the flags that the handler gets.

  A page may name the flags whose calls need one. If one of them is not declared, all calls do.
  """
  @spec approval?(RoutedCommand.t() | Request.t()) :: boolean()
  def approval?(%RoutedCommand{entry: entry, command: command, declaration: declaration}) do
    case entry.limits do
      %{approval: :required} -> true
      %{approval: names} -> Enum.any?(names, &asked?(command, &1, declaration))
      _none -> false
    end
  end

  def approval?(%Request{approval: approval}), do: approval

  defp asked?(%Command{flags: flags}, name, declaration) do
    case declaration && Enum.find(declaration.flags, &(&1.name == name)) do
      nil -> true
      flag -> Map.get(flags, Flag.key(flag)) not in [nil, false, []]
    end
  end

  @doc "Whether a call by the profile is asked about."
  @spec asks?(RoutedCommand.t(), Profile.t()) :: boolean()
  def asks?(%RoutedCommand{entry: entry} = routed, %Profile{writes: writes} = profile),
    do: (writes == :ask or approval?(routed)) and not Profile.approves?(profile, entry.name)

  @doc "Whether a profile may run the entry, after a question if one is needed."
  @spec runs?(Entry.t(), Profile.t()) :: boolean()
  def runs?(%Entry{name: name} = entry, %Profile{writes: writes}) do
    Entry.effect(entry) == :read or writes in [:run, :ask] or
      (writes == :delegate and name == @dispatch)
  end

  @doc """
  Returns the line of the prompt's rules about commands with side effects, `""` if none is needed.
  """
  @spec rule(View.t(), :blocks | :tools) :: String.t()
  def rule(%View{profile: %Profile{writes: :delegate}} = view, protocol) do
    cond do
      not dispatch?(view) ->
        "- Commands that change something do not run here. Tell the user what needs to be done.\n"

      protocol == :tools ->
        "- Only agents may run commands that change something. Call agent__dispatch with " <>
          "#{PolicyError.arguments("NAME")}.\n"

      true ->
        "- Only agents may run commands that change something. Write: " <>
          "`agent.dispatch --mission \"WHAT TO DO\" --skills NAME`.\n"
    end
  end

  def rule(%View{}, _protocol), do: ""

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
        decision: decision(decision)
      }
    )

    decision
  end

  defp decision(:ok), do: :ok
  defp decision({:pending, _approval}), do: :pending
  defp decision({:error, %PolicyError{kind: kind}}), do: kind
  # A call that cannot be stored.
  defp decision({:error, _error}), do: :unstorable

  @spec decide(Profile.writes(), RoutedCommand.t(), Context.t(), permission()) ::
          :ok | {:pending, Approval.t()} | {:error, Exception.t()}
  defp decide(:deny, routed, _context, _ask), do: refused(:deny, routed)

  # The agent that it starts has a profile of its own, which is checked again.
  defp decide(:delegate, %{name: @dispatch} = routed, context, ask),
    do: decide(:run, routed, context, ask)

  defp decide(:delegate, routed, context, _ask) do
    refused(:delegate, routed, dispatch: dispatch?(context.view))
  end

  defp decide(_run_or_ask, _routed, _context, %{approved: true}), do: :ok

  defp decide(_run_or_ask, routed, context, permission) do
    if asks?(routed, context.profile), do: ask(routed, context, permission), else: :ok
  end

  defp ask(routed, context, %{ask: nil, written: written} = permission) do
    # A page that needs an approval waits for one, wherever it can be stored.
    if approval?(routed) and context.sql != nil do
      pending(routed, context, written, new_ref(permission))
    else
      Logger.warning(
        "skill #{routed.name}: expected the option :ask of the book or of the run, got none"
      )

      refused(:unanswered, routed)
    end
  end

  defp ask(routed, context, %{timeout: timeout} = permission) do
    case time_left(context) do
      # Nobody waits for the answer any more.
      0 -> refused(:unanswered, routed)
      left when left <= timeout -> ask(routed, context, permission, {left, :run})
      _longer -> ask(routed, context, permission, {timeout, :ask})
    end
  end

  defp ask(routed, context, %{ask: ask, written: written} = permission, {limit, limit_of}) do
    request = %Request{
      ref: new_ref(permission),
      command: routed.command,
      written: written,
      entry: routed.entry,
      profile: context.profile,
      context: context,
      approval: approval?(routed)
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

      {:ok, :pending} ->
        pending(routed, context, written, request.ref)

      {:ok, {:pending, ref} = answer} ->
        if Request.ref?(ref),
          do: pending(routed, context, written, ref),
          else: bad_answer(routed, answer)

      {:ok, answer} ->
        bad_answer(routed, answer)

      {:crash, reason} ->
        unanswered(routed, "the :ask callback crashed: #{Outline.crash(reason)}")

      :timeout when limit_of == :ask ->
        refused(:ask_timeout, routed, timeout: limit)

      :timeout ->
        unanswered(
          routed,
          "expected an answer of the :ask callback within #{limit} ms, the time left of the " <>
            "run, got none"
        )
    end
  end

  defp new_ref(permission), do: permission.ref || Request.new_ref()

  defp pending(routed, context, written, ref) do
    case Part.first(Part.of(context.book), :store_call, [routed, context, written, ref]) do
      {:ok, approval} -> {:pending, approval}
      {:error, error} -> {:error, error}
      :other -> unanswered(routed, "calls cannot wait, since no part of the book stores them")
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
    unanswered(
      routed,
      "expected :allow, :deny, {:deny, text}, :pending or {:pending, ref} of the :ask " <>
        "callback, got: #{Outline.text(answer)}"
    )
  end

  defp unanswered(routed, log) do
    Logger.error("skill #{routed.name}: #{log}")
    refused(:unanswered, routed)
  end

  defp refused(kind, routed, fields \\ []) do
    # Its text gives the reason why it was asked about.
    writes? = Entry.effect(routed.entry) == :write
    {:error, struct!(PolicyError, [kind: kind, name: routed.name, writes: writes?] ++ fields)}
  end
end
