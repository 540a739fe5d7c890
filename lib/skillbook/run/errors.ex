defmodule Skillbook.HandlerError do
  @moduledoc """
  Returned when a handler cannot run, crashes, exceeds its time limit, returns an invalid value or
  an error of the database.

  The message is for the model. It names the skill; details such as the crash reason or the failed
  statement go to the log.

  ## Fields

    * `:kind` - the cause:
      * `:missing` - no such module with `execute/2`
      * `:crash`, `:timeout`, `:bad_return`
      * `:database` - the handler returned a `Skillbook.SQL.Error`, or the book's database does
        not run
      * `:in_transaction` - the calling process is in a transaction of the book's database,
        which the handler's process could not join; it did not run
      * `:stopped` - the book stopped before the handler ran
    * `:name` - the skill's name
    * `:handler` - the handler as written in the skill's frontmatter
    * `:timeout` - the time limit in milliseconds, for `:timeout`
    * `:reason` - the crash reason, the returned value or the database's error, for Elixir callers

  ## Examples

      iex> error = %Skillbook.HandlerError{kind: :timeout, name: "email.send", timeout: 30_000}
      iex> error |> Exception.message() |> String.split(". ")
      [
        "`email.send` was stopped: it took longer than 30 s",
        "It may have done part of its work: check before you try again, or tell the user."
      ]
  """

  alias Skillbook.Support.Duration

  @type t :: %__MODULE__{
          kind:
            :missing | :crash | :timeout | :bad_return | :database | :in_transaction | :stopped,
          name: String.t(),
          handler: String.t() | nil,
          timeout: pos_integer() | nil,
          reason: term()
        }

  defexception [:kind, :name, :handler, :timeout, :reason]

  @partly "It may have done part of its work: check before you try again, or tell the user."

  @impl true
  def message(%{kind: :missing} = error) do
    "`#{error.name}` cannot run: its handler #{error.handler} does not exist. " <>
      "You cannot fix this: tell the user, and go on without it."
  end

  def message(%{kind: :stopped} = error),
    do: "`#{error.name}` was not run: the skills have just been shut down. Tell the user."

  def message(%{kind: :crash} = error),
    do: "`#{error.name}` failed: its handler crashed. #{@partly}"

  def message(%{kind: :timeout} = error) do
    "`#{error.name}` was stopped: it took longer than #{Duration.text(error.timeout)}. #{@partly}"
  end

  def message(%{kind: :database, reason: %{kind: :busy}} = error),
    do: "`#{error.name}` failed: the database was busy. Try again, or tell the user."

  def message(%{kind: :database} = error),
    do: "`#{error.name}` failed: its database does not work. #{@partly}"

  def message(%{kind: :in_transaction} = error) do
    "`#{error.name}` was not run: its caller is in a transaction of the same database, and " <>
      "commands run in processes of their own, outside of it. Tell the user that the " <>
      "application must call Skillbook after the transaction."
  end

  def message(%{kind: :bad_return} = error) do
    "`#{error.name}` failed: its handler returned an invalid value. #{@partly}"
  end
end

defmodule Skillbook.BusyError do
  @moduledoc """
  Returned when a command queued for a free slot longer than `:max_wait`. Its handler did not run.

  The options `:max_running`, `:max_running_per_skill` and `:max_agents` of a book set the number
  of slots.

  ## Fields

    * `:name` - the skill's name
    * `:max_wait` - how long it queued, in milliseconds

  ## Examples

      iex> error = %Skillbook.BusyError{name: "email.send", max_wait: 30_000}
      iex> error |> Exception.message() |> String.split(", and ")
      [
        "`email.send` was not run: too many commands were running",
        "it was still queued after 30 s. Try again later, or tell the user."
      ]
  """

  alias Skillbook.Support.Duration

  @type t :: %__MODULE__{name: String.t(), max_wait: pos_integer()}

  defexception [:name, :max_wait]

  @impl true
  def message(%{name: name, max_wait: max_wait}) do
    "`#{name}` was not run: too many commands were running, and it was still queued after " <>
      "#{Duration.text(max_wait)}. Try again later, or tell the user."
  end
