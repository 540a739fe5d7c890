defmodule Skillbook.Package.Question do
  @moduledoc """
  What somebody has to accept before a skill is installed or updated.

  ## Fields

    * `:name`, `:description` - of the skill
    * `:source`, `:commit` - where it is from; the commit is `nil` if it is from no git repository
    * `:new` - whether it is installed for the first time, or in the place of something else
    * `:inspection` - all that it can do, a `Skillbook.Package.Inspection`
    * `:grown` - the findings that were not accepted before; all of them if it is new
    * `:diffs` - for each text file with such findings that was there before, its path and the lines of a unified diff
    * `:diagnostics` - what `Skillbook.Lint` and the Agent Skills format's check say of it
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
