defmodule Mix.Tasks.Skillbook.Gen.Skill do
  use Mix.Task

  alias Skillbook.Support.Scaffold

  @shortdoc "Makes a skill: a page of instructions"

  @moduledoc """
  Makes `priv/skills/NAME/SKILL.md`, a page of instructions that the model reads when it needs it.

      mix skillbook.gen.skill refund-rules "When a customer gets money back"

  The description decides when the model reads the page, so say what it is for. A book with the
  source `{:priv, :my_app, "skills"}` has it after the next reload.
  """

  @impl true
  def run(argv) do
    Scaffold.project!()
    {_, [name, description]} = Scaffold.parse!("skillbook.gen.skill", argv, [], 2)
    Scaffold.create!([Scaffold.skill(name, description)])
  end
end