end

defmodule Skillbook.OutOfServiceError do
  @moduledoc """
  Returned while the circuit breaker keeps a skill out of service. Its handler did not run.

  The option `:breaker` of a book sets after how many failures in a row, and for how long.

  ## Fields

    * `:name` - the skill's name
    * `:failures` - the number of failures in a row
    * `:since` - the start of the outage, a `DateTime` in UTC
    * `:retry_in` - the seconds until one call is let through as a trial, or `nil` while the trial
      runs

  ## Examples

      iex> since = ~U[2026-02-17 12:00:10Z]
      iex> error = %Skillbook.OutOfServiceError{name: "email.send", failures: 5, since: since}
      iex> %{error | retry_in: 18} |> Exception.message() |> String.split([": ", ". "])
      [
        "`email.send` was not run",
        "it failed 5 times in a row and is out of service since 2026-02-17 12:00:10 UTC",
        "Try again in 18 s, and go on without it until then, or tell the user."
      ]
  """

  @type t :: %__MODULE__{
          name: String.t(),
          failures: pos_integer(),
          since: DateTime.t(),
          retry_in: pos_integer() | nil
        }

  defexception [:name, :failures, :since, :retry_in]

  @impl true
  def message(error) do
    since =
      error.since |> DateTime.truncate(:second) |> Calendar.strftime("%Y-%m-%d %H:%M:%S UTC")

    times = if error.failures == 1, do: "once", else: "#{error.failures} times in a row"

    "`#{error.name}` was not run: it failed #{times} and is out of service since #{since}. " <>
      retry(error)
  end

  defp retry(%{retry_in: nil}) do
    "Another call is trying it right now: try again in a minute, " <>
      "and go on without it until then, or tell the user."
  end

  defp retry(%{retry_in: seconds}) do
    "Try again in #{seconds} s, and go on without it until then, or tell the user."
  end
end

defmodule Skillbook.PolicyError do
  @moduledoc """
  Returned when the profile's `:writes` does not allow a command with side effects. Its handler
  did not run.

  ## Fields

    * `:kind` - `:delegate` (an agent must run it), `:deny` (the profile runs no such commands),
      `:denied` (the `:ask` callback declined) or `:unanswered` (there is no callback, or it
      failed)
    * `:name` - the skill's name
    * `:dispatch` - for `:delegate`, whether the profile sees `agent.dispatch`
    * `:text` - for `:denied`, the text of `{:deny, text}`, or `nil`

  ## Examples

      iex> error = %Skillbook.PolicyError{kind: :delegate, name: "email.send", dispatch: true}
      iex> error |> Exception.message() |> String.split([". Write: ", ": "])
      [
        "`email.send` was not run",
        "it changes something, and such commands must be delegated to an agent",
        "agent.dispatch --mission \\"WHAT TO DO\\" --skills email.send"
      ]
  """

  @type t :: %__MODULE__{
          kind: :delegate | :deny | :denied | :unanswered,
          name: String.t(),
          dispatch: boolean(),
          text: String.t() | nil
        }

  defexception [:kind, :name, :text, dispatch: false]

  @impl true
  def message(%{name: name} = error), do: "`#{name}` was not run: #{why(error)}"

  defp why(%{kind: :delegate, dispatch: true} = error) do
    "it changes something, and such commands must be delegated to an agent. " <>
      "Write: agent.dispatch --mission \"WHAT TO DO\" --skills #{error.name}"
  end

  defp why(%{kind: :delegate}) do
    "it changes something, and such commands must be delegated to an agent, " <>
      "but no agent is available. Tell the user what needs to be done."
  end

  defp why(%{kind: :deny}) do
    "it changes something, and only commands that read may run here. " <>
      "Do not try again; tell the user what you would have done."
  end

  defp why(%{kind: :denied, text: nil}) do
    "it changes something, and the user declined. " <>
      "Do not try again unless the user asks for it."
  end

  defp why(%{kind: :denied, text: text}) do
    "it changes something, and the user declined: #{text}"
  end

  defp why(%{kind: :unanswered}) do
    "it changes something, and permission could not be requested. " <>
      "Tell the user what you would have done."
  end
