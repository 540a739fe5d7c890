defmodule Skillbook.Oban do
  @moduledoc """
  Runs skills, workflows and agents as jobs of the application's
  [Oban](https://hexdocs.pm/oban).

      {:ok, job} = Skillbook.Oban.insert(view, "reports.weekly --tag q4", schedule_in: 60)

  The command is checked before it is enqueued, through the view and by the flags that its page
  declares. When Oban runs the job, on any node, the command runs with the rights that the profile
  has then, as `Skillbook.carry_out/3` runs it: with its approvals, time limits and events, and
  with the book's agent if the page is instructions.

  The arguments of a job are `book`, `profile` and `command`. Nothing else of the view is stored,
  so its profile must be one of the book's, with the same rights.

  `insert_run/3` enqueues a durable run of an agent.

  ## Options

    * `:profile` (text) - the id of a profile, if the first argument is a book. Defaults to
      `"default"`
    * `:oban` (name) - the name of the Oban instance. Defaults to `Oban`
    * `:queue`, `:max_attempts`, `:priority`, `:schedule_in`, `:scheduled_at`, `:tags`, `:meta`,
      `:unique` - those of `Oban.Job.new/2`. `:unique` may also be a number of seconds

  A page has defaults for three of them, in its field `job`:

      job: {queue: reports, max_attempts: 3, unique: 3600}

  `unique: 3600` means that the same command of the same profile is enqueued once in an hour; a
  second `insert/3` returns the first job, with `conflict?: true`. Without `max_attempts`, a
  command with side effects is tried once, and one that only reads three times.

  ## Outcomes

  A job is completed if the command has a result, or waits for an approval. It is tried again
  after an error or a crash of the handler, and snoozed while the skill is out of service, too
  many commands run, or the book does not. It is cancelled if another try cannot succeed: the
  command or its flags are invalid, or the profile may not run it, or does not exist any more.
  [Jobs of Oban](docs/oban.md) has the table.

  A handler finds the job in `context.assigns.job`, a map with its `:id`, `:attempt`,
  `:max_attempts` and `:queue`. The id stays the same when the job is tried again, so it makes
  calls of other services idempotent.

  Skillbook does not depend on Oban. Tried with Oban 2.18 and 2.23 on PostgreSQL.
  """

  alias Skillbook.Agent.{Runs, State}
  alias Skillbook.Entry
  alias Skillbook.Flags.Check
  alias Skillbook.Oban.Worker
  alias Skillbook.Support.{Options, UntilError}
  alias Skillbook.{Book, Executor, OptionError, PolicyError, Profile, ReturnedError, Router}
  alias Skillbook.{View, Workflow}

  # Not dependencies; attributes hide the modules from the compiler's checks.
  @oban Oban
  @job Oban.Job

  # How long a job is snoozed in all, in seconds.
  @day 86_400

  @doc """
  Enqueues a command, and returns the job.

  The error is that of the command, such as a `Skillbook.UnknownSkillError`, a
  `Skillbook.FlagError` or a `Skillbook.PolicyError`. An invalid option, or an invalid field `job`
  of the page, is a `Skillbook.OptionError`. If Oban refuses the job, it is a
  `Skillbook.ReturnedError` with the changeset as its `:reason`.
  """
  @spec insert(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, struct()} | {:error, Exception.t()}
  def insert(view_or_book, command, options \\ []) do
    text = [command: {:text, command}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Oban.insert/3", text)
    {oban, options} = Keyword.pop(options, :oban, @oban)

    with {:ok, changeset} <- build(view, command, options), do: enqueue(oban, changeset)
  end

  @doc """
  Returns the changeset of a job without inserting it, for `Oban.insert_all/2` and `Ecto.Multi`.

  Takes the options of `insert/3` except `:oban`, and returns its errors.
  """
  @spec changeset(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, struct()} | {:error, Exception.t()}
  def changeset(view_or_book, command, options \\ []) do
    text = [command: {:text, command}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Oban.changeset/3", text)
    build(view, command, options)
  end

  @doc """
  Enqueues a durable run of the book's agent, `Skillbook.Agent.run/3` with `input`, and returns
  the job. Its argument `run` is the `:ref` of the `Skillbook.Agent.Run`.

      {:ok, job} = Skillbook.Oban.insert_run(view, "Write the report of the week")
      {:ok, run} = Skillbook.Agent.Runs.fetch(MyApp.Skills, job.args["run"])

  An attempt of the job continues the run where the one before it ended, on any node, and repeats
  no call. The job is tried again if the model fails or its node is gone, and completed if the run
  ends in any other way, or waits for an approval. While the book itself continues the run, the
  job is snoozed.

  Takes the options of `insert/3`; `:max_attempts` defaults to 3. `unique: 3600` means the same
  input of the same profile. The book needs the options `:durable` and `:agent`. Errors are those
  of `insert/3`, and a `Skillbook.RunError` of a book without `:durable`.
  """
  @spec insert_run(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, struct()} | {:error, Exception.t()}
  def insert_run(view_or_book, input, options \\ []) do
    text = [input: {:text, input}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Oban.insert_run/3", text)
    {oban, options} = Keyword.pop(options, :oban, @oban)

    with :ok <- Options.validate(options, "a job", schema()),
         {:ok, book} <- book(view),
         :ok <- Runs.check(book) do
      args = %{
        "book" => Atom.to_string(book),
        "profile" => view.profile.id,
        "input" => input,
        "run" => State.new_id()
      }

      options = job_options(options, keys: [:book, :profile, :input])
      enqueue(oban, Worker.new(args, options))
    end
  end

  defp enqueue(oban, changeset) do
    with {:error, %{} = changeset} <- apply(@oban, :insert, [oban, changeset]),
         do: {:error, ReturnedError.new("Oban.insert", changeset)}
  end

  defp build(view, command, options) do
    with :ok <- Options.validate(options, "a job", schema()),
         {:ok, book} <- book(view),
         {:ok, entry} <- check(view, command),
         {:ok, own} <- of_page(entry) do
      args = %{"book" => Atom.to_string(book), "profile" => view.profile.id, "command" => command}
      {:ok, apply(@job, :new, [args, job_options(Keyword.merge(own, options))])}
    end
  end

  defp job_options(options, unique \\ []) do
    options
    |> Keyword.put(:worker, Worker)
    |> Keyword.replace_lazy(:unique, &if(is_integer(&1), do: [period: &1] ++ unique, else: &1))
    |> Keyword.update(:meta, until(options), &Map.merge(until(options), &1))
  end

  defp until(options) do
    at = options[:scheduled_at] || DateTime.utc_now()
    delay = if is_integer(options[:schedule_in]), do: options[:schedule_in], else: 0
    %{"snooze_until" => DateTime.to_unix(at) + delay + @day}
  end

  # The job looks up the profile by its id, so a view with fewer rights would gain some.
  defp book(%View{book: nil}),
    do: invalid("the view of a running book", nil, "a job", "one of a catalog")

  defp book(%View{book: name, profile: profile}) do
    with {:ok, own} <- Worker.profile(Book.fetch!(name), profile.id),
         true <- Profile.same?(own, profile) do
      {:ok, name}
    else
      _other ->
        expected = "a profile of the book #{inspect(name)}, with its rights,"
        invalid(expected, nil, "a job", profile.id)
    end
  end

  # The errors for which a job would be cancelled.
  defp check(view, command) do
    case Router.route(view, command) do
      {:ok, routed} ->
        with :ok <- check_flags(view, routed),
             :ok <- check_writes(view.profile, routed.entry),
             do: {:ok, routed.entry}

      {:help, _text} ->
        invalid("a command that runs", nil, "a job", command)

      {:error, error} ->
        {:error, error}
    end
  end

  defp check_flags(view, %{declaration: nil, entry: entry, command: command} = routed) do
    if Workflow.workflow?(entry) do
      with {:ok, _plan} <- Workflow.plan(entry, command, Executor.context(view, routed)), do: :ok
    else
      :ok
    end
  end

  defp check_flags(_view, %{declaration: declaration, command: command}) do
    options = [args: command.args, today: Date.utc_today()]
    with {:ok, _flags} <- Check.declared(command.flags, declaration, options), do: :ok
  end

  defp check_writes(%Profile{writes: writes}, entry) when writes in [:deny, :delegate] do
    if Entry.effect(entry) == :write and entry.name != "agent.dispatch",
      do: {:error, %PolicyError{kind: writes, name: entry.name}},
      else: :ok
  end

  defp check_writes(_profile, _entry), do: :ok

  @doc false
  # Reads the field `job` of a page: the defaults of its jobs.
  @spec of_page(Entry.t()) :: {:ok, keyword()} | {:error, OptionError.t()}
  def of_page(%Entry{data: data} = entry) do
    attempts = if Entry.effect(entry) == :write, do: 1, else: 3

    with {:ok, own} <- fields(data["job"], "the field `job` of #{entry.name}"),
         do: {:ok, Keyword.merge([max_attempts: attempts], own)}
  end

  @fields [queue: "a text", max_attempts: "a number above 0", unique: "a number above 0"]

  defp fields(nil, _subject), do: {:ok, []}

  defp fields(%{} = map, subject) do
    known =
      Map.new(@fields, fn {option, expected} -> {Atom.to_string(option), {option, expected}} end)

    UntilError.map(Enum.sort(map), fn {key, value} ->
      case known do
        %{^key => {option, expected}} ->
          if field?(option, value),
            do: {:ok, {option, value}},
            else: invalid(expected, option, subject, value)

        _ ->
          keys = Enum.map_join(@fields, ", ", &elem(&1, 0))
          invalid("the keys #{keys}", nil, subject, key)
      end
    end)
  end

  defp fields(other, subject),
    do: invalid("a mapping with queue, max_attempts or unique", nil, subject, other)

  defp field?(:queue, value), do: Options.text?(value)
  defp field?(_number, value), do: Options.positive?(value)

  defp invalid(expected, option, subject, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: subject, option: option, problem: problem}}
  end

  defp schema do
    [
      queue: {"an atom or text", &((is_atom(&1) and &1 != nil) or Options.text?(&1))},
      max_attempts: {"a number above 0", &Options.positive?/1},
      priority: {"a number from 0 to 9", &(&1 in 0..9)},
      schedule_in: {"seconds, or an amount with its unit", &(is_integer(&1) or is_tuple(&1))},
      scheduled_at: {"a DateTime", &is_struct(&1, DateTime)},
      tags: {"a list of texts", &Options.texts?/1},
      meta: {"a map", &(is_map(&1) and not is_struct(&1))},
      unique:
        {"a number of seconds, or options of Oban",
         &(Options.positive?(&1) or Keyword.keyword?(&1))}
    ]
  end
end
