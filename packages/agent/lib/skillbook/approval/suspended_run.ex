defmodule Skillbook.Approval.SuspendedRun do
  @moduledoc false
  # The conversation in which a call was made: stored when the agent's run ends, and resumed with
  # the result of the call.

  require Logger

  alias Skillbook.Agent.{Journal, Loop, Runs, Settings, State}
  alias Skillbook.Approval
  alias Skillbook.Approval.{Notice, Table}
  alias Skillbook.{AgentError, ApprovalError, Book, OptionError, PolicyError, Profile, Result}
  alias Skillbook.{SQL, Transcript, View}

  @enforce_keys [:book, :sql, :profile, :run, :options]
  defstruct @enforce_keys

  @type t :: %__MODULE__{
          book: Book.t(),
          sql: Skillbook.SQL.t(),
          profile: Profile.t(),
          run: String.t(),
          options: keyword()
        }

  @doc """
  Stores the conversation of a run with the calls that wait, and returns these as they are then.
  A failure is logged.
  """
  @spec store(atom(), [Approval.t()], String.t(), Transcript.t()) :: [Approval.t()]
  def store(name, pending, run, transcript) do
    with_sql(name, pending, fn sql ->
      refs = Enum.map(pending, & &1.ref)
      log(Table.put_transcript(sql, refs, run, Transcript.to_json(transcript)), refs)
      Notice.let_go(name)

      for approval <- pending do
        case Table.fetch(sql, name, approval.ref) do
          {:ok, %{approval: stored}} -> stored
          _failed -> approval
        end
      end
    end)
  end

  @doc "Gives the calls of a conversation that still wait the conversation as it has gone on."
  @spec renew(atom(), Transcript.t()) :: :ok
  def renew(_name, %Transcript{run: nil}), do: :ok

  def renew(name, %Transcript{run: run} = transcript) do
    with_sql(name, :ok, fn sql ->
      log(Table.renew_transcript(sql, run, Transcript.to_json(transcript)), [run])
    end)
  end

  @doc """
  Returns the approvals of a conversation's calls that still wait or run, and the others by their
  references with their results. Of one that is unknown or another profile's, as those are that
  were decided long ago, both are `nil`.
  """
  @spec waiting(atom(), Transcript.t() | nil) ::
          {[Approval.t()], [{String.t(), Approval.t() | nil, Result.t() | nil}]}
  def waiting(name, %Transcript{waiting: [_ | _] = refs, profile: profile}) do
    with_sql(name, {[], []}, fn sql ->
      sweep(sql, Book.fetch!(name))

      rows = for ref <- refs, row = row(sql, name, ref, profile), row != :failed, do: {ref, row}

      {open, decided} = Enum.split_with(rows, fn {_ref, row} -> open?(row) end)

      {for({_ref, %{approval: approval}} <- open, do: approval),
       for({ref, row} <- decided, do: {ref, approval(row), result(sql, name, row)})}
    end)
  end

  def waiting(_name, _none), do: {[], []}

  defp row(sql, name, ref, profile) do
    case Table.fetch(sql, name, ref) do
      {:ok, %{approval: %{profile: ^profile}} = row} -> row
      {:error, %SQL.Error{}} -> :failed
      _unknown -> :unknown
    end
  end

  defp open?(%{approval: %{status: status}}), do: status in [:pending, :running]
  defp open?(:unknown), do: false

  defp approval(:unknown), do: nil
  defp approval(%{approval: approval}), do: approval

  defp result(_sql, _name, :unknown), do: nil
  defp result(_sql, _name, %{approval: approval, pending: []}), do: result(approval)

  # It ran, and calls of its own wait.
  defp result(sql, name, %{approval: approval, pending: refs}) do
    pending =
      for ref <- refs,
          {:ok, %{approval: approval}} <- [Table.fetch(sql, name, ref)],
          do: approval

    %{result(approval) | metadata: %{pending: pending}}
  end

  # Calls whose time is over wait no more.
  defp sweep(sql, book) do
    with {:ok, over} <-
           Table.sweep(sql, book.name, Book.now(book), book.of_parts.approvals[:lease]),
         do: Enum.each(over, &Notice.send/1)
  end

  @doc "The result of a call that was decided, for its conversation."
  @spec result(Approval.t()) :: Result.t()
  def result(%Approval{result: %Result{} = result}), do: result

  def result(%Approval{status: :denied, name: name, by: by, reason: reason} = approval) do
    error = %PolicyError{kind: :denied, name: name, writes: false, by: by, text: reason}
    error_result(approval, error)
  end

  # The model need not know who decided.
  def result(approval),
    do: error_result(approval, %{ApprovalError.decided(approval) | by: nil})

  defp error_result(%{name: name, command: command}, error),
    do: %{Result.error(error) | name: name, command: command}

  # The book may have stopped, and its database may have ended.
  defp with_sql(name, otherwise, fun) do
    with %Book{} = book <- Book.find(name),
         sql when sql != nil <- Book.sql(book) do
      fun.(sql)
    else
      _stopped -> otherwise
    end
  rescue
    ArgumentError -> otherwise
  catch
    :exit, _reason -> otherwise
  end

  defp log(:ok, _refs), do: :ok

  defp log({:error, error}, refs) do
    reason = if is_exception(error), do: Exception.message(error), else: "it is too large"

    Logger.warning(
      "the conversation of #{Enum.join(refs, ", ")} was not stored, so it cannot be resumed: " <>
        reason
    )
  end

  @doc """
  Prepares a conversation to go on; `{:ok, nil}` without `resume`. Nothing has run yet, so a
  missing conversation or model is told in time.
  """
  @spec prepare(
          Book.t(),
          Skillbook.SQL.t(),
          Table.row(),
          Profile.t(),
          map(),
          boolean() | keyword() | map() | nil
        ) :: {:ok, t() | nil} | {:error, Exception.t()}
  def prepare(_book, _sql, _row, _profile, _assigns, no) when no in [nil, false], do: {:ok, nil}

  def prepare(book, sql, %{approval: approval} = row, profile, assigns, resume) do
    options = Settings.with_book(if(resume == true, do: [], else: resume), book)
    commands = Keyword.merge([assigns: assigns, by: row.made_by], options[:commands] || [])

    with :ok <- own_profile(options),
         options = of_conversation(book, row, options),
         {:ok, transcript} <- transcript(sql, approval, options[:transcript]),
         :ok <- if(options[:model], do: :ok, else: error(:agent, approval)),
         options = Keyword.merge(options, transcript: transcript, commands: commands),
         :ok <- Settings.validate_run(options) do
      run = row.run || approval.ref
      {:ok, %__MODULE__{book: book, sql: sql, profile: profile, run: run, options: options}}
    end
  end

  # Each turn makes its view of this profile, which has the rights of the call.
  defp own_profile(options) do
    case Keyword.fetch(options, :profile) do
      :error ->
        :ok

      {:ok, given} ->
        problem = {:invalid, "no value, since the call has a profile,", given}
        {:error, %OptionError{subject: "resume:", option: :profile, problem: problem}}
    end
  end

  # In a book with durable runs the answer is a turn of its `Skillbook.Conversation`, whatever
  # process runs it.
  defp of_conversation(book, %{run: run, approval: %{profile: profile}}, options) do
    with true <- run != nil and options[:transcript] == nil and Journal.durable?(book, options),
         {id, transcript} <- Runs.conversation_of(book, run, profile),
         do: Keyword.merge(options, conversation: id, transcript: transcript),
         else: (_none -> options)
  end

  defp transcript(_sql, _approval, %Transcript{} = given), do: {:ok, given}

  defp transcript(sql, approval, nil) do
    case Table.transcript(sql, approval.ref) do
      {:ok, nil} -> error(:transcript, approval)
      {:ok, json} -> Transcript.from_json(json)
      error -> error
    end
  end

  defp error(kind, approval), do: {:error, ApprovalError.new(kind, approval)}

  @doc """
  `context.shown` for the approved command: the origins of the texts from outside in the stored
  conversation. Without one they are none.
  """
  @spec shown(Skillbook.SQL.t(), Approval.t()) :: [String.t()]
  def shown(sql, approval) do
    with {:ok, json} when json != nil <- Table.transcript(sql, approval.ref),
         {:ok, transcript} <- Transcript.from_json(json),
         do: State.shown(transcript),
         else: (_none -> [])
  end

  @doc "`context.agent` for the approved command, which may dispatch agents as it could before."
  @spec agent(t()) :: (() -> Skillbook.Context.agent())
  def agent(%__MODULE__{options: options} = conversation),
    do: Loop.agent(view(conversation), options)

  defp view(%__MODULE__{book: book, profile: profile}), do: View.of(book.name, profile)

  @doc "Goes on with the result of the call; `nil` without a conversation."
  @spec resume(t() | nil, Approval.t(), Result.t()) :: Skillbook.Agent.Result.t() | nil
  def resume(nil, _approval, _result), do: nil

  def resume(%__MODULE__{} = conversation, approval, result) do
    %{run: run, options: options} = conversation

    case Loop.resume(view(conversation), run, approval.ref, result, options) do
      {:ok, ended} -> ended
      {:error, %AgentError{result: ended}} -> ended
    end
  end
end
