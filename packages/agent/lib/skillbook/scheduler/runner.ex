defmodule Skillbook.Scheduler.Runner do
  @moduledoc false
  # Runs one firing in a process of its own: claims it, runs the entry as a command, or dispatches
  # it to another queue, and stores the result.
  #
  # An entry may run only if its profile, and the author's, use exactly this entry under its name
  # (`Skillbook.Scheduler.Job.view/2`).

  alias Skillbook.Run.{Drain, Policy}
  alias Skillbook.Agent.Prose
  alias Skillbook.Schedule.Clock
  alias Skillbook.Scheduler.{Firings, Job, Server}
  alias Skillbook.Workflow.Runs
  alias Skillbook.{Book, Command, Firing, Profile, Result, Telemetry}

  require Logger

  # Characters stored of a result.
  @max_text 10_000
  # Characters of it in the log.
  @max_logged 500
  @no_user "No user is present to approve it, since it runs on a schedule; a profile with " <>
             "writes: :run may run it."

  @typedoc "Somebody asked for it now; a claimed one was taken over from another node."
  @type from :: :new | :asked | :queued | {:claimed, attempt :: pos_integer()}

  @doc """
  Runs a firing and returns its result. Calls `on_claimed` once this node has the claim. A book
  that is stopping claims none, so another node may.
  """
  @spec run(Firing.t(), from(), Firings.by(), on_claimed :: (() -> term())) ::
          {:ok, map()} | {:error, Firings.refused() | Exception.t()}
  def run(%Firing{} = firing, from, by, on_claimed) do
    Drain.run(
      firing.book,
      fn -> run_open(firing, from, by, on_claimed) end,
      fn -> {:error, :taken} end
    )
  end

  defp run_open(firing, from, by, on_claimed) do
    book = Book.fetch!(firing.book)

    case {Job.fetch(book, firing.name, firing.record), from} do
      # A profile of the application that is gone, or cannot be read.
      {{:error, text}, from} when book.fetch_profile != nil ->
        with :ok <- claim(book, nil, firing, from, by),
             do: finish(book, nil, firing, by, failed(text))

      # The entry changed since its time came.
      {no_job, from}
      when from in [:new, :asked] and (no_job == :none or elem(no_job, 0) == :error) ->
        {:error, :taken}

      {{:ok, job}, from} ->
        with :ok <- claim(book, job, firing, from, by) do
          on_claimed.()
          run_or_dispatch(book, job, firing, from, by)
        end

      {_no_job, from} ->
        with :ok <- claim(book, nil, firing, from, by) do
          text = "The entry does not exist any more, or may not run on a schedule."
          finish(book, nil, firing, by, failed(text))
        end
    end
  end

  defp claim(_book, _job, _firing, {:claimed, _attempt}, _by), do: :ok

  defp claim(book, job, firing, from, by) do
    owner = if job, do: owner(job)
    options = [dispatch: dispatch?(book, from), profile: owner, writer: Server.writer(book.name)]

    retry(Clock.max_delay() * 1000, fn times ->
      now = Clock.now(book)
      # An attempt whose answer was lost may have claimed it.
      options = [attempts: times] ++ options
      {now, Firings.claim(Book.sql(book), firing, from, by, now, options)}
    end)
  end

  # An entry whose profile cannot be read has none.
  defp owner(%{profile: nil, owner: owner}), do: {owner, nil}
  defp owner(%{profile: profile, owner: owner}), do: {owner, Profile.home(profile)}

  # Retries for `time` milliseconds if the database fails. `fun` gets the times of its earlier
  # attempts, and returns its own with the result.
  defp retry(time, fun), do: retry(System.monotonic_time(:millisecond) + time, 100, [], fun)

  defp retry(until, delay, times, fun) do
    with {now, {:error, error}} when is_exception(error) <- fun.(times) do
      if System.monotonic_time(:millisecond) < until do
        Process.sleep(delay)
        retry(until, min(2 * delay, 5_000), [now | times], fun)
      else
        {:error, error}
      end
    else
      {_now, result} -> result
    end
  end

  defp dispatch?(book, from),
    do: from in [:new, :asked] and book.schedules[:dispatch] != nil

  defp run_or_dispatch(book, job, firing, from, by) do
    if dispatch?(book, from) do
      dispatch(book, job, firing, by)
    else
      metadata = %{
        book: book.name,
        skill: firing.name,
        at: firing.at,
        profile: job.profile.id,
        attempt: attempt(from)
      }

      Telemetry.span([:skillbook, :firing], metadata, fn ->
        result = result(book, job, firing, by)
        {:stop, finish(book, job, firing, by, result), %{status: result.status}}
      end)
    end
  end

  defp attempt({:claimed, attempt}), do: attempt
  defp attempt(_from), do: 1

  defp result(book, job, firing, by) do
    # The view in which access is checked is the one that runs, whatever is written meanwhile.
    case Job.view(book, job) do
      {:ok, view} -> run_command(%{view | book: book.name}, book, job, firing, by)
      :error -> failed("The profile #{job.profile.id} and its author do not both see it.")
    end
  end

  defp dispatch(book, job, firing, by) do
    {module, function} = book.schedules[:dispatch]

    answer =
      try do
        apply(module, function, [firing])
      catch
        kind, reason -> {:error, Exception.format_banner(kind, reason, __STACKTRACE__)}
      end

    case answer do
      :ok ->
        {:ok, %{status: :queued, text: "", duration: nil}}

      {:error, text} when is_binary(text) ->
        finish(book, job, firing, by, failed("It was not dispatched: #{text}"))

      other ->
        expected =
          "expected #{inspect(module)}.#{function}/1 to return :ok or {:error, text}, got: " <>
            inspect(other, limit: 20)

        finish(book, job, firing, by, failed("It was not dispatched: #{expected}"))
    end
  end

  defp run_command(view, book, job, firing, by) do
    options = [
      timeout: job.entry.limits[:timeout] || book.schedules[:timeout],
      now: Clock.now(book),
      assigns: %{scheduled: %{at: firing.at, node: by.node}},
      ask: &ask/1
    ]

    result = Prose.carry_out(view, Command.word(job.name), options)

    %{
      status: status(result, book),
      text: String.slice(result.content, 0, @max_text),
      duration: result.duration
    }
  end

  # A page that needs an approval waits for one. Nobody is there for other questions.
  defp ask(request),
    do: if(Policy.approval?(request), do: :pending, else: {:deny, @no_user})

  defp status(%Result{status: :error}, book), do: Drain.failed(book.name)
  defp status(%Result{status: :pending}, _book), do: :pending
  defp status(%Result{status: :template}, _book), do: :template
  defp status(%Result{}, _book), do: :ok

  @doc "The result of a firing whose book stopped while it ran."
  @spec interrupted() :: map()
  def interrupted do
    text = "The book stopped while it ran; part of its work may be done."
    %{status: :interrupted, text: text, duration: nil}
  end

  # The first line, since the results of a workflow's steps may have secrets. The agenda has all.
  defp log_failure(job, firing, %{text: text} = result) do
    as = if job, do: " as #{inspect(job.profile.id)}", else: ""
    [reason | _] = text |> String.trim() |> String.split("\n", parts: 2)
    reason = String.slice(reason, 0, @max_logged)
    Logger.error("#{firing.name}, due at #{firing.at}, #{result.status}#{as}: #{reason}")
  end

  defp failed(text), do: %{status: :failed, text: text, duration: nil}

  # Its lease passes, and then a node runs it again.
  defp finish(_book, _job, _firing, %{attempts: attempts}, %{status: :interrupted} = result)
       when attempts > 1,
       do: {:ok, result}

  # Retries for one lease. The server renews the lease and stops this process when it is lost.
  defp finish(book, job, firing, by, result) do
    if result.status in [:failed, :interrupted], do: log_failure(job, firing, result)

    finish = fn _times ->
      now = Clock.now(book)
      {now, Firings.finish(Book.sql(book), firing, by, now, result, Server.writer(book.name))}
    end

    case retry(by.lease, finish) do
      {:ok, true} ->
        Runs.notify(book.name, firing.name, if(job, do: owner(job)))
        {:ok, result}

      {:ok, false} ->
        Logger.error(
          "#{firing.name}, due at #{firing.at}, ran longer than its lease: another node has " <>
            "it, or it was stored as failed"
        )

        {:error, :taken}

      {:error, error} ->
        {:error, error}
    end
  end
end
