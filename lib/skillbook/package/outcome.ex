defmodule Skillbook.Package.Outcome do
  @moduledoc """
  What became of one skill.

  ## Fields

    * `:name` - the skill's name
    * `:action` - `:installed`, `:imported`, `:updated`, `:unchanged`, `:restored`, `:removed`, `:failed`; of `Skillbook.Package.outdated/1` also
      `:current`, `:outdated`, `:pinned` and `:changed`
    * `:commit` - the commit that it is at, `nil` if it is from no git repository
    * `:question` - what was accepted or not, `nil` if nothing was asked
    * `:changes` - files changed by hand, as `{:added | :changed | :removed, path}`
    * `:error` - of `:failed`, a `Skillbook.PackageError`; of `Skillbook.Package.into_store/3` it may be one of `Skillbook.Store`
  """

  @type t :: %__MODULE__{
          name: String.t(),
          action: atom(),
          commit: String.t() | nil,
          question: Skillbook.Package.Question.t() | nil,
          changes: [{:added | :changed | :removed, String.t()}],
          error: Skillbook.PackageError.t() | Skillbook.Store.error() | nil
        }

  @enforce_keys [:name, :action]
  defstruct [:name, :action, :commit, :question, :error, changes: []]
end
