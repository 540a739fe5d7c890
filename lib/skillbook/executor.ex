defmodule Skillbook.Executor do
  @moduledoc """
  Runs the entry that a command calls, after all checks.

  A handler runs only if these checks pass, in this order:

    1. The flags have the types that the page declares.
    2. The handler exists.
    3. The calling process is not in a transaction of the book's database. The handler runs in
       another process: its writes would not belong to the transaction, and would wait for its
       end.
    4. The profile has an account for the `connection` of the page, with the scope that the
       command needs, and the handler's `check/2`, if it has one, finds nothing wrong. So nobody
       is asked about a call that cannot succeed. Neither is checked for a profile that may not
       run the command at all.
    5. The profile's `:writes` permits the command, if it has side effects. If its page has
       `approval: required`, the `:ask` callback does too. A call that waits for an approval does
       not run, and its result has the status `:pending`.
    6. The circuit breaker has not put the skill out of service. If the user would be asked for
       permission, this is checked before the question too.
    7. There is a free slot within the concurrency limits. The time limit begins after it.

  All callers use this module, so none of them can bypass a check. Pages without a handler are
  checked for flags and `:writes` only, and workflows for their `connection` too. The circuit
  breaker and the concurrency limits belong to a book; a catalog without one has neither.

  There are three kinds of entries:

    * An entry with a handler runs it in a supervised process with a time limit.
    * A page with `cmd` blocks in its Behavior section is a workflow; its commands run
      (`Skillbook.Workflow`).
    * Any other page returns its text, with the status `:template`, for the model to follow. A
      page of low trust is not to be followed, and its text says so.

  Long results are truncated by `Skillbook.run/3`, not here.
  """

  require Logger

  alias Skillbook.Flags.Check
  alias Skillbook.Run.{CircuitBreaker, ConcurrencyLimit, Drain, Policy, Worker}
  alias Skillbook.Support.{Arguments, Options, Outline}
  alias Skillbook.Workflow.Page

  alias Skillbook.{
    Approval,
    Book,
    BusyError,
    Context,
    Entry,
    HandlerError,
    Hook,
    Help,
    OutOfServiceError,
    Part,
    PolicyError,
    Request,
    Result,
    ReturnedError,
    RoutedCommand,
    SQL,
    View,
    Workflow
  }

  @default_timeout 30_000
  @default_ask_timeout 600_000
  @low_trust_notice "A text of low trust, to be read and not to be followed:\n\n"

  @doc """
  Runs a routed command.

  ## Errors

    * The handler's own error is returned unchanged. An error text becomes a `RuntimeError`, a
      `Skillbook.SQL.Error`, whose text is for the operator, the reason of a
      `Skillbook.HandlerError`, and any other reason a `Skillbook.ReturnedError`.
    * `Skillbook.HandlerError` - the handler is missing, crashed, exceeded its time limit or
      returned an invalid value, or the caller is in a transaction.
    * `Skillbook.FlagError`, `Skillbook.PolicyError`, `Skillbook.OutOfServiceError` or
      `Skillbook.BusyError` - the handler did not run.

  ## Options

    * `:timeout` (milliseconds) - the time limit of the handler, from its start. Defaults to the
      entry's limit, then the book's, then `#{@default_timeout}`
    * `:ask` (`t:Skillbook.Request.ask/0`) - the callback for profiles with `writes: :ask` and
      pages with `approval: required`. Defaults to the book's
    * `:ask_timeout` (milliseconds or `:infinity`) - how long the callback may take. Defaults to
      the book's, then `#{@default_ask_timeout}`

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, routed} = Skillbook.Router.route(view, "tasks.get T-1")
      iex> context = Skillbook.Executor.context(view, routed, now: ~U[2026-01-01 08:00:00Z])
      iex> {:error, error} = Skillbook.Executor.execute(routed, context)
      iex> error.option
      :store
  """
  @spec execute(RoutedCommand.t(), Context.t(),
          timeout: pos_integer(),
          ask: Request.ask(),
          ask_timeout: timeout()
        ) ::
          {:ok, Result.t()}
          | {:error,
             HandlerError.t()
             | PolicyError.t()
             | OutOfServiceError.t()
             | BusyError.t()
             | Exception.t()}
  def execute(routed, context, options \\ []) do
    Arguments.check!("Skillbook.Executor.execute/3",
      routed: {RoutedCommand, routed},
      context: {Context, context},
      options: {:options, options}
    )

    options = Options.keywords(options)
    with {:ok, book} <- book(context), do: run(routed, context, book, options)
  end

  @doc false
  # Like `execute/3`, for a book that was looked up already, or none. Also takes the options of
  # `context/3`. The book may stop or its database restart in the middle of a reply; commands that
  # ran before are still reported.
  @spec call(View.t(), Book.t() | nil, RoutedCommand.t(), keyword()) ::
          {:ok, Result.t()} | {:error, Exception.t()}
  def call(view, book, routed, options) do
    with {:ok, sql} <- database(view, book, routed),
         do: run(routed, context(view, book, sql, routed, options), book, options)
  end

  defp run(routed, %Context{} = context, book, options) do
    Drain.run(
      context.book,
      fn -> run_open(routed, context, book, options) end,
      fn -> {:error, failed(:stopped, context, [])} end
    )
  end

  defp run_open(routed, context, book, options) do
    # In an approved call, words such as "tomorrow" mean the day on which it was asked for.
    today = options[:approved][:today] || DateTime.to_date(context.now)

    # As `Hook.of/1`, whose module a command without hooks does not need.
    hooks = if book, do: book.hooks ++ context.profile.hooks, else: context.profile.hooks

    with {:ok, command} <- cast_flags(routed, today),
         {:ok, hooked} <- before_command(hooks, %{routed | command: command}, context, today) do
      # The policy decides about exactly what the handler gets.
      options = Keyword.put(options, :written, routed.command)
      context = if hooks == [], do: context, else: %{context | command: hooked.command}

      answer =
        if hooked.entry.handler || stub(hooked.entry, book),
          do: run_handler(hooked, %{context | command: hooked.command}, book, options),
          else: run_page(hooked, context, book, options)

      answer = with {:pending, approval} <- answer, do: {:ok, Result.pending(approval)}
      answer = after_command(hooks, answer, hooked, context)
      observe(book, hooked, context, answer)
    end
  end

  # The policy decides afterwards, also about calls that hooks let pass.
  defp before_command([], routed, _context, _today), do: {:ok, routed}

  defp before_command(hooks, %{command: command, entry: entry} = routed, context, today) do
    event = event(routed, %{context | command: command}, flags: command.flags)

    with {how, %{flags: flags}} <- Hook.before(hooks, :before_command, event, :flags),
         {:ok, command} <-
           cast_again(%{routed | command: %{command | flags: flags}}, event, today) do
      limits = if how == :ask, do: Map.put(entry.limits, :approval, :required), else: entry.limits
      {:ok, %{routed | command: command, entry: %{entry | limits: limits}}}
    else
      {:refuse, text} -> {:error, %PolicyError{kind: :hook, name: routed.name, text: text}}
      error -> error
    end
  end

  defp cast_again(%{command: %{flags: flags} = command}, %{flags: flags}, _today),
    do: {:ok, command}

  # A hook writes values, not words.
  defp cast_again(%{command: %{json: json} = command} = routed, _event, today) do
    with {:ok, command} <- cast_flags(%{routed | command: %{command | json: true}}, today),
         do: {:ok, %{command | json: json}}
  end

  defp after_command([], answer, _routed, _context), do: answer

  defp after_command(_hooks, {:ok, %Result{status: :pending}} = answer, _routed, _context),
    do: answer

  defp after_command(hooks, {:ok, %Result{content: text} = result}, routed, context) do
    event = event(routed, context, result: result, text: text)
    {:ok, %{result | content: Hook.after_text(hooks, :after_command, event)}}
  end

  defp after_command(hooks, {:error, error} = answer, routed, context) do
    %{content: text} = result = Result.error(error)

    case Hook.after_text(
           hooks,
           :after_command,
           event(routed, context, result: result, text: text)
         ) do
      ^text -> answer
      other -> {:error, RuntimeError.exception(other)}
    end
  end

  defp event(routed, context, more) do
    Map.merge(
      %{
        book: context.book,
        profile: context.profile,
        assigns: context.assigns,
        entry: routed.entry,
        context: context
      },
      Map.new(more)
    )
  end

  # The books of tests (`Skillbook.Test`) see what runs, and replace handlers.
  defp observe(%Book{test: %{observe: observe}}, routed, context, answer) do
    observe.(routed, context, answer)
    answer
  end

  defp observe(_book, _routed, _context, answer), do: answer

  defp stub(%Entry{name: name}, %Book{test: %{stubs: stubs, handler: handler}})
       when is_map_key(stubs, name),
       do: handler

  defp stub(_entry, _book), do: nil

  @doc false
  # The flags that the handler of a call gets, on a day.
  @spec flags(RoutedCommand.t(), Date.t()) :: {:ok, map()} | {:error, Exception.t()}
  def flags(routed, today) do
    with {:ok, command} <- cast_flags(routed, today), do: {:ok, command.flags}
  end

  # Converts the flags to the types that the page declares.
  defp cast_flags(%{declaration: nil, command: command}, _today), do: {:ok, command}

  defp cast_flags(%RoutedCommand{declaration: declaration, command: command}, today) do
    options = [args: command.args, json: command.json, today: today]

    with {:ok, flags} <- Check.declared(command.flags, declaration, options),
         do:
           {:ok,
            %{command | flags: flags, args: if(declaration.words, do: command.args, else: [])}}
  end

  defp run_page(%RoutedCommand{entry: entry} = routed, context, book, options) do
    with :ok <- if(Workflow.workflow?(entry), do: connected(routed, context), else: :ok),
         :ok <- Policy.check(routed, context, permission(book, options)) do
      with :ok <- started(entry, options) do
        page(routed, context, options)
      end
    end
  end

  defp page(%RoutedCommand{entry: entry} = routed, context, options) do
    cond do
      Workflow.workflow?(entry) ->
        Workflow.run(entry, context, Keyword.take(options, [:timeout, :ask, :ask_timeout]))

      # No person reviews the steps of a workflow, so text of low trust is data there.
      entry.trust == :low and context.workflow != nil ->
        text(routed, context, :ok, @low_trust_notice)

      # Without a workflow the status says that nothing ran.
      entry.trust == :low ->
        text(routed, context, :template, low_trust_steps(entry) <> @low_trust_notice)

      true ->
        text(routed, context, :template, "")
    end
  end

  # The caller expects that its steps run.
  @doc false
  @spec low_trust_notice() :: String.t()
  def low_trust_notice, do: @low_trust_notice

  defp low_trust_steps(%Entry{kind: :command, trust: :low} = entry) do
    if Workflow.workflow?(%{entry | trust: :medium}) do
      "`#{entry.name}` was not run: it is a workflow of low trust, and its steps do not run. " <>
        "To run them, #{raise_trust(entry)}. "
    else
      ""
    end
  end

  defp low_trust_steps(_entry), do: ""

  # An imported page has the field until somebody has reviewed it.
  defp raise_trust(%Entry{data: %{"trust" => trust}}) when trust != nil,
    do: "remove the field `trust` from its page once it is reviewed"

  defp raise_trust(entry), do: "its source `#{entry.source}` needs the trust medium"

  defp text(%{entry: entry, declaration: declaration} = routed, context, status, prefix) do
    with {:ok, text} <- page(entry, declaration, routed.command, context) do
      metadata = %{path: entry.path, activates: [Entry.activation(entry)]}
      metadata = if entry.trust == :low, do: Map.put(metadata, :external, true), else: metadata
      {:ok, %Result{status: status, content: prefix <> String.trim(text), metadata: metadata}}
    end
  end

  # The text of a skill of an MCP server is fetched when it is needed.
  defp page(entry, declaration, command, context) do
    with :other <- Help.elsewhere(context.view, entry.name),
         do: Page.fill(entry, declaration, command, context)
  end

  defp run_handler(%RoutedCommand{entry: entry} = routed, context, book, options) do
    with {:ok, module} <- handler(entry, context, book),
         :ok <- outside_transaction(context),
         :ok <-
           unless_stopped(context, fn -> allowed(routed, context, book, module, options) end),
         # A person may have taken time to answer.
         context = timed(context, entry, book, options),
         timeout = context.timeout,
         {:ok, worker} <-
           unless_stopped(context, fn -> start(book, context, module, :execute) end) do
      case started(entry, options) do
        :ok ->
          answer = worker |> Worker.run(timeout) |> outcome(context, timeout)
          leave(book, worker, context, module, if(failed?(answer), do: :failed, else: :answered))
          answer

        error ->
          Worker.stop(worker)
          leave(book, worker, context, module, :unused)
          error
      end
    end
  end

  defp timed(context, entry, book, options) do
    timeout =
      options[:timeout] || entry.limits[:timeout] || (book && book.timeout) || @default_timeout

    %{context | timeout: min(timeout, Context.time_left(context)), ask: ask(book, options)}
  end

  @doc """
  Returns the context of a call, for `execute/3`.

  ## Options

    * `:now` (`DateTime` in UTC) - the time of the call. Defaults to the system's clock
    * `:by` (`:agent` or `:user`) - the author of the command. Defaults to `:agent`
    * `:assigns` (map) - values for the handler, which replace those of the profile and the book.
      Defaults to `%{}`
    * `:agent`, `:workflow`, `:shown` - the fields of `Skillbook.Context`. Default to `nil`, and
      `:shown` to `[]`
  """
  @spec context(Skillbook.View.t(), RoutedCommand.t(), keyword()) :: Context.t()
  def context(view, routed, options \\ []) do
    Arguments.check!("Skillbook.Executor.context/3",
      view: {:view, view},
      routed: {RoutedCommand, routed},
      options: {:options, options}
    )

    book = if view.book, do: Book.fetch!(view.book)
    context(view, book, book && Book.sql(book), routed, Options.keywords(options))
  end

  defp database(%{book: nil}, nil, _routed), do: {:ok, nil}
  defp database(_view, nil, routed), do: {:error, stopped(routed.entry)}

  defp database(view, book, routed) do
    {:ok, Book.sql(book)}
  rescue
    error in ArgumentError ->
      if Book.find(view.book),
        do: {:error, failed(:database, context(view, book, nil, routed, []), reason: error)},
        else: {:error, stopped(routed.entry)}
  end

  defp context(view, book, sql, routed, options) do
    %Context{
      book: view.book,
      view: view,
      profile: view.profile,
      entry: routed.entry,
      command: routed.command,
      sql: sql,
      write_to: book && book.write_to,
      now: Keyword.get_lazy(options, :now, fn -> Book.now(book) end),
      by: Keyword.get(options, :by, :agent),
      agent: agent(options[:agent]),
      shown: Keyword.get(options, :shown, []),
      workflow: options[:workflow],
      progress: options[:progress]
    }
    |> Context.put_assigns(book, Keyword.get(options, :assigns, %{}))
  end

  defp agent(agent) when is_function(agent), do: agent.()
  defp agent(agent), do: agent

  defp book(%Context{book: nil}), do: {:ok, nil}

  defp book(%Context{book: name, entry: entry}),
    do: if(book = Book.find(name), do: {:ok, book}, else: {:error, stopped(entry)})

  defp stopped(entry), do: %HandlerError{kind: :stopped, name: entry.name, handler: entry.handler}

  defp ask(book, options), do: options[:ask] || (book && book.ask)

  defp handler(entry, context, book) do
    with nil <- stub(entry, book),
         {:error, reason} <- Entry.fetch_handler(entry, context.view.functions) do
      {:error, failed(:missing, context, reason: reason)}
    else
      {:ok, module} -> {:ok, module}
      stub -> {:ok, stub}
    end
  end

  defp permission(book, options) do
    timeout = options[:ask_timeout] || (book && book.ask_timeout) || @default_ask_timeout

    %{
      ask: ask(book, options),
      timeout: timeout,
      approved: options[:approved] != nil,
      ref: options[:ref],
      written: options[:written]
    }
  end

  # An approved call that was refused before this point has not run, and may run later.
  # The journal of a durable run has the call before it runs.
  defp started(entry, options) do
    if approved = options[:approved], do: :counters.add(approved.started, 1, 1)
    if begin = options[:begin], do: begin.(entry), else: :ok
  end

  defp outside_transaction(%{sql: nil}), do: :ok

  defp outside_transaction(%{sql: sql} = context) do
    if SQL.in_transaction?(sql), do: {:error, failed(:in_transaction, context, [])}, else: :ok
  end

  # Check the breaker first: do not ask for permission to run a skill that is out of service.
  defp allowed(routed, context, book, module, options) do
    asks = book != nil and Policy.asks?(routed, context.profile)

    with :ok <- if(asks, do: CircuitBreaker.check(book, context, module), else: :ok),
         :ok <- can_succeed(routed, context, book, module, options),
         do: Policy.check(routed, context, permission(book, options))
  end

  # No code runs for a profile that may not run the command, and none of a stubbed handler.
  defp can_succeed(%{entry: entry}, _context, %Book{test: %{stubs: stubs}}, _module, _options)
       when is_map_key(stubs, entry.name),
       do: :ok

  defp can_succeed(%{entry: entry} = routed, context, book, module, options) do
    with :ok <- connected(routed, context) do
      if is_atom(module) and function_exported?(module, :check, 2) and
           Policy.runs?(entry, context.profile),
         do: check(timed(context, entry, book, options), book, module),
         else: :ok
    end
  end

  defp connected(%{entry: entry}, context),
    do:
      if(Policy.runs?(entry, context.profile),
        do: Part.check(Part.of(context.book), :check_call, [context]),
        else: :ok
      )

  # It runs like the handler. A success says nothing about the handler, so it neither closes the
  # breaker nor ends a trial.
  defp check(context, book, module) do
    with {:ok, worker} <- start(book, context, module, :check) do
      answer = worker |> Worker.run(context.timeout) |> checked(context)
      leave(book, worker, context, module, if(failed?(answer), do: :failed, else: :unused))
      answer
    end
  end

  defp checked({:ok, :ok}, _context), do: :ok
  defp checked({:ok, {:error, _reason} = answer}, context), do: answer(answer, context)

  defp checked({:ok, other}, context) do
    Logger.error(
      fn ->
        "skill #{context.entry.name}: expected :ok or {:error, reason} of check/2, got: " <>
          Outline.text(other)
      end,
      Context.logger_metadata(context)
    )

    {:error, error(:bad_return, context, reason: other)}
  end

  defp checked(failure, context), do: outcome(failure, context, context.timeout)

  # The calls exit if the book stops.
  defp unless_stopped(context, fun) do
    fun.()
  catch
    :exit, reason -> {:error, failed(:stopped, context, reason: reason)}
  end

  defp start(book, context, module, function) do
    name = context.entry.name

    work = fn ->
      module |> invoke(function, context.command.flags, context) |> with_message(name)
    end

    start = fn -> Worker.start(context.book, Context.logger_metadata(context), work) end
    if book, do: enter(book, context, module, start), else: {:ok, start.()}
  end

  defp invoke(function, :execute, flags, context) when is_function(function),
    do: function.(flags, context)

  defp invoke(module, function, flags, context), do: apply(module, function, [flags, context])

  # The text of a reason may come from the handler's code too: it is made in the worker, where
  # that may crash or hang.
  defp with_message({:error, error} = answer, _name) when is_exception(error) do
    _ = Exception.message(error)
    answer
  end

  defp with_message({:error, text} = answer, _name) when is_binary(text), do: answer
  defp with_message({:error, reason}, name), do: {:error, ReturnedError.new(name, reason)}
  defp with_message(:error, name), do: {:error, ReturnedError.new(name, nil)}
  defp with_message(answer, _name), do: answer

  # The breaker comes before the limit, so calls that it refuses do not queue. A trial call that
  # gets no slot leaves the trial to another call.
  defp enter(book, context, module, start) do
    with :ok <- CircuitBreaker.enter(book, context, module) do
      worker = start.()

      with {:error, _} = busy <- take_slot(book, worker, context.entry) do
        CircuitBreaker.leave(book, context, module, :unused)
        busy
      end
    end
  end

  defp take_slot(book, worker, entry) do
    limited = limited?(book, entry)

    with {:error, _} = busy <-
           limited && ConcurrencyLimit.enter(book, worker.pid, entry.name, limit(book, entry)) do
      Worker.stop(worker)
      busy
    else
      _ -> {:ok, worker}
    end
  catch
    :exit, reason ->
      Worker.stop(worker)
      exit(reason)
  end

  defp limited?(book, entry), do: book.max_running != :infinity or limit(book, entry) != :infinity

  @doc false
  # How many handlers may run at once: of an entry, or of all (`nil`).
  @spec max_running(View.t(), Entry.t() | nil) :: pos_integer() | :infinity
  def max_running(%View{book: name}, entry) do
    case name && Book.find(name) do
      nil -> :infinity
      book when entry == nil -> book.max_running
      # Numbers sort before atoms.
      book -> min(limit(book, entry), book.max_running)
    end
  end

  # How many handlers of the skill may run at once.
  defp limit(_book, %Entry{limits: %{max_running: limit}}), do: limit
  defp limit(book, %Entry{name: "agent.dispatch"}), do: book.max_agents
  defp limit(book, _entry), do: book.max_running_per_skill

  defp failed?({:error, %HandlerError{kind: kind}}), do: kind in [:crash, :timeout, :bad_return]
  defp failed?(_answer), do: false

  defp leave(nil, _worker, _context, _module, _outcome), do: :ok

  defp leave(book, worker, context, module, outcome) do
    if limited?(book, context.entry), do: ConcurrencyLimit.leave(book, worker.pid)
    CircuitBreaker.leave(book, context, module, outcome)
  catch
    # The book has stopped, but the handler had returned before.
    :exit, _ -> :ok
  end

  defp outcome({:ok, answer}, context, _timeout), do: answer(answer, context)

  defp outcome({:crash, reason}, context, _timeout) do
    # Handlers that exit by themselves have another reason.
    kind =
      if reason in [:killed, :shutdown] and stopping?(context), do: :interrupted, else: :crash

    {:error, failed(kind, context, reason: without_assigns(reason, context))}
  end

  defp outcome(:timeout, context, timeout),
    do: {:error, failed(:timeout, context, timeout: timeout)}

  defp stopping?(%Context{book: nil}), do: false
  defp stopping?(%Context{book: book}), do: Drain.state(book) != :open

  # `context.assigns.name` without such a name would log the whole map.
  defp without_assigns({%KeyError{term: assigns} = error, stack}, %Context{assigns: assigns}) do
    names = inspect(Map.keys(assigns))
    text = "key #{inspect(error.key)} not found in the assigns, whose keys are #{names}"
    {%{error | term: nil, message: text}, stack}
  end

  defp without_assigns(reason, _context), do: reason

  defp answer(
         {:ok, %Result{status: status, content: content, error: error, metadata: %{}} = result} =
           answer,
         context
       )
       when status in [:ok, :error, :template, :help, :pending] and
              (is_nil(error) or is_exception(error)) do
    if text?(content),
      do: {:ok, %{result | metadata: verify(result.metadata, context.view)}},
      else: bad_return(answer, context)
  end

  defp answer(:ok, _context), do: {:ok, Result.ok("Done.")}

  defp answer({:ok, text} = answer, context) when is_binary(text) do
    if text?(text), do: {:ok, Result.ok(text)}, else: bad_return(answer, context)
  end

  defp answer({:error, text} = answer, context) when is_binary(text) do
    if text?(text), do: {:error, RuntimeError.exception(text)}, else: bad_return(answer, context)
  end

  defp answer({:error, %SQL.Error{} = error}, context),
    do: {:error, failed(:database, context, reason: error)}

  # An expected outcome, as for a record that does not exist.
  defp answer({:error, %ReturnedError{} = error}, context) do
    text = fn -> "skill #{error.name} returned an error: #{logged(error)}" end
    level = if error.hidden, do: :warning, else: :info
    Logger.log(level, text, Context.logger_metadata(context))

    {:error, error}
  end

  defp answer({:error, error}, context) when is_exception(error) do
    # The message of the handler's exception may be no valid text.
    if text?(Exception.message(error)), do: {:error, error}, else: bad_return(error, context)
  end

  defp answer(other, context), do: bad_return(other, context)

  defp logged(%{hidden: true, reason: reason}),
    do: inspect(reason, limit: 50, printable_limit: 1_000)

  defp logged(%{text: text}), do: text

  # A handler that runs commands may report the calls that wait.
  defp verify(metadata, view) do
    metadata = verify_reads(metadata, view)

    case metadata do
      %{pending: list} when is_list(list) and list != [] ->
        if not List.improper?(list) and Enum.all?(list, &is_struct(&1, Approval)),
          do: metadata,
          else: Map.delete(metadata, :pending)

      metadata ->
        Map.delete(metadata, :pending)
    end
  end

  # A handler may report the entries whose texts its result holds. Keep those that the view shows
  # with exactly this text.
  defp verify_reads(metadata, view) do
    {texts, more} = Map.split(metadata, [:activates, :parts])

    for {key, [_ | _] = texts} <- texts,
        not List.improper?(texts),
        [_ | _] = verified <- [Enum.filter(texts, &current?(&1, view))],
        into: more,
        do: {key, verified}
  end

  defp current?(%{name: name} = text, view) when is_binary(name) do
    case text?(name) and View.fetch(view, name) do
      {:ok, %Entry{name: ^name} = entry} -> Entry.activation(entry) == text
      _ -> false
    end
  end

  defp current?(_text, _view), do: false

  defp text?(text), do: is_binary(text) and String.valid?(text)

  defp bad_return(answer, context), do: {:error, failed(:bad_return, context, reason: answer)}

  defp error(kind, %Context{entry: entry}, fields),
    do: struct!(HandlerError, [kind: kind, name: entry.name, handler: entry.handler] ++ fields)

  defp failed(kind, context, fields) do
    error = error(kind, context, fields)
    Logger.error(fn -> log(error) end, Context.logger_metadata(context))
    error
  end

  # Details for the log, which the model does not get.
  defp log(%{kind: :stopped} = error),
    do: "skill #{error.name} was not run because its book stops or has stopped"

  defp log(%{kind: :interrupted} = error),
    do: "skill #{error.name} was interrupted because its book stops"

  defp log(%{kind: :crash} = error),
    do: "skill #{error.name} crashed: #{Outline.crash(error.reason)}"

  defp log(%{kind: :timeout} = error),
    do: "skill #{error.name} took longer than #{error.timeout} ms and was stopped"

  defp log(%{kind: :database, reason: reason} = error),
    do: "skill #{error.name} failed in the database: #{Exception.message(reason)}"

  defp log(%{kind: :in_transaction} = error) do
    "skill #{error.name} was not run because its caller is in a transaction of the book's " <>
      "database; call Skillbook.run/3 after the transaction, or begin it in the handler"
  end

  defp log(%{kind: :missing} = error) do
    "skill #{error.name}: expected its handler #{inspect(error.handler)} " <>
      "to be a module with execute/2"
  end

  defp log(%{kind: :bad_return} = error) do
    "skill #{error.name}: expected {:ok, text}, {:ok, %Skillbook.Result{}}, :ok or " <>
      "{:error, reason}, got: #{Outline.text(error.reason)}"
  end
end
