defmodule Skillbook.Preflight.Pick do
  @moduledoc """
  An entry that `Skillbook.Preflight.run/3` picked for a request, or a profile that
  `Skillbook.Preflight.profile/3` picked.

  ## Fields

    * `:name` - the name of the entry, or the id of the profile
    * `:confidence` - how likely it helps, from 0.0 to 1.0. That of `:retrieval` is calibrated on
      public requests, that of `:model` is the model's own
    * `:reason` - why it was picked, for people: the keyword, the scores, or the model's words
    * `:stage` - the stage that picked it: `:keywords`, `:retrieval` or `:model`

  ## Examples

      iex> pick = %Skillbook.Preflight.Pick{name: "haiku", confidence: 0.9, stage: :retrieval}
      iex> pick.reason
      ""
  """

  @type stage :: :keywords | :retrieval | :model
  @type t :: %__MODULE__{
          name: String.t(),
          confidence: float(),
          reason: String.t(),
          stage: stage()
        }

  @enforce_keys [:name, :confidence, :stage]
  defstruct [:name, :confidence, :stage, reason: ""]
end
