defmodule Skillbook.Transcript.Conversations do
  @moduledoc false
  # Stores the conversations of a book's agents in its database, for people to look at: each
  # message as soon as it is added, and the result of each command. Off unless the book has the
  # option `:conversations`, since they hold all that was said.
  #
  # The record is no part of the run: a database that fails is logged, and the run goes on.

  require Logger

  alias Skillbook.SQL.{OldRows, Tenants}
  alias Skillbook.Support.{JSON, UntilError}
  alias Skillbook.Transcript.Message
  alias Skillbook.{Book, Profile, Result, SQL, Transcript}

  # Characters of the first line of the input, of a message, and of a result.
  @max_title 200
  @max_content 100_000
  @columns [:run, :profile, :tenant, :depth, :title, :status, :turns, :started_at, :ended_at]

  @type conversation :: %{
          run: String.t(),
          profile: String.t(),
          tenant: String.t() | nil,
          depth: non_neg_integer(),
          title: String.t(),
          status: String.t(),
          turns: non_neg_integer(),
          started_at: String.t(),
          ended_at: String.t() | nil
        }
  @type part :: %{kind: String.t(), at: String.t(), content: map()}

  @typedoc "Where a run is recorded, or `nil` if it is not."
  @type recording :: %{sql: SQL.t(), run: String.t(), clock: (() -> DateTime.t())} | nil

  @doc """
  Begins or goes on with the record of a run; `nil` if the book stores none.
  """
  @spec start(
          atom(),
          %{
            run: String.t(),
            profile: String.t(),
            tenant: String.t() | nil,
            depth: non_neg_integer(),
            input: String.t()
          },
          (() -> DateTime.t())
        ) :: recording()
  def start(name, run, clock), do: guarded(run.run, fn -> begin(name, run, clock) end)

  defp begin(name, run, clock) do
    with %Book{of_parts: %{conversations: [_ | _] = options}} = book <- name && Book.find(name),
         sql when sql != nil <- Book.sql(book),
         now = clock.(),
         :ok <- insert(sql, run, now),
         :ok <- delete_beyond(sql, run.profile, options[:max]) do
      %{sql: sql, run: run.run, clock: clock}
    else
      {:error, error} -> log(run.run, error)
      _none -> nil
    end
  end

  # While the database restarts it has no handle, and its processes may end during a call.
  defp guarded(run, fun) do
    fun.()
  rescue
    error -> log(run, error)
  catch
    :exit, _reason -> log(run, SQL.Error.closed())
  end

  defp insert(sql, run, now) do
    insert = """
    insert into skillbook_conversations
      (run, profile, depth, title, status, turns, started_at, tenant)
    values ($1, $2, $3, $4, 'running', 0, $5, $6)
    on conflict (run) do update set status = 'running', ended_at = null
    """

    tenant = Tenants.to_column(run.tenant)
    values = [run.run, run.profile, run.depth, title(run.input), now, tenant]
    with {:ok, _} <- SQL.query(sql, insert, values), do: :ok
  end

  defp title(input) do
    [first | _] = input |> String.trim() |> String.split("\n", parts: 2)
    first |> String.slice(0, @max_title) |> storable()
  end

  # Those beyond the number that a profile may have.
  defp delete_beyond(sql, profile, max) do
    beyond = """
    select run from skillbook_conversations where profile = $1
    order by id desc limit 100 offset #{max}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, beyond, [profile]) do
      UntilError.each(rows, fn [run] ->
        with {:ok, _} <-
               SQL.query(sql, "delete from skillbook_conversation_parts where run = $1", [run]),
             do: SQL.query(sql, "delete from skillbook_conversations where run = $1", [run])
      end)
    end
  end

  @doc "For `Skillbook.Book.Pruner`: deletes the oldest conversation, or some of its parts."
  def prune(sql, before, _place) do
    oldest =
      "select run from skillbook_conversations where started_at < $1 order by started_at, id " <>
        "limit 1"

    parts =
      "delete from skillbook_conversation_parts where id in (select id from " <>
        "skillbook_conversation_parts where run = $1 order by id limit #{OldRows.limit()})"

    # The conversation is deleted last, so that no part is left alone.
    with {:ok, %{rows: [[run]]}} <- SQL.query(sql, oldest, [before]),
         {:ok, %{num_rows: count}} <- SQL.query(sql, parts, [run]),
         {:ok, deleted} <- delete_whole(sql, run, count) do
      {:ok, deleted, :next}
    else
      {:ok, %{rows: []}} -> {:ok, 0, nil}
      error -> error
    end
  end

  defp delete_whole(sql, run, parts) do
    if parts == OldRows.limit() do
      {:ok, 0}
    else
      delete = "delete from skillbook_conversations where run = $1"
      with {:ok, %{num_rows: count}} <- SQL.query(sql, delete, [run]), do: {:ok, count}
    end
  end

  @doc "Records a message or the result of a command; other events are no part of the record."
  @spec event(recording(), term()) :: :ok
  def event(nil, _event), do: :ok

  def event(record, {:message, %Message{} = message}) do
    fields = message |> Transcript.message_fields() |> Map.update!(:content, &cut/1)
    put(record, "message", fields)
  end

  def event(record, {:result, %Result{} = result}) do
    fields = %{
      command: cut(result.command || ""),
      name: result.name,
      status: result.status,
      duration: result.duration,
      content: cut(result.content)
    }

    put(record, "command", fields)
  end

  def event(_record, _other), do: :ok

  defp put(record, kind, fields) do
    insert =
      "insert into skillbook_conversation_parts (run, kind, at, content) values ($1, $2, $3, $4)"

    values = [record.run, kind, record.clock.(), storable(JSON.encode(fields))]
    query(record, insert, values)
  end

  @doc "Records how a run ended."
  @spec finish(recording(), Skillbook.Agent.Result.t()) :: :ok
  def finish(nil, _result), do: :ok

  def finish(record, result) do
    update = """
    update skillbook_conversations set status = $2, turns = turns + $3, ended_at = $4
    where run = $1
    """

    values = [record.run, Atom.to_string(result.status), result.turns, record.clock.()]
    query(record, update, values)
  end

  defp query(%{sql: sql, run: run}, statement, values) do
    guarded(run, fn ->
      with {:error, error} <- SQL.query(sql, statement, values), do: log(run, error)
    end)

    :ok
  end

  defp log(run, error) do
    Logger.warning("the conversation #{run} was not stored: #{Exception.message(error)}")
    nil
  end

  defp cut(text) do
    if String.length(text) > @max_content,
      do: String.slice(text, 0, @max_content) <> "…",
      else: text
  end

  # PostgreSQL cannot store NUL, which models and commands may write.
  defp storable(text), do: String.replace(text, ["\0", "\\u0000"], "\uFFFD")

  @doc """
  Lists the conversations of all profiles of the tenants that a profile reads, the newest first.
  For trusted code. With the run of one of them, those after it.
  """
  @spec list(Book.t(), Profile.t(), pos_integer(), String.t() | nil) ::
          {:ok, [conversation()]} | {:error, SQL.Error.t()}
  def list(book, profile, limit, last \\ nil) do
    last = List.wrap(last)
    {readable, tenants} = Tenants.readable(profile, "tenant", 2 + length(last))
    # After one that the profile does not read there is none.
    place = "id < (select id from skillbook_conversations where run = $2 and #{readable}) and "

    rest = "where #{if last != [], do: place}#{readable} order by id desc limit $1"
    select(book, rest, [limit] ++ last ++ tenants)
  end

  @doc "Fetches one of these conversations with its parts in order, or `nil`. For trusted code."
  @spec fetch(Book.t(), Profile.t(), String.t()) ::
          {:ok, conversation(), [part()]} | {:ok, nil} | {:error, SQL.Error.t()}
  def fetch(book, profile, run) do
    {readable, tenants} = Tenants.readable(profile, "tenant", 2)

    parts =
      "select kind, at, content from skillbook_conversation_parts where run = $1 order by id"

    with {:ok, [conversation]} <-
           select(book, "where run = $1 and #{readable}", [run | tenants]),
         {:ok, %{rows: rows}} <- SQL.query(Book.sql(book), parts, [run]) do
      {:ok, conversation, for([kind, at, json] <- rows, do: part(kind, at, JSON.decode(json)))}
    else
      {:ok, []} -> {:ok, nil}
      error -> error
    end
  end

  defp part(kind, at, {:ok, %{} = content}), do: %{kind: kind, at: at, content: content}
  defp part(kind, at, _unreadable), do: %{kind: kind, at: at, content: %{}}

  defp select(%{store: nil}, _rest, _values), do: {:ok, []}

  defp select(book, rest, values) do
    query = "select #{Enum.join(@columns, ", ")} from skillbook_conversations #{rest}"

    with {:ok, %{rows: rows}} <- SQL.query(Book.sql(book), query, values),
         do: {:ok, Enum.map(rows, &conversation/1)}
  end

  defp conversation(row) do
    one = Map.new(Enum.zip(@columns, row))
    %{one | tenant: Tenants.from_column(one.tenant)}
  end
end
