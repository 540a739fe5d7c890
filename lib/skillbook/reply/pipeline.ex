defmodule Skillbook.Reply.Pipeline do
  @moduledoc false
  # Runs the commands of a reply and returns a report. Each command passes the router, the
  # placeholders, the executor and the truncation.

  alias Skillbook.Book.Config
  alias Skillbook.Reply.{Placeholder, StrayCommands, Truncation}
  alias Skillbook.Run.Policy
  alias Skillbook.Support.{Hidden, Options}

  alias Skillbook.{
    Book,
    Command,
    Entry,
    Executor,
    Extractor,
    FlagError,
    HandlerError,
    PlaceholderError,
    PolicyError,
    Report,
    Result,
    Router,
    Telemetry,
    View
  }

  @waited {Policy, :waited}
  # 1.5 times the recommended page size.
  @default_max_result 30_000
  # The effects of commands that change what a view shows.
  @writes ~w(skill_created skill_updated skill_restored skill_enabled skill_disabled skill_deleted
             note_added note_updated note_deleted)a
  @skipped "Not run, because a command before it failed. If it is still wanted, write it again."

  @doc "Runs the commands of a reply."
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  def run(%View{} = view, text, options) do
    check(options, [unclosed: {":hold or :run", &(&1 in [:hold, :run])}] ++ schema())
    {unclosed, options} = Keyword.pop(options, :unclosed, :hold)

    case Extractor.extract(text, unclosed: unclosed) do
      {:ok, extraction} ->
        results = each(view, extraction.commands, options)

        %Report{
          text: own(extraction.text),
          results: results,
          incomplete: Enum.map(extraction.incomplete, &own/1),
          notes: notes(view, text, extraction)
        }

      {:error, error} ->
        # A reply whose commands cannot be extracted is still text for the user.
        result = Result.error(error)
        result = %{result | content: Hidden.visible(result.content)}
        %Report{text: printable(text), results: [result]}
    end
  end

  @doc """
  Runs commands, one after the other. Takes the options of `run/3` except `:unclosed`.

  The `:journal` of a durable run gets the number of a command, its line, and a function that runs
  it with the options that the journal adds. It returns `{:ran, answer}`, or `{:known, answer}`
  for a command that ran before.
  """
  @spec commands(View.t(), [String.t()], keyword()) :: [Result.t()]
  def commands(%View{} = view, lines, options \\ []) do
    check(options, schema())
    each(view, lines, options)
  end

  # The extractor returns parts of the reply, and a part keeps the whole reply in memory. Results,
  # and flags in handlers, may be kept for long.
  defp own(part) do
    if :binary.referenced_byte_size(part) > 2 * byte_size(part),
      do: :binary.copy(part),
      else: part
  end

  # Search for stray commands only in replies without commands or with an unclosed code block.
  defp notes(_view, _text, %{commands: [_ | _]} = extraction)
       when not is_map_key(extraction, :hidden),
       do: []

  defp notes(view, text, extraction), do: StrayCommands.notes(view, text, extraction)

  defp each(view, lines, options) do
    {on_error, options} = Keyword.pop(options, :on_error, :continue)
    {journal, options} = Keyword.pop(options, :journal)

    {results, _} =
      lines
      |> Enum.with_index(1)
      |> Enum.map_reduce({view, false, %{}}, fn
        {line, _number}, {view, true, before} ->
          {notify(skipped(own(line)), options), {view, true, before}}

        {line, number}, {view, false, before} ->
          line = own(line)
          view = with {:written, view} <- view, do: renew(view)
          run = &command(view, line, fn command -> fill(command, before) end, &1 ++ options)

          {result, full_text} =
            case if(journal, do: journal.(number, line, run), else: {:ran, run.([])}) do
              # Told when it ran.
              {:known, known} -> known
              {:ran, {result, full_text}} -> {notify(result, options), full_text}
            end

          before = Map.put(before, map_size(before) + 1, {result.status, full_text})
          view = if written?(result), do: {:written, view}, else: view
          {result, {view, on_error == :halt and result.status in [:error, :pending], before}}
      end)

    results
  end

  @doc "The result of a command that does not run because one before it failed."
  @spec skipped(String.t()) :: Result.t()
  def skipped(line),
    do: %Result{status: :skipped, content: @skipped, command: line, duration: 0}

  @doc "The view for the commands after those with these results."
  @spec view_after(View.t(), [Result.t()]) :: View.t()
  def view_after(view, results),
    do: if(Enum.any?(results, &written?/1), do: renew(view), else: view)

  # A reply may run a workflow that it has built, so the commands after one that writes skills get
  # a view with the change.
  defp written?(%Result{effects: effects}), do: Enum.any?(effects, &(&1 in @writes))

  defp renew(%View{book: nil} = view), do: view

  # The book may have stopped, or its database may be unreachable, which the next command reports.
  defp renew(view) do
    case View.fetch_of(view.book, view.profile) do
      {:ok, view} -> view
      {:error, _error} -> view
    end
  rescue
    ArgumentError -> view
  end

  defp fill(%Command{placeholders: []} = command, _before), do: {:ok, command}
  defp fill(command, before), do: Placeholder.fill(command, &value(&1, before))

  # The value of a placeholder is the full text of a result, also if the model got a part only.
  defp value(:last, before), do: value(:last, map_size(before), before)
  defp value(number, before), do: value(number, number, before)

  defp value(reference, number, before) do
    case before do
      %{^number => {:error, _}} ->
        {:error, %PlaceholderError{kind: :failed, reference: reference, number: number}}

      %{^number => {:pending, _}} ->
        {:error, %PlaceholderError{kind: :pending, reference: reference, number: number}}

      %{^number => {_status, text}} ->
        {:ok, text}

      _ ->
        {:error,
         %PlaceholderError{kind: :none, reference: reference, number: map_size(before) + 1}}
    end
  end

  defp notify(result, options) do
    if on_result = options[:on_result], do: on_result.(result)
    result
  end

  defp check([], _schema), do: :ok

  defp check(options, schema) do
    with {:error, error} <- Options.validate(options, "run", schema), do: raise(error)
  end

  @doc """
  Runs one command and returns its result, and the full text of the result before truncation.

  `fill` replaces the placeholders. Takes the options of `commands/3`, and `:workflow`, the field
  of `Skillbook.Context` for a step of a workflow.
  """
  @spec command(
          View.t(),
          String.t(),
          (Command.t() -> {:ok, Command.t()} | {:error, Exception.t()}),
          keyword()
        ) ::
          {Result.t(), String.t()}
  def command(view, line, fill, options) do
    began = System.monotonic_time()
    route = Router.find(view, line, fill)
    book = Book.find(view.book)
    metadata = metadata(view, book, route)

    run = fn ->
      {result, waited} = measure_answers(fn -> result(route, view, book, fill, options) end)

      # Placeholders get the text as stored, the model gets hidden characters as codes.
      full_text = result.content
      result = %{result | content: Hidden.visible(full_text)}
      max = options[:max_result] || (book && book.max_result) || @default_max_result
      result = truncate(%{result | name: metadata.skill, command: line}, view, max)
      duration = System.monotonic_time() - began - waited
      duration = System.convert_time_unit(duration, :native, :microsecond)
      ended(%{result | duration: duration}, full_text)
    end

    Telemetry.span([:skillbook, :command], metadata, run, %{status: :error})
  end

  # Returns the function's result, and how long the policy waited in it for an answer to `:ask`:
  # the time of a person, not of the command. A step of a workflow is a call within a call.
  defp measure_answers(fun) do
    outer = Process.put(@waited, 0)
    result = fun.()
    waited = Process.get(@waited, 0)
    if outer, do: Process.put(@waited, outer + waited), else: Process.delete(@waited)
    {result, waited}
  end

  # A text has at least as many bytes as characters, so a short one is not counted. A page of a
  # stored result (`:cut`) gets its notice in any case.
  defp truncate(%Result{content: content, metadata: metadata} = result, _view, max)
       when byte_size(content) <= max and not is_map_key(metadata, :cut),
       do: result

  defp truncate(result, view, max), do: Truncation.result(result, view, max)

  # An error that the handler returned is a normal end; a missing result is an exception.
  defp ended(%Result{error: %HandlerError{kind: kind}} = result, full_text),
    do: {:exception, {result, full_text}, %{status: :error, kind: kind}}

  defp ended(result, full_text),
    do: {:stop, {result, full_text}, %{status: result.status, reads: reads(result.metadata)}}

  # The names of the entries whose texts, or parts of them, the result holds.
  defp reads(metadata) do
    names = for key <- [:activates, :parts], entry <- metadata[key] || [], do: entry.name
    Enum.uniq(names)
  end

  # The metadata of the telemetry events. The text of an unknown command is left out, since it may
  # hold a secret. Flags are those that the handler gets; as written if they cannot be converted,
  # as with placeholders that are not filled in yet.
  defp metadata(view, book, route) do
    metadata = %{
      book: view.book,
      profile: view.profile.id,
      tenant: view.profile.tenant,
      generation: view.generation,
      skill: nil,
      effect: nil
    }

    case route do
      {:ok, %{entry: entry} = routed} ->
        metadata = %{metadata | skill: entry.name, effect: Entry.effect(entry)}
        flags? = book != nil and book.telemetry_flags
        if flags?, do: Map.put(metadata, :flags, flags(routed, book)), else: metadata

      _ ->
        metadata
    end
  end

  defp flags(routed, book) do
    case Executor.flags(routed, DateTime.to_date(Book.now(book))) do
      {:ok, flags} -> flags
      {:error, _error} -> routed.command.flags
    end
  end

  defp result({:help, text, entries, skills}, _view, _book, _fill, _options) do
    metadata =
      for {key, [_ | _] = entries} <- [activates: entries, parts: skills],
          into: %{},
          do: {key, Enum.map(entries, &Entry.activation/1)}

    %Result{status: :help, content: text, metadata: metadata}
  end

  defp result({:error, error}, _view, _book, _fill, _options), do: Result.error(error)

  defp result({:ok, routed}, view, book, fill, options) do
    with {:ok, command} <- fill.(routed.command),
         {:ok, result} <- Executor.call(view, book, %{routed | command: command}, options) do
      result
    else
      {:error, error} -> Result.error(in_terms_of_caller(error, options))
    end
  end

  defp in_terms_of_caller(%error{} = e, options) when error in [FlagError, PolicyError],
    do: %{e | json: options[:json] || false}

  defp in_terms_of_caller(error, _options), do: error

  defp printable(text, done \\ []) do
    case :unicode.characters_to_binary(text) do
      good when is_binary(good) -> IO.iodata_to_binary([done, good])
      {:error, good, <<_, rest::binary>>} -> printable(rest, [done, good, "\uFFFD"])
      {:incomplete, good, _rest} -> IO.iodata_to_binary([done, good, "\uFFFD"])
    end
  end

  defp schema do
    [
      on_error: {":continue or :halt", &(&1 in [:continue, :halt])},
      assigns: {"a map or a keyword list", &Options.assigns?/1},
      now: {"a DateTime", &is_struct(&1, DateTime)},
      by: {":agent or :user", &(&1 in [:agent, :user])},
      ask: {"a function of one argument, {module, function} or nil", &Config.ask?/1},
      ask_timeout: {"a number of milliseconds or :infinity", &Config.ask_timeout?/1},
      approved: {"the :approved of an approved call", &is_map/1},
      max_result: {"a number of characters or :infinity", &Config.limit?/1},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      agent:
        {"a map, a function without arguments or nil",
         &(is_nil(&1) or is_map(&1) or is_function(&1, 0))},
      shown: {"a list of texts", &Options.texts?/1},
      on_result: {"a function of one argument", &is_function(&1, 1)},
      json: {"whether errors are about a JSON object", &is_boolean/1},
      progress: {"a function of three arguments or nil", &(is_nil(&1) or is_function(&1, 3))},
      workflow: {"the :workflow of a Skillbook.Context", &(is_nil(&1) or is_map(&1))},
      journal: {"the :journal of a durable run, or nil", &(is_nil(&1) or is_function(&1, 3))}
    ]
  end
end
