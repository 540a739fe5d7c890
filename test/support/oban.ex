# The documented part of Oban 2.18 that Skillbook calls: it makes the changeset of a job, inserts
# it, and asks the default backoff. Everything else is left out, so that nothing undocumented is
# used.

defmodule Oban.Job do
  @moduledoc false
  defstruct [
    :id,
    :args,
    :worker,
    :unique,
    :inserted_at,
    :scheduled_at,
    :schedule_in,
    queue: "default",
    attempt: 1,
    max_attempts: 20,
    priority: 0,
    tags: [],
    meta: %{},
    conflict?: false
  ]

  # The changeset is the job itself, with its errors beside it if it is invalid.
  def new(args, options) do
    job = struct!(__MODULE__, [args: args] ++ options)
    job = %{job | queue: to_string(job.queue), worker: inspect(job.worker)}

    if String.length(job.queue) > 128,
      do: %{
        __struct__: Ecto.Changeset,
        valid?: false,
        changes: %{},
        errors: [queue: {"should be at most %{count} character(s)", [count: 128]}]
      },
      else: job
  end
end

defmodule Oban.Worker do
  @moduledoc false
  def backoff(%Oban.Job{attempt: attempt}), do: 15 + attempt
end

defmodule Oban do
  @moduledoc false
  # The name of an instance is the process that gets its jobs.
  def insert(_pid, %{valid?: false} = changeset), do: {:error, changeset}

  def insert(pid, %Oban.Job{} = job) when is_pid(pid) do
    send(pid, {:inserted, job})
    {:ok, %{job | id: 7, inserted_at: DateTime.utc_now()}}
  end
end
