defmodule Skillbook.Workflow do
  @moduledoc ~S"""
  Runs the commands on a page, one after the other and without a model.

  A command without a handler is a workflow if the Behavior section of its page has `cmd` blocks.
  Calling it runs the lines of these blocks in order. Each line goes through the router, the
  policy and the executor with the caller's profile, so a workflow can do nothing that its caller
  cannot. A page from a source of low trust never runs; its text is returned instead.

      iex> page = "---\nname: notes.start\ndescription: Example\n---\n## Behavior\n\n" <>
      ...>   "```cmd\nmemory.save --content \"Began on {today}\"\n" <>
      ...>   "memory.search --query began\n```\n"
      iex> folder = Path.join(System.tmp_dir!(), "skillbook_workflow/notes")
      iex> File.mkdir_p!(folder)
      iex> File.write!(Path.join(folder, "start.md"), page)
      iex> sources = [Path.dirname(folder)]
      iex> options = [sources: sources, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link([name: :workflow_example] ++ options)
      iex> view = Skillbook.view(:workflow_example)
      iex> [result] = Skillbook.run(view, "```cmd\nnotes.start\n```").results
      iex> result.content |> String.split("\n") |> hd()
      "notes.start ran its 2 steps."

  ## Placeholders

  `{name}` in a value, quoted or not, is replaced:

    * `{recipient}` - the value or default of the flag `--recipient`, which the page declares
    * `{today}`, `{yesterday}`, `{now}` - the day or time of the call, in UTC
    * `{user}` - the id of the profile
    * `{1}`, `{last}` - the whole result of the first step, and of the previous step
    * `{late}` - the result of the step after the comment `# name: late`

  Values are filled in after a line is split into words, so a value never becomes a flag or a
  command. `{{` is a literal brace. If a word is only a placeholder and its flag has several
  values, each becomes a word. Unknown placeholders are an error before any step runs.

  ## Using the results

  Text below the last block tells the caller how to use the results. A run that completes returns
  it together with the results, so that a model can act on it. A workflow called by another
  workflow leaves it out.

  ## Errors and limits

  `on_error: stop` in the frontmatter, the default, ends the run at the first step that fails.
  `on_error: continue` goes on; a step that needs the failed result does not run.

  A workflow may have 100 steps, and a run 1000 including the workflows that it calls, which may
  be nested 5 deep. A run may take 10 minutes, or the `timeout` of the page.

  ## Stored runs

  A book with a database stores the last 100 runs of each workflow, with the command and result of
  each step. `workflow.show` shows them. A run that did not end within its time is shown as
  interrupted. The `:data` of the result has:

    * `:run` - the id of the run
    * `:steps` - pairs of a step and its result
    * `:ended` - `:done`, `:stopped` (a step failed), `:steps` or `:time` (a limit was reached)
    * `:rest` - the text below the last block

  ## Pages without steps

  A page without `cmd` blocks is for a model to follow. In a conversation, calling it returns its
  text. `Skillbook.carry_out/3` and schedules have the book's `:agent` follow it, and also the
  text below the last block of a workflow.
  """

  alias Skillbook.Support.Options
  alias Skillbook.Workflow.{Plan, Run, Runs}
  alias Skillbook.{Book, Command, Context, Declaration, Entry, Native, Result, View}
  alias Skillbook.{OptionError, UnknownSkillError, WorkflowError}

  @typedoc "A line of a page. `:uses` are the names of its placeholders."
  @type step :: %{
          number: pos_integer(),
          name: String.t() | nil,
          line: String.t(),
          command: Command.t(),
          uses: [String.t()]
        }

  @typedoc "A stored run. Times are ISO 8601 in UTC; `:duration` is in milliseconds."
  @type run :: %{
          id: pos_integer(),
          name: String.t(),
          profile: String.t(),
          by: String.t(),
          command: String.t(),
          status: String.t(),
          steps: non_neg_integer(),
          ran: non_neg_integer(),
          started_at: String.t(),
          duration: non_neg_integer() | nil,
          report: String.t() | nil
        }

  @typedoc "The steps of a call, with the values that are known before it runs."
  @type plan :: %{
          steps: [step()],
          values: %{String.t() => true | :none | String.t() | [String.t()]},
          on_error: :stop | :continue,
          rest: String.t()
        }

  @doc "Whether calling the entry runs the commands on its page."
  @spec workflow?(Entry.t()) :: boolean()
  def workflow?(%Entry{kind: :command, handler: nil, trust: trust, body: body})
      when trust != :low,
      do: not match?({:ok, [], _}, Native.behavior_steps(body))

  def workflow?(_entry), do: false

  @doc """
  Reads the steps of a page, its `on_error`, and the text below its last block.

  `declaration` has the flags of the page, whose names are placeholders. Returns a `WorkflowError`
  if the page cannot run.
  """
  @spec read(Entry.t(), Declaration.t() | nil) ::
          {:ok, %{steps: [step()], on_error: :stop | :continue, rest: String.t()}}
          | {:error, WorkflowError.t()}
  defdelegate read(entry, declaration), to: Plan

  @doc "Returns the lines of a page with the names of its steps, and the text below its last " <>
         "block."
  @spec lines(Entry.t()) ::
          {:ok, %{lines: [{name :: String.t() | nil, line :: String.t()}], rest: String.t()}}
          | {:error, WorkflowError.t()}
  def lines(entry) do
    with {:ok, lines, rest} <- Plan.lines(entry), do: {:ok, %{lines: lines, rest: rest}}
  end

  @doc """
  Plans a call: reads the page, validates the flags and fills in the values that are known.

  Nothing runs.
  """
  @spec plan(Entry.t(), Command.t(), Context.t()) :: {:ok, plan()} | {:error, Exception.t()}
  def plan(%Entry{} = entry, %Command{} = command, %Context{} = context),
    do: Plan.new(entry, command, context)

  @doc """
  Describes a plan, one line per step.

  Placeholders for results of steps stay as they are. A step whose command the view does not show
  has the error below it.
  """
  @spec preview(Entry.t(), plan(), View.t()) :: String.t()
  defdelegate preview(entry, plan, view), to: Plan

  @doc """
  Runs a workflow with the command of the context.

  ## Options

    * `:timeout` - milliseconds for the run. Default: the page's `timeout`, or 600,000
    * `:ask` - the function that approves commands, as in `Skillbook.run/3`
  """
  @spec run(Entry.t(), Context.t(), keyword()) :: {:ok, Result.t()} | {:error, Exception.t()}
  def run(%Entry{} = entry, %Context{} = context, options \\ []),
    do: Run.run(entry, context, options)

  @max_count 1_000
  # The largest number that the databases can compare.
  @max_id 9_223_372_036_854_775_807

  @doc """
  Lists the stored runs of all workflows that a view shows, the newest first.

  An unrestricted profile sees the runs of all profiles, any other one only its own. A run is a
  map with its `:id`, `:name`, `:profile`, `:by` (`"agent"` or `"user"`), `:command`, `:status`,
  `:steps` (0 if their number is not known), `:ran` (how many ran), `:started_at` (ISO 8601, UTC),
  `:duration` in milliseconds or `nil`, and an agent's `:report` or `nil`. The list of a book
  without a database is empty.

  Takes the options `:limit`, from 1 to 1,000, which defaults to 100, and `:after`, the `:id` of
  the last run of a page, for the runs that follow it.

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_workflow_runs/home")
      iex> File.mkdir_p!(folder)
      iex> File.write!(Path.join(folder, "tea.md"), "---\\nname: home.tea\\n" <>
      ...>   "description: Tea\\n---\\n## Behavior\\n\\n" <>
      ...>   "```cmd\\nmemory.search --query tea\\n```\\n")
      iex> sources = [Path.dirname(folder)]
      iex> options = [sources: sources, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link([name: :workflow_runs] ++ options)
      iex> Skillbook.run(:workflow_runs, "```cmd\\nhome.tea\\n```")
      iex> {:ok, [run]} = Skillbook.Workflow.runs(Skillbook.view(:workflow_runs))
      iex> {run.name, run.status, run.ran}
      {"home.tea", "done", 1}
      iex> Skillbook.Workflow.runs(:workflow_runs, after: run.id)
      {:ok, []}
      iex> {:ok, %{results: [step]}} = Skillbook.Workflow.fetch_run(:workflow_runs, run.id)
      iex> {step.command, step.status}
      {"memory.search --query tea", "ok"}
  """
  @spec runs(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, [run()]} | {:error, Exception.t()}
  def runs(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Workflow.runs/2")
    count = {"a number from 1 to #{@max_count}", &(Options.positive?(&1) and &1 <= @max_count)}
    book = Book.of!(view)

    run = {"the id of a run or nil", &(is_nil(&1) or &1 in 1..@max_id)}

    with :ok <- Options.validate(options, "a list of runs", limit: count, after: run),
         {:ok, last} <- last(view, options[:after]) do
      read = &Runs.recent(Book.sql(book), view.profile, &1, &2 && &2.id, Book.now(book))

      if book.store,
        do: View.first_named(view, options[:limit] || 100, last, read),
        else: {:ok, []}
    end
  end

  defp last(_view, nil), do: {:ok, nil}

  # Only a run that the profile may read is a place, so that others have no effect.
  defp last(view, id) do
    with {:ok, nil} <- fetch_run(view, id) do
      problem = {:invalid, "the id of a run that the profile can read and that is stored", id}
      {:error, %OptionError{subject: "a list of runs", option: :after, problem: problem}}
    else
      found_or_error -> found_or_error
    end
  end

  @doc """
  Returns a run of `runs/2` by its `:id`, with the `:results` of its steps in order, or
  `{:ok, nil}`.

  A result is a map with its `:number`, `:name` or `nil`, `:skill` or `nil`, `:command`,
  `:status`, `:content`, and `:duration` in milliseconds.
  """
  @spec fetch_run(Skillbook.view_or_book(), integer(), Skillbook.options()) ::
          {:ok, map() | nil} | {:error, Exception.t()}
  def fetch_run(view_or_book, id, options \\ []) when is_integer(id) do
    view = View.only_from(view_or_book, options, "Skillbook.Workflow.fetch_run/3")
    book = Book.of!(view)

    with sql when sql != nil <- Book.sql(book),
         true <- id in 1..@max_id,
         {:ok, %{name: name} = run, steps} <- Runs.fetch(sql, view.profile, id, Book.now(book)),
         {:ok, %{name: ^name}} <- View.fetch(view, name) do
      {:ok, Map.put(run, :results, steps)}
    else
      {:error, %UnknownSkillError{}} -> {:ok, nil}
      {:error, error} -> {:error, error}
      _none -> {:ok, nil}
    end
  end
end
