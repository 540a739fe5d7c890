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
      * `:stopped` - the book was stopping before the handler ran
      * `:interrupted` - the book stopped while the handler ran, which took longer than the
        book's `:drain`
      * `:unknown_end` - the call had begun in a durable run that was interrupted; it did not run
        again
      * `:unrecorded` - a call of a durable run, or one that waits for an approval, could not be
        stored, which comes first; it did not run
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
            :missing
            | :crash
            | :timeout
            | :bad_return
            | :database
            | :in_transaction
            | :stopped
            | :interrupted
            | :unknown_end
            | :unrecorded,
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

  def message(%{kind: :interrupted} = error),
    do: "`#{error.name}` was interrupted: the skills are being shut down. #{@partly}"

  def message(%{kind: :unknown_end} = error) do
    "`#{error.name}` had begun when the run was interrupted, and whether it was done is " <>
      "unknown. It was not run again: check before you call it again, or tell the user."
  end

  def message(%{kind: :unrecorded} = error) do
    "`#{error.name}` was not run: it could not be noted in the database before. Try again, or " <>
      "tell the user."
  end

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

defmodule Skillbook.ReturnedError do
  @moduledoc """
  Returned when a handler returns `:error`, or `{:error, reason}` with a reason that is neither
  text nor an exception, such as `:not_found`, a changeset or a map.

  These are ordinary answers of Elixir code, so they are not failures for the circuit breaker. The
  message is the reason in words:

    * an atom - its words, `:not_found` as "not found"
    * a changeset of Ecto, or any struct of its shape - its errors by field, without its values
    * a map or a keyword list - its values by key
    * a list - its items on lines
    * a number - as it is written; a struct - its text, or else the name of its module

  Other terms, such as tuples, processes and functions, are not shown to the model. The log has
  the whole reason then.

  ## Fields

    * `:name` - the skill's name
    * `:reason` - the reason as the handler returned it, for Elixir callers; `nil` for `:error`
    * `:text` - the message
    * `:hidden` - whether the reason has terms that are not in the message

  ## Examples

      iex> Exception.message(Skillbook.ReturnedError.new("tasks.get", :not_found))
      "not found"
      iex> reason = %{title: ["can't be blank"], due: %{date: :invalid}}
      iex> Exception.message(Skillbook.ReturnedError.new("tasks.create", reason))
      "due.date: invalid\\ntitle: can't be blank"
  """

  @type t :: %__MODULE__{
          name: String.t(),
          reason: term(),
          text: String.t(),
          hidden: boolean()
        }

  @enforce_keys [:name, :reason, :text]
  defexception [:name, :reason, :text, hidden: false]

  @not_shown "(only in the log)"

  # Reasons come from other programs, so a text of them has a limit.
  @max_lines 50
  @max_line 500
  @max_depth 5

  @doc "Makes the error of a reason."
  @spec new(String.t(), term()) :: t()
  def new(name, reason) do
    all = lines(reason, [], 0)
    hidden = Enum.any?(all, &String.ends_with?(&1, @not_shown))
    {lines, more} = Enum.split(all, @max_lines)
    more = if more == [], do: [], else: ["and #{length(more)} more"]

    text =
      if all == [@not_shown],
        do: "it failed, and the reason is only in the log",
        else: Enum.join(lines ++ more, "\n")

    %__MODULE__{name: name, reason: reason, text: text, hidden: hidden}
  end

  @impl true
  def message(error), do: error.text

  # Each line begins with the path of its value.

  defp lines(nil, [], 0), do: ["it failed, and its handler gave no reason"]

  defp lines(reason, path, depth) when depth >= @max_depth, do: [line(path, other(reason))]

  # A changeset: messages have placeholders such as %{count}.
  defp lines(%{__struct__: _, errors: errors, valid?: valid?, changes: changes}, path, depth)
       when is_list(errors) and is_boolean(valid?) and is_map(changes) do
    own = for {field, error} <- errors, do: line([field | path], changeset_error(error))

    nested =
      for {field, value} <- Enum.sort(changes),
          {changeset, path} <- changesets(value, [field | path]),
          line <- lines(changeset, path, depth + 1),
          do: line

    if own ++ nested == [] and path == [], do: ["invalid"], else: own ++ nested
  end

  defp lines(%{__struct__: _} = struct, path, _depth), do: [line(path, struct_text(struct))]

  defp lines(map, path, depth) when is_map(map) and map != %{},
    do: map |> Enum.sort() |> pairs(path, depth)

  defp lines([_ | _] = list, path, depth) do
    cond do
      List.improper?(list) ->
        [line(path, other(list))]

      Keyword.keyword?(list) ->
        pairs(list, path, depth)

      Enum.all?(list, &scalar?/1) and path != [] ->
        [line(path, Enum.map_join(list, ", ", &scalar/1))]

      true ->
        Enum.flat_map(list, &lines(&1, path, depth + 1))
    end
  end

  defp lines(reason, path, _depth), do: [line(path, scalar(reason))]

  defp pairs(pairs, path, depth),
    do: Enum.flat_map(pairs, fn {key, value} -> lines(value, [key | path], depth + 1) end)

  defp changesets(%{__struct__: _, valid?: false, errors: _} = changeset, path),
    do: [{changeset, path}]

  defp changesets(list, [field | path]) when is_list(list) do
    for {changeset, index} <- Enum.with_index(list),
        {changeset, path} <- changesets(changeset, ["#{key(field)}[#{index}]" | path]),
        do: {changeset, path}
  end

  defp changesets(_value, _path), do: []

  defp changeset_error({message, values}) when is_binary(message) and is_list(values) do
    Enum.reduce(values, message, fn
      {key, value}, message when is_atom(key) ->
        String.replace(message, "%{#{key}}", fn _ -> scalar(value) end)

      _other, message ->
        message
    end)
  end

  defp changeset_error(other), do: scalar(other)

  defp line([], text), do: truncate(text)

  defp line(path, text),
    do: truncate((path |> Enum.reverse() |> Enum.map_join(".", &key/1)) <> ": " <> text)

  defp key(key) when is_binary(key) or is_atom(key), do: scalar(key)
  defp key(key), do: other(key)

  defp scalar?(value), do: is_binary(value) or is_atom(value) or is_number(value)

  defp scalar(text) when is_binary(text), do: if(String.valid?(text), do: text, else: other(text))
  defp scalar(value) when value in [nil, true, false], do: inspect(value)

  defp scalar(atom) when is_atom(atom) do
    case Atom.to_string(atom) do
      "Elixir." <> name -> name
      text -> String.replace(text, "_", " ")
    end
  end

  defp scalar(%{__struct__: _} = struct), do: struct_text(struct)
  defp scalar(value) when is_number(value), do: inspect(value)
  defp scalar(value), do: other(value)

  # A struct may hold secrets, so only those that have a text are shown.
  defp struct_text(%module{} = struct) do
    if is_exception(struct),
      do: Exception.message(struct),
      else: if(String.Chars.impl_for(struct), do: to_string(struct), else: inspect(module))
  end

  # Nobody wrote it for a model, and it may say anything about the system.
  defp other(_value), do: @not_shown

  defp truncate(line) do
    line = if String.valid?(line), do: line, else: other(line)
    if String.length(line) > @max_line, do: String.slice(line, 0, @max_line) <> "…", else: line
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

    * `:kind` - the reason:
      * `:delegate` - an agent must run it
      * `:deny` - the profile runs no such commands
      * `:hook` - a `Skillbook.Hook` refused it
      * `:denied` - the `:ask` callback, or `Skillbook.deny/3`, declined
      * `:unanswered` - there is no callback, or it failed
      * `:ask_timeout` - the callback did not answer within the book's or the run's `:ask_timeout`
      * `:waiting` - too many calls of the profile wait for an approval
      * `:unstorable` - the call cannot be stored until somebody approves it
    * `:name` - the skill's name
    * `:dispatch` - for `:delegate`, whether the profile sees `agent.dispatch`
    * `:json` - whether the caller made a tool call, so that the message shows one
    * `:writes` - whether the command has side effects; if not, its page has `approval: required`
    * `:timeout` - for `:ask_timeout`, in milliseconds
    * `:by` - for `:denied`, who declined as of `Skillbook.deny/3`, or `nil` for the user. Not in
      the message
    * `:text` - for `:hook` its text; for `:denied` that of the decision, or `nil`; for `:waiting`
      the largest number; for `:unstorable` the reason, for the operator

  ## Examples

      iex> error = %Skillbook.PolicyError{kind: :delegate, name: "email.send", dispatch: true}
      iex> error |> Exception.message() |> String.split([". Write: ", ": "])
      [
        "`email.send` was not run",
        "it changes something, and such commands must be delegated to an agent",
        "agent.dispatch --mission \\"WHAT TO DO\\" --skills email.send"
      ]
  """

  alias Skillbook.Support.{Duration, JSON}

  @type t :: %__MODULE__{
          kind:
            :delegate
            | :deny
            | :hook
            | :denied
            | :unanswered
            | :ask_timeout
            | :waiting
            | :unstorable,
          name: String.t(),
          dispatch: boolean(),
          json: boolean(),
          writes: boolean(),
          timeout: pos_integer() | nil,
          by: String.t() | nil,
          text: String.t() | nil
        }

  defexception [:kind, :name, :text, :timeout, :by, dispatch: false, json: false, writes: true]

  @impl true
  def message(%{name: name} = error), do: "`#{name}` was not run: #{why(error)}"

  defp why(%{kind: :delegate, dispatch: true} = error) do
    write =
      if error.json,
        do: "Call agent__dispatch with " <> arguments(error.name),
        else: "Write: agent.dispatch --mission \"WHAT TO DO\" --skills #{error.name}"

    "it changes something, and such commands must be delegated to an agent. " <> write
  end

  defp why(%{kind: :delegate}) do
    "it changes something, and such commands must be delegated to an agent, " <>
      "but no agent is available. Tell the user what needs to be done."
  end

  defp why(%{kind: :deny}) do
    "it changes something, and only commands that read may run here. " <>
      "Do not try again; tell the user what you would have done."
  end

  defp why(%{kind: :hook, text: text}), do: text

  defp why(%{kind: :denied, text: nil} = error) do
    "#{asked(error)}, and #{declined(error)}. " <>
      "Do not try again unless the user asks for it."
  end

  defp why(%{kind: :denied, text: text} = error) do
    "#{asked(error)}, and #{declined(error)}: #{text}"
  end

  defp why(%{kind: :unanswered} = error) do
    "#{asked(error)}, and permission could not be requested. " <>
      "Tell the user what you would have done."
  end

  defp why(%{kind: :ask_timeout} = error) do
    "#{asked(error)}, and nobody answered the request for permission within " <>
      "#{Duration.text(error.timeout)}. Do not try again; tell the user."
  end

  defp why(%{kind: :waiting} = error) do
    "#{asked(error)}, and #{error.text} calls wait for an approval already, which is the " <>
      "limit. Do not try again; tell the user."
  end

  defp why(%{kind: :unstorable} = error) do
    "it needs an approval, and the call cannot be stored until then: #{error.text}. " <>
      "You cannot fix this: tell the user."
  end

  # The model need not know who decides for others.
  defp declined(%{by: nil}), do: "the user declined"
  defp declined(_error), do: "it was declined"

  defp asked(%{writes: true}), do: "it changes something"
  defp asked(%{writes: false}), do: "it needs an approval"

  @doc false
  # Returns the arguments of a call of `agent.dispatch` for a skill, as JSON.
  @spec arguments(String.t()) :: String.t()
  def arguments(name), do: ~s({"mission": "WHAT TO DO", "skills": [#{JSON.encode(name)}]})
end

defmodule Skillbook.SetupError do
  @moduledoc """
  Returned when a command needs an option that its book was started without.

  The message names the option for the operator; the model cannot fix this.

  ## Fields

    * `:command` - the name of the command
    * `:option` - the option to set: `:store` or `:write_to`; or `:tenant`, if the pages of that
      folder do not belong to the profile's tenant

  ## Examples

      iex> error = %Skillbook.SetupError{command: "tasks.get", option: :store}
      iex> error |> Exception.message() |> String.split(". ")
      [
        "`tasks.get` needs a database, and this book has none",
        ~s(To enable it, set the option `store:`, for example store: "skillbook.db")
      ]
  """

  @type t :: %__MODULE__{command: String.t(), option: :store | :write_to | :tenant}

  @enforce_keys [:command, :option]
  defexception [:command, :option]

  @impl true
  def message(%{command: command, option: :tenant}) do
    "`#{command}` writes to the folder of `write_to:`, whose pages do not belong to this " <>
      "profile's tenant. Write the skill to the store, with `skills.create`, or make the " <>
      "folder a source with the option `tenant:`"
  end

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

  alias Skillbook.Support.External

  @enforce_keys [:kind, :id, :find]
  defexception [:kind, :id, :find, :deleted_at, :available]

  # A malformed command may have its whole text as an id.
  @max_id_length 100
  @plain ~r/\A[\w\/. -]{1,60}\z/u

  @impl true
  def message(%{available: available} = error) when is_list(available) do
    shown = &if(error.kind == "label", do: label(&1), else: &1)
    names = if available == [], do: "none", else: Enum.map_join(available, ", ", shown)
    id = String.slice(error.id, 0, @max_id_length)
    "#{String.capitalize(error.kind)} '#{id}' not found. #{listed(error.kind)}: #{names}"
  end

  def message(%{kind: kind, id: id, find: nil}),
    do: "there is no #{kind} #{id}, or it has expired; run its command again"

  def message(%{kind: kind, id: id, find: find, deleted_at: nil}),
    do: "there is no #{kind} #{id}; `#{find}` lists the #{many(kind)} with their ids"

  def message(%{kind: kind, id: id, find: find, deleted_at: deleted_at}) do
    at = DateTime.to_iso8601(deleted_at)

    "the #{kind} #{id} was deleted at #{at} and cannot be changed; " <>
      "`#{find}` lists the existing #{many(kind)}"
  end

  defp many("memory"), do: "memories"
  defp many(kind), do: kind <> "s"

  # Others name the folders that they share.
  defp label(name), do: if(name =~ @plain, do: name, else: External.line(name, 60))

  defp listed("note"), do: "Available notes"
  defp listed(_kind), do: "Available"
end
