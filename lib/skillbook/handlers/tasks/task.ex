defmodule Skillbook.Handlers.Tasks.Task do
  @moduledoc """
  A task, as the `tasks.…` commands give it in `Skillbook.Result.data`.

  ## Fields

    * `:id` - a number; people and models write it as `T-12`
    * `:title` - one line
    * `:description` - text, or `nil`
    * `:status` - `"todo"`, `"in_progress"`, `"blocked"`, `"done"` or `"cancelled"`; the first three are open
    * `:priority` - `"critical"`, `"high"`, `"medium"` or `"low"`
    * `:assignee` - who is to do it, or `nil`
    * `:due_date` - a `Date`, or `nil`
    * `:parent_id` - the id of the task this one is a part of, or `nil`
    * `:tags` - a list of strings
    * `:created_by` - the id of the profile that made it
    * `:created_at`, `:updated_at` - UTC, whole seconds
    * `:archived_at` - when it was deleted, or `nil`
  """

  alias Skillbook.{Context, Flags}

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
    :created_by,
    :created_at,
    :updated_at,
    :archived_at,
    tags: []
  ]

  @open ~w(todo in_progress blocked)
  @statuses @open ++ ~w(done cancelled)
  @priorities ~w(critical high medium low)

  @doc "The statuses of tasks that are still to be done."
  def open_statuses, do: @open

  @doc "All statuses."
  def statuses, do: @statuses

  @doc "All priorities, the most urgent first."
  def priorities, do: @priorities

  @doc """
  Whether the task is still to be done.

      iex> Skillbook.Handlers.Tasks.Task.open?(%Skillbook.Handlers.Tasks.Task{status: "blocked"})
      true
  """
  @spec open?(t()) :: boolean()
  def open?(%__MODULE__{status: status}), do: status in @open

  @doc """
  An id as people and models write it.

      iex> Skillbook.Handlers.Tasks.Task.reference(12)
      "T-12"
  """
  @spec reference(t() | pos_integer()) :: String.t()
  def reference(%__MODULE__{id: id}), do: reference(id)
  def reference(id) when is_integer(id), do: "T-#{id}"

  @doc """
  Reads the flag `name` as a task's id, in any of the ways models write it: `T-12`, `t12`, `#12`, `12`.

      iex> Skillbook.Handlers.Tasks.Task.cast_id(%{"id" => "t-12"}, "id")
      {:ok, %{"id" => 12}}
  """
  @spec cast_id(Flags.t(), String.t()) :: Flags.cast()
  def cast_id(flags, name), do: Flags.cast(flags, name, "a task's id", "T-12", &id/1)

  @doc "The id of a command that takes nothing else, as `--id` or as its argument."
  @spec only_id(Flags.t(), Context.t()) :: {:ok, pos_integer()} | {:error, Exception.t()}
  def only_id(flags, context) do
    with {:ok, flags} <- Flags.known(flags, ["id"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, ["id"]),
         :ok <- Flags.require(flags, ["id"]),
         {:ok, %{"id" => id}} <- cast_id(flags, "id"),
         do: {:ok, id}
  end

  defp id(id) when is_integer(id) and id > 0, do: {:ok, id}

  defp id(text) when is_binary(text) do
    case Regex.run(~r/\A\s*(?:T-?|#)?0*([1-9][0-9]{0,17})\s*\z/i, text) do
      [_, digits] -> {:ok, String.to_integer(digits)}
      nil -> :error
    end
  end

  defp id(_), do: :error

  @doc """
  Reads the flags that describe a task, wherever they are given: title, description, status, priority, assignee,
  due and parent. `me` as the assignee becomes the profile's id.
  """
  @spec cast_fields(Flags.t(), Skillbook.Context.t()) :: Flags.cast()
  def cast_fields(flags, context) do
    with {:ok, flags} <- Flags.cast_text(flags, "title", line: true, max: 200),
         {:ok, flags} <- Flags.cast_text(flags, "description", max: 10_000),
         {:ok, flags} <- Flags.cast_one_of(flags, "status", @statuses),
         {:ok, flags} <- Flags.cast_one_of(flags, "priority", @priorities),
         {:ok, flags} <- cast_assignee(flags, context),
         {:ok, flags} <- Flags.cast_date(flags, "due", today: DateTime.to_date(context.now)) do
      cast_id(flags, "parent")
    end
  end

  @doc "Reads the flag `assignee`: a name, or `me` for the profile on whose behalf the command runs."
  @spec cast_assignee(Flags.t(), Skillbook.Context.t()) :: Flags.cast()
  def cast_assignee(flags, context) do
    with {:ok, flags} <- Flags.cast_text(flags, "assignee", line: true, max: 100) do
      case flags do
        %{"assignee" => name} -> {:ok, %{flags | "assignee" => resolve(String.trim(name), context)}}
        _ -> {:ok, flags}
      end
    end
  end

  defp resolve("@" <> name, context), do: resolve(name, context)
  defp resolve(name, context), do: if(String.downcase(name) == "me", do: context.profile.id, else: name)

  @doc """
  The task as one line for a model.

      iex> task = %Skillbook.Handlers.Tasks.Task{id: 12, title: "Review the PR", status: "todo", priority: "high",
      ...>   due_date: ~D[2026-03-01], assignee: "bob", tags: ["Q1", "backend"]}
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

  @doc "The due date, marked if it has passed and the task is still open."
  @spec due(t(), Date.t()) :: String.t()
  def due(%__MODULE__{due_date: due_date} = task, today) do
    late? = open?(task) and Date.compare(due_date, today) == :lt
    if late?, do: "#{due_date} (overdue)", else: "#{due_date}"
  end
end
