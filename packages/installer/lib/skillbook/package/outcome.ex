defmodule Skillbook.Package.Outcome do
  @moduledoc """
  The result of an operation on one skill.

  ## Fields

    * `:name` - the skill's name
    * `:action` - `:installed`, `:imported`, `:published`, `:updated`, `:unchanged`, `:restored`,
      `:removed` or `:failed`; from `Skillbook.Package.outdated/2` also `:current`, `:outdated`,
      `:pinned` or `:changed`
    * `:commit` - the git commit, or `nil` for other sources
    * `:question` - the `Skillbook.Package.Question` that was accepted or refused, or `nil`
    * `:changes` - files changed by hand, as `{:added | :changed | :removed, path}`
    * `:error` - for `:failed`, a `Skillbook.PackageError`; from `Skillbook.Package.into_store/3`
      also an error of `Skillbook.Store`
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

  @doc false
  def new(name, {:ok, action, commit, question}),
    do: %__MODULE__{name: name, action: action, commit: commit, question: question}

  def new(name, {:error, error, question}),
    do: %__MODULE__{name: name, action: :failed, error: error, question: question}

  def new(name, {:error, error}), do: %__MODULE__{name: name, action: :failed, error: error}
end
