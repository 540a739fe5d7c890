defmodule Skillbook.HandlerError do
  @moduledoc """
  A handler that could not be called, or that gave no answer.

  The message is for the model: it names the skill and keeps what went wrong inside to itself, which goes to the log.

  ## Fields

    * `:kind` - `:missing` (no such module with `execute/2`), `:crash`, `:timeout`, `:bad_return`, or `:stopped` (the book
      stopped before it ran)
    * `:name` - the skill's name
    * `:handler` - the handler as the skill's frontmatter names it
    * `:timeout` - the time limit in milliseconds, for `:timeout`
    * `:reason` - what it crashed with or returned, for Elixir callers

  ## Examples

      iex> Exception.message(%Skillbook.HandlerError{kind: :timeout, name: "email.send", timeout: 30_000})
      "`email.send` was stopped: it took longer than 30 s. It may have done part of its work: check before you try again, or tell the user."
  """

  alias Skillbook.Support.Duration

  @type t :: %__MODULE__{
          kind: :missing | :crash | :timeout | :bad_return | :stopped,
          name: String.t(),
          handler: String.t() | nil,
          timeout: pos_integer() | nil,
          reason: term()
        }

  defexception [:kind, :name, :handler, :timeout, :reason]

  @partly "It may have done part of its work: check before you try again, or tell the user."

  @impl true
  def message(%{kind: :missing} = error) do
    "`#{error.name}` cannot run: its handler #{error.handler} is not there. " <>
      "You cannot mend this: tell the user, and go on without it."
  end

  def message(%{kind: :stopped} = error),
    do: "`#{error.name}` was not run: the skills have just been shut down. Tell the user."

  def message(%{kind: :crash} = error),
    do: "`#{error.name}` failed: its handler crashed. #{@partly}"

  def message(%{kind: :timeout} = error) do
    "`#{error.name}` was stopped: it took longer than #{Duration.text(error.timeout)}. #{@partly}"
  end

  def message(%{kind: :bad_return} = error) do
    "`#{error.name}` failed: its handler gave an answer that cannot be read. #{@partly}"
  end
end

defmodule Skillbook.BusyError do
  @moduledoc """
  A command that waited for its turn and did not get one. Nothing was done.

  ## Fields

    * `:name` - the skill's name
    * `:max_wait` - how long it waited, in milliseconds

  ## Examples

      iex> Exception.message(%Skillbook.BusyError{name: "email.send", max_wait: 30_000})
      "`email.send` was not run: too many commands were running, and its turn did not come within 30 s. Try again later, or tell the user."
  """

  alias Skillbook.Support.Duration

  @type t :: %__MODULE__{name: String.t(), max_wait: pos_integer()}

  defexception [:name, :max_wait]

  @impl true
  def message(%{name: name, max_wait: max_wait}) do
    "`#{name}` was not run: too many commands were running, and its turn did not come within " <>
      "#{Duration.text(max_wait)}. Try again later, or tell the user."
  end
end

