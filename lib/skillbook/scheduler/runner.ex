defmodule Skillbook.Scheduler.Runner do
  @moduledoc false
  # One firing, in a process of its own: it claims it, runs the entry as a command, and writes down what came of it.

  alias Skillbook.Scheduler.{Clock, Firings, Job}
  alias Skillbook.Workflow.Prose
  alias Skillbook.{Book, Command, Firing, Result, Telemetry}

  require Logger

  # What is kept of a result.
  @kept 10_000
  @nobody "Nobody is there to ask, because it runs by its schedule; a profile with writes: :run may."

  @type from :: :new | :queued | {:held, attempt :: pos_integer()}

  @doc "Calls `held` once the firing is this node's."
  @spec run(Firing.t(), from(), Firings.by(), held :: (() -> term())) ::
          {:ok, map()} | {:error, Firings.refused() | Exception.t()}
  def run(%Firing{} = firing, from, by, held) do
    book = Book.fetch!(firing.book)

    case {Job.fetch(book, firing.name, firing.record), from} do
      # It went since its time came.
      {no_job, :new} when no_job == :none or elem(no_job, 0) == :error ->
        {:error, :taken}

      {{:ok, job}, from} ->
        with :ok <- claim(book, job, firing, from, by) do
          held.()
          work(book, job, firing, from, by)
        end

      {_no_job, from} ->
        with :ok <- claim(book, nil, firing, from, by),
             do:
               finish(
                 book,
                 firing,
                 by,
                 failed("There is no entry of this name any more that may run by a schedule.")
               )
    end
  end

  defp claim(_book, _job, _firing, {:held, _attempt}, _by), do: :ok

  defp claim(book, job, firing, from, by) do
    options = [hand: hand?(book, from), profile: if(job, do: job.owner)]
    now = fn -> Clock.now(book) end
    until = System.monotonic_time(:millisecond) + Clock.late() * 1000
    again(until, 100, fn -> Firings.claim(Book.sql(book), firing, from, by, now.(), options) end)
  end

  # The database may be away for a moment.
  defp again(until, delay, fun) do
    case fun.() do
      {:error, error} when is_exception(error) ->
        if System.monotonic_time(:millisecond) < until do
          Process.sleep(delay)
          again(until, min(2 * delay, 5_000), fun)
        else
          {:error, error}
        end

      answer ->
        answer
    end
  end

  defp hand?(book, from), do: from == :new and book.schedules[:dispatch] != nil

  defp work(book, job, firing, from, by) do
    if hand?(book, from) do
      hand(book, firing, by)
    else
      about = %{
        book: book.name,
        skill: firing.name,
        at: firing.at,
        profile: job.profile.id,
        attempt: attempt(from)
      }

      Telemetry.span([:skillbook, :firing], about, fn ->
        result = result(book, job, firing, by)
        {:stop, finish(book, firing, by, result), %{status: result.status}}
      end)
    end
  end

  defp attempt({:held, attempt}), do: attempt
  defp attempt(_from), do: 1

  defp result(book, job, firing, by) do
    # What is looked at is what runs, whatever is written meanwhile.
    case Job.view(book, job) do
      {:ok, view} -> command(%{view | book: book.name}, book, job, firing, by)
      :error -> failed("The profile #{job.profile.id} and its author do not both see it.")
    end
  end

  defp hand(book, firing, by) do
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
        finish(book, firing, by, failed("It was not handed over: #{text}"))

      other ->
        expected =
          "#{inspect(module)}.#{function}/1 was to give :ok or {:error, text}, and gave: #{inspect(other, limit: 20)}"

        finish(book, firing, by, failed("It was not handed over: #{expected}"))
    end
  end

  defp command(view, book, job, firing, by) do
    options = [
      timeout: job.entry.limits[:timeout] || book.schedules[:timeout],
      now: Clock.now(book),
      assigns: %{scheduled: %{at: firing.at, node: by.node}},
      ask: fn _request -> {:deny, @nobody} end
    ]

    result = Prose.carry_out(view, Command.word(job.name), options)

    %{
      status: status(result),
      text: String.slice(result.content, 0, @kept),
      duration: result.duration
    }
  end

  defp status(%Result{status: :error}), do: :failed
  defp status(%Result{status: :template}), do: :template
  defp status(%Result{}), do: :ok

  defp failed(text), do: %{status: :failed, text: text, duration: nil}

  # As long as the lease goes on; whoever keeps it stops this process when it is over.
  defp finish(book, firing, by, result) do
    until = System.monotonic_time(:millisecond) + by.lease

    case again(until, 100, fn ->
           Firings.finish(Book.sql(book), firing, by, Clock.now(book), result)
         end) do
      {:ok, true} ->
        {:ok, result}

      {:ok, false} ->
        Logger.error(
          "#{firing.name}, due at #{firing.at}, ran longer than its lease and was given to another node or reported as failed"
        )

        {:error, :taken}

      {:error, error} ->
        {:error, error}
    end
  end
end
