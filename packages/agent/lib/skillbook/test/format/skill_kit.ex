defmodule Skillbook.Test.Format.SkillKit do
  @moduledoc false
  # SkillKit's `EVAL.md` and `NAME.eval.md` (its guides/evals.md). The versions of the format:
  #
  #   * a heading of level 2 for each evaluation, with the sections Prompt and Expect below it
  #   * one evaluation with a `name` in the frontmatter, and the sections Prompt and Expect
  #   * one evaluation with `name`, `prompt` and `expect` in the frontmatter, and a rubric below

  alias Skillbook.Frontmatter
  alias Skillbook.Test.Format.Skillbook, as: Own
  alias Skillbook.Test.{Evaluation, EvaluationFile, Match}

  @known ~w(name description prompt expect system skills tools model agent module metadata)

  @spec read(String.t(), Path.t()) :: {[Evaluation.t()], [Skillbook.Diagnostic.t()]}
  def read(text, path) do
    case Frontmatter.parse(text) do
      {:ok, %{data: data, body: body, diagnostics: diagnostics}} ->
        first = length(String.split(text, "\n")) - length(String.split(body, "\n")) + 1
        {base, warnings} = base(data, path, text)
        {evaluations, errors} = evaluations(data, body, first, base)
        {evaluations, diagnostics ++ warnings ++ errors}

      {:error, error} ->
        {[], [EvaluationFile.invalid(error.line, error.reason, error.hint)]}
    end
  end

  # The fields for all evaluations of a file.
  defp base(data, path, text) do
    place = &line(text, &1)
    skills = List.wrap(data["skills"])
    {paths, others} = Enum.split_with(skills, &(is_binary(&1) and not module?(&1)))
    skill = Enum.find_value(paths, &skill(&1, path))

    warnings =
      for(other <- others, do: unsupported(place.("skills"), "the skill #{inspect(other)}")) ++
        for(
          path <- Enum.drop(paths, 1),
          do: unsupported(place.("skills"), "a second skill, #{path}")
        ) ++
        for(
          key <- ~w(tools model agent module),
          data[key] not in [nil, []],
          do: unsupported(place.(key), "the field `#{key}`")
        ) ++
        for(
          key <- Enum.sort(Map.keys(data) -- @known),
          do: unsupported(place.(key), "the field `#{key}`")
        )

    base = %Evaluation{
      path: path,
      line: 1,
      name: nil,
      format: :skill_kit,
      beside: skill || if(skills == [], do: Own.beside(path)),
      system: if(is_binary(data["system"]), do: data["system"])
    }

    {base, warnings}
  end

  defp module?(skill), do: skill =~ ~r/^[A-Z][A-Za-z0-9_.]*$/

  # A folder of a skill, or its file; relative to the project or to the file of evaluations.
  defp skill(skill, path) do
    for folder <- [Path.dirname(path), File.cwd!()],
        file <- ["SKILL.md", "skill.md", ""],
        place = Path.expand(Path.join(skill, file), folder),
        File.regular?(place) do
      place
    end
    |> List.first()
  end

  @hints %{
    "tools" => "the profile's tools are used; stub commands in an evals.yaml",
    "model" => "name the model on the command line, or as the option `:model`",
    "agent" => "the profile of the run is used, with all of its skills",
    "module" => "write `use Skillbook.Skill` in the module, and name it as a source"
  }

  defp unsupported(line, text) do
    hint = Enum.find_value(@hints, fn {key, hint} -> if text =~ "`#{key}`", do: hint end)

    EvaluationFile.unsupported(
      line,
      "#{text} is not supported",
      hint || "name the skill by its folder"
    )
  end

  # A name in the frontmatter makes the file one evaluation.
  defp evaluations(%{"name" => name} = data, body, first, base) when is_binary(name) do
    sections = {name, first, all_sections(body, first)}

    if is_binary(data["prompt"]),
      do: oldest(data, body, base),
      else: [sections] |> Enum.map(&one(&1, base)) |> split()
  end

  defp evaluations(_data, body, first, base) do
    case cases(body, first) do
      [] ->
        message = "expected a heading of level 2 for each evaluation, got none"

        {[],
         [
           EvaluationFile.invalid(
             first,
             message,
             "write `## NAME`, `### Prompt` and `### Expect`"
           )
         ]}

      cases ->
        cases |> Enum.map(&one(&1, base)) |> split()
    end
  end

  defp split(read) do
    {for({:ok, evaluation} <- read, do: evaluation), for({:error, error} <- read, do: error)}
  end

  defp one({name, line, sections}, base) do
    prompt = String.trim(sections["prompt"] || "")
    rubric = String.trim(sections["expect"] || "")

    cond do
      prompt == "" -> {:error, lacks(line, name, "Prompt")}
      rubric == "" -> {:error, lacks(line, name, "Expect")}
      true -> {:ok, %{base | name: name, line: line, requests: [prompt], rubric: [rubric]}}
    end
  end

  defp lacks(line, name, section) do
    EvaluationFile.invalid(
      line,
      "the evaluation `#{name}` needs a section #{section}",
      "write `### #{section}` and text below it"
    )
  end

  # The first form, with its checks in the frontmatter.
  defp oldest(data, body, base) do
    expect = if is_map(data["expect"]), do: data["expect"], else: %{}
    texts = fn key -> expect[key] |> List.wrap() |> Enum.filter(&is_binary/1) end
    rubric = String.trim(body)

    evaluation = %{
      base
      | name: data["name"],
        requests: [data["prompt"]],
        contains: texts.("response"),
        not_contains: texts.("not_response"),
        calls: for(tool <- texts.("tools"), do: Match.named(tool, %{})),
        rubric: if(rubric == "", do: [], else: [rubric])
    }

    if Own.checks?(evaluation),
      do: {[evaluation], []},
      else: {[], [Own.checks_nothing(evaluation.name, 1)]}
  end

  # The cases of a body: their names, lines and sections.
  defp cases(body, first) do
    body
    |> String.split("\n")
    |> Enum.with_index(first)
    |> Enum.chunk_while(
      nil,
      fn {line, number}, open ->
        case heading(line) do
          {:case, name} -> {:cont, open, {name, number, []}}
          _ when open == nil -> {:cont, nil}
          _ -> {:cont, put_elem(open, 2, [{line, number} | elem(open, 2)])}
        end
      end,
      &{:cont, &1, nil}
    )
    |> Enum.reject(&is_nil/1)
    |> Enum.map(fn {name, number, lines} -> {name, number, sections(Enum.reverse(lines))} end)
  end

  defp all_sections(body, first),
    do: body |> String.split("\n") |> Enum.with_index(first) |> sections()

  defp sections(lines) do
    {_open, sections} =
      Enum.reduce(lines, {nil, %{}}, fn {line, _number}, {open, sections} ->
        case heading(line) do
          {:section, name} -> {name, Map.put_new(sections, name, "")}
          _ when open == nil -> {nil, sections}
          _ -> {open, Map.update!(sections, open, &(&1 <> line <> "\n"))}
        end
      end)

    sections
  end

  defp heading(line) do
    case Regex.run(~r/^(\#{1,6})\s*(.*?)\s*$/, line) do
      [_, level, text] ->
        cond do
          String.downcase(text) in ["prompt", "expect"] -> {:section, String.downcase(text)}
          level == "##" and text != "" -> {:case, text}
          true -> nil
        end

      nil ->
        nil
    end
  end

  defp line(text, key) do
    lines = String.split(text, "\n")
    (Enum.find_index(lines, &String.starts_with?(&1, key <> ":")) || 0) + 1
  end
end
