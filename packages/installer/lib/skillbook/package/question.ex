defmodule Skillbook.Package.Question do
  @moduledoc """
  Describes a skill that needs consent before it is installed, updated or imported.

  The `:accept` function of `Skillbook.Package` gets it and returns whether to accept the skill.
  This one accepts skills without warnings:

      accept: fn question ->
        Enum.all?(question.inspection.findings, &(&1.level == :notice))
      end

  ## Fields

    * `:name`, `:description` - the skill's name and description
    * `:source` - the source: an absolute path or an address
    * `:commit` - the git commit, or `nil` for other sources
    * `:new` - `true` unless the skill is already installed from this source
    * `:inspection` - all findings, a `Skillbook.Package.Inspection`
    * `:grown` - the findings that were not accepted before; all findings of a new skill
    * `:diffs` - for each installed text file with such findings, its path and the lines of a
      unified diff
    * `:diagnostics` - the diagnostics of `Skillbook.Lint` with `strict: true`, without hints
  """

  alias Skillbook.Diagnostic
  alias Skillbook.Package.Inspection

  @type t :: %__MODULE__{
          name: String.t(),
          description: String.t(),
          source: String.t(),
          commit: String.t() | nil,
          new: boolean(),
          inspection: Inspection.t(),
          grown: [Inspection.finding()],
          diffs: [{String.t(), [String.t()]}],
          diagnostics: [Diagnostic.t()]
        }

  @enforce_keys [
    :name,
    :description,
    :source,
    :commit,
    :new,
    :inspection,
    :grown,
    :diffs,
    :diagnostics
  ]
  defstruct @enforce_keys
end