end

defmodule Skillbook.SetupError do
  @moduledoc """
  Returned when a command needs an option that its book was started without.

  The message names the option for the operator; the model cannot fix this.

  ## Fields

    * `:command` - the name of the command
    * `:option` - the option to set: `:store` or `:write_to`

  ## Examples

      iex> error = %Skillbook.SetupError{command: "tasks.get", option: :store}
      iex> error |> Exception.message() |> String.split(". ")
      [
        "`tasks.get` needs a database, and this book has none",
        ~s(To enable it, set the option `store:`, for example store: "skillbook.db")
      ]
  """

  @type t :: %__MODULE__{command: String.t(), option: :store | :write_to}

  @enforce_keys [:command, :option]
  defexception [:command, :option]

  @impl true
  def message(%{command: command, option: option}) do
    {need, example} = describe(option)

    "`#{command}` needs #{need}, and this book has none. " <>
      "To enable it, set the option `#{option}:`, for example #{option}: #{inspect(example)}"
  end

  defp describe(:store), do: {"a database", "skillbook.db"}
  defp describe(:write_to), do: {"a folder to write skills to", "skills"}
end

defmodule Skillbook.NotFoundError do
  @moduledoc """
  Returned when a command names a task, note or other record that does not exist.

  ## Fields

    * `:kind` - the kind of record, such as `"task"`
    * `:id` - its id as written in the command
    * `:find` - the command that lists such records, or `nil`
    * `:deleted_at` - when it was deleted, a `DateTime`; `nil` if it never existed
    * `:available` - for notes and skills: up to 20 existing titles or names; otherwise `nil`

  ## Examples

      iex> error = %Skillbook.NotFoundError{kind: "task", id: "T-99", find: "tasks.search"}
      iex> Exception.message(error)
      "there is no task T-99; `tasks.search` lists the tasks with their ids"

      iex> error = %Skillbook.NotFoundError{kind: "note", id: "Diner", find: nil}
      iex> Exception.message(%{error | available: ["Dinner", "School"]})
      "Note 'Diner' not found. Available notes: Dinner, School"
  """

  @type t :: %__MODULE__{
          kind: String.t(),
          id: String.t(),
          find: String.t() | nil,
          deleted_at: DateTime.t() | nil,
          available: [String.t()] | nil
        }

  @enforce_keys [:kind, :id, :find]
  defexception [:kind, :id, :find, :deleted_at, :available]

  # A malformed command may have its whole text as an id.
  @max_id_length 100

  @impl true
  def message(%{available: available} = error) when is_list(available) do
    names = if available == [], do: "none", else: Enum.join(available, ", ")
    id = String.slice(error.id, 0, @max_id_length)
    "#{String.capitalize(error.kind)} '#{id}' not found. #{listed(error.kind)}: #{names}"
  end

  def message(%{kind: kind, id: id, find: nil}),
    do: "there is no #{kind} #{id}, or it has expired; run its command again"

  def message(%{kind: kind, id: id, find: find, deleted_at: nil}),
    do: "there is no #{kind} #{id}; `#{find}` lists the #{kind}s with their ids"

  def message(%{kind: kind, id: id, find: find, deleted_at: deleted_at}) do
    at = DateTime.to_iso8601(deleted_at)

    "the #{kind} #{id} was deleted at #{at} and cannot be changed; " <>
      "`#{find}` lists the existing #{kind}s"
  end

  defp listed("note"), do: "Available notes"
  defp listed(_kind), do: "Available"
end
