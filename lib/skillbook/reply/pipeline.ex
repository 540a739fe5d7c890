defmodule Skillbook.Reply.Pipeline do
  @moduledoc false
  # A model's text in, a report out: extractor, router, executor, in that order for each command.

  alias Skillbook.Reply.{Placeholder, StrayCommands, Truncation}
  alias Skillbook.Support.Options

  alias Skillbook.{
    Book,
    Command,
    Entry,
    Executor,
    Extractor,
    HandlerError,
    PlaceholderError,
    Report,
    Result,
    Router,
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
      {:ok, found} ->
        results = each(view, found.commands, options)

        %Report{
          text: found.text,
          results: results,
          incomplete: found.incomplete,
          notes: notes(view, text, found)
        }

      {:error, error} ->
        # No reply is lost: what cannot be read as commands is still the user's text.
        %Report{text: printable(text), results: [Result.error(error)]}
    end
  end

  @doc "Runs commands, one after the other: the options of `run/3` without `:unclosed`."
  @spec commands(View.t(), [String.t()], keyword()) :: [Result.t()]
  def commands(%View{} = view, lines, options \\ []) do
    check(options, schema())
    each(view, lines, options)
  end

  # Commands outside of blocks are looked for where there is no block, or one that was not closed hides some.
  defp notes(_view, _text, %{commands: [_ | _]} = found) when not is_map_key(found, :hidden),
    do: []

  defp notes(view, text, found), do: StrayCommands.notes(view, text, found)

  defp each(view, lines, options) do
    {on_error, options} = Keyword.pop(options, :on_error, :continue)

    {results, _} =
      Enum.map_reduce(lines, {false, %{}}, fn
        line, {true, before} ->
          {tell(
             %Result{status: :skipped, content: @skipped, command: line, duration: 0},
             options
           ), {true, before}}

        line, {false, before} ->
          {result, whole} = command(view, line, &fill(&1, before), options)
          result = tell(result, options)
          before = Map.put(before, map_size(before) + 1, {result.status, whole})
          {result, {on_error == :halt and result.status == :error, before}}
      end)

    results
  end

  defp fill(%Command{placeholders: []} = command, _before), do: {:ok, command}
  defp fill(command, before), do: Placeholder.fill(command, &value(&1, before))

  # What a placeholder stands for: the whole text of a result, of which the model may have got a part only.
  defp value(:last, before), do: value(:last, map_size(before), before)
  defp value(number, before), do: value(number, number, before)

  defp value(reference, number, before) do
    case before do
      %{^number => {:error, _}} ->
        {:error, %PlaceholderError{kind: :failed, reference: reference, number: number}}

      %{^number => {_status, text}} ->
        {:ok, text}

      _ ->
        {:error,
         %PlaceholderError{kind: :none, reference: reference, number: map_size(before) + 1}}
    end
  end

  defp tell(result, options) do
    if on_result = options[:on_result], do: on_result.(result)
    result
  end

  defp check([], _schema), do: :ok

  defp check(options, schema) do
    with {:error, error} <- Options.validate(options, "run", schema), do: raise(error)
  end

  @doc """
  Runs one command, whose placeholders `fill` fills in; gives the result, and its text as it was before it was cut.

  Takes the options of `commands/3`, and as `:workflow` what `Skillbook.Context` has of the workflow that it is part of.
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
    found = Router.find(view, line, fill)
    book = Book.find(view.book)
    about = about(view, book, found)

    Telemetry.span([:skillbook, :command], about, fn ->
      %{content: whole} =
        result = %{result(found, view, book, fill, options) | name: about.skill, command: line}

      most = options[:max_result] || (book && book.max_result) || @default_max_result
      result = bounded(result, view, most)
      duration = System.convert_time_unit(System.monotonic_time() - began, :native, :microsecond)
      ended(%{result | duration: duration}, whole)
    end)
  end

  # A text has as many bytes as characters at least. A part that was read of another one tells of itself.
  defp bounded(%Result{content: content, metadata: metadata} = result, _view, most)
       when byte_size(content) <= most and not is_map_key(metadata, :cut),
       do: result

  defp bounded(result, view, most), do: Truncation.result(result, view, most)

  # An error of the handler is its answer; that it gave none is another thing.
  defp ended(%Result{error: %HandlerError{kind: kind}} = result, whole),
    do: {:exception, {result, whole}, %{status: :error, kind: kind}}

  defp ended(result, whole),
    do: {:stop, {result, whole}, %{status: result.status, reads: reads(result.metadata)}}

  # The entries whose texts it has, or parts of them.
  defp reads(metadata) do
    names = for key <- [:activates, :parts], entry <- metadata[key] || [], do: entry.name
    Enum.uniq(names)
  end

  # Of a line that is no command nothing is told: whatever it holds may be a secret. Flags are told as they were written, with
  # the placeholders in them.
  defp about(view, book, found) do
    about = %{
      book: view.book,
      profile: view.profile.id,
      generation: view.generation,
      skill: nil,
      effect: nil
    }

    case found do
      {:ok, %{entry: entry, command: command}} ->
        about = %{about | skill: entry.name, effect: Entry.effect(entry)}
        if book && book.telemetry_flags, do: Map.put(about, :flags, command.flags), else: about

      _ ->
        about
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
      {:error, error} -> Result.error(error)
    end
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
        {"a map, a function without arguments or nil",
         &(is_nil(&1) or is_map(&1) or is_function(&1, 0))},
      on_result: {"a function of one argument", &is_function(&1, 1)},
      workflow: {"what Skillbook.Context has as :workflow", &(is_nil(&1) or is_map(&1))}
    ]
  end
end
