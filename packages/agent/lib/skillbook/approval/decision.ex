defmodule Skillbook.Approval.Decision do
  @moduledoc false
  # Lists, approves and denies calls, as `Skillbook.approvals/2`, `approve/3` and `deny/3`.
  #
  # An approved call is checked, claimed, run under a lease, and its result stored. Everything
  # that can fail without a trace is checked before the claim. A call that was refused before its
  # handler ran gives the claim back.

  require Logger

  alias Skillbook.Approval
  alias Skillbook.Approval.{Assigns, Notice, Pending, Rights, SuspendedRun, Table}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.{Drain, Worker}
  alias Skillbook.Support.{Operation, Options}
  alias Skillbook.Agent.{Prose, State}

  alias Skillbook.{ApprovalError, Book, OptionError, Profile, Result, SQL, View}

  @default_limit 100
  @max_limit 1_000
  # Characters of `by:` and `reason:`.
  @max_text 1_000
  # How often the result is stored again if the database fails.
  @attempts 5

  @fields [
            text: ~w(ref book profile name command status)a,
            text?: ~w(tenant by reason conversation)a
          ] ++
            [time: ~w(asked_at expires_at)a, time?: ~w(decided_at finished_at)a] ++
            [map: [:flags], boolean: [:resumable]] ++
            [object?: [result: [text: ~w(status content)a], run: [text: ~w(status text)a]]]

  def operations do
    reason = {{:text, @max_text}, "why; it is stored, and the model gets that of a denial"}
    force = {:boolean, "run it although its page has changed since the call"}
    resume = {:boolean, "go on with the conversation in which it was called"}
    status = {{:one_of, Approval.statuses()}, "only these, `pending` by default"}
    limit = {{:number, 1, @max_limit}, "the most of them, #{@default_limit} by default"}
    last = {{:text, 100}, "the `ref` of the last one of the page before"}

    deny = %Operation{
      name: :deny,
      doc: "Denies a call.",
      subject: :ref,
      caller: :trusted,
      input: [reason: reason, resume: resume],
      output: @fields,
      refused: 409,
      run: &deny/3
    }

    doc = "Approves a call, which runs once."
    approve = %{deny | name: :approve, doc: doc, run: &approve/3}

    list = %Operation{
      name: :approvals,
      doc: "Lists calls that wait for an approval, or had one.",
      input: [status: status, limit: limit, after: last],
      output: [@fields],
      run: &list/2
    }

    show = %{list | name: :approval, doc: "Reads one of them.", subject: :ref, input: []}
    show = %{show | output: @fields, refused: 404, run: &find/3}
    [list, show, %{approve | input: deny.input ++ [force: force]}, deny]
  end

  @doc "As `Skillbook.approvals/2`: of the profile of a view, or of all profiles of a book."
  @spec list(atom() | View.t(), keyword()) :: {:ok, [Approval.t()]} | {:error, Exception.t()}
  def list(%View{} = view, options), do: list(view.book, view, options)
  def list(book, options), do: list(book, nil, options)

  defp list(name, view, options) do
    with :ok <- Options.validate(options, "a list of approvals", list_schema()),
         {:ok, book, sql} <- sql(name, nil),
         {:ok, over} <-
           Table.sweep(sql, name, now(book, options), book.of_parts.approvals[:lease]) do
      Enum.each(over, &Notice.send/1)
      limit = Keyword.get(options, :limit, @default_limit)
      statuses = options |> Keyword.get(:status, [:pending]) |> List.wrap()

      # Entries that the profile sees no more are missing, as everywhere. So all are read, whose
      # number has a limit.
      all = %{Profile.unrestricted() | tenant: Keyword.get(options, :tenant, :all)}
      {whose, profile} = if view, do: {:own, view.profile}, else: {:all, all}

      count = if view, do: @max_limit + book.of_parts.approvals[:max_waiting], else: limit

      with :ok <- known(sql, name, options[:after], profile, view),
           {:ok, approvals} <-
             Table.list(sql, name, whose, profile, statuses, count, options[:after]),
           do: {:ok, approvals |> Enum.filter(&shown?(&1, view)) |> Enum.take(limit)}
    end
  end

  # Of a reference that the caller cannot list, there is no page.
  defp known(_sql, _book, nil, _profile, _view), do: :ok

  defp known(sql, book, ref, profile, view) do
    with {:ok, %{approval: approval}} <- Table.fetch(sql, book, ref),
         true <- profile.tenant == :all or approval.tenant in [nil, profile.tenant],
         true <- view == nil or approval.profile == view.profile.id,
         true <- shown?(approval, view) do
      :ok
    else
      {:error, %SQL.Error{} = error} -> {:error, error}
      _unknown -> {:error, %ApprovalError{kind: :unknown, ref: ref}}
    end
  end

  @doc "The approval of a reference, among those that `list/2` has."
  @spec find(atom() | View.t(), String.t(), keyword()) ::
          {:ok, Approval.t()} | {:error, Exception.t()}
  def find(view_or_book, ref, options) do
    options = [status: Approval.statuses(), limit: @max_limit] ++ options

    with {:ok, approvals} <- list(view_or_book, options) do
      case Enum.find(approvals, &(&1.ref == ref)) do
        nil -> {:error, %ApprovalError{kind: :unknown, ref: ref}}
        approval -> {:ok, approval}
      end
    end
  end

  defp shown?(_approval, nil), do: true
  defp shown?(approval, view), do: match?({:ok, _}, entry(view, approval.name))

  defp entry(view, name) do
    with {:ok, %{name: ^name} = entry} <- View.fetch(view, name),
         do: {:ok, entry},
         else: (_ -> :error)
  end

  @doc "As `Skillbook.approve/3`."
  @spec approve(atom(), String.t(), keyword()) :: {:ok, Approval.t()} | {:error, Exception.t()}
  def approve(name, ref, options) do
    stopping = fn -> {:error, %ApprovalError{kind: :stopping, ref: ref}} end
    Drain.run(name, fn -> approve_open(name, ref, options) end, stopping)
  end

  defp approve_open(name, ref, options) do
    with {:ok, book, sql, row} <- start(name, ref, options, approve_schema()),
         {:ok, profile} <- profile(book, row),
         view = View.of(name, profile),
         :ok <- check_entry(view, row, options[:force]),
         {:ok, assigns} <- assigns(row),
         {:ok, conversation} <-
           SuspendedRun.prepare(book, sql, row, profile, assigns, options[:resume]),
         {:ok, holder} <- claim(book, sql, row, options) do
      started = :counters.new(1, [])
      shown = SuspendedRun.shown(sql, row.approval)

      options = [
        assigns: assigns,
        by: row.made_by,
        shown: shown,
        approved: approved(row, started)
      ]

      result = run(book, sql, holder, view, row.approval, options, conversation)

      if :counters.get(started, 1) == 0,
        do: release(sql, holder, row.approval, result),
        else: finish(book, sql, holder, row.approval, result, conversation)
    end
  end

  # Words such as "tomorrow" mean the day of the call.
  defp approved(row, started),
    do: %{today: DateTime.to_date(row.approval.asked_at), started: started}

  @doc "As `Skillbook.deny/3`."
  @spec deny(atom(), String.t(), keyword()) :: {:ok, Approval.t()} | {:error, Exception.t()}
  def deny(name, ref, options) do
    with {:ok, book, sql, row} <- start(name, ref, options, deny_schema()),
         {:ok, conversation} <- denied_conversation(book, sql, row, options[:resume]),
         denied = Table.deny(sql, ref, now(book, options), decision(options)),
         :ok <- taken(denied, book, sql, ref),
         {:ok, %{approval: approval}} <- fetch(sql, name, ref) do
      Notice.send(approval)
      result = SuspendedRun.result(approval)
      {:ok, %{approval | run: SuspendedRun.resume(conversation, approval, result)}}
    end
  end

  # A profile that is gone, or assigns that cannot be read, are no reason to keep a call.
  defp denied_conversation(_book, _sql, _row, no) when no in [nil, false], do: {:ok, nil}

  defp denied_conversation(book, sql, row, resume) do
    with {:ok, profile} <- profile(book, row),
         {:ok, assigns} <- assigns(row),
         do: SuspendedRun.prepare(book, sql, row, profile, assigns, resume)
  end

  # The pending call, after calls whose time is over have been marked.
  defp start(name, ref, options, schema) do
    with :ok <- Options.validate(options, "a decision", schema),
         :ok <- required(options),
         {:ok, book, sql} <- sql(name, ref),
         {:ok, over} <-
           Table.sweep(sql, name, now(book, options), book.of_parts.approvals[:lease]),
         Enum.each(over, &Notice.send/1),
         {:ok, row} <- fetch(sql, name, ref) do
      if row.approval.status == :pending,
        do: {:ok, book, sql, row},
        else: {:error, ApprovalError.decided(row.approval)}
    end
  end

  defp required(options) do
    if options[:by] do
      :ok
    else
      {:error, %OptionError{subject: "a decision", option: :by, problem: :missing}}
    end
  end

  defp sql(name, ref) do
    book = name && Book.fetch!(name)

    case book && Book.sql(book) do
      nil ->
        {:error, %ApprovalError{kind: :store, ref: ref}}

      sql ->
        if SQL.in_transaction?(sql),
          do: {:error, %ApprovalError{kind: :in_transaction, ref: ref}},
          else: {:ok, book, sql}
    end
  end

  defp fetch(sql, name, ref) do
    with {:error, :unknown} <- Table.fetch(sql, name, ref),
         do: {:error, %ApprovalError{kind: :unknown, ref: ref}}
  end

  # The rights are those of now.
  defp profile(book, %{approval: approval} = row) do
    with :error <- Rights.restore(book, approval.profile, row.rights),
         do: {:error, ApprovalError.new(:profile, approval)}
  end

  defp check_entry(view, %{approval: approval, hash: hash}, force) do
    case entry(view, approval.name) do
      {:ok, entry} ->
        if force == true or Pending.hash(view, entry) == hash,
          do: :ok,
          else: {:error, ApprovalError.new(:changed, approval)}

      :error ->
        {:error, ApprovalError.new(:entry, approval)}
    end
  end

  defp assigns(%{approval: approval, assigns: json}) do
    with :error <- Assigns.decode(json), do: {:error, ApprovalError.new(:assigns, approval)}
  end

  # The run

  defp claim(book, sql, row, options) do
    holder = State.new_id()
    ref = row.approval.ref
    until = lease_until(book)
    claimed = Table.claim(sql, ref, holder, until, now(book, options), decision(options))
    give_back(claimed, sql, ref, holder)
    with :ok <- taken(claimed, book, sql, ref), do: {:ok, holder}
  end

  # A claim whose answer was lost may be stored, and nobody runs the call: it waits again.
  defp give_back({:error, %SQL.Error{kind: :lost}}, sql, ref, holder),
    do: store(fn -> Table.release(sql, ref, holder) end)

  defp give_back(_claimed, _sql, _ref, _holder), do: :ok

  # Another decision came first, or its time ended just now.
  defp taken({:error, :taken}, book, sql, ref) do
    with {:ok, %{approval: approval}} <- fetch(sql, book.name, ref) do
      expired = if approval.status == :pending, do: %{approval | status: :expired}, else: approval
      {:error, ApprovalError.decided(expired)}
    end
  end

  defp taken(other, _book, _sql, _ref), do: other

  defp run(book, sql, holder, view, approval, options, conversation) do
    renewing = keep_lease(book, sql, approval.ref, holder)

    try do
      if conversation,
        do: run_in(conversation, view, approval, options),
        # Nobody reads the text of a page, so an agent follows it.
        else: Prose.carry_out(view, approval.command, options)
    catch
      kind, reason ->
        store(fn -> Table.interrupt(sql, approval.ref, holder, Book.now(book)) end)
        :erlang.raise(kind, reason, __STACKTRACE__)
    after
      Process.exit(renewing, :kill)
    end
  end

  defp run_in(conversation, view, approval, options) do
    options = [agent: SuspendedRun.agent(conversation)] ++ options
    [result] = Pipeline.commands(view, [approval.command], options)
    result
  end

  # Ends with the caller. A node that dies leaves the lease to pass.
  defp keep_lease(book, sql, ref, holder) do
    caller = self()

    {:ok, pid} =
      Task.Supervisor.start_child(Worker.supervisor(book.name), fn ->
        Process.monitor(caller)
        renew(book, sql, ref, holder)
      end)

    pid
  end

  defp renew(book, sql, ref, holder) do
    receive do
      {:DOWN, _, :process, _, _} -> :ok
    after
      max(div(book.of_parts.approvals[:lease], 3), 1) ->
        case Table.renew(sql, ref, holder, lease_until(book)) do
          {:ok, false} -> :ok
          _renewed_or_failed -> renew(book, sql, ref, holder)
        end
    end
  end

  # By the system's clock, since the clock of a test may stand still.
  defp lease_until(book),
    do: DateTime.add(DateTime.utc_now(), book.of_parts.approvals[:lease], :millisecond)

  # It was refused before it ran, so it waits again.
  defp release(sql, holder, approval, %Result{error: error}) do
    store(fn -> Table.release(sql, approval.ref, holder) end)
    {:error, error}
  end

  defp finish(book, sql, holder, %{ref: ref} = approval, result, conversation) do
    status = if result.status == :error, do: Drain.failed(book.name), else: :done
    finish = fn -> Table.finish(sql, approval, holder, Book.now(book), status, result) end

    if store(finish) != {:ok, true} do
      Logger.error(
        "the result of the approved call #{ref} was not stored: " <>
          "its lease has passed, or the database failed"
      )
    end

    with {:ok, %{approval: approval}} <- fetch(sql, book.name, ref) do
      Notice.send(approval)
      run = SuspendedRun.resume(conversation, approval, result)
      {:ok, %{approval | result: result, run: run}}
    end
  end

  defp store(fun, attempts \\ @attempts) do
    with {:error, _error} when attempts > 1 <- fun.() do
      Process.sleep(200)
      store(fun, attempts - 1)
    end
  end

  # Options

  defp decision(options), do: %{by: options[:by], reason: options[:reason]}

  defp now(book, options), do: options[:now] || Book.now(book)

  defp list_schema do
    statuses = Approval.statuses()

    [
      status:
        {"a status or a list of #{Enum.map_join(statuses, ", ", &inspect/1)}",
         &(&1 != [] and Enum.all?(List.wrap(&1), fn status -> status in statuses end))},
      limit:
        {"a whole number from 1 to #{@max_limit}", &(is_integer(&1) and &1 in 1..@max_limit)},
      after: {"the ref of an approval or nil", &(is_nil(&1) or Options.text?(&1))},
      tenant: {"text, nil or :all", &(&1 in [nil, :all] or Profile.name?(&1))},
      now: {"a DateTime", &is_struct(&1, DateTime)}
    ]
  end

  defp approve_schema, do: [force: {"a boolean", &is_boolean/1}] ++ deny_schema()

  defp deny_schema do
    [
      by: {"text of 1 to #{@max_text} characters", &text?/1},
      reason: {"text of 1 to #{@max_text} characters or nil", &(is_nil(&1) or text?(&1))},
      resume:
        {"a boolean or options of Skillbook.Agent.run/3",
         &(is_boolean(&1) or is_nil(&1) or Options.options?(&1))},
      now: {"a DateTime", &is_struct(&1, DateTime)}
    ]
  end

  defp text?(text), do: Options.text?(text) and String.length(text) <= @max_text
end
