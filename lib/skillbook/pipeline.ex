defmodule Skillbook.Pipeline do
  @moduledoc false
  # A model's text in, a report out: extractor, router, executor, in that order for each command.

  alias Skillbook.{Entry, Executor, Extractor, Options, Report, Result, Router, View}

  @skipped "Not run, because a command before it failed. If it is still wanted, write it again."

  @doc "Runs the commands of a reply."
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  def run(%View{} = view, text, options) do
    check(options, [unclosed: {":hold or :run", &(&1 in [:hold, :run])}] ++ schema())
    {unclosed, options} = Keyword.pop(options, :unclosed, :hold)

    case Extractor.extract(text, unclosed: unclosed) do
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
          {%Result{status: :skipped, content: @skipped, command: line, duration: 0}, true}

        line, false ->
          result = command(view, line, options)
          {result, on_error == :halt and result.status == :error}
      end)

    results
  end

  defp check(options, schema) do
    with {:error, error} <- Options.validate(options, "run", schema), do: raise(error)
  end

  defp command(view, line, options) do
    {duration, {name, result}} = :timer.tc(fn -> result(view, line, options) end)
    result = %{result | name: name, command: line, duration: duration}
    if on_result = options[:on_result], do: on_result.(result)
    result
  end

  defp result(view, line, options) do
    case Router.find(view, line) do
      {:help, text, entries} ->
        metadata = if entries == [], do: %{}, else: %{activates: Enum.map(entries, &Entry.activation/1)}
        {nil, %Result{status: :help, content: text, metadata: metadata}}

      {:ok, routed} ->
        case execute(view, routed, options) do
          {:ok, result} -> {routed.name, result}
          {:error, error} -> {routed.name, Result.error(error)}
        end

      {:error, error} ->
        {nil, Result.error(error)}
    end
  end

  # A book may stop in the middle of a turn; what ran until then is still reported.
  defp execute(view, routed, options) do
    context = Executor.context(view, routed, Keyword.take(options, [:now, :assigns, :agent]))
    Executor.execute(routed, context, Keyword.take(options, [:timeout]))
  rescue
    error in ArgumentError -> {:error, error}
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
      timeout: {"a number of milliseconds", &(is_integer(&1) and &1 > 0)},
      agent: {"a map or nil", &(is_nil(&1) or is_map(&1))},
      on_result: {"a function of one argument", &is_function(&1, 1)}
    ]
  end
end
