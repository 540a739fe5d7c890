defmodule Skillbook.MCP.Client.Listener do
  @moduledoc false
  # Listens to the changes of a server at a URL, in a process that only waits. A server without a
  # stream of changes is asked again at each `:refresh` alone.

  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.{Error, HTTP, Session, State}

  @no_session 100
  @first_pause 1_000
  @longest_pause 300_000
  # A stream that lived so long was a good one.
  @settled 30_000
  # Refusals that pass, as those of a busy server do.
  @passing [408, 425, 429]

  def child_spec(settings) do
    %{
      id: {__MODULE__, settings.label},
      start: {Task, :start_link, [__MODULE__, :run, [settings]]}
    }
  end

  def run(settings, pause \\ @first_pause, again? \\ false) do
    began = now()

    outcome =
      case State.session(settings) do
        nil -> :waiting
        session -> listen(settings, session, again?)
      end

    again? = again? or outcome != :waiting

    next = if now() - began >= @settled, do: @first_pause, else: min(pause * 2, @longest_pause)

    case outcome do
      # The client makes the session.
      :waiting ->
        wait(settings, @no_session, pause, again?)

      # It has no such stream.
      {:error, %Error{kind: :status, code: code}} when code < 500 and code not in @passing ->
        wait(settings, @longest_pause, next, again?)

      {:error, %Error{kind: kind, code: nil}} when kind in [:status, :rpc] ->
        wait(settings, @longest_pause, next, again?)

      _other ->
        wait(settings, pause, next, again?)
    end
  end

  defp listen(settings, session, again?) do
    if Session.modern?(session) or session.id != nil,
      do: HTTP.listen(settings, session, again?, &Client.notified(settings, &1)),
      else: {:error, %Error{kind: :status, server: settings.label, reason: "no session"}}
  end

  defp wait(settings, pause, next, again?) do
    Process.sleep(pause)
    run(settings, next, again?)
  end

  defp now, do: System.monotonic_time(:millisecond)
end
