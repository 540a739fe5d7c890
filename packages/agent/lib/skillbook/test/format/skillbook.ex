defmodule Skillbook.Test.Format.Skillbook do
  @moduledoc false
  # Skillbook's own format: `evals.yaml` beside a SKILL.md, `NAME.evals.yaml` beside NAME.md.
  # docs/testing.md describes its fields.

  alias Skillbook.{Frontmatter, FrontmatterError}
  alias Skillbook.Support.{Closest, UntilError}
  alias Skillbook.Test.{Evaluation, EvaluationFile, Match}

  # Fields of the whole file, which an evaluation may have too.
  @shared ~w(skill profile system setup stubs ask now max_turns max_time max_tokens repeat)
  @own ~w(name request files calls not_calls reads answer rubric)
  @answer ~w(contains not_contains matches)
  @max_evaluations 1_000
  @max_repeat 100

  @spec read(String.t(), Path.t()) :: {[Evaluation.t()], [Skillbook.Diagnostic.t()]}
  def read(text, path) do
    case yaml(text) do
      {:ok, data, diagnostics} ->
        lines = String.split(text, "\n")
        {evaluations, errors} = evaluations(data, path, lines)
        {evaluations, diagnostics ++ errors}

      {:error, line, message, hint} ->
        {[], [EvaluationFile.invalid(line, message, hint)]}
    end
  end

  # The reader of frontmatter knows where YAML is broken, and repairs what is clear.
  defp yaml(text) do
    case Frontmatter.parse("---\n" <> String.replace_prefix(text, "---\n", "\n") <> "\n---\n") do
      {:ok, %{data: data, diagnostics: diagnostics}} ->
        {:ok, data, Enum.map(diagnostics, &%{&1 | line: &1.line && &1.line - 1})}

      {:error, %FrontmatterError{} = error} ->
        {:error, max(error.line - 1, 1), error.reason, error.hint}
    end
  end

  defp evaluations(data, path, lines) do
    unknown = unknown(Map.keys(data), ["evaluations" | @shared], &line(lines, &1), "the file")

    case data["evaluations"] do
      [_ | _] = items when length(items) <= @max_evaluations ->
        shared = Map.take(data, @shared)
        starts = starts(lines)

        read =
          for {item, index} <- Enum.with_index(items) do
            evaluation(item, shared, index, path, {lines, Enum.at(starts, index, 1)}, starts)
          end

        {for({:ok, evaluation} <- read, unknown == [], do: evaluation),
         unknown ++ for({:error, errors} <- read, error <- errors, do: error)}

      other ->
        got = if other == nil, do: "none", else: show(other)
        message = "expected `evaluations`, a list of 1 to #{@max_evaluations}, got: #{got}"

        {[],
         unknown ++ [EvaluationFile.invalid(line(lines, "evaluations"), message, hint_of_file())]}
    end
  end

  defp hint_of_file, do: "write `evaluations:` and below it `- name: …`, `request: …`"

  defp evaluation(%{} = item, shared, index, path, {lines, start}, starts) do
    rest = Enum.at(starts, index + 1, length(lines) + 1)
    place = &line_within(lines, &1, start, rest)
    subject = "evaluation #{index + 1}"
    unknown = unknown(Map.keys(item), @own ++ @shared, place, subject)

    {fields, errors} =
      for {key, value} <- Map.merge(shared, item), key in (@own ++ @shared), reduce: {[], []} do
        {fields, errors} ->
          case field(key, value) do
            {:ok, more} ->
              {fields ++ more, errors}

            {:error, expected, got} ->
              message = "expected #{expected} as `#{key}` of #{subject}, got: #{got}"
              {fields, errors ++ [EvaluationFile.invalid(place.(key), message)]}
          end
      end

    evaluation =
      struct!(
        %Evaluation{path: path, line: start, name: nil, beside: beside(path)},
        files(fields, path)
      )

    case unknown ++ errors ++ missing(evaluation, subject, start, unknown ++ errors) do
      [] -> {:ok, evaluation}
      errors -> {:error, errors}
    end
  end

  defp evaluation(item, _shared, index, _path, {_lines, start}, _starts) do
    message = "expected fields of evaluation #{index + 1}, got: #{show(item)}"
    {:error, [EvaluationFile.invalid(start, message, "write `name: …` and `request: …`")]}
  end

  defp missing(evaluation, subject, line, errors) do
    cond do
      errors != [] -> []
      evaluation.name == nil -> [lacks(subject, line, "name", "a short title")]
      evaluation.requests == [] -> [lacks(subject, line, "request", "the words of a user")]
      not checks?(evaluation) -> [checks_nothing(evaluation.name, line)]
      true -> []
    end
  end

  defp lacks(subject, line, field, example),
    do:
      EvaluationFile.invalid(
        line,
        "#{subject} needs `#{field}`",
        "write `#{field}:` and #{example}"
      )

  @doc "An evaluation that would always pass."
  def checks_nothing(name, line) do
    EvaluationFile.invalid(
      line,
      "the evaluation `#{name}` checks nothing",
      "write `calls:`, `not_calls:`, `reads:`, `answer:` or `rubric:`"
    )
  end

  @doc "Whether an evaluation can fail by more than its limits."
  def checks?(evaluation) do
    Enum.any?(
      [:calls, :not_calls, :reads, :contains, :not_contains, :matches, :rubric],
      &(Map.fetch!(evaluation, &1) != [])
    )
  end

  @doc "The file of the skill that a file of evaluations lies beside, if there is one."
  def beside(path) do
    folder = Path.dirname(path)
    base = path |> Path.basename() |> String.replace(~r/\.?(evals\.yaml|eval\.md)$/i, "")
    names = if base == "", do: ["SKILL.md", "skill.md"], else: [base <> ".md"]
    names |> Enum.map(&Path.expand(Path.join(folder, &1))) |> Enum.find(&File.regular?/1)
  end

  defp files(fields, path) do
    Keyword.replace_lazy(fields, :files, fn files ->
      Enum.map(files, &Path.expand(&1, Path.dirname(path)))
    end)
  end

  # The value of a field, as fields of the struct

  defp field(key, value) when key in ~w(name skill profile system) do
    if text?(value),
      do: {:ok, [{String.to_existing_atom(key), value}]},
      else: wrong("text", value)
  end

  defp field("request", value), do: texts(:requests, value, "text, or a list of texts")
  defp field("rubric", value), do: texts(:rubric, value, "text, or a list of texts")
  defp field("setup", value), do: lines(:setup, value)

  defp field(key, value) when key in ~w(files reads),
    do: texts(String.to_existing_atom(key), value, "a list of texts")

  defp field(key, value) when key in ~w(calls not_calls),
    do: calls(String.to_existing_atom(key), value)

  defp field("answer", %{} = answer) do
    case Map.keys(answer) -- @answer do
      [] -> answers(answer)
      [key | _] -> {:error, "the fields #{Enum.join(@answer, ", ")}", show(key)}
    end
  end

  defp field("answer", value), do: texts(:contains, value, "text, a list of texts, or fields")

  defp field("stubs", %{} = stubs) do
    read = Enum.map(stubs, fn {name, answer} -> {name, stub(answer)} end)

    case Enum.find(read, fn {_name, answer} -> answer == :error end) do
      nil -> {:ok, [stubs: Map.new(read)]}
      {name, _} -> {:error, "a text or `error: text` for each name", show(stubs[name])}
    end
  end

  defp field("stubs", value), do: wrong("names with answers", value)
  defp field("ask", value) when value in ["allow", "deny"], do: {:ok, [ask: ask(value)]}
  defp field("ask", value), do: wrong("`allow` or `deny`", value)

  defp field("now", value) do
    with true <- is_binary(value), {:ok, time, _offset} <- DateTime.from_iso8601(value) do
      {:ok, [now: time]}
    else
      _ -> wrong("a time such as 2026-03-01T08:00:00Z", value)
    end
  end

  defp field("max_time", value) when is_number(value) and value > 0 and value <= 86_400,
    do: {:ok, [max_time: max(round(value * 1000), 1)]}

  defp field("max_time", value), do: wrong("a number of seconds up to 86400", value)

  defp field("repeat", value) when is_integer(value) and value in 1..@max_repeat,
    do: {:ok, [repeat: value]}

  defp field("repeat", value), do: wrong("a whole number from 1 to #{@max_repeat}", value)

  defp field(key, value) when is_integer(value) and value > 0,
    do: {:ok, [{String.to_existing_atom(key), value}]}

  defp field(_limit, value), do: wrong("a whole number from 1", value)

  defp ask("allow"), do: :allow
  defp ask("deny"), do: :deny

  defp stub(text) when is_binary(text), do: text

  defp stub(%{"error" => text} = stub) when map_size(stub) == 1 and is_binary(text),
    do: {:error, text}

  defp stub(_other), do: :error

  defp texts(field, value, expected) do
    values = List.wrap(value)

    if values != [] and Enum.all?(values, &text?/1),
      do: {:ok, [{field, values}]},
      else: wrong(expected, value)
  end

  defp lines(field, value) do
    with {:ok, [{_, lines}]} = read <- texts(field, value, "a list of commands") do
      case Enum.find(lines, &match?({:error, _}, Match.line(&1))) do
        nil -> read
        line -> {:error, "commands", show(line)}
      end
    end
  end

  defp answers(answer) do
    UntilError.reduce(answer, [], fn {key, value}, fields ->
      field = String.to_existing_atom(key)

      with {:ok, [{_, texts}] = more} <-
             texts(field, value, "text, or a list of texts, in `#{key}`"),
           :ok <- if(field == :matches, do: regexes(texts), else: :ok),
           do: {:ok, fields ++ more}
    end)
  end

  defp regexes(sources) do
    Enum.find_value(sources, :ok, fn source ->
      with {:error, _} <- Regex.compile(source, "u"),
           do: {:error, "regular expressions", show(source)},
           else: (_ -> nil)
    end)
  end

  defp calls(field, value) do
    expected = "commands, or `name` with `flags`,"

    case UntilError.map(List.wrap(value), &call/1) do
      {:ok, []} -> wrong(expected, value)
      {:ok, calls} -> {:ok, [{field, calls}]}
      {:error, got} -> {:error, expected, got}
    end
  end

  defp call(line) when is_binary(line) do
    with {:error, text} <- Match.line(line), do: {:error, "#{show(line)} (#{text})"}
  end

  defp call(%{"name" => name} = call) when is_binary(name) do
    flags = call["flags"] || %{}

    with [] <- Map.keys(call) -- ~w(name flags exact),
         true <- is_map(flags) and is_boolean(call["exact"] || false),
         {:ok, flags} <- patterns(flags) do
      {:ok, Match.named(name, flags, call["exact"] || false)}
    else
      _ -> {:error, show(call)}
    end
  end

  defp call(other), do: {:error, show(other)}

  # `/late/` is a regular expression.
  defp patterns(flags) do
    UntilError.reduce(flags, %{}, fn {name, value}, done ->
      with {:ok, value} <- pattern(value), do: {:ok, Map.put(done, name, value)}
    end)
  end

  defp pattern("/" <> rest = text) do
    if byte_size(rest) > 1 and String.ends_with?(rest, "/") do
      with {:error, _} <- Regex.compile(String.slice(rest, 0..-2//1), "u"), do: :error
    else
      {:ok, text}
    end
  end

  defp pattern(value), do: {:ok, value}

  defp text?(value), do: is_binary(value) and String.trim(value) != ""
  defp wrong(expected, value), do: {:error, expected, show(value)}

  defp show(value), do: Skillbook.Model.JSONSchema.show(value)

  defp unknown(keys, known, place, subject) do
    for key <- Enum.sort(keys -- known) do
      close = Closest.to(key, known)

      hint =
        if close, do: "did you mean `#{close}`?", else: "the fields are #{Enum.join(known, ", ")}"

      EvaluationFile.invalid(place.(key), "unknown field `#{key}` of #{subject}", hint)
    end
  end

  # Places

  defp line(lines, key) do
    found = Enum.find_index(lines, &(&1 =~ ~r/^["']?#{Regex.escape(key)}["']?\s*:/))
    (found || 0) + 1
  end

  defp line_within(lines, key, first, rest) do
    found =
      lines
      |> Enum.slice((first - 1)..(rest - 2)//1)
      |> Enum.find_index(&(&1 =~ ~r/^\s*(?:-\s+)?["']?#{Regex.escape(key)}["']?\s*:/))

    if found, do: first + found, else: shared_line(lines, key, first)
  end

  # A field of the whole file.
  defp shared_line(lines, key, first) do
    case line(lines, key) do
      1 -> if hd(lines) =~ ~r/^#{Regex.escape(key)}\s*:/, do: 1, else: first
      line -> line
    end
  end

  # The lines on which the items of `evaluations` begin: those with its first item's indentation.
  defp starts(lines) do
    numbered = lines |> Enum.with_index(1) |> Enum.drop(line(lines, "evaluations"))

    case Enum.find(numbered, fn {line, _} -> line =~ ~r/^\s*-(\s|$)/ end) do
      nil ->
        []

      {first, _} ->
        [indentation] = Regex.run(~r/^\s*/, first)

        numbered
        |> Enum.take_while(fn {line, _} -> line =~ ~r/^(\s|-|#|$)/ end)
        |> Enum.filter(fn {line, _} -> line =~ ~r/^#{indentation}-(\s|$)/ end)
        |> Enum.map(&elem(&1, 1))
    end
  end
end