defmodule Skillbook.OutOfServiceError do
  @moduledoc """
  A command whose handler failed several times in a row, and is left alone for a while. Nothing was done.

  ## Fields

    * `:name` - the skill's name
    * `:failures` - how many times in a row it failed
    * `:since` - since when it is out of service, a `DateTime` in UTC
    * `:retry_in` - after how many seconds one call will be let through to try it, or `nil` while that call runs

  ## Examples

      iex> error = %Skillbook.OutOfServiceError{name: "email.send", failures: 5, since: ~U[2026-02-17 12:00:10Z], retry_in: 18}
      iex> Exception.message(error)
      "`email.send` was not run: it failed 5 times in a row and is out of service since 2026-02-17 12:00:10 UTC. Try again in 18 s, and go on without it until then, or tell the user."
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
    "Another call is trying it right now: try again in a minute, and go on without it until then, or tell the user."
  end

  defp retry(%{retry_in: seconds}) do
    "Try again in #{seconds} s, and go on without it until then, or tell the user."
  end
end

defmodule Skillbook.PolicyError do
  @moduledoc """
  A command that changes something, and that the profile's `:writes` did not let run. Nothing was done.

  ## Fields

    * `:kind` - `:delegate` (it is to be handed to an agent), `:deny` (the profile runs no such commands), `:denied` (who was
      asked said no) or `:unanswered` (nobody could be asked, or the answer could not be had)
    * `:name` - the skill's name
    * `:dispatch` - for `:delegate`, whether the profile sees `agent.dispatch`
    * `:text` - for `:denied`, what was said with it, or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.PolicyError{kind: :delegate, name: "email.send", dispatch: true})
      "`email.send` was not run: it changes something, and such commands are handed to an agent. Write: agent.dispatch --mission \\"WHAT IS TO BE DONE\\" --skills email.send"
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
    "it changes something, and such commands are handed to an agent. " <>
      "Write: agent.dispatch --mission \"WHAT IS TO BE DONE\" --skills #{error.name}"
  end

  defp why(%{kind: :delegate}) do
    "it changes something, and such commands are handed to an agent, but there is none here. " <>
      "Tell the user what is to be done."
  end

  defp why(%{kind: :deny}) do
    "it changes something, and only commands that read may run here. " <>
      "Do not try again; tell the user what you would have done."
  end

  defp why(%{kind: :denied, text: nil}) do
    "it changes something, and whoever was asked did not allow it. Do not try again without being told to."
  end

  defp why(%{kind: :denied, text: text}) do
    "it changes something, and whoever was asked did not allow it: #{text}"
  end

  defp why(%{kind: :unanswered}) do
    "it changes something, and nobody could be asked whether it may. Tell the user what you would have done."
  end
end

defmodule Skillbook.SetupError do
  @moduledoc """
  A command needs something that its book was started without.

  The model cannot mend this; the message is for whoever runs the book.

  ## Fields

    * `:command` - the name of the command
    * `:option` - the option to set: `:store` or `:write_to`

  ## Examples

      iex> Exception.message(%Skillbook.SetupError{command: "tasks.get", option: :store})
      ~s(`tasks.get` needs a database and this book has none. Whoever runs it sets the option `store:`, for example store: "skillbook.db")
  """

  @type t :: %__MODULE__{command: String.t(), option: :store | :write_to}

  @enforce_keys [:command, :option]
  defexception [:command, :option]

  @impl true
  def message(%{command: command, option: option}) do
    {need, example} = describe(option)

    "`#{command}` needs #{need} and this book has none. " <>
      "Whoever runs it sets the option `#{option}:`, for example #{option}: #{inspect(example)}"
  end

  defp describe(:store), do: {"a database", "skillbook.db"}
  defp describe(:write_to), do: {"a folder to write skills into", "skills"}
end

defmodule Skillbook.NotFoundError do
  @moduledoc """
  A command names something that is not there.

  ## Fields

    * `:kind` - what was looked for, a word such as `"task"`
    * `:id` - its id as people and models write it
    * `:find` - the command that lists such things, or `nil` if there is none
    * `:deleted_at` - when it was deleted, a `DateTime`, or `nil` if it never was there
    * `:available` - for notes and skills that are read: titles or names that there are, 20 at most

  ## Examples

      iex> Exception.message(%Skillbook.NotFoundError{kind: "task", id: "T-99", find: "tasks.search"})
      "there is no task T-99; `tasks.search` lists the tasks with their ids"

      iex> Exception.message(%Skillbook.NotFoundError{kind: "note", id: "Diner", find: nil, available: ["Dinner", "School"]})
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

  # An id can be as long as a whole command that went wrong.
  @shown 100

  @impl true
  def message(%{available: available} = error) when is_list(available) do
    names = if available == [], do: "none", else: Enum.join(available, ", ")
    id = String.slice(error.id, 0, @shown)
    "#{String.capitalize(error.kind)} '#{id}' not found. #{listed(error.kind)}: #{names}"
  end

  def message(%{kind: kind, id: id, find: nil}),
    do: "there is no #{kind} #{id}, or no longer; run the command that gave it again"

  def message(%{kind: kind, id: id, find: find, deleted_at: nil}),
    do: "there is no #{kind} #{id}; `#{find}` lists the #{kind}s with their ids"

  def message(%{kind: kind, id: id, find: find, deleted_at: deleted_at}) do
    "the #{kind} #{id} was deleted at #{DateTime.to_iso8601(deleted_at)} and stays as it is; " <>
      "`#{find}` lists the #{kind}s there are"
  end

  defp listed("note"), do: "Available notes"
  defp listed(_kind), do: "Available"
end
