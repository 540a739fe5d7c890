defmodule Skillbook.Catalog.ProblemLog do
  @moduledoc false
  # Logs the errors and warnings of a book's documents when it starts, and new ones after a
  # reload: each once for a document, also if its line changes. Those of the store come when
  # somebody reads them: a start must not read all entries.

  alias Skillbook.{Catalog, Diagnostic}

  require Logger

  # Of each severity. There may be thousands.
  @max_lines 10

  @typedoc "The hashes of problems that were logged."
  @type logged :: MapSet.t(binary())

  @doc """
  Logs the problems of these severities that are not among those logged before. Returns all that
  it found, and the place to go on from, or `nil`.

  It looks at records of the store that somebody reads, if they were not looked at since they
  changed; with `all?` at all that somebody reads, and at files.
  """
  @spec log_new(
          atom(),
          Catalog.t(),
          [:error | :warning],
          logged(),
          all? :: boolean(),
          from :: non_neg_integer()
        ) :: {logged(), non_neg_integer() | nil}
  def log_new(book, catalog, severities, before, all?, from) do
    {problems, next} = Catalog.problems(catalog, all?, from)
    problems = for problem <- problems, do: {key(problem), problem}
    fresh = Enum.reject(problems, fn {key, _problem} -> key in before end)
    new = for {_key, problem} <- Enum.uniq_by(fresh, &elem(&1, 0)), do: problem
    for level <- severities, do: log(book, level, Enum.filter(new, &(&1.severity == level)))
    {MapSet.new(problems, fn {key, _problem} -> key end), next}
  end

  # A hash is smaller than a message. An edit that leaves a warning only changes its text, such as
  # a number in it; of errors each text counts, since the document is not used meanwhile.
  defp key(%Diagnostic{severity: :warning, code: code, path: path}) when is_binary(path),
    do: :erlang.md5([to_string(code), 0, path])

  defp key(%Diagnostic{code: code, path: path, message: message}),
    do: :erlang.md5([to_string(code), 0, path || "", 0, message])

  defp log(book, level, problems) do
    first = first(problems)
    more = length(problems) - length(first)
    for problem <- first, do: Logger.log(level, ["the book #{inspect(book)}: ", line(problem)])

    if more > 0 do
      Logger.log(
        level,
        "the book #{inspect(book)}: #{more} more #{level}s; " <>
          "Skillbook.diagnostics(#{inspect(book)}) returns all"
      )
    end
  end

  # The first of each code, then the second of each, and so on, so that a flood of one code hides
  # no other. They stay in the order of their places.
  defp first(problems) do
    {numbered, _counts} =
      Enum.map_reduce(Enum.with_index(problems), %{}, fn {%{code: code} = problem, at}, counts ->
        number = Map.get(counts, code, 0)
        {{number, at, problem}, Map.put(counts, code, number + 1)}
      end)

    taken = numbered |> Enum.sort_by(&{elem(&1, 0), elem(&1, 1)}) |> Enum.take(@max_lines)
    for {_number, _at, problem} <- Enum.sort_by(taken, &elem(&1, 1)), do: problem
  end

  # On one line, since a hint has a line of its own otherwise.
  defp line(problem), do: problem |> to_string() |> String.replace("\n  hint: ", "; ")
end
