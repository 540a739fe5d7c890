defmodule Skillbook.Context do
  @moduledoc """
  The context of a call: the second argument of a handler.

  A test of a handler needs only the fields that the handler reads:

      iex> context = %Skillbook.Context{
      ...>   view: nil,
      ...>   profile: Skillbook.Profile.unrestricted(),
      ...>   entry: nil,
      ...>   command: Skillbook.Command.parse!("tasks.get T-1"),
      ...>   now: ~U[2026-01-01 08:00:00Z]
      ...> }
      iex> Skillbook.Context.fetch_write_to(%{context | write_to: "skills"})
      {:ok, "skills"}

  ## Fields

    * `:book` - the name of the running book, or `nil` for a catalog without a book
    * `:view` - the `Skillbook.View` in which the command was found. Handlers read entries through
      it
    * `:profile` - the `Skillbook.Profile` that runs the command; `me` in a flag means its `id`
    * `:entry` - the `Skillbook.Entry` of the command
    * `:command` - the parsed `Skillbook.Command`
    * `:sql` - the handle for `Skillbook.SQL`, or `nil` if the book has no database
    * `:write_to` - the folder that commands may write skills to, or `nil`
    * `:now` - the time of the call, UTC. Handlers use it instead of the system's clock
    * `:by` - the author of the command, `:agent` (a model) or `:user`; recorded on everything
      that the command writes
    * `:assigns` - values of the application: those of the book, replaced by those of the profile
      and then by those of the call, name by name. They are in no log line, no event and no
      transcript, and inspecting a context shows their names only
    * `:call_assigns` - the part of them that the call itself gave
    * `:timeout` - the time limit of the handler in milliseconds; `nil` if it is called without
      `Skillbook.Executor`
    * `:agent` - the agent run that the call is part of, or `nil`; see `t:agent/0`
    * `:shown` - the origins of the texts from outside that the conversation shows, the last one
      first, such as `mail from eve`. Empty if the caller keeps no conversation
    * `:workflow` - the workflow run that the call is part of, or `nil`; see `t:workflow/0`
    * `:ask` - the `:ask` callback, for handlers that run commands; or `nil`
    * `:progress` - shows how far the call is, or `nil`; see `report/3`
  """

  @typedoc """
  A run of `Skillbook.Workflow`.

    * `:depth` - the nesting depth of workflows
    * `:deadline` - the end of its time limit, in milliseconds of monotonic time
    * `:ran` - a counter of the steps that have run
  """
  @type workflow :: %{depth: pos_integer(), deadline: integer(), ran: :counters.counters_ref()}

  @typedoc """
  A run of `Skillbook.Agent`.

    * `:run` - its process
    * `:model` - its model
    * `:depth`, `:max_depth` - the nesting depth of agents and its limit
    * `:turns_left`, `:time_left` (milliseconds), `:tokens_left` and `:cost_left` (or `nil`) - the
      rest of its budget
    * `:hand_over` - says whether a profile may lead the conversation, see
      `Skillbook.Agent.hand_over/3`
    * `:options` - options of `Skillbook.Agent.run/3` for a nested run, which shares this budget
  """
  @type agent :: %{
          run: pid(),
          model: Skillbook.Model.t(),
          depth: non_neg_integer(),
          max_depth: non_neg_integer(),
          turns_left: non_neg_integer(),
          time_left: non_neg_integer(),
          tokens_left: non_neg_integer() | nil,
          cost_left: float() | nil,
          hand_over: (String.t() -> :ok | {:error, Exception.t()}),
          options: keyword()
        }

  @type t :: %__MODULE__{
          book: atom() | nil,
          view: Skillbook.View.t() | nil,
          profile: Skillbook.Profile.t(),
          entry: Skillbook.Entry.t() | nil,
          command: Skillbook.Command.t(),
          sql: term() | nil,
          write_to: Path.t() | nil,
          now: DateTime.t(),
          by: :agent | :user,
          assigns: map(),
          call_assigns: map(),
          timeout: pos_integer() | nil,
          agent: agent() | nil,
          shown: [String.t()],
          workflow: workflow() | nil,
          ask: Skillbook.Request.ask() | nil,
          progress: (number(), number() | nil, String.t() | nil -> any()) | nil
        }

  @enforce_keys [:view, :profile, :entry, :command, :now]
  defstruct [
    :book,
    :view,
    :profile,
    :entry,
    :command,
    :sql,
    :write_to,
    :now,
    :timeout,
    :agent,
    :workflow,
    :ask,
    :progress,
    by: :agent,
    shown: [],
    assigns: %{},
    call_assigns: %{}
  ]

  @doc false
  # Adds the assigns of a call to those of the book and the profile.
  @spec put_assigns(t(), Skillbook.Book.t() | nil, map() | keyword()) :: t()
  def put_assigns(%__MODULE__{profile: profile} = context, book, call) do
    call = Map.new(call)
    %{context | assigns: assigns(book, profile, call), call_assigns: call}
  end

  @doc false
  # The assigns of the book, replaced by those of the profile, then by those of the call.
  @spec assigns(Skillbook.Book.t() | nil, Skillbook.Profile.t(), map() | keyword()) :: map()
  def assigns(book, profile, call) do
    of_book = if book, do: book.assigns, else: %{}
    of_book |> Map.merge(profile.assigns) |> Map.merge(Map.new(call))
  end

  @doc false
  # The metadata of log lines of a call.
  @spec logger_metadata(t()) :: keyword()
  def logger_metadata(context) do
    [
      skill: context.entry.name,
      command: context.command.name,
      book: context.book,
      profile: context.profile.id
    ]
  end

  @doc false
  # The milliseconds that are left for a step of a workflow.
  @spec time_left(t()) :: timeout()
  def time_left(%__MODULE__{workflow: nil}), do: :infinity

  def time_left(%__MODULE__{workflow: workflow}),
    do: max(workflow.deadline - System.monotonic_time(:millisecond), 0)

  @doc """
  Reports how far a handler is, to a caller that shows it: a client of MCP that asks for progress.
  Without such a caller it does nothing. A workflow reports its steps.

  ## Options

    * `:total` (number) - what `done` will be at the end
    * `:text` (text) - what the handler is doing, for people

  ## Examples

      def execute(flags, context) do
        for {row, number} <- Enum.with_index(rows, 1) do
          Skillbook.Context.report(context, number, total: length(rows), text: "Importing")
          …
        end
      end
  """
  @spec report(t(), number(), total: number(), text: String.t()) :: :ok
  def report(context, done, options \\ [])
  def report(%__MODULE__{progress: nil}, _done, _options), do: :ok

  def report(%__MODULE__{progress: progress}, done, options) when is_number(done) do
    progress.(done, options[:total], options[:text])
    :ok
  end

  @doc """
  Returns the handle for `Skillbook.SQL`, or an error for the operator if the book has no
  database.
  """
  @spec fetch_sql(t()) :: {:ok, term()} | {:error, Skillbook.SetupError.t()}
  def fetch_sql(%__MODULE__{sql: nil} = context), do: missing(context, :store)
  def fetch_sql(%__MODULE__{sql: sql}), do: {:ok, sql}

  @doc """
  Returns the folder that commands may write skills to, or an error for the operator if the book
  has none, or if its pages do not belong to the profile's tenant.
  """
  @spec fetch_write_to(t()) :: {:ok, Path.t()} | {:error, Skillbook.SetupError.t()}
  def fetch_write_to(%__MODULE__{write_to: nil} = context), do: missing(context, :write_to)

  def fetch_write_to(%__MODULE__{write_to: folder} = context) do
    if may_write_to?(context.book, context.profile, folder),
      do: {:ok, folder},
      else: missing(context, :tenant)
  end

  @doc false
  # Whether the pages of the folder belong to the profile's tenant.
  @spec may_write_to?(atom() | nil, Skillbook.Profile.t(), Path.t()) :: boolean()
  def may_write_to?(book, profile, folder),
    do: Skillbook.Profile.writes?(profile, tenant(book, folder))

  # The folder is one of the book's sources, or inside of one.
  defp tenant(book, folder) do
    sources = for %{path: path} = source <- sources(book), below?(folder, path), do: source
    with %{tenant: tenant} <- Enum.max_by(sources, &byte_size(&1.path), fn -> nil end), do: tenant
  end

  defp sources(book),
    do: with(%{sources: sources} <- book && Skillbook.Book.find(book), do: sources) || []

  defp below?(folder, path), do: folder == path or String.starts_with?(folder, path <> "/")

  defp missing(context, option),
    do: {:error, %Skillbook.SetupError{command: context.command.name, option: option}}

  defimpl Inspect do
    def inspect(context, options) do
      names = [assigns: Map.keys(context.assigns), call_assigns: Map.keys(context.call_assigns)]
      Inspect.Any.inspect(struct!(context, names), options)
    end
  end
end
