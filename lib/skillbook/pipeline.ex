defmodule Skillbook.Pipeline do
  @moduledoc false
  # A model's text in, a report out: extractor, router, executor, in that order for each command.

  alias Skillbook.{
    Book,
    Bounded,
    Entry,
    Executor,
    Extractor,
    HandlerError,
    Options,
    Report,
    Result,
    Router,
    Stray,
    Telemetry,
    View
  }

  # As long as a page should be at most, and a half more.
  @default_max_result 30_000
  @skipped "Not run, because a command before it failed. If it is still wanted, write it again."

  @doc "Runs the commands of a reply."
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  def run(%View{} = view, text, options) do
    check(options, [unclosed: {":hold or :run", &(&1 in [:hold, :run])}] ++ schema())
    {unclosed, options} = Keyword.pop(options, :unclosed, :hold)

    case Extractor.extract(text, unclosed: unclosed) do
      {:ok, %{commands: [], incomplete: [], text: text}} ->
        %Report{text: text, notes: Stray.notes(view, text)}

      {:ok, found} ->
        results = commands(view, found.commands, options)
        %Report{text: found.text, results: results, incomplete: found.incomplete}

      {:error, error} ->
        # No reply is lost: what cannot be read as commands is still the user's text.
        %Report{text: printable(text), results: [Result.error(error)]}
    end
  end

  @doc "Runs commands, one after the other: the options of `run/3` without `:unclosed`."
  @spec commands(View.t(), [String.t()], keyword()) :: [Result.t()]
  def commands(%View{} = view, lines, options \\ []) do
    check(options, schema())
    {on_error, options} = Keyword.pop(options, :on_error, :continue)

    {results, _halted} =
      Enum.map_reduce(lines, false, fn
        line, true ->
          {tell(%Result{status: :skipped, content: @skipped, command: line, duration: 0}, options), true}

        line, false ->
          result = view |> command(line, options) |> tell(options)
          {result, on_error == :halt and result.status == :error}
      end)

    results
  end

  defp tell(result, options) do
    if on_result = options[:on_result], do: on_result.(result)
    result
  end

  defp check(options, schema) do
    with {:error, error} <- Options.validate(options, "run", schema), do: raise(error)
  end

  defp command(view, line, options) do
    began = System.monotonic_time()
    found = Router.find(view, line)
    book = Book.find(view.book)
    about = about(view, book, found)

    Telemetry.span([:skillbook, :command], about, fn ->
      result = %{result(found, view, options) | name: about.skill, command: line}

      result =
        Bounded.result(result, view, options[:max_result] || (book && book.max_result) || @default_max_result)

      duration = System.convert_time_unit(System.monotonic_time() - began, :native, :microsecond)
      ended(%{result | duration: duration})
    end)
  end

  # An error of the handler is its answer; that it gave none is another thing.
  defp ended(%Result{error: %HandlerError{kind: kind}} = result),
    do: {:exception, result, %{status: :error, kind: kind}}

  defp ended(result), do: {:stop, result, %{status: result.status, reads: reads(result.metadata)}}

  # The entries whose texts it has, or parts of them.
  defp reads(metadata) do
    names = for key <- [:activates, :parts], entry <- metadata[key] || [], do: entry.name
    Enum.uniq(names)
  end

  # Of a line that is no command nothing is told: whatever it holds may be a secret.
  defp about(view, book, found) do
    about = %{book: view.book, profile: view.profile.id, generation: view.generation, skill: nil, effect: nil}

    case found do
      {:ok, %{entry: entry, command: command}} ->
        about = %{about | skill: entry.name, effect: Entry.effect(entry)}
        if book && book.telemetry_flags, do: Map.put(about, :flags, command.flags), else: about

      _ ->
        about
    end
  end

  defp result({:help, text, entries, skills}, _view, _options) do
    metadata =
      for {key, [_ | _] = entries} <- [activates: entries, parts: skills],
          into: %{},
          do: {key, Enum.map(entries, &Entry.activation/1)}

    %Result{status: :help, content: text, metadata: metadata}
  end

  defp result({:error, error}, _view, _options), do: Result.error(error)

  # A book may stop in the middle of a turn; what ran until then is still reported.
  defp result({:ok, routed}, view, options) do
    context = Executor.context(view, routed, Keyword.take(options, [:now, :by, :assigns, :agent]))

    case Executor.execute(routed, context, Keyword.take(options, [:timeout, :ask])) do
      {:ok, result} -> result
      {:error, error} -> Result.error(error)
    end
  rescue
    error in ArgumentError ->
      if Book.find(view.book),
        do: Result.error(error),
        else: Result.error(%HandlerError{kind: :stopped, name: routed.name, handler: routed.entry.handler})
  end

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
      assigns: {"a map", &is_map/1},
      now: {"a DateTime", &is_struct(&1, DateTime)},
      by: {":agent or :user", &(&1 in [:agent, :user])},
      ask: {"a function of one argument, {module, function} or nil", &Book.ask?/1},
      max_result: {"a number of characters or :infinity", &Book.limit?/1},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      agent:
        {"a map, a function without arguments or nil", &(is_nil(&1) or is_map(&1) or is_function(&1, 0))},
      on_result: {"a function of one argument", &is_function(&1, 1)}
    ]
  end
end
