defmodule Skillbook.Package.Consent do
  @moduledoc false
  # Decides whether a skill may be installed, updated or imported: inspects its files, checks
  # `:strict`, and asks the `:accept` function if the skill is new or has new findings.

  alias Skillbook.Package.{Inspection, Installed, LockFile, Question}
  alias Skillbook.Support.Diff
  alias Skillbook.{Frontmatter, Lint, PackageError}

  @doc """
  Returns the question if it was accepted or needs no answer, otherwise an error.

  `entry` is the lock file entry of the installed skill, or `nil`. A refusal by the `:accept`
  function also returns the question, so that a caller can show it.
  """
  def ask(origin, skill, files, entry, options) do
    question = question(origin, skill, files, entry, options)

    with :ok <- check_strict(question, options),
         :ok <- check_accepted(question, options),
         do: {:ok, question}
  end

  defp question(origin, skill, files, entry, options) do
    inspection = Inspection.of(files)
    new = entry == nil or LockFile.origin(entry) != {origin.kind, origin.place}
    grown = Inspection.grown(inspection, if(new, do: [], else: entry["accepted"]))

    %Question{
      name: skill.name,
      description: description(files) || skill.description,
      source: origin.place,
      commit: origin.commit,
      new: new,
      inspection: inspection,
      grown: grown,
      diffs: if(new, do: [], else: diffs(files, grown, options[:to], skill.name)),
      diagnostics: diagnostics(skill.name, files)
    }
  end

  # A website's index may describe a skill in other words than the page that a model reads.
  defp description(files) do
    with {_, text} <- Enum.find(files, fn {item, _} -> item.path == "SKILL.md" end),
         {:ok, %{data: %{"description" => text}}} when is_binary(text) <- Frontmatter.parse(text),
         do: text,
         else: (_ -> nil)
  end

  defp diffs(files, grown, to, name) do
    for path <- grown |> Enum.map(& &1.file) |> Enum.uniq(),
        old = Installed.text(to, name, path),
        {_, new} <- [Enum.find(files, fn {item, _} -> item.path == path end)],
        String.valid?(new),
        do: {path, old |> Diff.unified(new) |> String.split("\n", trim: true)}
  end

  # Lints the Markdown files in a temporary folder, under the name that the skill will have.
  defp diagnostics(name, files) do
    unique = "skillbook-lint-#{System.pid()}-#{System.unique_integer([:positive])}"
    scratch = Path.join(System.tmp_dir!(), unique)
    root = Path.join(scratch, name)

    try do
      for {item, bytes} <- files, String.ends_with?(String.downcase(item.path), ".md") do
        path = Path.join(root, item.path)
        File.mkdir_p!(Path.dirname(path))
        File.write!(path, bytes, [:exclusive])
      end

      # The inspection lists hidden characters.
      for diagnostic <- Lint.run([scratch], strict: true),
          diagnostic.code != :hidden_characters,
          diagnostic.severity != :info,
          do: %{diagnostic | path: Path.relative_to(diagnostic.path, root)}
    after
      File.rm_rf(scratch)
    end
  end

  defp check_strict(question, options) do
    case options[:strict] && Enum.filter(question.diagnostics, &(&1.severity == :error)) do
      [first | _] ->
        PackageError.new(
          :skill,
          question.name,
          "does not pass the check: #{first.message}",
          "install it without --strict, or ask its author to fix it"
        )

      _ ->
        :ok
    end
  end

  defp check_accepted(%{new: false, grown: []}, _options), do: :ok

  defp check_accepted(question, options) do
    if options[:accept].(question) do
      :ok
    else
      reason =
        if question.new,
          do: "was not accepted",
          else: "can do more than was accepted"

      {:error, error} =
        PackageError.new(
          :not_accepted,
          question.name,
          reason,
          "review the findings, then accept it with --yes"
        )

      {:error, error, question}
    end
  end
end
