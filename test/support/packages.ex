defmodule Skillbook.Test.Packages do
  @moduledoc false
  # For tests that install skills: pages, git repositories, and the outcomes of
  # `Skillbook.Package`.

  import Skillbook.SkillsCase, only: [write: 2]

  @doc "The options that accept every skill."
  def accept_all, do: [accept: fn _question -> true end]

  @doc "The text of a valid `SKILL.md`."
  def skill(name, body \\ "# Page\n"),
    do: "---\nname: #{name}\ndescription: Does #{name} well\n---\n#{body}"

  @doc "Runs git in a folder; returns its output."
  def git!(folder, args) do
    settings = ~w(-c user.name=a -c user.email=a@example.com -c commit.gpgsign=false)

    {output, 0} = System.cmd("git", settings ++ args, cd: folder, stderr_to_stdout: true)
    String.trim(output)
  end

  @doc "A repository with two skills, its commit, and a folder to install to."
  def repository(folder) do
    root = Path.join(folder, "origin.git")

    write(root, %{
      "skills/one/SKILL.md" => skill("one"),
      "skills/one/run.sh" => "echo 1\n",
      ".claude/skills/two/SKILL.md" => skill("two")
    })

    # A copy of a skill, for another program.
    write(root, %{".agents/long/skills/two/SKILL.md" => skill("two")})
    git!(root, ["init", "-q", "-b", "main"])
    {root, commit(root), Path.join(folder, "to")}
  end

  @doc "Commits all changes; returns the commit's id."
  def commit(root) do
    git!(root, ["add", "-A"])
    git!(root, ["commit", "-q", "-m", "x"])
    git!(root, ["rev-parse", "HEAD"])
  end

  @doc "The names and actions of outcomes, or the message of an error."
  def actions({:ok, outcomes}), do: for(outcome <- outcomes, do: {outcome.name, outcome.action})
  def actions({:error, error}), do: Exception.message(error)

  @doc "The messages of outcomes with an error."
  def messages({:ok, outcomes}),
    do: for(%{error: error} <- outcomes, error, do: Exception.message(error))
end
