defmodule Skillbook.Context do
  @moduledoc """
  What a handler knows about the call it serves.

  ## Fields

    * `:book` - the name of the running book, or `nil` for a catalog without one
    * `:view` - the `Skillbook.View` the command was found in; whatever the handler reads, it reads through it
    * `:profile` - the `Skillbook.Profile` on whose behalf it runs; `me` in a flag means its `id`
    * `:entry` - the `Skillbook.Entry` of the command
    * `:command` - the `Skillbook.Command` as parsed: `name`, `flags`, `args`, `raw`
    * `:sql` - the handle for `Skillbook.SQL`, or `nil` if the book has no store
    * `:write_to` - the folder into which commands may write skills, or `nil`
    * `:now` - the time of the call, UTC; handlers never read the clock themselves
    * `:by` - who wrote the command: `:agent`, a model, or `:user`; what it writes is marked so
    * `:assigns` - what the application gave to `Skillbook.run/3`, a map
    * `:timeout` - how long the handler may take, in milliseconds; `nil` where it is called without `Skillbook.Executor`
    * `:agent` - the run of `Skillbook.Agent` that the call is part of, or `nil`: its `:model`; its `:depth`, how many runs it is
      inside of, and `:max_depth`; what it may still use, `:turns_left`, `:time_left` in milliseconds, and `:tokens_left` or `nil`;
      and `:options`, those of `Skillbook.Agent.run/3` that make a run inside of this one, which uses what this one has left
    * `:workflow` - the run of `Skillbook.Workflow` that the call is part of, or `nil`: its `:depth`, how many workflows are
      inside of each other; its `:deadline` in milliseconds of monotonic time; and a counter of the steps that `:ran`
    * `:ask` - who is asked before a command runs that changes something, for handlers that run commands; `nil` for nobody
  """

  @type workflow :: %{depth: pos_integer(), deadline: integer(), ran: :counters.counters_ref()}

  @type agent :: %{
          model: Skillbook.Model.t(),
          depth: non_neg_integer(),
          max_depth: non_neg_integer(),
          turns_left: non_neg_integer(),
          time_left: non_neg_integer(),
          tokens_left: non_neg_integer() | nil,
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
          timeout: pos_integer() | nil,
          agent: agent() | nil,
          workflow: workflow() | nil,
          ask: Skillbook.Request.ask() | nil
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
    by: :agent,
    assigns: %{}
  ]

  @doc false
  # What log lines of a call carry.
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
  # How many milliseconds are left for a call that is part of a workflow.
  @spec time_left(t()) :: timeout()
  def time_left(%__MODULE__{workflow: nil}), do: :infinity

  def time_left(%__MODULE__{workflow: workflow}),
    do: max(workflow.deadline - System.monotonic_time(:millisecond), 0)

  @doc """
  The handle for `Skillbook.SQL`, or an error that tells the operator which option the book lacks.

      iex> context = %Skillbook.Context{view: nil, profile: nil, entry: nil, command: %{name: "tasks.get"}, now: nil}
      iex> {:error, e} = Skillbook.Context.fetch_sql(context)
      iex> e.option
      :store
  """
  @spec fetch_sql(t()) :: {:ok, term()} | {:error, Skillbook.SetupError.t()}
  def fetch_sql(%__MODULE__{sql: nil} = context), do: missing(context, :store)
  def fetch_sql(%__MODULE__{sql: sql}), do: {:ok, sql}

  @doc """
  The folder into which commands may write skills, or an error that tells the operator which option the book lacks.

      iex> context = %Skillbook.Context{view: nil, profile: nil, entry: nil, command: nil, now: nil, write_to: "skills"}
      iex> Skillbook.Context.fetch_write_to(context)
      {:ok, "skills"}
  """
  @spec fetch_write_to(t()) :: {:ok, Path.t()} | {:error, Skillbook.SetupError.t()}
  def fetch_write_to(%__MODULE__{write_to: nil} = context), do: missing(context, :write_to)
  def fetch_write_to(%__MODULE__{write_to: folder}), do: {:ok, folder}

  defp missing(context, option),
    do: {:error, %Skillbook.SetupError{command: context.command.name, option: option}}
end
