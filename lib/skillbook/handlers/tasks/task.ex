defmodule Skillbook.Handlers.Tasks.Task do
  @moduledoc """
  A task, which the `tasks.…` commands return as `:data` of a `Skillbook.Result`.

  ## Fields

    * `:id` - a number, written as `T-48291307`. It is random, and says nothing about other tasks
    * `:title` - one line
    * `:description` - text, or `nil`
    * `:status` - an open one (`"todo"`, `"in_progress"`, `"blocked"`), `"done"` or `"cancelled"`
    * `:priority` - `"critical"`, `"high"`, `"medium"` or `"low"`
    * `:assignee` - the name of the person responsible, or `nil`
    * `:due_date` - a `Date`, or `nil`
    * `:parent_id` - the id of the task that it belongs to, or `nil`
    * `:tags` - a list of strings
    * `:labels` - visibility labels: the task exists only for profiles that hold all of them
    * `:tenant` - the tenant that it belongs to, or `nil` if it is common to all tenants
    * `:created_by` - the id of the profile that created it
    * `:created_at`, `:updated_at` - UTC, whole seconds
    * `:archived_at` - when it was deleted, or `nil`. A deleted task exists only for the profile
      that created it, and for trusted code
  """

  alias Skillbook.Support.Number
  alias Skillbook.{Flags, Profile, StoreError}

  @type t :: %__MODULE__{
          id: pos_integer(),
          title: String.t(),
          description: String.t() | nil,
          status: String.t(),
          priority: String.t(),
          assignee: String.t() | nil,
          due_date: Date.t() | nil,
          parent_id: pos_integer() | nil,
          tags: [String.t()],
          labels: [String.t()],
          tenant: String.t() | nil,
          created_by: String.t(),
          created_at: DateTime.t(),
          updated_at: DateTime.t(),
          archived_at: DateTime.t() | nil
        }

  defstruct [
    :id,
    :title,
    :description,
    :status,
    :priority,
    :assignee,
    :due_date,
    :parent_id,
    :tenant,
    :created_by,
    :created_at,
    :updated_at,
    :archived_at,
    tags: [],
    labels: []
  ]

  @open ~w(todo in_progress blocked)

  @doc "Returns the statuses of open tasks."
  def open_statuses, do: @open

  @doc """
  Whether the task is open.

      iex> Skillbook.Handlers.Tasks.Task.open?(%Skillbook.Handlers.Tasks.Task{status: "blocked"})
      true
  """
  @spec open?(t()) :: boolean()
  def open?(%__MODULE__{status: status}), do: status in @open

  @doc """
  Formats an id for people and models.

      iex> Skillbook.Handlers.Tasks.Task.reference(12)
      "T-12"
  """
  @spec reference(t() | pos_integer()) :: String.t()
  def reference(%__MODULE__{id: id}), do: reference(id)
  def reference(id) when is_integer(id), do: "T-#{id}"

  @doc """
  Casts the flag `name` to a task's id, from `T-12`, `t12`, `#12` or `12`.

      iex> Skillbook.Handlers.Tasks.Task.cast_id(%{"id" => "t-12"}, "id")
      {:ok, %{"id" => 12}}
  """
  @spec cast_id(Flags.t(), String.t()) :: Flags.cast()
  def cast_id(flags, name), do: Flags.cast(flags, name, "a task's id", "T-12", &id/1)

  defp id(id) when is_integer(id) and id > 0, do: {:ok, id}

  defp id(text) when is_binary(text) do
    case Regex.run(~r/\A\s*(?:T-?|#)?0*([1-9][0-9]{0,17})\s*\z/i, text) do
      [_, digits] -> {:ok, Number.integer!(digits)}
      nil -> :error
    end
  end

  defp id(_), do: :error

  @priorities ~w(critical high medium low)
  @longest_place 60

  @doc "The priorities, the highest first."
  @spec priorities() :: [String.t()]
  def priorities, do: @priorities

  @typedoc "Where a page of tasks begins: the values by which it is sorted, and a task's id."
  @type place :: {[term()], pos_integer()}

  @doc """
  The place in a list with that order after which the next page begins, as text.

  It has the values by which the task is sorted, so it stays the same when the task changes.

      iex> alias Skillbook.Handlers.Tasks.Task
      iex> task = %Task{id: 12, title: "Call", priority: "high", due_date: ~D[2026-03-01]}
      iex> {Task.to_place(task, "due_date"), Task.place("2026-03-01/high/T-12", "due_date")}
      {"2026-03-01/high/T-12", {:ok, {[~D[2026-03-01], "high"], 12}}}
      iex> Task.place("none/high/T-12", "created_at")
      :error
  """
  @spec to_place(t(), String.t()) :: String.t()
  def to_place(%__MODULE__{} = task, order) when order in ["due_date", "priority"],
    do: "#{task.due_date || "none"}/#{task.priority}/#{reference(task)}"

  def to_place(task, "created_at"),
    do: "#{DateTime.to_iso8601(task.created_at)}/#{reference(task)}"

  def to_place(task, "updated_at"),
    do: "#{DateTime.to_iso8601(task.updated_at)}/#{reference(task)}"

  @doc "Reads the text of a place in a list with that order."
  @spec place(String.t(), String.t()) :: {:ok, place()} | :error
  def place(text, order) when byte_size(text) <= @longest_place do
    {keys, [reference]} = text |> String.split("/") |> Enum.split(-1)

    with {:ok, keys} <- keys(keys, order),
         "T-" <> _ <- reference,
         {:ok, id} <- id(reference),
         do: {:ok, {keys, id}},
         else: (_invalid -> :error)
  end

  def place(_text, _order), do: :error

  defp keys(["none", priority], order)
       when order in ["due_date", "priority"] and priority in @priorities,
       do: {:ok, [nil, priority]}

  defp keys([day, priority], order)
       when order in ["due_date", "priority"] and priority in @priorities,
       do: with({:ok, date} <- Date.from_iso8601(day), do: {:ok, [date, priority]})

  defp keys([time], order) when order in ["created_at", "updated_at"] do
    with {:ok, time, 0} <- DateTime.from_iso8601(time), do: {:ok, [time]}
  end

  defp keys(_keys, _order), do: :error

  @doc """
  Whether a profile may change the task: it belongs to the profile's tenant and has all labels of
  the profile, like an entry.
  """
  @spec check_owned(t(), Profile.t()) :: :ok | {:error, StoreError.t()}
  def check_owned(%__MODULE__{} = task, profile) do
    error = %StoreError{kind: :common, field: :task, name: reference(task)}

    case {Profile.writes?(profile, task.tenant), profile.labels -- task.labels} do
      {false, _missing} -> {:error, error}
      {true, []} -> :ok
      {true, missing} -> {:error, %{error | kind: :own_labels, labels: missing}}
    end
  end

  @doc "Resolves an assignee: `me` is the profile that runs the command."
  @spec assignee(String.t() | nil, Skillbook.Context.t()) :: String.t() | nil
  def assignee(nil, _context), do: nil

  def assignee(name, context) do
    name = name |> String.trim() |> String.trim_leading("@")
    if String.downcase(name) == "me", do: context.profile.id, else: name
  end

  @doc """
  Formats the task as one line for a model.

      iex> task = %Skillbook.Handlers.Tasks.Task{
      ...>   id: 12,
      ...>   title: "Review the PR",
      ...>   status: "todo",
      ...>   priority: "high",
      ...>   due_date: ~D[2026-03-01],
      ...>   assignee: "bob",
      ...>   tags: ["Q1", "backend"]
      ...> }
      iex> Skillbook.Handlers.Tasks.Task.line(task, ~D[2026-03-02])
      "T-12 [todo, high, due 2026-03-01 (overdue), @bob, #Q1 #backend] Review the PR"
  """
  @spec line(t(), Date.t()) :: String.t()
  def line(%__MODULE__{} = task, today) do
    facts = [
      task.archived_at && "deleted",
      task.status,
      task.priority,
      task.due_date && "due " <> due(task, today),
      task.assignee && "@" <> task.assignee,
      task.tags != [] && Enum.map_join(task.tags, " ", &("#" <> &1))
    ]

    "#{reference(task)} [#{facts |> Enum.filter(& &1) |> Enum.join(", ")}] #{task.title}"
  end

  @doc "Formats the due date, marked as overdue if the task is open."
  @spec due(t(), Date.t()) :: String.t()
  def due(%__MODULE__{due_date: due_date} = task, today) do
    late? = open?(task) and Date.compare(due_date, today) == :lt
    if late?, do: "#{due_date} (overdue)", else: "#{due_date}"
  end
end
