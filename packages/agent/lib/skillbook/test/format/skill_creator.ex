defmodule Skillbook.Test.Format.SkillCreator do
  @moduledoc false
  # skill-creator's `evals/evals.json` in the folder of a skill (its references/schemas.md).

  alias Skillbook.Support.JSON
  alias Skillbook.Test.Format.Skillbook, as: Own
  alias Skillbook.Test.{Evaluation, EvaluationFile}

  @known ~w(id name eval_name prompt expected_output files expectations assertions)

  @spec read(String.t(), Path.t()) :: {[Evaluation.t()], [Skillbook.Diagnostic.t()]}
  def read(text, path) do
    case JSON.decode(text) do
      {:ok, %{"evals" => [_ | _] = evals} = data} ->
        lines = prompts(text)
        skill = if is_binary(data["skill_name"]), do: data["skill_name"]
        # `files` are relative to the folder of the skill.
        folder = path |> Path.dirname() |> Path.dirname()
        base = %{beside: beside(folder), skill: skill, folder: folder, path: path}
        other = Map.keys(data) -- ~w(skill_name evals)
        warnings = for key <- Enum.sort(other), do: unsupported(1, "the field `#{key}`")

        read =
          for {eval, index} <- Enum.with_index(evals),
              do: evaluation(eval, Enum.at(lines, index, 1), index, base)

        {for({:ok, evaluation, _} <- read, do: evaluation),
         warnings ++ for({_, _, found} <- read, diagnostic <- found, do: diagnostic)}

      {:ok, _other} ->
        message = "expected an object with `evals`, a list of evaluations"
        hint = ~s(write {"skill_name": "…", "evals": […]})
        {[], [EvaluationFile.invalid(1, message, hint)]}

      {:error, error} ->
        {[], [EvaluationFile.invalid(error.line, "expected JSON, got: #{error.reason}")]}
    end
  end

  defp beside(folder) do
    ["SKILL.md", "skill.md"]
    |> Enum.map(&Path.expand(Path.join(folder, &1)))
    |> Enum.find(&File.regular?/1)
  end

  defp evaluation(%{"prompt" => prompt} = eval, line, index, base) when is_binary(prompt) do
    {statements, odd} = statements(eval)
    files = eval["files"] |> List.wrap() |> Enum.filter(&is_binary/1)
    {inside, outside} = Enum.split_with(files, &inside?/1)

    evaluation = %Evaluation{
      path: base.path,
      line: line,
      format: :skill_creator,
      name: name(eval, index),
      # The folder decides where it is known: a copy of a skill may have another name.
      skill: if(base.beside, do: nil, else: base.skill),
      beside: base.beside,
      requests: [prompt],
      files: Enum.map(inside, &Path.expand(&1, base.folder)),
      rubric: statements
    }

    warnings =
      for(
        key <- Enum.sort(Map.keys(eval) -- @known),
        do: unsupported(line, "the field `#{key}`")
      ) ++
        for(_ <- odd, do: unsupported(line, "a statement that is no text")) ++
        for(file <- outside, do: unsupported(line, "the file #{file} outside of the skill"))

    if Own.checks?(evaluation),
      do: {:ok, evaluation, warnings},
      else: {:error, nil, warnings ++ [nothing(evaluation)]}
  end

  defp evaluation(_eval, line, index, _base) do
    message = "evaluation #{index + 1} needs `prompt`, a text"
    {:error, nil, [EvaluationFile.invalid(line, message, ~s(write "prompt": "…"))]}
  end

  defp nothing(evaluation) do
    EvaluationFile.invalid(
      evaluation.line,
      "the evaluation `#{evaluation.name}` checks nothing",
      ~s(write "expected_output": "…" or "expectations": ["…"])
    )
  end

  defp name(%{"name" => name}, _index) when is_binary(name) and name != "", do: name
  defp name(%{"eval_name" => name}, _index) when is_binary(name) and name != "", do: name
  defp name(%{"id" => id}, _index) when is_integer(id) or is_binary(id), do: "#{id}"
  defp name(_eval, index), do: "#{index + 1}"

  # Older versions say `assertions`.
  defp statements(eval) do
    items =
      [eval["expected_output"]] ++
        List.wrap(eval["expectations"]) ++ List.wrap(eval["assertions"])

    read = for item <- items, item not in [nil, ""], do: statement(item)
    {for({:ok, text} <- read, do: text), for(:error <- read, do: :error)}
  end

  defp statement(text) when is_binary(text), do: {:ok, text}
  defp statement(%{"text" => text}) when is_binary(text), do: {:ok, text}
  defp statement(_other), do: :error

  defp inside?(file), do: match?({:ok, _}, Path.safe_relative_to(file, "/"))

  defp unsupported(line, text) do
    EvaluationFile.unsupported(
      line,
      "#{text} is not supported",
      "write it as a statement of `expectations`"
    )
  end

  # The lines of the prompts, in their order.
  defp prompts(text) do
    for {line, number} <- text |> String.split("\n") |> Enum.with_index(1),
        line =~ ~r/"prompt"\s*:/,
        do: number
  end
end
