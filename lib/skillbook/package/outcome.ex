defmodule Skillbook.Package.Outcome do
  @moduledoc """
  What became of one skill.

  ## Fields

    * `:name` - the skill's name
    * `:action` - `:installed`, `:updated`, `:unchanged`, `:restored`, `:removed`, `:failed`; of `Skillbook.Package.outdated/1` also
      `:current`, `:outdated`, `:pinned` and `:changed`
    * `:commit` - the commit that it is at, `nil` if it is from no git repository
    * `:question` - what was accepted or not, `nil` if nothing was asked
    * `:changes` - files changed by hand, as `{:added | :changed | :removed, path}`
    * `:error` - of `:failed`, a `Skillbook.PackageError`
  """

  @type t :: %__MODULE__{
          name: String.t(),
          action: atom(),
          commit: String.t() | nil,
          question: Skillbook.Package.Question.t() | nil,
          changes: [{:added | :changed | :removed, String.t()}],
          error: Skillbook.PackageError.t() | nil
        }

  @enforce_keys [:name, :action]
  defstruct [:name, :action, :commit, :question, :error, changes: []]
end
